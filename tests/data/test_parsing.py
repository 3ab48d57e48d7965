import gzip
import io
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data.parsing import records
from cptuning.errors import CPTuningError

ROWS = [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]


def rows_in(path, **options):
    return [row for _, row in records(path, **options)]


def places_in(path):
    return [where.removeprefix(f"{path}, ") for where, _ in records(path)]


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def sheet(path, rows):
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    workbook.save(path)
    return path


@pytest.mark.parametrize(
    "content",
    [
        "text,label\na,x\nb,y\n",
        "text,label\r\na,x\r\nb,y",
        "text,label\ra,x\rb,y\r",
        "\ufefftext,label\na,x\nb,y\n",
        ' text , label\n"a",x\n\nb,"y"\n\n',
    ],
    ids=["plain", "windows", "old mac", "byte order mark", "blanks and quotes"],
)
def test_csv_as_different_programs_write_it(tmp_path, content):
    assert rows_in(written(tmp_path / "t.csv", content)) == ROWS


def test_tsv_and_jsonl(tmp_path):
    assert rows_in(written(tmp_path / "t.tsv", "text\tlabel\na\tx\nb\ty\n")) == ROWS
    lines = '\ufeff{"text": "a", "label": "x"}\r\n\n{"text": "b", "label": "y"}'
    assert rows_in(written(tmp_path / "t.jsonl", lines)) == ROWS


def test_gzip(tmp_path):
    content = gzip.compress(b"text,label\na,x\nb,y\n", mtime=0)
    assert rows_in(written(tmp_path / "t.csv.gz", content)) == ROWS


def test_parquet(tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "t.parquet", row_group_size=1)
    assert rows_in(tmp_path / "t.parquet") == ROWS
    assert places_in(tmp_path / "t.parquet") == ["row 1", "row 2"]


def test_xlsx_with_empty_rows_and_cells(tmp_path):
    path = sheet(tmp_path / "t.xlsx", [["text", "label"], ["a", "x"], [], ["b"], [None, 3]])
    assert rows_in(path) == [
        {"text": "a", "label": "x"},
        {"text": "b", "label": None},
        {"text": None, "label": 3},
    ]
    assert places_in(path) == ["row 2", "row 4", "row 5"]


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text,label\na,x\nb,y\n")))
    assert list(records("-"))[1] == ("standard input, line 3", ROWS[1])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "a"}')))
    assert rows_in("-", format="jsonl") == [{"text": "a"}]


@pytest.mark.parametrize(
    "written",
    [
        b'text,label\n"a\tb, c",x\n',
        b'text\tlabel\n"a\tb, c"\tx\n',
        b'{"text": "a\\tb, c", "label": "x"}\n',
        b'\xef\xbb\xbf  {"text": "a\\tb, c", "label": "x"}\n',
    ],
    ids=["csv", "tsv", "jsonl", "jsonl after a mark"],
)
def test_what_standard_input_holds_is_known_by_its_first_line(monkeypatch, written):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(written)))
    assert rows_in("-") == [{"text": "a\tb, c", "label": "x"}]


def test_nothing_on_standard_input_is_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(CPTuningError, match="standard input"):
        list(records("-"))


def test_a_row_stands_where_it_begins(tmp_path):
    path = written(tmp_path / "t.csv", 'text\n"two\nlines"\n\n"more\r\n\r\nlines"\nlast\n')
    assert places_in(path) == ["line 2", "line 5", "line 8"]
    assert rows_in(path)[1] == {"text": "more\r\n\r\nlines"}
    path = written(tmp_path / "t.jsonl", '\n{"text": "a\u2028b"}\n\n{"text": "c"}\n')
    assert places_in(path) == ["line 2", "line 4"]


def test_a_text_of_a_megabyte_is_read(tmp_path):
    text = "long " * 250_000
    assert rows_in(written(tmp_path / "t.csv", f"text\n{text}\n")) == [{"text": text}]


