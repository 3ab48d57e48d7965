"""What is guessed of a table: its separator, its header, and which columns are which."""

import pytest

from cptuning.data.detection import (
    DELIMITERS,
    columns_by_content,
    columns_by_name,
    decoded_sample,
    delimiter_of,
    has_header,
    other_column,
    unnamed_columns,
    utf16,
)


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_the_separator_is_the_one_that_gives_all_rows_as_many_cells(delimiter):
    sample = f"text{delimiter}label\nhello you{delimiter}greeting\n"
    assert delimiter_of(sample, ",") == delimiter


def test_the_usual_separator_wins_and_stays_where_none_fits():
    assert delimiter_of("a;b,c\nd;e,f\n", ",") == ","
    assert delimiter_of("a;b,c\nd;e,f\n", ";") == ";"
    assert delimiter_of("text\nhello\n", ",") == ","
    assert delimiter_of("a,b\nc,d,e\n", ",") == ","


@pytest.mark.parametrize(
    ("rows", "is_header"),
    [
        ([], True),
        ([["hello"], ["hello"]], True),  # A single column: too little to tell.
        ([["hello", "x"], ["bye", "y"]], True),  # Nothing recurs.
        ([["hello", "x"], ["bye", "x"]], False),
        ([["hello", ""], ["bye", ""]], True),  # Empty cells recur everywhere.
        ([["id", "x"], ["7", "x"]], True),  # A usual name speaks louder.
        ([["hello", "x"], ["bye"]], True),  # A short row has no such cell.
    ],
)
def test_a_first_row_is_an_example_only_if_there_is_a_clear_sign(rows, is_header):
    assert has_header(rows) == is_header


@pytest.mark.parametrize(
    ("columns", "texts", "label"),
    [
        (["text", "label"], ("text",), "label"),
        (["text_a", "text_b", "label"], ("text_a", "text_b"), "label"),
        (["Premise", "Hypothesis", "class"], ("Premise", "Hypothesis"), "class"),
        (["id", "question1", "question2"], ("question1", "question2"), None),
        # One half of a pair is none, in either order.
        (["sentence1", "id", "label"], (), "label"),
        (["sentence2", "id", "label"], (), "label"),
        (["message", "body", "label"], (), "label"),  # Which of the two?
        (["text", "message", "label"], ("text",), "label"),  # The paper's own name.
        (["what they wrote", "team"], ("what they wrote",), "team"),
        (["team", "topic", "text"], ("text",), None),  # Which of the two?
        (["a", "b", "c"], (), None),
        (["anything"], ("anything",), None),
    ],
)
def test_columns_are_known_by_their_names_unless_that_is_ambiguous(columns, texts, label):
    guess = columns_by_name(columns)
    assert (guess.texts, guess.label) == (texts, label)


def rows(**columns):
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def test_the_column_beside_the_texts_is_the_label_only_if_its_values_recur():
    recurring = rows(text=["a", "b"], sort=["x", "x"])
    assert other_column(recurring, ["text"]) == "sort"
    assert other_column(recurring, []) is None
    assert other_column(rows(text=["a", "b"], sort=["x", "y"]), ["text"]) is None
    assert other_column(rows(text=["a", "b"], sort=["x", "x"], n=[1, 1]), ["text"]) is None


def test_values_tell_what_names_leave_open():
    found = columns_by_content(rows(n=["1", "2"], a=["hello there", "good day"], b=["x", "x"]))
    assert (found.texts, found.label) == (("a",), "b")
    # Several values tell more than one that all rows have, and few more than many.
    found = columns_by_content(
        rows(a=["hello", "good day", "bye bye"], one=["x"] * 3, two=["x", "y", "y"])
    )
    assert (found.texts, found.label) == (("a",), "two")
    assert columns_by_content([]).texts == ()
    assert columns_by_content(rows(a=["hi", "ho"], text=["x", "x"])).label is None


def test_a_table_without_a_header_has_two_columns_of_which_one_recurs():
    found = unnamed_columns(rows(a=["x", "x"], b=["hi", "ho"]))
    assert (found.texts, found.label) == (("b",), "a")
    assert unnamed_columns(rows(a=["x", "x"], b=["hi", "hi"])).label is None
    assert unnamed_columns(rows(a=["x", "y"], b=["hi", "ho"])).label is None
    assert unnamed_columns(rows(a=["x", "x"], b=["hi", "ho"], c=["1", "2"])).label is None
    assert unnamed_columns([]).label is None


def test_a_sample_ends_with_a_whole_line_and_is_whole_at_the_end_of_a_file():
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        head = "é;x\nund".encode(encoding)
        assert decoded_sample(head, is_whole=False).lstrip("\ufeff") == "é;x\n"
        assert decoded_sample(head, is_whole=True).lstrip("\ufeff") == "é;x\nund"
    assert utf16("a".encode("utf-16-be")) is None
