import csv
import json
from datetime import date

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data.detection import ColumnGuess
from cptuning.data.examples import Examples
from cptuning.data.files import iter_tables, preview_table, read_table
from cptuning.errors import CPTuningError


@pytest.fixture
def file(tmp_path):
    """Writes rows, or the text of a file, under a name."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, str):
            path.write_text(content, newline="")
        elif name.endswith(".jsonl"):
            path.write_text("".join(json.dumps(row) + "\n" for row in content))
        elif name.endswith(".parquet"):
            pq.write_table(pa.Table.from_pylist(content), path)
        else:
            workbook = openpyxl.Workbook()
            workbook.active.append(list(content[0]))
            for row in content:
                workbook.active.append(list(row.values()))
            workbook.save(path)
        return path

    return write


def test_a_table_keeps_all_columns_beside_what_was_read_from_them(file):
    path = file("t.csv", "id,text,label\n7,hello, greeting \n8,,other\n")
    table = read_table(path)
    assert table.examples == Examples(("hello", ""))
    assert table.labels == ["greeting", "other"]
    assert table.rows[0] == {"id": "7", "text": "hello", "label": " greeting "}
    assert table.where == [f"{path}, line 2", f"{path}, line 3"]


@pytest.mark.parametrize(
    ("header", "options", "examples"),
    [
        ("text,b,c", {}, Examples(("1",))),
        ("text_a,b,c", {}, Examples(("1",))),
        ("text_a,text_b,c", {}, Examples(("1",), ("2",))),
        ("text,c,text_b", {}, Examples(("1",), ("3",))),
        ("a,b,c", {"text": "b"}, Examples(("2",))),
        ("a,b,c", {"text": "c", "text_b": "a"}, Examples(("3",), ("1",))),
        ("text,b,c", {"text_b": "c"}, Examples(("1",), ("3",))),
        ("text_a,text_b,c", {"text": "text_b"}, Examples(("2",))),
        ("text,text_a,c", {"text": "text_a"}, Examples(("2",))),
    ],
)
def test_columns_are_known_by_their_names_or_named(file, header, options, examples):
    assert read_table(file("t.csv", f"{header}\n1,2,3\n"), **options).examples == examples


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet"])
@pytest.mark.parametrize("labels", [["a", " b"], [1, 2], [True, False], [1.5, 2.0]])
def test_typed_files_keep_the_type_of_labels(file, name, labels):
    rows = [{"text": "one", "label": label} for label in labels]
    read = read_table(file(name, rows)).labels
    assert read == labels
    assert [type(label) for label in read] == [type(label) for label in labels]


def test_a_spreadsheet_has_texts_that_it_took_for_numbers(file):
    rows = [{"text": 42, "label": " a "}, {"text": None, "label": 7}, {"text": "=x", "label": "b"}]
    table = read_table(file("t.xlsx", rows[:2]))
    assert list(table.examples) == ["42", ""]
    assert table.labels == ["a", 7]


def test_labels_are_given_where_every_row_has_one(file):
    assert read_table(file("t.csv", "text\na\n")).labels is None
    assert read_table(file("t.csv", "text,label\na,x\nb,\n")).labels is None
    assert read_table(file("t.jsonl", [{"text": "a", "label": 1}, {"text": "b"}])).labels is None
    assert read_table(file("t.jsonl", [{"text": "a", "label": ["x"]}])).labels == [("x",)]
    assert read_table(file("t.jsonl", [{"text": "a", "label": {"x": 1}}])).labels is None
    mixed = [{"text": "a", "label": ["x"]}, {"text": "b", "label": "x"}]
    assert read_table(file("t.jsonl", mixed)).labels is None
    assert read_table(file("t.csv", "text,kind\na,x\n"), label="kind").labels == ["x"]


def test_chunks_are_the_table_in_pieces(file):
    path = file("t.jsonl", [{"text": str(i), "label": i} for i in range(10)])
    whole = read_table(path)
    pieces = list(iter_tables(path, chunk=4))
    assert [len(piece.examples) for piece in pieces] == [4, 4, 2]
    assert sum((piece.examples for piece in pieces), Examples(())) == whole.examples
    for field in ("labels", "rows", "where"):
        joined = [item for piece in pieces for item in getattr(piece, field)]
        assert joined == getattr(whole, field)


def test_chunks_come_before_the_file_is_read_to_its_end(file):
    pieces = iter_tables(file("t.csv", "text\na\nb\nc,d\n"), chunk=2)
    assert list(next(pieces).examples) == ["a", "b"]
    with pytest.raises(CPTuningError, match="line 4"):
        next(pieces)


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("t.csv", "text,label\n", {}, "has a header but no rows"),
        (
            "t.csv",
            "a,b\n1,2\n",
            {},
            r"has no column 'text' .its columns are 'a', 'b'.: .* --text\.",
        ),
        ("t.csv", "text,b\n1,2\n", {"text": "x"}, r"has no column 'x' .* with --text\."),
        ("t.csv", "text,b\n1,2\n", {"text_b": "x"}, r"has no column 'x' .* with --text-b\."),
        ("t.csv", "text,b\n1,2\n", {"label": "x"}, r"has no column 'x' .* with --label\."),
        (
            "t.csv",
            "text,b,c\n1,2,3\n",
            {"need_label": True},
            r"no column 'label' .* with --label\.",
        ),
        ("t.csv", "text,text_a\n1,2\n", {}, "both a column 'text' and a column 'text_a'"),
        ("t.csv", "text,label\n1,x\n2, \n", {"need_label": True}, "line 3 has no label"),
        ("t.jsonl", [{"text": None}], {}, "line 1: the text in column 'text' is missing"),
        ("t.jsonl", [{"text": "a"}, {"text": 3}], {}, r"line 2: .* is a number \(int\)"),
        ("t.jsonl", [{"text": "a"}, {"t": "b"}], {}, "line 2 has no column 'text'"),
        ("t.jsonl", [{"text": "a\ud800"}], {}, "line 1: .* surrogate"),
        (
            "t.jsonl",
            [{"text_a": "a"}, {"text_a": "a", "text_b": "b"}],
            {},
            "line 2 has text_a and text_b, the rows before it text_a",
        ),
        (
            "t.jsonl",
            [{"text": "a", "label": {"b": 1}}],
            {"need_label": True},
            "line 1: the label is of type dict",
        ),
        ("t.jsonl", [{"text": "a", "label": None}], {"need_label": True}, "line 1 has no label"),
        ("t.jsonl", [{"text": "a"}], {"need_label": True}, "line 1 has no column 'label'"),
        ("t.parquet", [{"text": "a"}, {"text": None}], {}, "row 2: .* is missing"),
        ("t.parquet", [{"text": b"a"}], {}, "row 1: .* is bytes"),
        ("t.xlsx", [{"text": date(2020, 1, 1)}], {}, "row 2: .* is of type datetime"),
    ],
)
def test_a_mistake_is_named_with_file_and_line(file, name, content, options, message):
    path = file(name, content)
    with pytest.raises(CPTuningError, match=message) as caught:
        read_table(path, **options)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


# Spreadsheets as people have them: the columns are found where there is no doubt about them.
ORDINARY = {
    "other names": ("t.csv", "message,category\nhello there,greeting\nsee you,farewell\n"),
    "capitals": ("t.csv", "Text,Label\nhello there,greeting\nsee you,farewell\n"),
    "more columns": ("t.csv", "ID,Message,Team\n1,hello there,greeting\n2,see you,farewell\n"),
    "the text by elimination": ("t.csv", "Frage,Label\nhello there,greeting\nsee you,farewell\n"),
    "the label by elimination": (
        "t.csv",
        "text,Was\nhello there,greeting\nsee you,farewell\nsee you,farewell",
    ),
    "semicolons": ("t.csv", "text;label\nhello there;greeting\nsee you;farewell\n"),
    "commas that became tabs": ("t.csv", "text\tlabel\nhello there\tgreeting\nsee you\tfarewell"),
    "UTF-16": (
        "t.csv",
        "text;label\nhello there;greeting\nsee you;farewell\n".encode("utf-16"),
    ),
    "Excel": (
        "t.xlsx",
        [
            {"Message": "hello there", "Team": "greeting"},
            {"Message": "see you", "Team": "farewell"},
        ],
    ),
}


@pytest.mark.parametrize("case", ORDINARY)
def test_an_ordinary_spreadsheet_is_read(file, case):
    name, content = ORDINARY[case]
    path = file(name, "") if isinstance(content, bytes) else file(name, content)
    if isinstance(content, bytes):
        path.write_bytes(content)
    table = read_table(path, need_label=True)
    assert list(table.examples)[:2] == ["hello there", "see you"]
    assert table.labels[:2] == ["greeting", "farewell"]


def test_a_table_without_a_header_is_read(file, caplog):
    rows = "where is it?,delivery\nmoney back,refund\nit is late,delivery\n"
    table = read_table(file("t.csv", rows), need_label=True)
    assert list(table.examples) == ["where is it?", "money back", "it is late"]
    assert table.labels == ["delivery", "refund", "delivery"]
    assert "no header" in caplog.text


def test_whether_there_is_a_header_can_be_said(file):
    path = file("t.csv", "hello,greeting\nsee you,farewell\n")
    table = read_table(path, header=False, text="column 1", label="column 2")
    assert list(table.examples) == ["hello", "see you"]
    table = read_table(path, header=True, text="hello", label="greeting")
    assert table.labels == ["farewell"]


def test_umlauts_from_a_spreadsheet_of_windows(file, caplog):
    path = file("t.csv", "")
    path.write_bytes("text;label\nplain;a\nGrüße – Müller;b\n".encode("cp1252"))
    assert list(read_table(path).examples) == ["plain", "Grüße – Müller"]
    assert "line 3 is not UTF-8 text: the file is read as Windows-1252" in caplog.text


def test_a_file_that_was_utf_8_so_far_stays_so(file):
    path = file("t.csv", "")
    path.write_bytes("text\nGrüße\n".encode() + b"Gr\xfc\xdfe\n")
    with pytest.raises(CPTuningError, match="line 3 is not UTF-8 text"):
        read_table(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("title,body\na,b\n", "no column 'label'"),
        ("message,comment,label\na,b,c\n", "no column 'text'"),
        ("text,team,topic\na,b,c\n", "no column 'label'"),
    ],
)
def test_what_is_ambiguous_is_not_guessed(file, content, message):
    with pytest.raises(CPTuningError, match=message):
        read_table(file("t.csv", content), need_label=True)


def test_later_rows_have_the_columns_of_the_first(file):
    rows = [{"message": "a", "label": "x"}, {"comment": "b", "label": "x"}]
    with pytest.raises(CPTuningError, match="line 2 has no column 'message'"):
        read_table(file("t.jsonl", rows), need_label=True)


texts = st.text(st.characters(codec="cp1252", exclude_characters="\r\n\0"), min_size=1)


@given(
    st.lists(st.tuples(texts, st.sampled_from(["a", "b"])), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_separator_and_encoding_never_change_what_is_read(tmp_path_factory, rows, mark, encoding):
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    with path.open("w", encoding=encoding, newline="") as stream:
        writer = csv.writer(stream, delimiter=mark, quoting=csv.QUOTE_ALL)
        writer.writerows([("text", "label"), *rows])
    table = read_table(path)
    assert list(zip(table.examples, table.labels, strict=True)) == rows


class TestPreview:
    def test_columns_are_guessed_by_what_is_in_them(self, file):
        rows = "nr,was,wer\n" + "".join(
            f"{n},ein langer Text {n},{team}\n" for n, team in enumerate("aabb")
        )
        preview = preview_table(file("t.csv", rows))
        assert preview.guess == ColumnGuess(("was",), "wer")
        assert len(preview.rows) == 4
        assert preview.has_header

    def test_without_a_header_the_columns_are_numbered(self, file):
        preview = preview_table(file("t.csv", "hello,x\nhi,x\n"))
        assert preview.guess == ColumnGuess(("column 1",), "column 2")
        assert not preview.has_header
        assert preview_table(file("t.csv", "hello,x\nhi,x\n"), header=True).has_header
