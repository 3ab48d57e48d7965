"""A handful of mutants, and which places are mutated; ``make mutants SAMPLE=300`` does more."""

import subprocess
import sys

import pytest

from tests.mutants.groups import modules, stages
from tests.mutants.sites import SOURCES, sample
from tests.standstill import ROOT


def test_tests_notice_what_is_changed(tmp_path):
    words = [sys.executable, "-m", "tests.mutants", "--only", "losses/triplet.py", "--sample", "2"]
    words += ["--records", str(tmp_path / "records.jsonl")]
    for _ in range(2):  # The second time, all is known.
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.splitlines()[-1] == "2 mutants, 2 killed (100.0%)"
    assert len((tmp_path / "records.jsonl").read_text().splitlines()) == 2


@pytest.fixture
def tree(tmp_path):
    """Sources of one module, of which the numbers of lines are known."""
    module = tmp_path / SOURCES / "data" / "some.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "from dataclasses import dataclass\n"
        "\n"
        "def some(a: int | None, *, b: str | None = None) -> int | None:\n"
        "    c: list[int] | None = None\n"
        "    return dict(**{}) if a == 7 else c\n"
    )
    return tmp_path


def test_types_are_left_alone_and_what_is_made_is_python(tree):
    found = sample(tree, ["data/some.py"], 100, 0)
    assert {mutant.line for mutant in found} == {5}
    for mutant in found:
        compile(mutant.code(tree), "mutant", "exec")
        assert len(mutant.change(tree)) == 2


def test_a_sample_is_the_same_each_time_and_begins_like_a_larger_one(tree):
    few, many = (sample(tree, ["data/some.py"], n, 3) for n in (1, 100))
    assert few == sample(tree, ["data/some.py"], 1, 3) == many[:1]
    assert len(many) > 1


def test_every_module_has_tests():
    for module in modules(ROOT):
        for tests in stages(ROOT, module):
            assert tests
            assert all((ROOT / test).exists() for test in tests)
