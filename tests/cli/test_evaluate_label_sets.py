"""cptuning evaluate for texts with several labels: metrics for programs, for people, a report."""

import csv
import json
import re
from base64 import b64decode
from io import StringIO

import pytest
from sklearn.metrics import accuracy_score, f1_score
from sklearn.preprocessing import MultiLabelBinarizer
from tests.cli.conftest import write_csv
from tests.methods.test_multi_label import LABELS, TEXTS

import cptuning
from cptuning import CPTuningClassifier
from cptuning.data import LabelCells

TEST = {
    "the songs are <b>bad</b>": ["complaint", "music"],
    "a good plot": ["plot", "praise", "odd"],
    "hello": [],
    "great songs": ["plot"],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "sets"
    classifier = CPTuningClassifier(preset="instant", verbose=False).fit(TEXTS, LABELS)
    classifier.training_["label_cells"] = LabelCells("|").to_json()
    classifier.save(folder)
    return folder


@pytest.fixture
def test_file(tmp_path):
    rows = [(text, "|".join(labels)) for text, labels in TEST.items()]
    return write_csv(tmp_path / "test.csv", ("text", "label"), rows)


def test_json_agrees_with_scikit_learn(run, model, test_file):
    result = run("evaluate", model, test_file, "--json")
    found = json.loads(result.stdout)
    binarizer = MultiLabelBinarizer()
    answers = cptuning.load(model).predict(list(TEST))
    binarizer.fit([*TEST.values(), *answers])
    truth, given = binarizer.transform(TEST.values()), binarizer.transform(answers)
    assert found["accuracy"] == accuracy_score(truth, given)
    for average in ("micro", "macro"):
        expected = f1_score(truth, given, average=average)
        assert found[f"{average}_f1"] == pytest.approx(expected)
    expected = f1_score(truth, given, average="samples", zero_division=1)
    assert found["sample_f1"] == pytest.approx(expected)
    assert found["n"] == 4
    assert found["majority"] == 0.25
    assert found["foreign_labels"] == {"odd": 1}
    assert found["classes"]["odd"] == {"precision": 0, "recall": 0, "f1": 0, "n": 1}
    assert "warning: The model does not know the label 'odd' (1)" in result.stderr


def test_people_get_a_table_of_labels_and_a_verdict(run, model, test_file):
    shown = run("evaluate", model, test_file).stdout
    for word in ("micro-F1", "macro-F1", "sample F1", "accuracy", "label", "complaint"):
        assert word in shown
    assert "giving every text the same labels" in shown


def test_the_report_has_every_label_and_the_errors_with_reasons(run, model, test_file, tmp_path):
    report = tmp_path / "report.html"
    assert run("evaluate", model, test_file, "--report", report).exit_code == 0
    html = report.read_text("utf-8")
    assert "Results by label" in html
    assert "5 labels, trained on 10 examples" in html
    assert html.count("<svg") == 2
    assert "<b>bad</b>" not in html
    given = cptuning.load(model).predict(["great songs"])[0]
    assert "plot" not in given  # so it is missed, and the others are wrong
    assert "missed" in html
    assert "Confidence in the whole set: " in html
    for label in given:
        assert f"{label}, because it is similar to" in html
    [data] = re.findall(r'href="data:text/csv;charset=utf-8;base64,([^"]+)"', html)
    rows = list(csv.DictReader(StringIO(b64decode(data).decode())))
    assert {row["text"]: row["label"] for row in rows}["great songs"] == "plot"
    assert {row["text"]: row["prediction"] for row in rows}["great songs"] == ";".join(given)


def test_a_model_that_is_always_right_has_no_errors_to_show(run, model, tmp_path):
    answers = cptuning.load(model).predict(list(TEST))
    rows = [(text, "|".join(labels)) for text, labels in zip(TEST, answers, strict=True)]
    path, report = write_csv(tmp_path / "t.csv", ("text", "label"), rows), tmp_path / "r.html"
    found = json.loads(run("evaluate", model, path, "--report", report, "--json").stdout)
    assert found["micro_f1"] == found["accuracy"] == 1
    assert "There are none." in report.read_text("utf-8")
