"""Labelled examples as a visitor gives them: pasted lines, files, or the package's own."""

from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from cptuning.data import Examples, Table, read_table
from cptuning.errors import CPTuningError

Text = str | tuple[str, str]

SAMPLES = ("messages", "same_question")
"""The names of the data sets in the package: single texts, and pairs."""


class Example(NamedTuple):
    """A text, or a pair of texts, and its label."""

    text: Text
    label: str

    @property
    def is_pair(self) -> bool:
        """Whether there are two texts.

        >>> Example("hello", "greeting").is_pair, Example(("a", "b"), "same").is_pair
        (False, True)
        """
        return not isinstance(self.text, str)


def as_data(examples: Sequence[Example]) -> tuple[Examples, list[str]]:
    """What a classifier takes: all texts, and all labels.

    >>> as_data([Example("hello", "greeting")])
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


def pasted(content: str) -> list[Example]:
    r"""The examples in pasted lines: a text, a tab or a bar, and its label; two texts for a pair.

    Lines under a header that names the columns are read as the CSV or TSV file that they are.

    >>> pasted("hello | greeting\nsee you\tfarewell")
    [Example(text='hello', label='greeting'), Example(text='see you', label='farewell')]
    >>> pasted("is it red? | it is. | yes")
    [Example(text=('is it red?', 'it is.'), label='yes')]
    >>> pasted("hello")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: Line 1 has no label: write the text, a tab or a |, and its label.
    """
    lines = [(n, line) for n, line in enumerate(content.splitlines(), 1) if line.strip()]
    if not lines:
        raise CPTuningError("There is nothing yet: paste a line for each example.")
    if suffix := _header_kind(lines[0][1]):
        return _read_pasted_table(content.strip() + "\n", suffix)
    return [_example(number, line) for number, line in lines]


def _header_kind(line: str) -> str | None:
    """The kind of table whose header this line is, if it is one."""
    for suffix, separator in ((".tsv", "\t"), (".csv", ",")):
        names = {name.strip().strip('"').lower() for name in line.split(separator)}
        if "label" in names and names & {"text", "text_a"}:
            return suffix
    return None


def _read_pasted_table(content: str, suffix: str) -> list[Example]:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"pasted{suffix}")
        path.write_text(content, "utf-8", newline="")
        try:
            return from_table(read_table(path, need_label=True))
        except CPTuningError as error:  # Nobody put a file there: it is what was pasted.
            raise CPTuningError(str(error).replace(str(path), "The pasted table")) from error


def _example(number: int, line: str) -> Example:
    parts = [part.strip() for part in line.split("\t" if "\t" in line else "|")]
    if len(parts) < 2 or not parts[-1]:
        raise CPTuningError(
            f"Line {number} has no label: write the text, a tab or a |, and its label."
        )
    if len(parts) > 3:
        raise CPTuningError(
            f"Line {number} has {len(parts)} parts: write one text or two, and then the label."
        )
    return Example(parts[0] if len(parts) == 2 else (parts[0], parts[1]), parts[-1])


def from_file(path: str | Path) -> list[Example]:
    """The examples in a CSV, TSV, JSONL, Parquet or Excel file."""
    try:
        return from_table(read_table(path, need_label=True))
    except CPTuningError as error:
        raise named_as_given(error, path) from error


def named_as_given(error: CPTuningError, path: str | Path) -> CPTuningError:
    """The same sentence without the folder that the file was put into here.

    >>> str(named_as_given(CPTuningError("/tmp/x/train.csv is empty."), "/tmp/x/train.csv"))
    'train.csv is empty.'
    """
    return CPTuningError(str(error).replace(str(path), Path(path).name))


def sample(name: str) -> list[Example]:
    """The training examples of one of the package's data sets.

    >>> len(sample("messages")), sample("same_question")[0].is_pair
    (96, True)
    """
    with as_file(files("cptuning.data") / "demo" / f"{name}_train.csv") as path:
        return from_table(read_table(path, need_label=True))


def from_table(table: Table) -> list[Example]:
    """The rows of a table whose every row has a label.

    >>> from_table(Table([{}], Examples(("hello",)), [7], [""]))
    [Example(text='hello', label='7')]
    """
    labels = (str(label) for label in table.labels or [])
    return [Example(text, label) for text, label in zip(table.examples, labels, strict=True)]
