"""What is killed: commands that write, what they start from, and what they leave when unbroken."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

INSTANT = ("--preset", "instant", "--quiet")
TEXTS = ("a great film", "i loved it", "so good", "a dull film", "i hated it", "so boring")
LABELS = ("good",) * 3 + ("bad",) * 3


@dataclass(frozen=True)
class Scenario:
    """A command that is killed, and the commands that make what it starts from."""

    words: Sequence[str]
    before: Sequence[Sequence[str]] = ()
    result: str = "model"
    """The file or folder that it writes."""
    needs_backbone: bool = False
    compared: str = "**/*"
    """Which of its files are the same each time: records hold the time that they took."""
    grows: bool = False
    """Whether the result comes file by file, each of them whole, and not all at once."""


def _fit(table: str, *more: str) -> tuple[str, ...]:
    return ("fit", table, "--output", "model", *more)


TINY = ("--backbone", "tiny", "--validation", "none", "--quiet", "--set", "steps=20")

REPRODUCE = ("reproduce", "main", "--output", "results", "--backbone", "tiny", "--data", "data")

SCENARIOS = {
    "fit": Scenario(_fit("train.csv", *INSTANT)),
    "fit over an old model": Scenario(
        _fit("train.csv", *INSTANT), before=[_fit("other.csv", *INSTANT)]
    ),
    "fit with a checkpoint": Scenario(
        _fit("train.csv", *TINY, "--set", "checkpoint_seconds=0"), needs_backbone=True
    ),
    "predict": Scenario(
        ("predict", "model", "new.csv", "--output", "out.csv", "--quiet"),
        before=[_fit("train.csv", *INSTANT)],
        result="out.csv",
    ),
    "predict over an old file": Scenario(
        ("predict", "model", "new.csv", "--output", "out.csv", "--quiet"),
        before=[
            _fit("train.csv", *INSTANT),
            ("predict", "model", "train.csv", "--output", "out.csv", "--quiet"),
        ],
        result="out.csv",
    ),
    "add": Scenario(("add", "model", "more.csv"), before=[_fit("train.csv", *INSTANT)]),
    "export": Scenario(
        ("export", "model", "--output", "onnx"),
        before=[_fit("train.csv", *TINY)],
        result="onnx",
        needs_backbone=True,
    ),
    "rank fit over an old model": Scenario(
        ("rank", "fit", "documents.csv", "--output", "model", "--quiet"),
        before=[("rank", "fit", "others.csv", "--output", "model", "--quiet")],
    ),
    "rank search": Scenario(
        ("rank", "search", "model", "--queries", "documents.csv", "--output", "found.run"),
        before=[("rank", "fit", "documents.csv", "--output", "model", "--quiet")],
        result="found.run",
    ),
    "tag fit": Scenario(("tag", "fit", "tagged.conll", "--output", "model", *INSTANT)),
    "tag predict": Scenario(
        ("tag", "predict", "model", "new.txt", "--output", "spans.jsonl"),
        before=[("tag", "fit", "tagged.conll", "--output", "model", *INSTANT)],
        result="spans.jsonl",
    ),
    "reproduce": Scenario(
        (*REPRODUCE, "--datasets", "CR", "--seeds", "13", "--methods", "cp-tuning", "--fast"),
        result="results",
        needs_backbone=True,
        compared="predictions/*.txt",
        grows=True,
    ),
}


def write_tables(folder: Path) -> None:
    """The tables that the commands read."""
    rows = list(zip(TEXTS, LABELS, strict=True))
    tables = {
        "train": rows,
        "other": [(f"{text}, they say", label) for text, label in rows],
        "more": [("what a joy", "good"), ("the train is late", "travel")],
    }
    for name, table in tables.items():
        lines = [f'"{text}",{label}' for text, label in table]
        (folder / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    (folder / "new.csv").write_text("\n".join(["text", *TEXTS * 100]) + "\n")
    (folder / "new.txt").write_text("\n".join(TEXTS) + "\n")
    documents = [f'{number},"{text}"' for number, text in enumerate(TEXTS)]
    for name, rows_of in (("documents", documents), ("others", documents[1:])):
        (folder / f"{name}.csv").write_text("\n".join(["id,text", *rows_of]) + "\n")
    tagged = "\n\n".join("\n".join(map(_tagged, text.split())) for text in TEXTS)
    (folder / "tagged.conll").write_text(tagged + "\n")


def _tagged(word: str) -> str:
    return f"{word} {'B-thing' if word == 'film' else 'O'}"


def prepare(scenario: Scenario, folder: Path, run: Callable[[Sequence[str], Path], int]) -> None:
    """Fill a folder with what the scenario starts from."""
    folder.mkdir()
    write_tables(folder)
    if scenario.needs_backbone:
        from tests.experiments.conftest import BAD, GOOD, write_dataset
        from tests.tiny import save_tiny

        save_tiny("bert", folder / "tiny")
        write_dataset(folder / "data", "CR", {"negative": BAD, "positive": GOOD})
    for words in scenario.before:
        assert run(words, folder) == 0, words


def contents(place: Path, pattern: str = "**/*") -> dict[str, bytes]:
    """All files of a place, a file or a folder, by name; nothing if it is not there."""
    if place.is_file():
        return {place.name: place.read_bytes()}
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(place.glob(pattern))
        if path.is_file()
    }


def copied(folder: Path, to: Path) -> Path:
    """A copy of what a scenario starts from."""
    return Path(shutil.copytree(folder, to))
