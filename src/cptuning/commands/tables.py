"""Labelled files as the commands read them, and checks of one before it is used."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

from cptuning.cleaning import same_texts
from cptuning.data import LabelCells, Table, label_parts, label_text, read_table, seems_joined
from cptuning.data.examples import one_line
from cptuning.data.formats import file_name
from cptuning.errors import CPTuningError

_MOST_CLASSES_LISTED = 20


@dataclass(frozen=True)
class ColumnOptions:
    """The columns that were named with options, and how they hold label sets."""

    text: str | None = None
    text_b: str | None = None
    label: str | None = None
    label_cells: LabelCells | None = None

    @classmethod
    def of(
        cls,
        text: str | None,
        text_b: str | None,
        label: str | None,
        label_separator: str | None,
        label_columns: str | None,
    ) -> "ColumnOptions":
        """What the options of a command say."""
        if label is not None and label_columns is not None:
            raise CPTuningError(
                "--label is for one column of labels, and --label-columns for one column per "
                "label: give one of them."
            )
        return cls(text, text_b, label, LabelCells.parse(label_separator, label_columns))

    def remembering(self, cells: LabelCells | None) -> "ColumnOptions":
        """With what a model remembers of its training file, unless an option says otherwise."""
        if self.label_cells is not None:
            return self
        # A named column is one of joined labels, or of lists.
        if cells is not None and cells.columns and self.label is not None:
            return self
        return replace(self, label_cells=cells)

    def read_labelled(self, path: str) -> Table:
        """Read a file in which every row must have a label, or a label set."""
        return read_table(
            path,
            text=self.text,
            text_b=self.text_b,
            label=self.label,
            label_cells=self.label_cells,
            need_label=True,
        )

    def read_examples(self, path: str) -> Table:
        """Read a file of examples that decide whether texts have one label or several."""
        table = self.read_labelled(path)
        separator = self.label_cells.separator if self.label_cells else None
        if separator is not None and all(_is_single(labels) for labels in labels_of(table)):
            raise CPTuningError(
                f"{file_name(path)}: each text has one label, none is joined by {separator!r}: "
                "leave --label-separator out, or give what joins them."
            )
        return table


def check_label_sets(table: Table, is_multi_label: bool, path: str, whose: str) -> None:
    """Raise an error for single labels where there must be label sets, and the other way round.

    ``whose`` says who has the others, such as "the model".
    """
    if table.has_label_sets == is_multi_label:
        return
    if is_multi_label:
        raise CPTuningError(
            f"{file_name(path)} has one label per text, but {whose} has label sets: tell how the "
            "file holds them with --label-separator or --label-columns."
        )
    raise CPTuningError(
        f"{file_name(path)} has label sets, but {whose} has one label per text: give each text "
        "one label."
    )


def _is_single(labels: Hashable) -> bool:
    return _is_set(labels) and len(labels) == 1


def labels_of(table: Table) -> list[Hashable]:
    """The labels of a table that has them."""
    return list(table.labels or [])


def described(table: Table, path: str) -> str:
    """A summary of a labelled file in one line.

    >>> from cptuning.data import Examples
    >>> examples = Examples(("hello", "good morning", "bye"))
    >>> described(Table([{}] * 3, examples, ["in", "in", "out"], [""] * 3), "train.csv")
    'train.csv: 3 texts in 2 classes (in 2, out 1).'
    >>> described(Table([{}] * 3, examples, [("in",), ("in", "out"), ()], [""] * 3), "train.csv")
    'train.csv: 3 texts with 2 labels (in 2, out 1, 1 without any).'
    """
    counts = Counter(str(part) for label in labels_of(table) for part in label_parts(label))
    listed = [f"{label} {n}" for label, n in sorted(counts.items())]
    if len(listed) > _MOST_CLASSES_LISTED:
        listed = [*listed[:_MOST_CLASSES_LISTED], f"and {len(listed) - _MOST_CLASSES_LISTED} more"]
    kind = "pairs of texts" if table.examples.is_pair else "texts"
    what = f"in {len(counts)} classes"
    if table.has_label_sets:
        what = f"with {len(counts)} labels"
        if bare := labels_of(table).count(()):
            listed.append(f"{bare} without any")
    return f"{file_name(path)}: {len(table.examples)} {kind} {what} ({', '.join(listed)})."


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
            label = labels[row]
            # In whatever order the labels of a set are given.
            first.setdefault(frozenset(label) if _is_set(label) else label, row)
        repeated += len(repeat.rows) - len(first)
        if len(first) > 1:
            row, other_row, *_ = first.values()
            label, other = labels[row], labels[other_row]
            [text] = table.examples.take([row])
            what = "labels" if table.has_label_sets else "label"
            contradictions.append(
                f"{one_line(text, 60)!r} has the {what} {_named(label)} in {table.where[row]} "
                f"and {_named(other)} in {table.where[other_row]}"
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
        its = "labels" if table.has_label_sets else "label"
        lines.append(f"{file_name(path)}: {rows} a text and its {its}.")
    if joined := seems_joined(labels):
        label, separator = joined
        lines.append(
            f"{file_name(path)}: the label {label!r} looks like several labels: if it is, use "
            f"--label-separator {separator!r}."
        )
    if contradictions:
        more = f", and {len(contradictions) - 1} more like it" if len(contradictions) > 1 else ""
        lines.append(f"{contradictions[0]}{more}.")
    return lines


def _is_set(label: Hashable) -> TypeGuard[tuple[Hashable, ...]]:
    return isinstance(label, tuple)


def _named(label: Hashable) -> str:
    if not _is_set(label):
        return repr(label)
    return repr(label_text(label)) if label else "no label"


def folder_name(folder: Path) -> str:
    """The name of a model: that of its folder.

    >>> folder_name(Path("models/shop/"))
    'shop'
    """
    return folder.name or folder.resolve().name
