"""Guesses about table files: their separator, whether they have a header, what a column holds."""

import csv
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from cptuning.data.examples import text_columns
from cptuning.errors import CPTuningError

# So many rows, from so many bytes, are looked at.
SAMPLE_ROWS = 100
SAMPLE_BYTES = 65_536

DELIMITERS = (",", ";", "\t", "|")

# What people call the columns, lower-case; the paper's names come first.
TEXT_NAMES = (
    "text", "message", "sentence", "utterance", "content", "body", "comment", "review", "tweet",
    "question", "query", "document", "description", "email", "post", "texts", "messages",
)  # fmt: skip
LABEL_NAMES = (
    "label", "category", "class", "intent", "topic", "team", "tag", "target", "sentiment",
    "department", "labels", "emotion", "queue",
)  # fmt: skip
_PAIR_NAMES = (
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
)


@dataclass(frozen=True)
class ColumnGuess:
    """The columns that seem to hold the texts (two of them for pairs) and the label."""

    texts: tuple[str, ...] = ()
    label: str | None = None


def delimiter_of(sample: str, default: str) -> str:
    r"""The separator that gives every row of a sample the same number of cells, at least two.

    The default wins if it does.

    >>> delimiter_of("text;label\nhello, you;greeting\n", ",")
    ';'
    """
    for delimiter in (default, *DELIMITERS):
        try:
            widths = {len(cells) for cells in sample_rows(sample, delimiter)}
        except csv.Error:
            continue
        if len(widths) == 1 and widths.pop() > 1:
            return delimiter
    return default


def sample_rows(sample: str, delimiter: str) -> list[list[str]]:
    r"""The cells of the first rows; blank lines are skipped.

    >>> sample_rows("text,label\n\nhello,greeting\n", ",")
    [['text', 'label'], ['hello', 'greeting']]
    """
    reader = csv.reader(sample.splitlines(keepends=True), delimiter=delimiter, strict=True)
    return list(islice((cells for cells in reader if cells), SAMPLE_ROWS))


