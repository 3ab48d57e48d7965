"""Labelled files as the commands read them, and checks of one before it is used."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

from cptuning.cleaning import same_texts
from cptuning.data import Table, read_table
from cptuning.data.examples import one_line
from cptuning.data.formats import file_name

_MOST_CLASSES_LISTED = 20


@dataclass(frozen=True)
class ColumnOptions:
    """The columns that were named with options."""

    text: str | None = None
    text_b: str | None = None
    label: str | None = None

    def read_labelled(self, path: str) -> Table:
        """Read a file in which every row must have a label."""
        return read_table(
            path, text=self.text, text_b=self.text_b, label=self.label, need_label=True
        )


def labels_of(table: Table) -> list[Hashable]:
    """The labels of a table that has them."""
    return list(table.labels or [])


def described(table: Table, path: str) -> str:
    """A summary of a labelled file in one line.

    >>> from cptuning.data import Examples
    >>> examples = Examples(("hello", "good morning", "bye"))
    >>> described(Table([{}] * 3, examples, ["in", "in", "out"], [""] * 3), "train.csv")
    'train.csv: 3 texts in 2 classes (in 2, out 1).'
    """
    counts = Counter(map(str, labels_of(table)))
    listed = [f"{label} {n}" for label, n in sorted(counts.items())]
    if len(listed) > _MOST_CLASSES_LISTED:
        listed = [*listed[:_MOST_CLASSES_LISTED], f"and {len(listed) - _MOST_CLASSES_LISTED} more"]
    kind = "pairs of texts" if table.examples.is_pair else "texts"
    return (
        f"{file_name(path)}: {len(table.examples)} {kind} in {len(counts)} classes "
        f"({', '.join(listed)})."
    )


def oddities(table: Table, path: str) -> list[str]:
    """What looks like a mistake in labelled data: empty texts, repeats, contradicting labels.

    >>> from cptuning.data import Examples
    >>> examples = Examples(("hello", "hello", "bye", "bye"))
    >>> where = [f"train.csv, line {n}" for n in (2, 3, 4, 5)]
    >>> for line in oddities(Table([{}] * 4, examples, ["a", "b", "c", "c"], where), "train.csv"):
    ...     print(line)
    train.csv: 1 row repeats a text and its label.
    'hello' has the label 'a' in train.csv, line 2 and 'b' in train.csv, line 3.
    """
    labels, repeated, contradictions = labels_of(table), 0, []
    for repeat in same_texts(table.examples):
        first: dict[Hashable, int] = {}
        for row in repeat.rows:
            first.setdefault(labels[row], row)
        repeated += len(repeat.rows) - len(first)
        if len(first) > 1:
            (label, row), (other, other_row), *_ = first.items()
            [text] = table.examples.take([row])
            contradictions.append(
                f"{one_line(text, 60)!r} has the label {label!r} in {table.where[row]} "
                f"and {other!r} in {table.where[other_row]}"
            )
    lines = []
    empty = [
        where
        for text, where in zip(table.examples, table.where, strict=True)
        if not "".join(text).strip()
    ]
    if empty:
        more = f", and {len(empty) - 1} more like it" if len(empty) > 1 else ""
        lines.append(f"{empty[0]} has no text{more}.")
    if repeated:
        rows = "1 row repeats" if repeated == 1 else f"{repeated} rows repeat"
        lines.append(f"{file_name(path)}: {rows} a text and its label.")
    if contradictions:
        more = f", and {len(contradictions) - 1} more like it" if len(contradictions) > 1 else ""
        lines.append(f"{contradictions[0]}{more}.")
    return lines


def folder_name(folder: Path) -> str:
    """The name of a model: that of its folder.

    >>> folder_name(Path("models/shop/"))
    'shop'
    """
    return folder.name or folder.resolve().name
