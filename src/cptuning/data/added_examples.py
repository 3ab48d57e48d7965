"""Examples that were added to a model after it was saved."""

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cptuning.data.examples import Examples, as_examples
from cptuning.data.label_sets import MultiLabelSpace, is_multi_label
from cptuning.data.labels import as_labels
from cptuning.files.journal import Journal

ADDED_FILE = "added.jsonl"
"""The journal of these examples in a model folder."""


@dataclass(frozen=True)
class AddedExamples:
    """Examples that were added together, with their labels."""

    examples: Examples
    labels: list[Hashable]

    @classmethod
    def from_json(cls, stored: Any) -> "AddedExamples":
        """The inverse of :meth:`to_json`."""
        examples, labels = as_examples(stored["texts"]), stored["labels"]
        if is_multi_label(labels):
            return cls(examples, MultiLabelSpace(()).as_labels(labels, len(examples)))
        return cls(examples, as_labels(labels, len(examples)))

    def to_json(self) -> dict[str, Any]:
        """The batch as an entry of a journal."""
        return {"texts": list(self.examples), "labels": list(self.labels)}


def read_added(folder: Path) -> list[AddedExamples]:
    """What was added to the model in a folder, the oldest first.

    >>> read_added(Path("no-such-folder"))
    []
    """
    return Journal(folder / ADDED_FILE).entries(AddedExamples.from_json)


def append_added(folder: Path, batch: AddedExamples) -> None:
    """Store a batch with the model in a folder, or raise ``OSError`` and store nothing of it."""
    Journal(folder / ADDED_FILE).append(batch.to_json())
