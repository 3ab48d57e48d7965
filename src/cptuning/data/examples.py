"""Texts, or pairs of texts, in one form, whatever they were given as."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cptuning.data.value_checks import shortlist, text_problem
from cptuning.errors import CPTuningError

LEFT_OUT = "(text left out)"
"""Stands for a training text that a model was shared without."""


@dataclass(frozen=True)
class Examples:
    """Texts (``second`` is None) or pairs of texts, in order.

    >>> pairs = Examples(("Is it red?", "Is it big?"), ("It is.", "Not very."))
    >>> len(pairs), pairs.is_pair, list(pairs.take([1]))
    (2, True, [('Is it big?', 'Not very.')])
    """

    first: tuple[str, ...]
    second: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.second is not None and len(self.second) != len(self.first):
            raise CPTuningError(
                f"There are {len(self.first)} first texts but {len(self.second)} second texts: "
                "a pair needs both."
            )

    @property
    def is_pair(self) -> bool:
        """Whether the examples are pairs of texts.

        >>> Examples(("one text",)).is_pair
        False
        """
        return self.second is not None

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[str | tuple[str, str]]:
        if self.second is None:
            return iter(self.first)
        return iter(zip(self.first, self.second, strict=True))

    def __add__(self, other: "Examples") -> "Examples":
        if self.is_pair != other.is_pair:
            raise CPTuningError("Single texts and pairs of texts cannot be joined: use one kind.")
        second = None
        if self.second is not None and other.second is not None:
            second = self.second + other.second
        return Examples(self.first + other.first, second)

    def without_texts(self) -> "Examples":
        """As many examples, of which no text is told.

        >>> Examples(("a secret",)).without_texts().first
        ('(text left out)',)
        """
        hidden = (LEFT_OUT,) * len(self)
        return Examples(hidden, hidden if self.is_pair else None)

    @property
    def known(self) -> "Examples":
        """Those whose texts were not left out.

        >>> (Examples(("a",)) + Examples(("b",)).without_texts()).known.first
        ('a',)
        """
        return self.take(row for row, text in enumerate(self.first) if text != LEFT_OUT)

    def take(self, indices: Iterable[int]) -> "Examples":
        """The examples at these positions, in the order asked for.

        >>> Examples(("a", "b", "c")).take([2, 0]).first
        ('c', 'a')
        """
        wanted = [int(index) for index in indices]
        second = self.second
        return Examples(
            tuple(self.first[i] for i in wanted),
            None if second is None else tuple(second[i] for i in wanted),
        )


class LabelledData(NamedTuple):
    """Examples with their labels, one label per example."""

    examples: Examples
    labels: list[Any]

    def take(self, rows: Iterable[int]) -> "LabelledData":
        """The rows at these positions, in the order asked for.

        >>> LabelledData(Examples(("x", "y")), ["a", "b"]).take([1]).labels
        ['b']
        """
        wanted = [int(row) for row in rows]
        return LabelledData(self.examples.take(wanted), [self.labels[row] for row in wanted])


def as_examples(X: Any, *, pair: bool | None = None) -> Examples:
    """Examples from a list of texts or pairs, a numpy array, a data frame or a Dataset.

    From a table, the columns ``text``, or ``text_a`` and ``text_b``, are taken; without those, its
    only column besides ``label``. ``pair`` says what a fitted model expects.

    >>> as_examples([("Is it red?", "It is."), ["Is it big?", "Not very."]]).second
    ('It is.', 'Not very.')
    >>> as_examples(["fine", None])
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: The text in row 2 is missing (None or NaN).
    """
    examples = X if isinstance(X, Examples) else _from_rows(_rows(X))
    if not len(examples):
        raise CPTuningError("There are no examples: give at least one text.")
    if pair is not None and pair != examples.is_pair:
        raise CPTuningError(
            "The model expects pairs of texts, but single texts were given: "
            "pass (first, second) for each."
            if pair
            else "The model expects single texts, but pairs of texts were given: "
            "pass one text for each."
        )
    return examples


def one_line(text: str | tuple[str, str], longest: int = 200) -> str:
    r"""A text, or both texts of a pair, on one line.

    >>> one_line("two\nlines"), one_line(("a", "b")), one_line("too long", 5)
    ('two lines', 'a | b', 'too …')
    """
    line = " ".join((text if isinstance(text, str) else " | ".join(text)).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def text_columns(columns: Collection[Any]) -> list[Any]:
    """The columns with the texts, by their names: none, one, or two for pairs.

    >>> text_columns(["id", "text_a", "text_b", "label"]), text_columns(["id", "label"])
    (['text_a', 'text_b'], [])
    """
    first = [name for name in ("text", "text_a") if name in columns]
    if len(first) == 2:
        raise CPTuningError("There are both a column 'text' and a column 'text_a': keep one.")
    return [*first, "text_b"] if first and "text_b" in columns else first


def _rows(X: Any) -> list[Any]:
    """One unchecked item per row, from any input that has rows."""
    if isinstance(X, str | bytes):
        raise CPTuningError("A single text was given: put it in a list, as in ['the text'].")
    columns = getattr(X, "column_names", getattr(X, "columns", None))
    if isinstance(X, Mapping | Set):
        hint = "select one of its splits" if columns else "use a list, a data frame or a Dataset"
        raise CPTuningError(f"Examples cannot be read from a {type(X).__name__}: {hint}.")
    if columns is not None:
        return _table_rows(X, list(columns))
    if isinstance(X, np.ndarray):
        return _array_rows(X)
    if not isinstance(X, Iterable):
        raise CPTuningError(
            f"Examples cannot be read from a {type(X).__name__}: give a list of texts."
        )
    return list(X)


def _table_rows(X: Any, columns: list[Any]) -> list[Any]:
    if len(set(columns)) < len(columns):
        raise CPTuningError(f"Two columns of the table have the same name: {shortlist(columns)}.")
    named = text_columns(columns)
    if len(named) == 2:
        return list(zip(X[named[0]], X[named[1]], strict=True))
    chosen = named or [name for name in columns if name != "label"]
    if len(chosen) == 1:
        return list(X[chosen[0]])
    # Two columns of any names may be a text and its label as well as a pair of texts.
    raise CPTuningError(
        f"The table has no column 'text' or 'text_a', only {shortlist(columns) or 'no columns'}: "
        "give the column with the texts alone, or name those of pairs 'text_a' and 'text_b'."
    )


def _array_rows(X: np.ndarray) -> list[Any]:
    if X.ndim == 2 and X.shape[1] in (1, 2):
        return list(X[:, 0]) if X.shape[1] == 1 else X.tolist()
    if X.ndim != 1:
        raise CPTuningError(
            f"The array has shape {X.shape}: give (n,) or (n, 1) for texts, (n, 2) for pairs."
        )
    return list(X)


def _from_rows(rows: list[Any]) -> Examples:
    parsed = [_texts(row, number) for number, row in enumerate(rows, start=1)]
    for number, texts in enumerate(parsed, start=1):
        if len(texts) != len(parsed[0]):
            raise CPTuningError(
                f"Row 1 is {_kind(parsed[0])} but row {number} is {_kind(texts)}: "
                "give all texts or all pairs of texts."
            )
    is_pair = bool(parsed) and len(parsed[0]) == 2
    return Examples(
        tuple(texts[0] for texts in parsed),
        tuple(texts[1] for texts in parsed) if is_pair else None,
    )


def _texts(row: Any, number: int) -> tuple[str, ...]:
    """The one or two texts of this row."""
    if not _is_sequence(row):
        return (_checked(row, f"The text in row {number}"),)
    if len(row) != 2:
        raise CPTuningError(f"Row {number} has {len(row)} values: give a text or a pair of texts.")
    return (
        _checked(row[0], f"The first text in row {number}"),
        _checked(row[1], f"The second text in row {number}"),
    )


def _kind(texts: tuple[str, ...]) -> str:
    return "a pair of texts" if len(texts) == 2 else "a single text"


def _is_sequence(row: object) -> bool:
    return isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1)


def _checked(value: Any, where: str) -> str:
    problem = text_problem(value)
    if problem:
        raise CPTuningError(f"{where} {problem}.")
    # A plain str, also from numpy's str_ and from enumerations (whose str() is their name).
    return str.__str__(value)
