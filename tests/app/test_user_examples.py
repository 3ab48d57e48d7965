"""Examples as visitors give them: pasted lines, pasted tables, files, samples."""

import openpyxl
import pytest

from cptuning.app.user_examples import (
    Example,
    TableColumns,
    examples_and_labels,
    examples_from_file,
    labelled_rows,
    parse_pasted,
    preview_file,
    sample_examples,
)
from cptuning.errors import CPTuningError


@pytest.mark.parametrize("line", ["hello\tgreeting", "hello | greeting", "  hello|greeting "])
def test_a_line_is_a_text_and_its_label(line):
    assert parse_pasted(line) == [Example("hello", "greeting")]


def test_a_bar_in_a_text_is_no_separator_where_there_are_tabs():
    assert parse_pasted("a | b\tx") == [Example("a | b", "x")]


def test_blank_lines_are_nothing():
    assert len(parse_pasted("\na | x\n\n b | y\n")) == 2


def test_a_pasted_table_is_read_by_its_header():
    assert parse_pasted('label,text\nx,"one, two"\ny,three\n') == [
        Example("one, two", "x"),
        Example("three", "y"),
    ]
    assert parse_pasted("Message\tTeam\nhello\tdesk") == [Example("hello", "desk")]
    assert parse_pasted("text_a\ttext_b\tlabel\na\tb\tsame") == [Example(("a", "b"), "same")]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "There is nothing to add"),
        ("a | x\nb", "Line 2 has no label"),
        ("a |", "Line 1 has no label"),
        ("a | b | c | d", "Line 1 has 4 parts"),
        ("text,label\none,two,three", "The pasted table, line 2 has 3 cells"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(content, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        parse_pasted(content)


def test_a_file_is_called_by_its_own_name(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("text\nhello\n")
    with pytest.raises(CPTuningError, match=r"^mine\.csv has no column 'label'"):
        examples_from_file(path)


def test_a_file_is_read_by_the_chosen_columns(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("id;words;kind\n1;hello;greeting\n2;bye;farewell\n")
    preview = preview_file(path)
    assert (preview.guess.label, preview.has_header) == (None, True)
    columns = TableColumns("words", label="kind", header=True)
    assert examples_from_file(path, columns)[0] == Example("hello", "greeting")
    with pytest.raises(CPTuningError, match="'words' is chosen twice"):
        examples_from_file(path, TableColumns("words", label="words"))
    with pytest.raises(CPTuningError, match="Choose the column that holds the labels"):
        labelled_rows(path, TableColumns("words"))


def test_rows_without_a_label_are_left_out_and_counted(tmp_path):
    path = tmp_path / "to-fill.csv"
    path.write_text("text,label,guess\nhello, greeting ,x\nbye,,x\nso,  ,x\n")
    columns = TableColumns("text", label="label", header=True)
    assert labelled_rows(path, columns) == ([Example("hello", "greeting")], 2)
    path.write_text("text,label\nhello,\n")
    with pytest.raises(CPTuningError, match=r"No row of to-fill\.csv has a label in 'label'"):
        labelled_rows(path, columns)


def test_excel_files_are_read(tmp_path):
    book = openpyxl.Workbook()
    for row in (("text", "label"), ("hello", "greeting"), ("7", 7)):
        book.active.append(row)
    book.save(tmp_path / "mine.xlsx")
    assert examples_from_file(tmp_path / "mine.xlsx") == [
        Example("hello", "greeting"),
        Example("7", "7"),
    ]


def test_texts_and_pairs_do_not_mix():
    with pytest.raises(CPTuningError, match="use one kind"):
        examples_and_labels([Example("a", "x"), Example(("a", "b"), "x")])


@pytest.mark.parametrize(("name", "pairs"), [("messages", False), ("same_question", True)])
def test_the_samples_are_there(name, pairs):
    examples = sample_examples(name)
    assert len(examples) >= 32
    assert all(example.is_pair == pairs for example in examples)


def test_lists_of_labels_are_label_sets(tmp_path):
    path = tmp_path / "sets.jsonl"
    path.write_text('{"text": "a", "labels": ["y", "x"]}\n{"text": "b", "labels": []}\n')
    expected = [Example("a", ("x", "y")), Example("b", ())]
    assert examples_from_file(path) == expected
    assert labelled_rows(path, TableColumns("text", label="labels")) == (expected, 0)


def test_a_line_may_have_no_label_where_it_may_have_several():
    with pytest.raises(CPTuningError, match="Line 1 has no label"):
        parse_pasted("hello |")
    assert parse_pasted("hello |", several=True) == [Example("hello", "")]
