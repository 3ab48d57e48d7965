import csv
import gzip
import io
import json
import os
import sys
import tempfile
from datetime import date
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data.files import read_table
from cptuning.data.parsing import records
from cptuning.data.writing import open_writer
from cptuning.errors import CPTuningError

NAMES = ["t.csv", "t.tsv", "t.jsonl", "t.csv.gz", "t.tsv.gz", "t.jsonl.gz", "t.parquet", "t.xlsx"]
ROWS = [{"text": 'a "b", \tc\nd', "label": "x"}, {"text": "é🙂", "label": "y"}]

# What all formats can hold: XML has no control characters, a text file of ours no NUL.
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from("\n\r\t"))


def write(path, *portions, **options):
    with open_writer(path, **options) as writer:
        for rows in portions:
            writer.write(rows)
    return path


def read(path):
    return [row for _, row in records(path)]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_again(tmp_path, name):
    assert read(write(tmp_path / name, ROWS[:1], ROWS[1:])) == ROWS


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet"])
@given(texts=st.lists(TEXTS, min_size=1))
def test_every_text_comes_through(name, texts):
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder, name), [{"text": text} for text in texts])
        assert list(read_table(path).examples) == texts


def test_suffix_gz_means_compressed_and_repeatable(tmp_path):
    one = write(tmp_path / "one.csv.gz", ROWS).read_bytes()
    two = write(tmp_path / "two.csv.gz", ROWS).read_bytes()
    assert one == two
    assert one[4:8] == bytes(4)  # The place of the time.
    assert gzip.decompress(one) == write(tmp_path / "t.csv", ROWS).read_bytes()


def test_csv_lines_end_as_unix_ends_them(tmp_path):
    path = write(tmp_path / "t.csv", [{"text": "a", "n": None}, {"text": "b\r", "n": 0.5}])
    assert path.read_bytes() == b'text,n\na,\n"b\r",0.5\n'


def test_numbers_stay_numbers_where_the_format_has_them(tmp_path):
    rows = [{"text": "a", "p": np.float64(0.25), "n": np.int64(3), "yes": True}]
    assert json.loads(write(tmp_path / "t.jsonl", rows).read_text()) == rows[0]
    assert pq.read_table(write(tmp_path / "t.parquet", rows)).to_pylist() == rows
    sheet = openpyxl.load_workbook(write(tmp_path / "t.xlsx", rows)).active
    assert list(sheet.values)[1] == ("a", 0.25, 3, True)


def test_values_that_a_format_lacks_are_written_as_near_as_can_be(tmp_path):
    rows = [{"text": "a", "day": date(2020, 1, 2), "tags": ["x", "é"], "p": float("nan")}]
    assert read(write(tmp_path / "t.jsonl", rows)) == [
        {"text": "a", "day": "2020-01-02", "tags": ["x", "é"], "p": None}
    ]
    assert read(write(tmp_path / "t.csv", rows)) == [
        {"text": "a", "day": "2020-01-02", "tags": '["x", "é"]', "p": "nan"}
    ]
    assert read(write(tmp_path / "t.xlsx", rows)) == [
        {"text": "a", "day": "2020-01-02", "tags": '["x", "é"]', "p": None}
    ]


def test_half_a_surrogate_pair_in_another_column_does_not_stop_a_run(tmp_path):
    rows = [{"note": "\ud800"}]
    assert read(write(tmp_path / "t.jsonl", rows)) == rows
    assert read(write(tmp_path / "t.csv", rows)) == [{"note": r"\ud800"}]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.xlsx"])
def test_formulas_can_be_made_harmless(tmp_path, name):
    texts = ["=1+1", "+1", "-1", "@a", "\tb", "\rc", "d=1", ""]
    rows = [{"text": text, "n": -1} for text in texts]
    safe = read(write(tmp_path / name, rows, safe_cells=True))
    as_they_are = read(write(tmp_path / name, rows))
    if name == "t.xlsx":  # XML makes one newline of every kind.
        texts[5] = "\nc"
    assert [row["text"] or "" for row in safe] == [f"'{text}" for text in texts[:6]] + texts[6:]
    assert [row["text"] or "" for row in as_they_are] == texts
    assert {str(row["n"]) for row in safe} == {"-1"}


