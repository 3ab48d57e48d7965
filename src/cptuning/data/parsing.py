"""Raw rows from table files of each format, with the place of each row for error messages."""

import codecs
import csv
import gzip
import json
import logging
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import StringIO, TextIOWrapper
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, BinaryIO, cast
from zipfile import ZipFile

from cptuning.data.detection import (
    SAMPLE_BYTES,
    SAMPLE_ROWS,
    can_be_sampled,
    decoded_sample,
    delimiter_of,
    has_header,
    numbered_columns,
    sample_rows,
    utf16,
)
from cptuning.data.formats import (
    STANDARD_STREAM,
    file_name,
    files_package,
    is_gzip,
    table_format,
)
from cptuning.data.value_checks import shortlist
from cptuning.errors import CPTuningError
from cptuning.input_limits import LARGEST_FILE, LONGEST_LINE

# The place of a row and the row: ("train.csv, line 7", {"text": …}).
Record = tuple[str, dict[str, Any]]

_log = logging.getLogger("cptuning")


def records(
    path: str | Path,
    format: str | None = None,
    row_group: int | None = None,
    header: bool | None = None,
) -> Iterator[Record]:
    r"""The rows of a table file one by one, unchanged, with their places.

    ``row_group`` is the number of the only row group of a Parquet file to read. ``header`` is
    whether the first row of a CSV, TSV or XLSX file names the columns; None guesses. The separator
    of a CSV or TSV file is guessed where that of its format does not split its rows alike.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.csv")
    ...     _ = path.write_text("text,label\nhello,greeting\n")
    ...     [(where, row)] = records(path)
    >>> where.endswith("train.csv, line 2"), row
    (True, {'text': 'hello', 'label': 'greeting'})
    """
    kind = table_format(path, format)
    if str(path) != STANDARD_STREAM:
        _check_file(Path(path))
    if kind == "parquet":
        yield from _parquet(path, row_group)
    elif kind == "xlsx":
        yield from _xlsx(path, header)
    else:
        name = file_name(path)
        head, is_whole = _head(path, name)
        with _reading(name, "gzip"), _opened(path) as stream:
            lines = _utf16_lines(stream, name) if utf16(head) else _decoded(stream, name, kind)
            if str(path) == STANDARD_STREAM and format is None:
                first = next(lines, "")
                kind, lines = _kind_of(first), chain([first] if first else [], lines)
            if kind == "jsonl":
                yield from _jsonl(lines, name)
            else:
                delimiter = "," if kind == "csv" else "\t"
                sample = decoded_sample(head, is_whole)
                delimiter = delimiter_of(sample, delimiter) if sample else delimiter
                if header is None:
                    header = _has_header(sample, delimiter)
                yield from _csv(lines, name, delimiter, header)


def text_lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """The lines of a text file, which may be gzipped, with the place of each."""
    if str(path) != STANDARD_STREAM:
        _check_file(Path(path))
    name = file_name(path)
    with _reading(name, "gzip"), _opened(path) as stream:
        for number, line in enumerate(_decoded(stream, name, "txt"), start=1):
            yield f"{name}, line {number}", line


def _head(path: str | Path, name: str) -> tuple[bytes, bool]:
    """The beginning of a file, none of a stream, and whether that is all of it."""
    if str(path) == STANDARD_STREAM or not can_be_sampled(path):
        return b"", True
    with _reading(name, "gzip"), _opened(path) as stream:
        head = stream.read(SAMPLE_BYTES)
    return head, len(head) < SAMPLE_BYTES


def _has_header(sample: str, delimiter: str) -> bool:
    try:
        return has_header(sample_rows(sample, delimiter))
    except csv.Error:  # The reader says where.
        return True


def _kind_of(first_line: str) -> str:
    r"""The format of a stream, which has no file name, by its first line.

    >>> _kind_of('{"text": "hello"}'), _kind_of("text\tlabel\n"), _kind_of("text,label\n")
    ('jsonl', 'tsv', 'csv')
    """
    if first_line.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in first_line and "," not in first_line else "csv"