BEFORE = {"csv": "text\n", "tsv": "text\n", "jsonl": ""}


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("suffix", BEFORE)
def test_a_line_that_is_too_long_is_refused(tmp_path, monkeypatch, suffix, encoding, end):
    monkeypatch.setenv("CPTUNING_LONGEST_LINE", "1000")
    text = BEFORE[suffix] + '"' + "x" * 2000 + '"' + end
    path = written(tmp_path / f"t.{suffix}", text.encode(encoding))
    with pytest.raises(CPTuningError, match=r"is longer than 1000 bytes: .*CPTUNING_LONGEST_LINE"):
        rows_in(path)
    monkeypatch.setenv("CPTUNING_LONGEST_LINE", "3000")
    if suffix != "jsonl":
        assert rows_in(path, header=True) == [{"text": "x" * 2000}]


def test_a_cell_of_too_many_lines_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("CPTUNING_LONGEST_LINE", "1000")
    path = written(tmp_path / "t.csv", 'text\n"' + "words\n" * 300 + '"\n')
    with pytest.raises(CPTuningError, match="line 2: a cell is longer than 1000 bytes"):
        rows_in(path)


@pytest.mark.parametrize("limit", ["0", "-1", "many", "", "1e3", "9" * 30])
def test_a_limit_that_is_none_is_refused(tmp_path, monkeypatch, limit):
    monkeypatch.setenv("CPTUNING_LONGEST_LINE", limit)
    with pytest.raises(CPTuningError, match="give a number of bytes"):
        rows_in(written(tmp_path / "t.csv", "text\na\n"))


@pytest.mark.parametrize("stored", [True, False])
def test_a_line_of_a_gigabyte_in_a_small_archive_takes_no_gigabyte(tmp_path, stored):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"text\n")
        for _ in range(250):
            file.write(b"x" * 1_000_000 if stored else b"\0" * 1_000_000)
    code = """
import resource, sys
from cptuning.data.parsing import records
resource.setrlimit(resource.RLIMIT_AS, (600_000_000, 600_000_000))
try:
    list(records(sys.argv[1]))
except Exception as error:
    print(type(error).__name__, error)
"""
    ran = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert ran.stdout.startswith("CPTuningError"), ran.stderr
    assert "line 2 is longer than 64000000 bytes" in ran.stdout


def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "zero.csv"):
        with pytest.raises(CPTuningError, match="pipe or a device, not a file: pass a stream"):
            rows_in(tmp_path / name)


