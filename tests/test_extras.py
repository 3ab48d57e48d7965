"""A package of an extra that is missing is named with the extra; anything else is a bug."""

import sys
import tomllib
from pathlib import Path

import pytest

from cptuning import extras
from cptuning.errors import CPTuningError
from cptuning.extras import needed_for


def test_the_part_of_a_package_that_is_missing_does_not_matter(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with (
        pytest.raises(CPTuningError, match=r'out needs pyarrow: pip install "cptuning\[files\]"\.'),
        needed_for("out"),
    ):
        import pyarrow.parquet  # noqa: F401


def test_a_package_of_no_extra_is_a_bug():
    with pytest.raises(ModuleNotFoundError), needed_for("This"):
        import no_such_package  # noqa: F401


def test_every_extra_is_one_that_can_be_installed():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    assert set(extras._EXTRAS) <= set(project["project"]["optional-dependencies"])