def test_a_spreadsheet_gets_texts_and_no_formulas(tmp_path):
    path = write(tmp_path / "t.xlsx", [{"text": "=1+1"}, {"text": "#N/A"}, {"text": "a\x0bb"}])
    cells = [row[0] for row in openpyxl.load_workbook(path).active.iter_rows(min_row=2)]
    assert [(cell.value, cell.data_type) for cell in cells] == [
        ("=1+1", "s"),
        ("#N/A", "s"),
        ("ab", "s"),
    ]


def test_a_text_too_long_for_a_cell_is_not_cut_in_silence(tmp_path):
    with pytest.raises(CPTuningError, match=r"40000 characters, .* write CSV instead"):
        write(tmp_path / "t.xlsx", [{"text": "a" * 40_000}])


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.parquet"])
def test_columns_are_those_of_all_rows_of_the_first_portion(tmp_path, name):
    path = write(tmp_path / name, [{"text": "a"}, {"text": "b", "more": "c"}], [{"text": "d"}])
    assert [row["more"] or "" for row in read(path)] == ["", "c", ""]


def test_a_column_that_comes_too_late_is_a_mistake(tmp_path):
    with pytest.raises(CPTuningError, match="column 'more' appears after the header"):
        write(tmp_path / "t.csv", [{"text": "a"}], [{"text": "b", "more": "c"}])


def test_a_column_of_many_types_is_a_mistake_in_parquet(tmp_path):
    with pytest.raises(CPTuningError, match="column 'x' are not of one type"):
        write(tmp_path / "t.parquet", [{"x": "a"}, {"x": 1}])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_all_is_as_before(tmp_path, name, error):
    (tmp_path / name).write_bytes(b"what was there")

    def fail():
        with open_writer(tmp_path / name) as writer:
            writer.write(ROWS)
            raise error

    with pytest.raises(error):
        fail()
    assert (tmp_path / name).read_bytes() == b"what was there"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    with open_writer(tmp_path / "t.csv") as writer:
        writer.write(ROWS)
        assert not (tmp_path / "t.csv").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    usual = (tmp_path / "usual").stat().st_mode
    assert write(tmp_path / "t.csv", ROWS).stat().st_mode == usual


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write(tmp_path / "link.csv", ROWS)
    assert (tmp_path / "link.csv").is_symlink()
    assert read(tmp_path / "real.csv") == ROWS


def test_a_device_is_written_to_and_never_replaced(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe, [{"text": "a"}])
    assert os.read(reader, 100) == b"text\na\n"
    os.close(reader)
    assert pipe.is_fifo()


def test_standard_output_is_csv_unless_told_otherwise(monkeypatch):
    for format, expected in ((None, "text\né\n"), ("jsonl", '{"text": "é"}\n')):
        stream = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(stream, encoding="ascii"))
        write("-", [{"text": "é"}], format=format)
        assert stream.getvalue().decode() == expected


def test_standard_output_is_not_held_back(monkeypatch):
    stream = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(stream)))
    with open_writer("-") as writer:
        writer.write([{"text": "a"}])
        assert list(csv.reader(stream.getvalue().decode().splitlines())) == [["text"], ["a"]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".", "is a folder"),
        ("no/t.csv", "can't be written: there is no folder .*no"),
        ("t.docx", "unknown kind of file"),
    ],
)
def test_an_impossible_target_is_named_before_anything_is_done(tmp_path, name, message):
    with pytest.raises(CPTuningError, match=message), open_writer(tmp_path / name, None):
        pytest.fail("the writer must not open")


def test_a_folder_that_the_system_does_not_open(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "open", refuse)
    with pytest.raises(CPTuningError, match="can't be written: Permission denied"):
        write(tmp_path / "t.csv", ROWS)


@pytest.mark.parametrize("name", ["t.parquet", "t.xlsx"])
def test_a_missing_package_is_named_before_anything_is_done(tmp_path, monkeypatch, name):
    for module in ("pyarrow", "openpyxl"):
        monkeypatch.setitem(sys.modules, module, None)
    with (
        pytest.raises(CPTuningError, match=r'pip install "cptuning\[files\]"'),
        open_writer(tmp_path / name),
    ):
        pytest.fail("the writer must not open")
    assert list(tmp_path.iterdir()) == []
