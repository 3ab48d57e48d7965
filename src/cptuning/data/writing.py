"""Write rows to table files, which appear complete or not at all."""

import csv
import gzip
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from cptuning.data.formats import STANDARD_STREAM, files_package, is_gzip, table_format
from cptuning.data.value_checks import plain
from cptuning.errors import CPTuningError
from cptuning.files.atomic import whole_file

Row = dict[str, Any]

# A spreadsheet takes a cell that begins with one of these for a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

# The maximum number of characters in a cell of a spreadsheet.
LONGEST_XLSX_CELL = 32_767


class RowWriter(Protocol):
    """Writes rows, in any number of portions."""

    def write(self, rows: Sequence[Row]) -> None:
        """Write these rows."""

    def finish(self) -> None:
        """Write what is still buffered."""


@contextmanager
def open_writer(
    path: str | Path, format: str | None = None, *, safe_cells: bool = False
) -> Iterator[RowWriter]:
    """A writer of rows to a CSV, TSV, JSONL (these also gzipped), Parquet or XLSX file.

    ``"-"`` is standard output. The columns are those of the first portion of rows. A file gets its
    name only when it is complete; after an error, an earlier file of that name is unchanged. CSV,
    TSV and JSONL are written as rows arrive; Parquet and XLSX are kept in memory until the end.
    ``safe_cells`` puts a quote before texts that a spreadsheet would run as a formula.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "out.csv")
    ...     with open_writer(path, safe_cells=True) as writer:
    ...         writer.write([{"text": "=1+1", "label": "sum"}])
    ...     path.read_text().splitlines()
    ['text,label', "'=1+1,sum"]
    """
    kind = table_format(path, format)
    with _sink(path) as sink:
        writer = _writer(kind, sink, path, safe_cells)
        yield writer
        writer.finish()


def _writer(kind: str, sink: BinaryIO, path: str | Path, safe_cells: bool) -> RowWriter:
    if kind == "jsonl":
        return _JSONLWriter(sink)
    if kind == "parquet":
        return _ParquetWriter(sink, path)
    cell: Callable[[Any], Any] = _safe_cell if safe_cells else _cell
    if kind == "xlsx":
        return _XLSXWriter(sink, path, cell)
    return _CSVWriter(sink, "," if kind == "csv" else "\t", cell)


@contextmanager
def _sink(path: str | Path) -> Iterator[BinaryIO]:
    """Standard output, a device, or a temporary file that replaces the target when complete."""
    if str(path) == STANDARD_STREAM:
        if sys.stdout is None:
            raise CPTuningError("Standard output is closed: name a file with --output.")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path).resolve()  # Write through a link instead of replacing it.
    if not target.parent.is_dir():
        raise CPTuningError(f"{path} can't be written: there is no folder {target.parent}.")
    if target.exists() and not target.is_file():  # A device such as /dev/null is not replaced.
        with target.open("wb") as stream:
            yield stream
        return
    with ExitStack() as stack:
        try:
            place = stack.enter_context(whole_file(target))
            stream = stack.enter_context(place.open("xb"))
        except OSError as error:
            raise CPTuningError(f"{path} can't be written: {error.strerror or error}.") from error
        if is_gzip(path):
            # Without a name and a time in the header, the same rows give the same bytes.
            with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as compressed:
                yield compressed  # type: ignore[misc]
        else:
            yield stream


class _CSVWriter:
    def __init__(self, sink: BinaryIO, delimiter: str, cell: Callable[[Any], Any]) -> None:
        self._sink = sink
        self._delimiter = delimiter
        self._cell = cell
        self._columns: list[str] = []

    def write(self, rows: Sequence[Row]) -> None:
        portion: list[list[Any]] = []
        if rows and not self._columns:
            self._columns = _columns(rows)
            portion.append(self._columns)
        portion += [_values(row, self._columns) for row in rows]
        for values in portion:
            # The csv module quotes carriage returns only if they are in the line terminator.
            line = StringIO(newline="")
            writer = csv.writer(line, delimiter=self._delimiter, lineterminator="\r\n")
            writer.writerow([self._cell(value) for value in values])
            self._sink.write(_encoded(line.getvalue().removesuffix("\r\n") + "\n"))
        self._sink.flush()

    def finish(self) -> None:
        pass


