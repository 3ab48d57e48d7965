"""cptuning evaluate: figures for people, for programs, and a report."""

import json

import pytest
from sklearn.metrics import accuracy_score, f1_score
from tests.cli.conftest import GOOD, read_csv, write_csv

TEXTS = ("a joy to watch", "great fun", "a terrible bore", "dull acting", "what a mess")
LABELS = ("good", "bad", "bad", "bad", "good")


@pytest.fixture
def test_file(tmp_path):
    return write_csv(
        tmp_path / "test.csv", ("text", "label"), list(zip(TEXTS, LABELS, strict=True))
    )


def test_json_agrees_with_what_predict_answers(run, model, test_file):
    answers = [row["prediction"] for row in read_csv(run("predict", model, test_file).stdout)]
    figures = json.loads(run("evaluate", model, test_file, "--json").stdout)
    assert figures["accuracy"] == accuracy_score(LABELS, answers)
    assert figures["macro_f1"] == pytest.approx(f1_score(LABELS, answers, average="macro"))
    assert figures["majority"] == 0.6
    assert figures["n"] == 5
    low, high = figures["accuracy_interval"]
    assert low < figures["accuracy"] < high


def test_people_get_a_table_and_a_verdict(run, model, test_file):
    result = run("evaluate", model, test_file)
    assert result.exit_code == 0
    assert "95 % interval" in result.stdout
    assert "majority     60.0 %" in result.stdout
    assert "not clearly different" in result.stdout
    assert result.stderr == ""


def test_a_label_that_the_model_does_not_know_is_wrong_and_named(run, model, tmp_path):
    test = write_csv(tmp_path / "t.csv", ("text", "label"), [("a joy", "good"), ("so so", "fair")])
    result = run("evaluate", model, test, "--json")
    assert json.loads(result.stdout)["accuracy"] == 0.5
    assert "warning: The model does not know the label 'fair' (1)" in result.stderr


def test_texts_that_it_was_trained_on_are_warned_of(run, model, tmp_path):
    test = write_csv(tmp_path / "t.csv", ("text", "label"), [(GOOD[0], "good"), ("dull", "bad")])
    assert "warning: 1 of the 2 texts are among the model's own" in run(
        "evaluate", model, test
    ).stderr  # fmt: skip


def test_the_report_is_one_file_that_shows_texts_as_texts(run, model, tmp_path):
    evil = "<script>alert(1)</script> what a wonderful joy"
    test = write_csv(tmp_path / "t.csv", ("text", "label"), [(evil, "bad"), ("dull mess", "bad")])
    report = tmp_path / "report.html"
    result = run("evaluate", model, test, "--report", report, "--json")
    assert result.exit_code == 0
    assert f"The report is in {report}." in result.stderr
    html = report.read_text("utf-8")
    assert "Evaluation of films-model on t.csv" in html
    assert evil not in html
    assert "&lt;script&gt;" in html
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "t.csv"]


def test_columns_can_be_named_and_standard_input_read(run, model):
    result = run(
        "evaluate", model, "-", "--text", "body", "--label", "kind", "--json",
        stdin="body,kind\na joy,good\n",
    )  # fmt: skip
    assert json.loads(result.stdout)["n"] == 1


def test_labels_may_be_spelt_as_csv_spells_them(run, tiny, tmp_path):
    train = tmp_path / "train.jsonl"
    train.write_text("\n".join(json.dumps({"text": f"{i}", "label": i % 2}) for i in range(4)))
    model = tmp_path / "numbers"
    words = ("--backbone", tiny("bert"), "--set", "steps=1", "--validation", "none")
    assert run("fit", train, "--output", model, *words).exit_code == 0
    test = write_csv(tmp_path / "test.csv", ("text", "label"), [("0", "0"), ("1", "1")])
    figures = json.loads(run("evaluate", model, test, "--json").stdout)
    assert figures["foreign_labels"] == {}
