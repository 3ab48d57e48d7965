from pathlib import Path

import pytest

from cptuning.data.formats import FORMATS, file_name, is_gzip, table_format
from cptuning.errors import CPTuningError


@pytest.mark.parametrize("format", FORMATS)
def test_the_suffix_tells_the_format(format):
    assert table_format(f"train.{format}") == format
    assert table_format(Path("a.b", f"TRAIN.{format.upper()}")) == format


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_text_formats_may_be_compressed(format):
    assert table_format(f"train.{format}.gz") == format
    assert is_gzip(f"train.{format}.gz")


@pytest.mark.parametrize(
    "name", ["train", "train.txt", "train.json", "a.parquet.gz", ".gz", "csv/a"]
)
def test_an_unknown_suffix_lists_the_known_ones(name):
    with pytest.raises(CPTuningError, match=r"unknown kind of file, use \.csv"):
        table_format(name)


def test_a_named_format_goes_before_the_suffix():
    assert table_format("export.txt", "tsv") == "tsv"
    with pytest.raises(CPTuningError, match="Unknown format 'xml'"):
        table_format("export.txt", "xml")


def test_a_standard_stream_is_csv_unless_told_otherwise():
    assert table_format("-") == "csv"
    assert table_format("-", "jsonl") == "jsonl"
    with pytest.raises(CPTuningError, match="xlsx cannot pass through a standard stream"):
        table_format("-", "xlsx")
    assert file_name("-") == "standard input"