class _JSONLWriter:
    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            finite = {column: _finite(plain(value)) for column, value in row.items()}
            line = json.dumps(finite, ensure_ascii=False, default=str)
            self._sink.write(_encoded(line + "\n"))
        self._sink.flush()

    def finish(self) -> None:
        pass


class _ParquetWriter:
    """Keeps all rows in memory, because the type of a column depends on all its values."""

    def __init__(self, sink: BinaryIO, path: str | Path) -> None:
        self._arrow = files_package("pyarrow", path)
        self._parquet = files_package("pyarrow.parquet", path)
        self._sink = sink
        self._path = path
        self._rows: list[Row] = []

    def write(self, rows: Sequence[Row]) -> None:
        self._rows += rows

    def finish(self) -> None:
        table = {}
        for column in _columns(self._rows):
            values = [plain(row.get(column)) for row in self._rows]
            try:
                table[column] = self._arrow.array(values)
            except (self._arrow.ArrowException, UnicodeEncodeError) as error:
                raise CPTuningError(
                    f"{self._path}: the values of column {column!r} are not of one type, as "
                    "Parquet requires: write JSONL instead."
                ) from error
        self._parquet.write_table(self._arrow.table(table), self._sink)


class _XLSXWriter:
    """Keeps all rows in memory, because an unfinished workbook would leave temporary files."""

    def __init__(self, sink: BinaryIO, path: str | Path, cell: Callable[[Any], Any]) -> None:
        self._openpyxl = files_package("openpyxl", path)
        self._sink = sink
        self._path = path
        self._cell = cell
        self._rows: list[Row] = []

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._rows.append({column: self._checked(value) for column, value in row.items()})

    def finish(self) -> None:
        columns = _columns(self._rows)
        workbook = self._openpyxl.Workbook(write_only=True)
        sheet = workbook.create_sheet()
        for values in [columns, *(_values(row, columns) for row in self._rows)]:
            sheet.append([self._as_text(sheet, x) if isinstance(x, str) else x for x in values])
        workbook.save(self._sink)

    def _checked(self, value: Any) -> Any:
        cell = _finite(self._cell(value))
        if isinstance(cell, str) and len(cell) > LONGEST_XLSX_CELL:
            raise CPTuningError(
                f"{self._path}: a text has {len(cell)} characters, but a cell of a spreadsheet "
                f"holds at most {LONGEST_XLSX_CELL}: write CSV instead."
            )
        return cell

    def _as_text(self, sheet: Any, text: str) -> Any:
        legal = self._openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("", text)
        cell = self._openpyxl.cell.WriteOnlyCell(sheet, legal)
        cell.data_type = "s"  # Otherwise a text that begins with "=" would become a formula.
        return cell


def _columns(rows: Sequence[Row]) -> list[str]:
    """All columns of these rows, in order of appearance."""
    return list(dict.fromkeys(column for row in rows for column in row))


def _values(row: Row, columns: Sequence[str]) -> list[Any]:
    unknown = row.keys() - set(columns)
    if unknown:
        raise CPTuningError(
            f"The column {min(unknown)!r} appears after the header was written: "
            "write JSONL instead."
        )
    return [row.get(column) for column in columns]


def _cell(value: Any) -> Any:
    """The value for a cell: nested values as JSON, other types as text."""
    value = plain(value)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _safe_cell(value: Any) -> Any:
    cell = _cell(value)
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def _finite(value: Any) -> Any:
    """None for NaN and infinity, which neither JSON nor spreadsheets have."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _encoded(line: str) -> bytes:
    # Half a surrogate pair comes out as JSON writes it, \ud800, rather than as an error.
    return line.encode("utf-8", "backslashreplace")