def has_header(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether the first row names the columns; only clear signs speak against it.

    There is no header if no cell of the first row is a usual name of a column, and one of them is
    a value that the column has again below, as labels have.

    >>> has_header([["hello", "greeting"], ["good day", "greeting"]])
    False
    >>> has_header([["text", "label"], ["hello", "greeting"]])
    True
    """
    if not rows:
        return True
    first = [_plain(cell) for cell in rows[0]]
    known = {*TEXT_NAMES, *LABEL_NAMES, *(name for pair in _PAIR_NAMES for name in pair), "id"}
    if known & set(first) or len(first) < 2:
        return True
    return not any(
        cell and cell in {_plain(row[number]) for row in rows[1:] if number < len(row)}
        for number, cell in enumerate(first)
    )


def numbered_columns(n: int) -> list[str]:
    """The names of the columns of a table without a header.

    >>> numbered_columns(2)
    ['column 1', 'column 2']
    """
    return [f"column {number}" for number in range(1, n + 1)]


def columns_by_name(columns: Collection[str]) -> ColumnGuess:
    """The columns by their names, whatever their case; what is ambiguous is left out.

    The only column, or the only one beside the label, is the text.

    >>> columns_by_name(["Id", "Message", "Team"])
    ColumnGuess(texts=('Message',), label='Team')
    >>> columns_by_name(["what they wrote", "category"])
    ColumnGuess(texts=('what they wrote',), label='category')
    """
    label = "label" if "label" in columns else _only(columns, LABEL_NAMES)
    texts = tuple(text_columns(columns)) or _pair(columns)
    if not texts and (text := _only(columns, TEXT_NAMES)):
        texts = (text,)
    rest = [name for name in columns if name not in texts and name != label]
    return ColumnGuess(texts or tuple(rest[:1] if len(rest) == 1 else ()), label)


def other_column(rows: Sequence[Mapping[str, Any]], texts: Collection[str]) -> str | None:
    """The only column besides the texts if it has values that recur, as labels do; else None.

    >>> other_column([{"text": "hi", "sort": "x"}, {"text": "ho", "sort": "x"}], ["text"])
    'sort'
    """
    rest = [name for name in rows[0] if name not in texts]
    return rest[0] if texts and len(rest) == 1 and _recurs(rows, rest[0]) else None


def columns_by_content(rows: Sequence[Mapping[str, Any]]) -> ColumnGuess:
    """The columns by their names, and what these leave open by the values.

    A label column has values that recur; the texts are the longest of the others.

    >>> rows = [{"a": "hello there", "b": "x"}, {"a": "good day", "b": "x"}]
    >>> columns_by_content(rows)
    ColumnGuess(texts=('a',), label='b')
    """
    if not rows:
        return ColumnGuess()
    columns = list(rows[0])
    try:
        guess = columns_by_name(columns)
    except CPTuningError:  # Both a column text and a column text_a.
        guess = ColumnGuess()
    texts, label = guess.texts, guess.label
    if label is None:
        rest = [name for name in columns if name not in texts]
        label = _most_recurring(rows, rest)
    if not texts:
        rest = [name for name in columns if name != label]
        texts = (max(rest, key=_length_in(rows)),) if rest else ()
    return ColumnGuess(texts, label)


def unnamed_columns(rows: Sequence[Mapping[str, Any]]) -> ColumnGuess:
    """The columns of a table without a header, if it has two and only one of them recurs.

    >>> unnamed_columns([{"column 1": "hi", "column 2": "x"}, {"column 1": "ho", "column 2": "x"}])
    ColumnGuess(texts=('column 1',), label='column 2')
    """
    columns = list(rows[0]) if rows else []
    recurring = [name for name in columns if _recurs(rows, name)]
    if len(columns) == 2 and len(recurring) == 1:
        [text] = set(columns) - set(recurring)
        return ColumnGuess((text,), recurring[0])
    return ColumnGuess()


def _plain(cell: Any) -> str:
    return "" if cell is None else str(cell).strip().casefold()


def _only(columns: Collection[str], names: Sequence[str]) -> str | None:
    """The only column that has one of these names, or the first name of them."""
    found = [column for column in columns if _plain(column) in names]
    first = [column for column in found if _plain(column) == names[0]]
    best = first or found
    return best[0] if len(best) == 1 else None


def _pair(columns: Collection[str]) -> tuple[str, ...]:
    by_name = {_plain(column): column for column in columns}
    for first, second in _PAIR_NAMES:
        if first in by_name and second in by_name:
            return by_name[first], by_name[second]
    return ()


def _recurs(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    counts = Counter(_plain(row.get(column)) for row in rows)
    return max(counts.values(), default=0) > 1


def _most_recurring(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str | None:
    """The column with the fewest different values, if some recur; rather one with several."""
    counts = {name: len({_plain(row.get(name)) for row in rows}) for name in columns}
    few = {name: (n == 1, n) for name, n in counts.items() if n < len(rows)}
    return min(few, key=few.__getitem__, default=None)


def _length_in(rows: Sequence[Mapping[str, Any]]) -> Any:
    def length(column: str) -> int:
        return sum(len(row[column]) for row in rows if isinstance(row.get(column), str))

    return length


def decoded_sample(head: bytes, is_whole: bool) -> str:
    r"""The beginning of a file as text, up to its last complete line if there is more.

    >>> decoded_sample("Grüße;x\nund".encode("cp1252"), is_whole=False)
    'Grüße;x\n'
    """
    if encoding := utf16(head):
        text = head[: len(head) // 2 * 2].decode(encoding, "replace")
        return text if is_whole else text[: text.rfind("\n") + 1]
    lines = head if is_whole else head[: head.rfind(b"\n") + 1]
    try:
        return lines.decode("utf-8-sig")
    except UnicodeDecodeError:
        return lines.decode("cp1252", "replace")


def utf16(head: bytes) -> str | None:
    """The encoding of a file that begins with the byte order mark of UTF-16, as Excel writes it.

    >>> utf16("text".encode("utf-16")), utf16(b"text")
    ('utf-16', None)
    """
    return "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else None


def can_be_sampled(path: str | Path) -> bool:
    """Whether the beginning of a file can be read twice, as that of a pipe can't."""
    return Path(path).is_file()
