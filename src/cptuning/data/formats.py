"""The formats of table files, which are known by their suffix."""

from importlib import import_module
from pathlib import Path
from typing import Any

from cptuning.errors import CPTuningError
from cptuning.extras import needed_for

TEXT_FORMATS = ("csv", "tsv", "jsonl")
FORMATS = (*TEXT_FORMATS, "parquet", "xlsx")

# The path that stands for standard input or output.
STANDARD_STREAM = "-"


def table_format(path: str | Path, format: str | None = None) -> str:
    """The format of this file: the one named, else by its suffix; a standard stream is CSV.

    >>> table_format("train.csv.gz"), table_format("-"), table_format("-", "jsonl")
    ('csv', 'csv', 'jsonl')
    >>> table_format("notes.docx")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: notes.docx: unknown kind of file, use .csv, .tsv or .jsonl (or
    these with .gz), .parquet or .xlsx.
    """
    if format is not None and format not in FORMATS:
        raise CPTuningError(f"Unknown format {format!r}: use one of {', '.join(FORMATS)}.")
    if str(path) == STANDARD_STREAM:
        if format not in (None, *TEXT_FORMATS):
            raise CPTuningError(
                f"{format} cannot pass through a standard stream: name a file, or use "
                f"{', '.join(TEXT_FORMATS)}."
            )
        return format or "csv"
    if Path(path).is_dir():
        raise CPTuningError(f"{path} is a folder: name a file in it.")
    if format is not None:
        return format
    name = Path(path).name.lower()
    suffix = name.removesuffix(".gz").rpartition(".")[2]
    if suffix in (TEXT_FORMATS if is_gzip(path) else FORMATS):
        return suffix
    raise CPTuningError(
        f"{path}: unknown kind of file, use .csv, .tsv or .jsonl (or these with .gz), "
        ".parquet or .xlsx."
    )


def is_gzip(path: str | Path) -> bool:
    """Whether this file is compressed, by its suffix.

    >>> is_gzip("train.csv.gz"), is_gzip("train.csv")
    (True, False)
    """
    return Path(path).name.lower().endswith(".gz")


def file_name(path: str | Path) -> str:
    """The name of an input for messages.

    >>> file_name("train.csv"), file_name("-")
    ('train.csv', 'standard input')
    """
    return "standard input" if str(path) == STANDARD_STREAM else str(path)


def files_package(module: str, path: str | Path) -> Any:
    """The module that reads or writes this file, imported only now.

    >>> files_package("pyarrow.parquet", "train.parquet").__name__
    'pyarrow.parquet'
    """
    with needed_for(str(path)):
        return import_module(module)