def _check_file(path: Path) -> None:
    try:
        if not path.exists():
            raise CPTuningError(f"{path} does not exist: check the name and the folder.")
    except OSError as error:
        raise CPTuningError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not path.is_file():  # It may never end, or never begin.
        raise CPTuningError(
            f"{path} is a pipe or a device, not a file: pass a stream as standard input, with -."
        )
    if path.stat().st_size == 0:
        raise CPTuningError(f"{path} is empty: it needs a header and rows.")


def _opened(path: str | Path) -> AbstractContextManager[BinaryIO]:
    if str(path) == STANDARD_STREAM:
        if sys.stdin is None:
            raise CPTuningError("Standard input is closed: name a file.")
        return nullcontext(sys.stdin.buffer)
    if is_gzip(path):
        return cast(BinaryIO, gzip.open(path, "rb"))
    return Path(path).open("rb")


@contextmanager
def _reading(name: str, kind: str) -> Iterator[None]:
    """Turn errors of the disk or of a compressed file into one sentence."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CPTuningError(f"{name} is not a valid {kind} file ({error}).") from error
    except OSError as error:
        raise CPTuningError(f"{name} cannot be read: {error.strerror or error}.") from error


@contextmanager
def _foreign(path: str | Path, kind: str) -> Iterator[None]:
    """The same for files that a library parses, which may raise any exception."""
    try:
        yield
    except CPTuningError:
        raise
    except Exception as error:
        first_line = str(error).partition("\n")[0] or type(error).__name__
        raise CPTuningError(f"{path} is not a valid {kind} file ({first_line}).") from error


def _bounded_lines(stream: BinaryIO | TextIOWrapper, name: str) -> Iterator[Any]:
    """The lines of a stream; one that is too long is never read whole.

    Standard input may go on for ever, a file may not.
    """
    most, left = LONGEST_LINE.value(), LARGEST_FILE.value()
    is_file = sys.stdin is None or stream is not sys.stdin.buffer
    for number in count(1):
        line = stream.readline(most + 1)
        if not line:
            return
        if len(line) > most:
            raise _too_long(f"{name}, line {number} is", most)
        left -= len(line)
        if left < 0 and is_file:
            raise _too_large(name)
        yield line


def _too_large(name: str | Path) -> CPTuningError:
    return CPTuningError(
        f"{name} holds more than {LARGEST_FILE.value()} bytes when it is decompressed: split it, "
        f"or set {LARGEST_FILE.variable} to more."
    )


def _too_long(what: str, most: int) -> CPTuningError:
    return CPTuningError(
        f"{what} longer than {most} bytes: check the quotes and the ends of lines, or set "
        f"{LONGEST_LINE.variable} to more."
    )


def _decoded(stream: BinaryIO, name: str, kind: str) -> Iterator[str]:
    """The lines as text, decoded one by one so that an error can name the line.

    The first line that is not ASCII decides whether a CSV or TSV file is UTF-8 or Windows-1252,
    in which spreadsheets still save it.
    """
    encoding = "utf-8"
    is_open = kind in ("csv", "tsv")
    for number, line in enumerate(_bounded_lines(stream, name), start=1):
        where = f"{name}, line {number}"
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            if not is_open:
                raise CPTuningError(f"{where} is not UTF-8 text: save it as UTF-8.") from error
            encoding = "cp1252"
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError:
                raise CPTuningError(f"{where} is not UTF-8 text: save it as UTF-8.") from error
            _log.warning("%s is not UTF-8 text: the file is read as Windows-1252.", where)
        is_open = is_open and line.isascii()
        if "\0" in text:
            raise CPTuningError(f"{where} contains a NUL byte: save the file as UTF-8 text.")
        yield text


def _utf16_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a file with the byte order mark of UTF-16."""
    try:
        yield from _bounded_lines(TextIOWrapper(stream, "utf-16", newline="\n"), name)
    except UnicodeDecodeError as error:
        raise CPTuningError(f"{name} is not valid UTF-16 text: save it as UTF-8.") from error


