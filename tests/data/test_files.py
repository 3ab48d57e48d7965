import json
from datetime import date

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cptuning.data.examples import Examples
from cptuning.data.files import iter_tables, read_table
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
    assert read_table(file("t.jsonl", [{"text": "a", "label": ["x"]}])).labels is None
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
        ("t.csv", "text,b\n1,2\n", {"need_label": True}, r"no column 'label' .* with --label\."),
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
            [{"text": "a", "label": ["b"]}],
            {"need_label": True},
            "line 1: the label is of type list",
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
