"""Examples and labels from table files, at once or in chunks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from cptuning.data.detection import (
    SAMPLE_ROWS,
    ColumnGuess,
    columns_by_content,
    columns_by_name,
    numbered_columns,
    other_column,
    unnamed_columns,
)
from cptuning.data.examples import Examples, text_columns
from cptuning.data.formats import file_name, table_format
from cptuning.data.label_cells import LabelCells, has_label, one_kind
from cptuning.data.parsing import records
from cptuning.data.value_checks import is_missing, shortlist, text_problem
from cptuning.errors import CPTuningError
from cptuning.input_limits import MOST_EXAMPLES

Label = str | int | float | bool
Labels = Label | tuple[Label, ...]
"""The label of a text or, in a multi-label task, its label set."""

# Formats whose cells are texts, or nothing; those of the others can be lists.
_CELL_FORMATS = ("csv", "tsv", "xlsx")


class NoRowsError(CPTuningError):
    """A file of examples without a single one."""


@dataclass(frozen=True)
class Table:
    """Rows of a file with all their columns, and the examples and labels read from them.

    ``labels`` is None unless every row has one; of a multi-label task they are tuples. ``where`` is
    the place of each row in the file.

    >>> row = {"id": 7, "text": "hello", "label": "greeting"}
    >>> Table([row], Examples(("hello",)), ["greeting"], ["train.jsonl, line 1"]).where
    ['train.jsonl, line 1']
    """

    rows: list[dict[str, Any]]
    examples: Examples
    labels: list[Labels] | None
    where: list[str]

    @property
    def has_label_sets(self) -> bool:
        """Whether each text has a label set instead of one label."""
        return bool(self.labels) and isinstance((self.labels or [()])[0], tuple)


def read_table(
    path: str | Path,
    *,
    text: str | None = None,
    text_b: str | None = None,
    label: str | None = None,
    label_cells: LabelCells | None = None,
    need_label: bool = False,
    format: str | None = None,
    header: bool | None = None,
) -> Table:
    r"""The whole table in a CSV, TSV, JSONL (these also gzipped), Parquet or XLSX file.

    The columns are ``text``, or ``text_a`` and ``text_b``, and ``label``, unless named. Without
    those, usual names such as ``Message`` and ``category`` are taken where there is only one such
    column, or only one is left. ``header`` is whether the first row names the
    columns; None guesses. ``"-"`` is standard input. Labels from
    CSV, TSV and XLSX are stripped of surrounding whitespace; those of JSONL and Parquet keep their
    type. In a spreadsheet, an empty cell is an empty text, and a number is read as text.

    Label sets are lists in JSONL and Parquet; ``label_cells`` tells how else they are written. An
    empty cell is then a text without labels.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.tsv")
    ...     _ = path.write_text("id\tbody\tlabel\n7\thello\tgreeting\n")
    ...     table = read_table(path, text="body")
    >>> list(table.examples), table.labels, table.rows[0]["id"]
    (['hello'], ['greeting'], '7')
    """
    most = MOST_EXAMPLES.value()
    chunks = iter_tables(
        path,
        chunk=most + 1,
        text=text,
        text_b=text_b,
        label=label,
        label_cells=label_cells,
        need_label=need_label,
        format=format,
        header=header,
    )
    table = next(chunks)
    if len(table.rows) > most:
        raise CPTuningError(
            f"{file_name(path)} has more than {most} rows: give fewer, or set "
            f"{MOST_EXAMPLES.variable} to more."
        )
    return table


def iter_tables(
    path: str | Path,
    *,
    chunk: int = 1024,
    text: str | None = None,
    text_b: str | None = None,
    label: str | None = None,
    label_cells: LabelCells | None = None,
    need_label: bool = False,
    format: str | None = None,
    row_group: int | None = None,
    header: bool | None = None,
) -> Iterator[Table]:
    r"""The same table in chunks of ``chunk`` rows, without keeping the whole file in memory.

    ``row_group`` is the number of the only row group of a Parquet file to read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "new.csv")
    ...     _ = path.write_text("text\none\ntwo\nthree\n")
    ...     [list(table.examples) for table in iter_tables(path, chunk=2)]
    [['one', 'two'], ['three']]
    """
    kind = table_format(path, format)
    wanted = _WantedColumns(text, text_b, label, label_cells, need_label)
    source = records(path, format, row_group, header)
    columns: ColumnGuess | None = None
    while batch := list(islice(source, chunk)):
        if columns is None:
            place = batch[0][0] if kind == "jsonl" else file_name(path)
            wanted = wanted.for_rows(batch[0][1])
            columns = wanted.found([row for _, row in batch[:SAMPLE_ROWS]], place)
        if kind == "jsonl":  # Only its rows can differ in their columns.
            for where, row in batch:
                wanted.as_before(columns, row.keys(), where)
        yield _table(batch, columns, wanted.label_cells, kind, need_label)
    if columns is None:
        raise NoRowsError(
            f"{file_name(path)} has a header but no rows: the first line names the columns, "
            "and the examples follow it."
        )


@dataclass(frozen=True)
class _WantedColumns:
    """The columns that were named, and how to find the others."""

    text: str | None
    text_b: str | None
    label: str | None
    label_cells: LabelCells | None
    need_label: bool

    @property
    def label_columns(self) -> tuple[str, ...]:
        """One column per label, if labels are given so."""
        return () if self.label_cells is None else self.label_cells.columns

    def for_rows(self, first: Mapping[str, Any]) -> "_WantedColumns":
        """The same for a file of lists of labels, which has no columns of labels."""
        if set(self.label_columns) & set(first) or not self.label_columns:
            return self
        label = self.label or columns_by_name(list(first)).label or "label"
        return replace(self, label_cells=None) if isinstance(first.get(label), list) else self

    def found(self, sample: Sequence[Mapping[str, Any]], place: str) -> ColumnGuess:
        """The columns to read, all of which exist (except for a label that is not needed)."""
        there = list(sample[0])
        try:
            guess = columns_by_name([name for name in there if name not in self.label_columns])
        except CPTuningError as error:
            if self.text is None:
                raise CPTuningError(f"{place}: {error}") from error
            guess = ColumnGuess()
        if there == numbered_columns(len(there)):
            guess = unnamed_columns(sample)
        texts = guess.texts if self.text is None else (self.text,)
        if self.text_b is not None:
            texts = (*texts[:1], self.text_b)
        label = self.label or guess.label
        if self.label_columns:
            label = None
        elif label is None and self.need_label:
            label = other_column(sample, texts)
        return self._checked(ColumnGuess(texts, label), there, place)

    def as_before(self, before: ColumnGuess, there: Collection[str], place: str) -> None:
        """Check that a later row has the same columns."""
        own = tuple(text_columns(there)) if self.text is None else ()
        if own and self.text_b is None and own != before.texts:
            raise CPTuningError(
                f"{place} has {' and '.join(own)}, the rows before it "
                f"{' and '.join(before.texts)}: give all texts or all pairs of texts."
            )
        self._checked(before, there, place)

    def _checked(self, found: ColumnGuess, there: Collection[str], place: str) -> ColumnGuess:
        needed = list(zip(found.texts or ("text",), ("--text", "--text-b"), strict=False))
        if self.label_columns:
            needed += [(column, "--label-columns") for column in self.label_columns]
        elif self.label is not None or self.need_label:
            needed.append((found.label or "label", "--label"))
        for column, option in needed:
            if column not in there:
                raise CPTuningError(
                    f"{place} has no column {column!r} (its columns are {shortlist(there)}): "
                    f"name the right one with {option}."
                )
        return found


def _table(
    batch: list[tuple[str, dict[str, Any]]],
    columns: ColumnGuess,
    cells: LabelCells | None,
    kind: str,
    need_label: bool,
) -> Table:
    texts = [
        tuple(_text(row[column], column, kind, where) for where, row in batch)
        for column in columns.texts
    ]
    places = [where for where, _ in batch]
    labels = _labels(batch, columns.label or "label", cells, kind, need_label)
    if labels is not None:
        try:
            one_kind(labels, places)
        except CPTuningError:
            if need_label:
                raise
            labels = None
    return Table([row for _, row in batch], Examples(*texts), labels, places)


def _labels(
    batch: list[tuple[str, dict[str, Any]]],
    column: str,
    cells: LabelCells | None,
    kind: str,
    need_label: bool,
) -> list[Labels] | None:
    """The label or the label set of each row; None if some row has none, and none is needed."""
    read: list[Labels | None]
    if cells is not None and cells.columns:
        if not need_label:
            return None
        read = [_set_in_columns(row, cells.columns, where) for where, row in batch]
    else:
        read = [_label(row.get(column), kind, where, need_label, cells) for where, row in batch]
    labels = [label for label in read if label is not None]
    return labels if len(labels) == len(batch) else None


def _set_in_columns(row: Mapping[str, Any], columns: Sequence[str], where: str) -> tuple[str, ...]:
    found = []
    for column in columns:
        is_given = has_label(row[column])
        if is_given is None:
            raise CPTuningError(
                f"{where}: the label column {column!r} has {row[column]!r}, write 1 for a text "
                "that has the label and 0 for one that does not."
            )
        found += [column] if is_given else []
    return tuple(found)


def _text(value: Any, column: str, kind: str, where: str) -> str:
    if kind == "xlsx" and (value is None or isinstance(value, int | float)):
        # The spreadsheet has turned an empty text into nothing, and digits into a number.
        value = "" if value is None else str(value)
    problem = text_problem(value)
    if problem:
        raise CPTuningError(f"{where}: the text in column {column!r} {problem}.")
    return str(value)


def _label(
    value: Any, kind: str, where: str, need_label: bool, cells: LabelCells | None
) -> Labels | None:
    """The label or label set; None for one that is empty or invalid, if none is needed."""
    if kind == "xlsx" and cells is not None and isinstance(value, int | float):
        value = str(value)  # The spreadsheet has turned a label of digits into a number.
    if isinstance(value, str) and kind in _CELL_FORMATS:
        value = value.strip()
    if isinstance(value, list):
        return _label_list(value, where, need_label)
    problem = text_problem(value) if isinstance(value, str) else None
    if (
        problem is None
        and cells is not None
        and (isinstance(value, str) or (value is None and kind == "xlsx"))
    ):
        return cells.split(value or "")
    is_empty = is_missing(value) or (isinstance(value, str) and not value.strip())
    if isinstance(value, Label) and not is_empty and problem is None and cells is None:
        return value
    if not need_label:
        return None
    if problem is not None:
        raise CPTuningError(f"{where}: the label {problem}.")
    if is_empty:
        raise CPTuningError(f"{where} has no label: give it one or remove the row.")
    raise CPTuningError(
        f"{where}: the label is of type {type(value).__name__}, "
        + ("use a text or a number." if cells is None else "use a text or a list of texts.")
    )


def _label_list(values: list[Any], where: str, need_label: bool) -> tuple[Label, ...] | None:
    """The labels of a cell that is a list."""
    for value in values:
        is_empty = is_missing(value) or (isinstance(value, str) and not value.strip())
        problem = text_problem(value) if isinstance(value, str) else None
        if isinstance(value, Label) and not is_empty and problem is None:
            continue
        if not need_label:
            return None
        what = problem or ("is empty" if is_empty else f"is of type {type(value).__name__}")
        raise CPTuningError(f"{where}: a label of the list {what}, use texts or numbers.")
    return tuple(dict.fromkeys(values))


@dataclass(frozen=True)
class TablePreview:
    """The first rows of a file, and the columns that seem to hold its texts and labels."""

    rows: list[dict[str, Any]]
    guess: ColumnGuess
    has_header: bool


def preview_table(path: str | Path, header: bool | None = None) -> TablePreview:
    r"""The first rows of a table file, from which its columns can be chosen.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.csv")
    ...     _ = path.write_text("Frage;Amt\nWo ist es?;Lager\nUnd was?;Lager\n")
    ...     preview_table(path).guess
    ColumnGuess(texts=('Frage',), label='Amt')
    """
    rows = [row for _, row in islice(records(path, header=header), SAMPLE_ROWS)]
    if not rows:
        raise CPTuningError(f"{file_name(path)} has a header but no rows.")
    columns = list(rows[0])
    is_named = columns != numbered_columns(len(columns))
    return TablePreview(rows, columns_by_content(rows), is_named)


def check_kind(examples: Examples, *, pairs: bool, path: str) -> None:
    """Raise an error for single texts if the model takes pairs, and the other way round."""
    if examples.is_pair == pairs:
        return
    if pairs:
        raise CPTuningError(
            f"{file_name(path)} has single texts but the model takes pairs: "
            "name the column of the second text with --text-b."
        )
    raise CPTuningError(
        f"{file_name(path)} has pairs of texts but the model takes single texts: "
        "name the one column with --text."
    )
