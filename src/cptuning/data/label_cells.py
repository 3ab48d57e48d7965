"""Label sets in the cells of a table: joined by a separator, or in one column per label."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cptuning.data.label_sets import label_text
from cptuning.errors import CPTuningError

SEPARATORS = (";", "|", ",", "/")
"""What labels are joined by if nothing else was said: the first one that no label contains."""

_MOST_COLUMNS = 10_000
_LONGEST = 1000

# What a cell of a label's own column may hold; spreadsheets and pandas write all of these.
_TRUE = ("1", "1.0", "true")
_FALSE = ("0", "0.0", "false")


@dataclass(frozen=True)
class LabelCells:
    """How a table holds label sets, where its cells are not lists of labels.

    >>> LabelCells(separator=";").split("late; rude;"), LabelCells(separator=";").split("")
    (('late', 'rude'), ())
    """

    separator: str | None = None
    """What the labels in the label column are joined by."""
    columns: tuple[str, ...] = ()
    """The columns of the labels, each with 1 for a text that has it, and else 0."""

    @classmethod
    def parse(cls, separator: str | None, columns: str | None) -> "LabelCells | None":
        """What ``--label-separator`` and ``--label-columns`` say; None if neither is given.

        >>> LabelCells.parse(None, "late, rude")
        LabelCells(separator=None, columns=('late', 'rude'))
        """
        if separator is None and columns is None:
            return None
        if separator is not None and columns is not None:
            raise CPTuningError(
                "--label-separator is for labels joined in one column, and --label-columns for one "
                "column per label: give one of them."
            )
        if columns is None:
            _require_text(separator)
            return cls(separator=separator)
        names = [name.strip() for name in columns.split(",")]
        if not all(names) or len(set(names)) < len(names):
            raise CPTuningError(
                f"--label-columns is {columns!r}: name each label's column once, separated by "
                "commas."
            )
        return cls(columns=tuple(names))

    @classmethod
    def from_json(cls, stored: Any) -> "LabelCells":
        """The inverse of :meth:`to_json`, checked.

        >>> LabelCells.from_json({"separator": "|", "columns": []})
        LabelCells(separator='|', columns=())
        """
        values = stored if isinstance(stored, dict) else {}
        separator, columns = values.get("separator"), values.get("columns")
        is_separator = separator is None or (isinstance(separator, str) and separator)
        if (
            not is_separator
            or not isinstance(columns, list)
            or len(columns) > _MOST_COLUMNS
            or not all(isinstance(name, str) and len(name) <= _LONGEST for name in columns)
            or (separator is None) != bool(columns)
        ):
            raise CPTuningError("training.label_cells is not how a file holds label sets")
        return cls(separator, tuple(columns))

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self) | {"columns": list(self.columns)}

    def split(self, cell: str) -> tuple[str, ...]:
        """The labels in a cell, without the spaces around them."""
        parts = [part.strip() for part in cell.split(self.separator)]
        return tuple(dict.fromkeys(part for part in parts if part))


def has_label(cell: Any) -> bool | None:
    """Whether the cell of a label's column says that a text has it; None if it says neither.

    An empty cell is 0, as people leave them.

    >>> has_label("1"), has_label(0.0), has_label(True), has_label(""), has_label("x")
    (True, False, True, False, None)
    """
    said = "" if cell is None else str(cell).strip().casefold()
    if said in _TRUE:
        return True
    return False if said in _FALSE or not said else None


def separator_for(labels: Iterable[Hashable], wanted: str | None = None) -> str:
    """What labels are joined by: what is wanted, or what none of them contains.

    >>> separator_for(["a;b", "c"]), separator_for(["a"], wanted=" + ")
    ('|', ' + ')
    """
    names = [str(label) for label in labels]
    if wanted is not None:
        _require_text(wanted)
    for separator in SEPARATORS if wanted is None else (wanted,):
        if not any(separator in name for name in names):
            return separator
    if wanted is None:
        raise CPTuningError(
            f"The labels contain every one of {' '.join(SEPARATORS)}: choose what joins them with "
            "--label-separator, or write JSONL."
        )
    [label, *_] = [name for name in names if wanted in name]
    raise CPTuningError(
        f"The label {label!r} contains {wanted!r}, which joins labels: choose another "
        "--label-separator, or write JSONL."
    )


def _require_text(separator: str | None) -> None:
    if not separator:
        raise CPTuningError(
            "--label-separator is empty: give what the labels are joined by, such as ';'."
        )


def seems_joined(labels: Iterable[Any]) -> tuple[str, str] | None:
    """A single label that looks like several joined ones, and what joins them; else None.

    A part of it is a label by itself, or a part of another one, too.

    >>> seems_joined(["late;rude", "late", "thanks"]), seems_joined(["n/a", "yes"])
    (('late;rude', ';'), None)
    """
    texts = sorted({label for label in labels if isinstance(label, str)})
    for separator in SEPARATORS:
        parts = {text: LabelCells(separator).split(text) for text in texts}
        known = Counter(part for own in parts.values() for part in own)
        for text, own in parts.items():
            if len(own) > 1 and any(known[part] > 1 for part in own):
                return text, separator
    return None


def as_cell(labels: Any, separator: str | None) -> Any:
    """Labels as a cell: joined, or a list where there is no separator; a single label as it is.

    >>> as_cell(("late", "rude"), "|"), as_cell(("late",), None), as_cell("late", ";")
    ('late|rude', ['late'], 'late')
    """
    if not isinstance(labels, tuple):
        return labels
    return list(labels) if separator is None else label_text(labels, separator)


def one_kind(labels: Sequence[Any], where: Sequence[str]) -> None:
    """Raise an error, with its place, where labels are neither all label sets nor all single.

    Nor may the labels of sets be of several types.

    >>> one_kind([("a",), (3,)], ["train.jsonl, line 1", "train.jsonl, line 2"])
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: train.jsonl, line 2: the label 3 is of type int, those before it
    are of type str: use one type for all labels.
    """
    is_set = bool(labels) and isinstance(labels[0], tuple)
    kind: type | None = None
    for label, place in zip(labels, where, strict=True):
        if isinstance(label, tuple) != is_set:
            one, others = ("a list", "single labels") if not is_set else ("a single label", "lists")
            raise CPTuningError(
                f"{place}: the label is {one}, those before it are {others}: give each text a list "
                "of labels, or each text one label."
            )
        for part in label if is_set else ():
            kind = kind or type(part)
            if type(part) is not kind:
                raise CPTuningError(
                    f"{place}: the label {part!r} is of type {type(part).__name__}, those before "
                    f"it are of type {kind.__name__}: use one type for all labels."
                )
