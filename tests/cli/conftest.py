"""The command as a user meets it, two small models for all its tests, and files to give it."""

import csv
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.standstill import start_python
from typer.testing import CliRunner, Result

GOOD = ("a wonderful film", "i loved every minute", "great acting, great fun", "what a joy")
BAD = ("a dull mess", "i hated every minute", "terrible acting, no fun", "what a bore")
PAIRS = (
    ("is it red?", "it is red.", "yes"),
    ("is it big?", "it is big.", "yes"),
    ("is it red?", "the train leaves at ten.", "no"),
    ("is it big?", "nobody says so.", "no"),
)


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs the command in this process."""

    def invoke(*arguments: Any, stdin: str | bytes | None = None) -> Result:
        from cptuning.cli import app

        return CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)

    return invoke


def start(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
    """Starts the command as a process of its own."""
    code = "from cptuning.__main__ import main; main()"
    return start_python(code, *arguments, stdin=subprocess.PIPE, **options)


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight labelled sentences about films."""
    rows = [(text, "good") for text in GOOD] + [(text, "bad") for text in BAD]
    return write_csv(tmp_path_factory.mktemp("films") / "films.csv", ("text", "label"), rows)


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four labelled pairs."""
    folder = tmp_path_factory.mktemp("pairs")
    return write_csv(folder / "pairs.csv", ("text_a", "text_b", "label"), PAIRS)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory, films: Path) -> Path:
    """A model of films, trained a little on the embedded backbone: it does know good from bad."""
    folder = tmp_path_factory.mktemp("model") / "films-model"
    process = start("fit", films, "--output", folder, "--set", "steps=2", "--validation", "none")
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    return folder


@pytest.fixture(scope="session")
def pair_model(
    tmp_path_factory: pytest.TempPathFactory, pairs: Path, tiny: Callable[[str], Path]
) -> Path:
    """A model of pairs on a tiny random backbone: it knows nothing, but quickly."""
    from cptuning.cli import app

    folder = tmp_path_factory.mktemp("pair_model") / "pairs-model"
    words = ["fit", pairs, "--output", folder, "--set", "steps=1", "--validation", "none"]
    words += ["--backbone", tiny("bert")]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return folder