def test_closed_standard_input_is_one_sentence(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(CPTuningError, match="Standard input is closed"):
        rows_in("-")


def test_rows_come_before_the_file_is_read_to_its_end(tmp_path):
    path = written(tmp_path / "t.csv", b"text\nfirst\n\x81\n")
    source = records(path)
    assert next(source)[1] == {"text": "first"}
    with pytest.raises(CPTuningError, match="line 3"):
        next(source)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "is empty: it needs a header and rows"),
        ("t.csv", "\ufeff\n\n", "is empty: it needs a header and rows"),
        ("t.jsonl", "\n \n", "is empty: it needs one JSON object per line"),
        ("t.csv.gz", gzip.compress(b"", mtime=0), "is empty"),
        ("t.csv", "text,label\na,x\nb\n", "line 3 has 1 cells but the header has 2"),
        ("t.tsv", "text\tlabel\na\tx\ty\n", "line 2 has 3 cells but the header has 2"),
        ("t.csv", 'text,label\na,x\n"b,y\nc,z\n', "line 3: the quotes do not match"),
        ("t.csv", 'text\n"a"b\n', "line 2: the quotes do not match"),
        ("t.csv", "text,label,text\n", "two columns with the same name, 'text'"),
        ("t.csv", b"text\nok\ncaf\x81\n", "line 3 is not UTF-8 text: save it as"),
        ("t.csv", b"\xff\xfet\x00e\x00\x00\xd8", "is not valid UTF-16 text: save it as"),
        ("t.csv", "text\nok\n".encode("utf-16-le"), "line 1 contains a NUL byte"),
        ("t.jsonl", b'{"text": "a"}\n\xff\n', "line 2 is not UTF-8 text"),
        ("t.csv", "text\na\0b\n", "line 2 contains a NUL byte"),
        ("t.jsonl", '{"text": "a"}\n{"text": \n', "line 2 is not valid JSON"),
        (
            "t.jsonl",
            '{"text": "a", "text": "b"}\n',
            "line 1 is not valid JSON .a key appears twice",
        ),
        ("t.jsonl", "[" * 100_000, "line 1 is not valid JSON"),
        ("t.jsonl", '["text"]\n', "line 1 is not a JSON object"),
        ("t.csv.gz", b"text\nplain\n", "is not a valid gzip file"),
        (
            "t.csv.gz",
            gzip.compress(b"text\n" + b"a\n" * 9999, mtime=0)[:-12],
            "is not a valid gzip file",
        ),
        ("t.parquet", b"PAR1 nonsense PAR1", "is not a valid Parquet file"),
        ("t.xlsx", b"PK nonsense", "is not a valid XLSX file"),
        ("t.txt", "text\na\n", "unknown kind of file"),
    ],
)
def test_a_damaged_file_is_named_with_the_line(tmp_path, name, content, message):
    path = written(tmp_path / name, content)
    with pytest.raises(CPTuningError, match=message) as caught:
        list(records(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.csv.gz", "t.parquet", "t.xlsx"])
@given(content=st.binary() | st.text('text,"\n\r\t{}:é\0').map(str.encode))
def test_no_file_however_damaged_raises_anything_else(name, content):
    with tempfile.TemporaryDirectory() as folder, suppress(CPTuningError):
        for where, row in records(written(Path(folder, name), content)):
            assert name in where
            assert isinstance(row, dict)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(CPTuningError, match=r"no\.csv does not exist"):
        list(records(tmp_path / "no.csv"))
    with pytest.raises(CPTuningError, match="is a folder"):
        list(records(tmp_path))


def test_a_file_that_the_system_does_not_give(tmp_path, monkeypatch):
    path = written(tmp_path / "t.csv", "text\na\n")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(CPTuningError, match="cannot be read: Permission denied"):
        list(records(path))


def test_parquet_and_xlsx_with_a_column_twice(tmp_path):
    arrays = [pa.array(["a"]), pa.array(["b"])]
    pq.write_table(pa.Table.from_arrays(arrays, names=["text", "text"]), tmp_path / "t.parquet")
    sheet(tmp_path / "t.xlsx", [["text", "text"], ["a", "b"]])
    for name in ("t.parquet", "t.xlsx"):
        with pytest.raises(CPTuningError, match="two columns with the same name"):
            list(records(tmp_path / name))


def test_a_sheet_with_nothing_or_too_much_in_it(tmp_path):
    with pytest.raises(CPTuningError, match="its first sheet needs a header"):
        list(records(sheet(tmp_path / "t.xlsx", [])))
    with pytest.raises(CPTuningError, match="row 2 has 2 cells but the header has 1"):
        list(records(sheet(tmp_path / "t.xlsx", [["text"], ["a", "b"]])))


def test_a_truncated_parquet_or_xlsx_is_named(tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS * 1000), tmp_path / "t.parquet")
    sheet(tmp_path / "t.xlsx", [["text"], *[[f"text {i}"] for i in range(1000)]])
    for name, kind in (("t.parquet", "Parquet"), ("t.xlsx", "XLSX")):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(CPTuningError, match=f"is not a valid {kind} file"):
            list(records(tmp_path / name))


@pytest.mark.parametrize("name", ["t.parquet", "t.xlsx"])
def test_without_the_package_the_message_says_what_to_install(tmp_path, monkeypatch, name):
    written(tmp_path / name, "anything")
    for module in ("pyarrow", "pyarrow.parquet", "openpyxl"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CPTuningError, match=r'pip install "cptuning\[files\]"'):
        list(records(tmp_path / name))


def test_the_data_folder_imports_nothing_heavy():
    heavy = "torch", "pandas", "datasets", "pyarrow", "openpyxl", "sklearn", "transformers"
    code = f"import cptuning.data, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
