"""Labelled examples from a visitor: pasted lines, uploaded files, or a sample of the package."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from cptuning.data import (
    Examples,
    LabelCells,
    Table,
    iter_tables,
    label_parts,
    label_text,
    preview_table,
    read_table,
)
from cptuning.data.detection import LABEL_NAMES, TEXT_NAMES, ColumnGuess
from cptuning.data.formats import table_format
from cptuning.data.sample_data import read_sample
from cptuning.data.value_checks import is_missing
from cptuning.errors import CPTuningError

Text = str | tuple[str, str]
Label = str | tuple[str, ...]
"""The label of a text; where a text may have several, a tuple of them, which may be empty."""

SEPARATOR = ";"
"""What joins the labels of a text where they are written."""

SAMPLES = ("messages", "same_question")
"""The names of the sample data sets in the package: single texts, and pairs."""

# The formats whose first row may be one of the examples.
_WITH_HEADER = ("csv", "tsv", "xlsx")

_MOST_BYTES = 100_000_000


class Example(NamedTuple):
    """A text, or a pair of texts, with its label."""

    text: Text
    label: Label

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels of the text.

        >>> Example("hello", "greeting").labels, Example("hello", ("a", "b")).labels
        (('greeting',), ('a', 'b'))
        """
        return tuple(map(str, label_parts(self.label)))

    @property
    def is_pair(self) -> bool:
        """Whether the example is a pair of texts.

        >>> Example("hello", "greeting").is_pair, Example(("a", "b"), "same").is_pair
        (False, True)
        """
        return not isinstance(self.text, str)


def label_set(label: str | Sequence[str], separator: str = SEPARATOR) -> tuple[str, ...]:
    """The labels of a text, each once and in order, from a list of them or where they are joined.

    >>> label_set("rude; late;"), label_set(["late", " "]), label_set("")
    (('late', 'rude'), ('late',), ())
    """
    if isinstance(label, str):
        return tuple(sorted(LabelCells(separator).split(label)))
    return tuple(sorted({name.strip() for name in label if name.strip()}))


def label_name(label: Label) -> str:
    """A label as it is shown and stored; of several, all of them.

    >>> label_name("late"), label_name(("late", "rude")), label_name(())
    ('late', 'late; rude', '')
    """
    return label_text(label, f"{SEPARATOR} ")


def quoted(text: Text, longest: int = 60) -> str:
    """A text for a sentence, truncated if it is long.

    >>> quoted("hello"), quoted(("a", "b"))
    ('“hello”', '“a | b”')
    """
    whole = " ".join((text if isinstance(text, str) else " | ".join(text)).split())
    return f"“{whole if len(whole) <= longest else whole[:longest].rstrip() + '…'}”"


def examples_and_labels(examples: Sequence[Example]) -> tuple[Examples, list[Any]]:
    """The texts and the labels, as a classifier takes them.

    >>> examples_and_labels([Example("hello", "greeting")])
    (Examples(first=('hello',), second=None), ['greeting'])
    """
    pairs = [e.text for e in examples if not isinstance(e.text, str)]
    labels = [example.label for example in examples]
    if pairs and len(pairs) == len(examples):
        return Examples(*(tuple(column) for column in zip(*pairs, strict=True))), labels
    singles = [e.text for e in examples if isinstance(e.text, str)]
    if len(singles) < len(examples):
        raise CPTuningError("Single texts and pairs of texts cannot be joined: use one kind.")
    return Examples(tuple(singles)), labels


def parse_pasted(content: str, several: bool = False) -> list[Example]:
    r"""The examples in pasted lines: a text, a tab or a bar, and its label; two texts for a pair.

    If the first line is a header that names the columns, the lines are read as CSV or TSV. Where a
    text may have ``several`` labels, it may also have none.

    >>> parse_pasted("hello | greeting\nsee you\tfarewell")
    [Example(text='hello', label='greeting'), Example(text='see you', label='farewell')]
    >>> parse_pasted("is it red? | it is. | yes")
    [Example(text=('is it red?', 'it is.'), label='yes')]
    >>> parse_pasted("hello")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: Line 1 has no label: write the text, a tab or |, and its label.
    """
    lines = [(n, line) for n, line in enumerate(content.splitlines(), 1) if line.strip()]
    if not lines:
        raise CPTuningError("There is nothing to add: paste one example per line.")
    if suffix := _header_kind(lines[0][1]):
        return _read_pasted_table(content.strip() + "\n", suffix)
    return [_example(number, line, several) for number, line in lines]


def _header_kind(line: str) -> str | None:
    """The suffix of the format whose header this line is, or None if it is not a header."""
    for suffix, separator in ((".tsv", "\t"), (".csv", ",")):
        names = {name.strip().strip('"').casefold() for name in line.split(separator)}
        if names & set(LABEL_NAMES) and names & {*TEXT_NAMES, "text_a"}:
            return suffix
    return None


def _read_pasted_table(content: str, suffix: str) -> list[Example]:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"pasted{suffix}")
        path.write_text(content, "utf-8", newline="")
        try:
            return examples_from_table(read_table(path, need_label=True))
        except CPTuningError as error:  # The visitor does not know of the temporary file.
            raise CPTuningError(str(error).replace(str(path), "The pasted table")) from error


