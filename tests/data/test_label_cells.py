"""Label sets in files: lists, joined labels, a column per label, and what is refused."""

import json

import pandas as pd
import pytest
from tests.cli.conftest import write_csv

from cptuning.data import LabelCells, read_table, seems_joined, separator_for
from cptuning.errors import CPTuningError

SETS = [("late", "rude"), (), ("late",)]
TEXTS = ["it took weeks", "thank you", "still waiting"]


def read(path, cells=None):
    return read_table(path, label_cells=cells, need_label=True)


def joined(tmp_path, cells, name="train.csv"):
    return write_csv(tmp_path / name, ("text", "label"), list(zip(TEXTS, cells, strict=True)))


def lines(tmp_path, labels):
    rows = [{"text": text, "labels": own} for text, own in zip(TEXTS, labels, strict=False)]
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path


def test_joined_labels_may_have_spaces_and_an_empty_cell_is_no_label(tmp_path):
    path = joined(tmp_path, ["late; rude;", "", "late;late"])
    table = read(path, LabelCells(";"))
    assert table.labels == SETS
    assert table.has_label_sets


@pytest.mark.parametrize(
    ("yes", "no"), [("1", "0"), ("True", "False"), ("1.0", ""), (" true ", " ")]
)
def test_a_column_per_label(tmp_path, yes, no):
    rows = [(t, yes if "rude" in s else no, yes if "late" in s else no)
            for t, s in zip(TEXTS, SETS, strict=True)]  # fmt: skip
    path = write_csv(tmp_path / "train.csv", ("what", "rude", "late"), rows)
    table = read(path, LabelCells(columns=("late", "rude")))
    assert table.labels == SETS
    assert list(table.examples.first) == TEXTS


def test_lists_need_no_telling_even_if_a_model_remembers_something_else(tmp_path):
    path = lines(tmp_path, SETS)
    for cells in (None, LabelCells(";"), LabelCells(columns=("late", "rude"))):
        assert read(path, cells).labels == SETS


def test_jsonl_may_have_joined_labels(tmp_path):
    assert read(lines(tmp_path, ["late|rude", "", "late"]), LabelCells("|")).labels == SETS


@pytest.mark.parametrize("suffix", ["parquet", "xlsx"])
def test_spreadsheets_and_parquet(tmp_path, suffix):
    path = tmp_path / f"train.{suffix}"
    frame = pd.DataFrame({"text": TEXTS, "label": ["1;2", None, "1"]})
    if suffix == "xlsx":
        # A lone label of digits becomes a number in a spreadsheet.
        frame = pd.DataFrame({"text": TEXTS, "label": ["1;2", None, 1]})
        frame.to_excel(path, index=False)
        assert read(path, LabelCells(";")).labels == [("1", "2"), (), ("1",)]
        return
    pd.DataFrame({"text": TEXTS, "label": [list(s) for s in SETS]}).to_parquet(path)
    assert read(path).labels == SETS
    flags = {name: [int(name in s) for s in SETS] for name in ("late", "rude")}
    pd.DataFrame({"text": TEXTS, **flags}).to_parquet(path)
    assert read(path, LabelCells(columns=("late", "rude"))).labels == SETS


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["late"], ["late", 3]], r"train.jsonl, line 2: the label 3 is of type int, those before"),
        ([["late"], "rude"], r"line 2: the label is a single label, those before it are lists"),
        (["late", ["rude"]], r"line 2: the label is a list, those before it are single labels"),
        ([["late"], None], r"line 2 has no label"),
        ([["late"], [""]], r"line 2: a label of the list is empty"),
        ([["late"], [["rude"]]], r"line 2: a label of the list is of type list"),
        ([["late"], {"rude": 1}], r"line 2: the label is of type dict"),
    ],
)
def test_a_bad_list_is_refused_with_its_place(tmp_path, labels, message):
    with pytest.raises(CPTuningError, match=message):
        read(lines(tmp_path, labels))


def test_a_number_where_labels_are_joined_is_refused(tmp_path):
    with pytest.raises(CPTuningError, match="line 2: the label is of type int, use a text or a l"):
        read(lines(tmp_path, ["late", 3]), LabelCells(";"))


def test_a_column_that_says_neither_or_is_missing_is_refused(tmp_path):
    path = write_csv(tmp_path / "t.csv", ("text", "late", "rude"), [("a", "1", "x")])
    with pytest.raises(CPTuningError, match=r"line 2: the label column 'rude' has 'x', write 1"):
        read(path, LabelCells(columns=("late", "rude")))
    with pytest.raises(CPTuningError, match=r"no column 'odd' .* with --label-columns"):
        read(path, LabelCells(columns=("late", "odd")))


@pytest.mark.parametrize(
    ("separator", "columns", "message"),
    [
        ("", None, "--label-separator is empty"),
        (";", "late,rude", "give one of them"),
        (None, "late,,rude", "name each label's column once"),
        (None, "late,late", "name each label's column once"),
    ],
)
def test_options_that_say_nothing_are_refused(separator, columns, message):
    with pytest.raises(CPTuningError, match=message):
        LabelCells.parse(separator, columns)


@pytest.mark.parametrize(
    "stored",
    [None, [], {}, {"separator": "", "columns": []}, {"separator": ";", "columns": ["a"]},
     {"separator": 3, "columns": []}, {"separator": None, "columns": [3]}],
)  # fmt: skip
def test_what_a_stranger_stored_is_checked(stored):
    with pytest.raises(CPTuningError, match="is not how a file holds label sets"):
        LabelCells.from_json(stored)


def test_what_is_stored_comes_back():
    for cells in (LabelCells(" + "), LabelCells(columns=("late", "rude"))):
        assert LabelCells.from_json(json.loads(json.dumps(cells.to_json()))) == cells


def test_no_label_contains_what_joins_them():
    assert separator_for(["a", 3]) == ";"
    assert separator_for(["a;b", "c|d"]) == ","
    with pytest.raises(CPTuningError, match=r"The label 'a;b' contains ';', which joins labels"):
        separator_for(["x", "a;b"], ";")
    with pytest.raises(CPTuningError, match="contain every one of"):
        separator_for([";|,/"])


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (["late|rude", "rude|thanks"], ("late|rude", "|")),
        (["late, rude", "late"], ("late, rude", ",")),
        (["a/c", "b/d"], None),
        (["on/off", "other"], None),
        ([1, 2, True], None),
        ([("a;b",), ("a",)], None),
    ],
)
def test_labels_that_look_like_joined_ones_are_told_from_others(labels, found):
    assert seems_joined(labels) == found