def _csv(
    lines: Iterable[str], name: str, delimiter: str, first_is_header: bool
) -> Iterator[Record]:
    most = LONGEST_LINE.value()
    csv.field_size_limit(most)
    # Lines may also end with a single carriage return, as in old spreadsheets.
    physical_lines = chain.from_iterable(StringIO(line, newline="") for line in lines)
    reader = csv.reader(physical_lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        where = f"{name}, line {reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            if "field limit" in str(error):
                raise _too_long(f"{where}: a cell is", most) from error
            raise CPTuningError(
                f'{where}: the quotes do not match ({error}), write " inside a quoted text as "".'
            ) from error
        if not cells:  # A blank line.
            continue
        if header is None:
            header = _header(cells, name) if first_is_header else _unnamed(cells, name)
            if first_is_header:
                continue
        if len(cells) != len(header):
            first = "header" if first_is_header else "first row"
            raise CPTuningError(
                f"{where} has {len(cells)} cells but the {first} has {len(header)}: "
                "put texts that contain the separator in double quotes."
            )
        yield where, dict(zip(header, cells, strict=True))
    if header is None:
        raise CPTuningError(f"{name} is empty: it needs a header and rows.")


def _jsonl(lines: Iterable[str], name: str) -> Iterator[Record]:
    is_empty = True
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        is_empty = False
        where = f"{name}, line {number}"
        try:
            row = json.loads(line, object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            raise CPTuningError(f"{where} is not valid JSON ({error}).") from error
        if not isinstance(row, dict):
            raise CPTuningError(f'{where} is not a JSON object like {{"text": "…"}}.')
        yield where, row
    if is_empty:
        raise CPTuningError(f"{name} is empty: it needs one JSON object per line.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a key appears twice")
    return row


def _parquet(path: str | Path, row_group: int | None) -> Iterator[Record]:
    parquet = files_package("pyarrow.parquet", path)
    with _foreign(path, "Parquet"), parquet.ParquetFile(path) as file:
        groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
        if sum(group.total_byte_size for group in groups) > LARGEST_FILE.value():
            raise _too_large(path)
        _header(file.schema_arrow.names, str(path))
        before = range(row_group or 0)
        number = sum(file.metadata.row_group(group).num_rows for group in before)
        wanted = None if row_group is None else [row_group]
        for batch in file.iter_batches(row_groups=wanted):
            for row in batch.to_pylist():
                number += 1
                yield f"{path}, row {number}", row


def _xlsx(path: str | Path, first_is_header: bool | None) -> Iterator[Record]:
    """The rows of the first sheet; empty rows are skipped."""
    openpyxl = files_package("openpyxl", path)
    header: list[str] | None = None
    with _foreign(path, "XLSX"), Path(path).open("rb") as stream:
        with ZipFile(stream) as parts:
            if sum(part.file_size for part in parts.infolist()) > LARGEST_FILE.value():
                raise _too_large(path)
        workbook = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        rows = (
            (number, cells)
            for number, row in enumerate(workbook.worksheets[0].iter_rows(values_only=True), 1)
            if (cells := _without_trailing_none(row))
        )
        sample = list(islice(rows, SAMPLE_ROWS))
        if first_is_header is None:
            first_is_header = has_header([cells for _, cells in sample])
        for number, cells in chain(sample, rows):
            if header is None:
                names = ["" if cell is None else str(cell) for cell in cells]
                header = _header(names, str(path)) if first_is_header else _unnamed(cells, path)
                if first_is_header:
                    continue
            where = f"{path}, row {number}"
            if len(cells) > len(header):
                first = "header" if first_is_header else "first row"
                raise CPTuningError(
                    f"{where} has {len(cells)} cells but the {first} has {len(header)}."
                )
            cells += [None] * (len(header) - len(cells))
            yield where, dict(zip(header, cells, strict=True))
        workbook.close()
    if header is None:
        raise CPTuningError(f"{path} is empty: its first sheet needs a header and rows.")


def _unnamed(cells: Sequence[Any], path: str | Path) -> list[str]:
    """The names of the columns of a table without a header."""
    _log.warning("%s has no header: its first row is read as an example.", path)
    return numbered_columns(len(cells))


def _without_trailing_none(cells: Iterable[Any]) -> list[Any]:
    kept = list(cells)
    while kept and kept[-1] is None:
        kept.pop()
    return kept


def _header(names: Iterable[str], name_of_file: str) -> list[str]:
    header = [name.strip() for name in names]
    if len(set(header)) < len(header):
        twice = {name for name in header if header.count(name) > 1}
        raise CPTuningError(
            f"{name_of_file} has two columns with the same name, {shortlist(sorted(twice))}: "
            "rename one."
        )
    return header