def _example(number: int, line: str, several: bool) -> Example:
    parts = [part.strip() for part in line.split("\t" if "\t" in line else "|")]
    if len(parts) < 2 or not (parts[-1] or several):
        raise CPTuningError(
            f"Line {number} has no label: write the text, a tab or |, and its label."
        )
    if len(parts) > 3:
        raise CPTuningError(
            f"Line {number} has {len(parts)} parts: write one or two texts, and then the label."
        )
    return Example(parts[0] if len(parts) == 2 else (parts[0], parts[1]), parts[-1])


@dataclass(frozen=True)
class TableColumns:
    """The columns to read from a table; None: as its names say."""

    text: str | None = None
    second: str | None = None
    label: str | None = None
    header: bool | None = None
    """Whether the first row names the columns; None guesses."""


AS_NAMED = TableColumns()


@dataclass(frozen=True)
class FilePreview:
    """The first rows of an uploaded file, and what its columns seem to be."""

    rows: list[dict[str, Any]]
    guess: ColumnGuess
    has_header: bool
    can_lack_header: bool


def preview_file(path: str | Path, header: bool | None = None) -> FilePreview:
    """The first rows of a file, with a guess at its columns."""
    if Path(path).stat().st_size > _MOST_BYTES:
        raise CPTuningError(
            f"{Path(path).name} has more than 100 MB: split it, or use `cptuning predict`."
        )
    with _without_folder(path):
        can_lack_header = table_format(path) in _WITH_HEADER
        preview = preview_table(path, header if can_lack_header else None)
    return FilePreview(preview.rows, preview.guess, preview.has_header, can_lack_header)


def tables_in(
    path: str | Path, columns: TableColumns, *, need_label: bool = False, chunk: int = sys.maxsize
) -> Iterator[Table]:
    """The rows of a file, read by these columns, in chunks."""
    chosen = [column for column in (columns.text, columns.second, columns.label) if column]
    if len(set(chosen)) < len(chosen):
        raise CPTuningError(
            f"The column {chosen[-1]!r} is chosen twice: choose another for one of them."
        )
    with _without_folder(path):
        has_header = columns.header if table_format(path) in _WITH_HEADER else None
        yield from iter_tables(
            path,
            chunk=chunk,
            text=columns.text,
            text_b=columns.second,
            label=columns.label,
            need_label=need_label,
            header=has_header,
        )


def examples_from_file(path: str | Path, columns: TableColumns = AS_NAMED) -> list[Example]:
    """The examples in a CSV, TSV, JSONL, Parquet or Excel file, every row of which has a label."""
    [table] = tables_in(path, columns, need_label=True)
    return examples_from_table(table)


def labelled_rows(path: str | Path, columns: TableColumns) -> tuple[list[Example], int]:
    """The examples in the rows of a file that have a label, and how many rows have none.

    A table that somebody has begun to fill in is such a file.
    """
    if not columns.label:
        raise CPTuningError("Choose the column that holds the labels.")
    [table] = tables_in(path, columns)
    labels = [_label_in(row.get(columns.label)) for row in table.rows]
    found = [Example(*both) for both in zip(table.examples, labels, strict=True) if both[1] != ""]
    if not found:
        raise CPTuningError(f"No row of {Path(path).name} has a label in {columns.label!r}.")
    return found, len(labels) - len(found)


def _label_in(cell: Any) -> Label:
    """The label in a cell, or the labels of a list; empty if the cell is.

    >>> _label_in(" late "), _label_in(["late", "rude"]), _label_in([]), _label_in(None)
    ('late', ('late', 'rude'), (), '')
    """
    if isinstance(cell, list | tuple):
        return label_set([str(label) for label in cell])
    return "" if is_missing(cell) else str(cell).strip()


@contextmanager
def _without_folder(path: str | Path) -> Iterator[None]:
    """Errors without the server's folder in front of the file name."""
    try:
        yield
    except CPTuningError as error:
        raise without_folder(error, path) from error


def without_folder(error: CPTuningError, path: str | Path) -> CPTuningError:
    """The same error without the server's folder in front of the file name.

    >>> str(without_folder(CPTuningError("/tmp/x/train.csv is empty."), "/tmp/x/train.csv"))
    'train.csv is empty.'
    """
    return CPTuningError(str(error).replace(str(path), Path(path).name))


def sample_examples(name: str) -> list[Example]:
    """The training examples of one of the package's sample data sets.

    >>> len(sample_examples("messages")), sample_examples("same_question")[0].is_pair
    (96, True)
    """
    return examples_from_table(read_sample(f"{name}_train"))


def examples_from_table(table: Table) -> list[Example]:
    """The rows of a table in which every row has a label.

    >>> examples_from_table(Table([{}], Examples(("hello",)), [7], [""]))
    [Example(text='hello', label='7')]
    """
    labels = map(_label_in, table.labels or [])
    return [Example(text, label) for text, label in zip(table.examples, labels, strict=True)]
