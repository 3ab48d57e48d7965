"""The whole check: every kind of finding, once, with rows and reasons; and its HTML page."""

import json
from pathlib import Path

import pandas as pd
import pytest

import cptuning
from cptuning.cleaning import KINDS
from cptuning.cleaning.check_report import check_report_html
from cptuning.data import read_table
from cptuning.data.sample_data import read_sample
from cptuning.errors import CPTuningError

TEXTS = [
    "where is my parcel",
    "the parcel has not arrived",
    "when will my order be delivered",
    "please tell me where the parcel with my new blue shoes is",
    "i want my money back",
    "give me a refund please",
    "refund the money to my card",
    "please tell me where the parcel with my new blue shoe is",
    "Where is my parcel?",
    "I want my money back!",
    " ",
]
LABELS = [*["delivery"] * 4, *["refund"] * 3, "delivery", "delivery", "delivery", "Refund"]
TEST = ["where is my PARCEL", "something else altogether"]


@pytest.fixture(scope="module")
def result():
    return cptuning.check(TEXTS, LABELS, TEST, ["refund", "other"])


def test_each_kind_is_found_with_its_rows(result):
    kinds = set(result.counts) - {"label-error"}  # Eleven labels are too few to be sure of any.
    places = {
        kind: [tuple(row.number for row in finding.rows) for finding in result.of_kind(kind)]
        for kind in kinds
    }
    assert places == {
        "conflict": [(4, 9)],
        "similar-labels": [(10,)],
        "leak": [(0,)],
        "unknown-label": [(1,)],
        "duplicate": [(0, 8)],
        "near-duplicate": [(3, 7)],
        "empty-text": [(10,)],
    }


def test_the_most_important_kinds_come_first(result):
    kinds = [finding.kind for finding in result.findings]
    assert kinds == sorted(kinds, key=list(KINDS).index)


def test_reasons_are_sentences_that_name_the_rows(result):
    [conflict] = result.of_kind("conflict")
    assert conflict.reason == (
        "\"i want my money back\" is labelled 'refund' in X[4] and 'delivery' in X[9]."
    )
    [leak] = result.of_kind("leak")
    assert leak.reason == (
        "X_test[0] has the same text as X[0], but is labelled 'refund', not 'delivery': "
        '"where is my PARCEL".'
    )
    [similar] = result.of_kind("similar-labels")
    assert similar.reason == (
        "'Refund' (1 row) and 'refund' (4 rows) differ only in case or separators."
    )
    assert all(finding.reason.endswith(".") for finding in result.findings)


def test_a_planted_error_is_found_with_its_right_label():
    sample = read_sample("messages_train")
    labels = list(sample.labels)
    wrong = next(row for row, label in enumerate(labels) if label != labels[0])
    right, labels[wrong] = labels[wrong], labels[0]
    result = cptuning.check(sample.examples, labels)
    found = {f.rows[0].number: f for f in result.of_kind("label-error")}
    assert found[wrong].suggestion == right
    assert found[wrong].probability >= 0.5
    assert {row.label for row in found[wrong].evidence} == {right}
    assert len(found) <= 8


def test_pairs_frames_and_other_labels_are_taken():
    sample = read_sample("same_question_train")
    numbers = [int(label == sample.labels[0]) for label in sample.labels]
    result = cptuning.check(list(sample.examples), numbers)
    assert result.n_train == len(numbers)
    frame = pd.DataFrame({"text": ["a cat", "A cat.", "a dog"]})
    found = cptuning.check(frame, pd.Series([True, True, False]))
    assert found.counts == {"duplicate": 1}
    assert json.loads(json.dumps(found.to_json()))["findings"][0]["rows"][1]["row"] == 1


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        (["x", "x", "x"], "All examples have the same label"),
        (["x", "y", "z"], "Every label has a single example"),
        (["x", "x", "y"], "1 label could not be checked"),
    ],
)
def test_what_could_not_be_checked_is_said(labels, note):
    result = cptuning.check(["one text", "two words", "three letters"], labels)
    assert len(result.notes) == 1
    assert note in result.notes[0]


def test_test_data_must_be_of_the_same_kind():
    with pytest.raises(CPTuningError, match="single texts"):
        cptuning.check(["a", "b"], ["x", "y"], [("a", "b")], ["x"])
    with pytest.raises(CPTuningError, match="y_test"):
        cptuning.check(["a", "b"], ["x", "y"], ["a"])


def test_the_printed_list_can_be_shortened(result):
    assert str(result) == result.text()
    many = cptuning.check([f"text {n // 2}" for n in range(12)], ["x", "x"] * 6)
    assert "… and 4 more." in many.text(most=2)
    assert "… and" not in many.text()
    assert cptuning.check(["a b", "c d"], ["x", "y"]).text() == "Nothing looks like a mistake."


def test_the_page_escapes_texts_and_folds_what_is_long():
    texts = [f"<b>text</b> {n // 2}" for n in range(30)]
    result = cptuning.check(texts, ["<i>x</i>"] * 30)
    page = check_report_html(result, "<train>.csv")
    assert "<b>text" not in page
    assert "<i>x" not in page
    assert "<train>" not in page
    assert "5 more</summary>" in page
    assert "<script" not in page


def test_names_of_rows_come_from_the_file(tmp_path: Path):
    path = tmp_path / "train.csv"
    path.write_text("text,label\nhello,in\nHello,in\n")
    table = read_table(path)
    result = cptuning.check(table.examples, table.labels, names=table.where)
    assert f"{path}, line 2 and {path}, line 3" in str(result)
