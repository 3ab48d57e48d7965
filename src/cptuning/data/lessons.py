"""Examples that a model was taught after it was saved."""

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cptuning.data.examples import Examples, as_examples
from cptuning.data.labels import as_labels
from cptuning.files.journal import Journal

LESSONS_FILE = "added.jsonl"
"""The journal of these examples in a model folder."""


@dataclass(frozen=True)
class Lesson:
    """Examples that were added together, with their labels."""

    examples: Examples
    labels: list[Hashable]

    @classmethod
    def from_json(cls, stored: Any) -> "Lesson":
        """The inverse of :meth:`to_json`."""
        examples = as_examples(stored["texts"])
        return cls(examples, as_labels(stored["labels"], len(examples)))

    def to_json(self) -> dict[str, Any]:
        """The lesson as an entry of a journal."""
        return {"texts": list(self.examples), "labels": list(self.labels)}


def read_lessons(folder: Path) -> list[Lesson]:
    """What was added to the model in a folder, in its order.

    >>> read_lessons(Path("no-such-folder"))
    []
    """
    return Journal(folder / LESSONS_FILE).entries(Lesson.from_json)


def append_lesson(folder: Path, lesson: Lesson) -> None:
    """Keep a lesson with the model in a folder, or raise ``OSError`` and keep nothing of it."""
    Journal(folder / LESSONS_FILE).append(lesson.to_json())
