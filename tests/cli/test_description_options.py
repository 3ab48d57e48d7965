"""Descriptions of labels on the command line."""

import json

import pytest
from tests.cli.conftest import read_csv, write_csv

WORDS = {"good": "I love this great film", "bad": ["a terrible film", "boring"]}


@pytest.fixture
def described(tmp_path):
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(WORDS), "utf-8")
    return path


def fitted(run, *arguments):
    result = run("fit", *arguments, "--preset", "instant")
    assert result.exit_code == 0, result.stderr
    return result


@pytest.mark.parametrize("train", [(), ("empty.csv",)])
def test_without_examples_descriptions_answer(run, described, films, tmp_path, train):
    (tmp_path / "empty.csv").write_text("text,label\n", "utf-8")
    model = tmp_path / "model"
    files = [tmp_path / name for name in train]
    result = fitted(run, *files, "--label-descriptions", described, "--output", model)
    assert "no leave-one-out accuracy can be told" in result.stderr
    assert "The accuracy was not measured" in result.stdout
    assert "3 descriptions of labels: each counts as an example." in result.stdout
    answers = run("predict", model, films, "--quiet")
    assert answers.exit_code == 0, answers.stderr
    right = [row["label"] == row["prediction"] for row in read_csv(answers.stdout)]
    assert sum(right) >= 6
    facts = run("info", model, "--json")
    assert json.loads(facts.stdout)["training"]["descriptions"] == {"texts": 3, "weight": 1.0}
    assert "3 of labels, each weighs 1" in run("info", model).stdout


def test_names_join_few_examples_and_explain_marks_them(run, films, tmp_path):
    model = tmp_path / "model"
    options = ("--label-names", "--set", "description_weight=1", "--output", model, "--json")
    result = json.loads(fitted(run, films, *options).stdout)
    assert result["descriptions"] == {"texts": 2, "weight": 1.0}
    assert result["held_out"]["n"] == 8
    shown = run("explain", model, "good", "-k", "9")
    assert "good, description  good" in shown.stdout
    found = json.loads(run("explain", model, "good", "-k", "9", "--json").stdout)
    marks = [e.get("is_description", False) for e in found["neighbours"]]
    assert (sum(marks), len(marks)) == (1, 5)
    rows = read_csv(run("predict", model, films, "--neighbours", "5", "--quiet").stdout)
    assert {rows[0][f"neighbour_{n}_is_description"] for n in range(1, 6)} == {"True", "False"}


def test_held_out_examples_are_counted_one_by_one(run, tmp_path):
    few = write_csv(tmp_path / "few.csv", ("text", "label"), [("a joy", "good"), ("a bore", "bad")])
    result = fitted(run, few, "--label-names", "--output", tmp_path / "model", "--json")
    assert json.loads(result.stdout)["held_out"]["n"] == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "There is nothing to learn from: give a file of labelled examples"),
        (("--label-names",), "--label-names takes the names of the labels in TRAIN"),
        (("--label-names", "--label-descriptions", "x.json"), "Give either --label-descriptions"),
        (("--label-descriptions", "x.json"), "x.json can't be read as JSON: No such file"),
    ],
)
def test_wrong_options_get_one_sentence(run, tmp_path, arguments, sentence):
    result = run("fit", *arguments, "--output", tmp_path / "model")
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "model").exists()


def test_a_file_with_a_header_alone_still_needs_descriptions(run, tmp_path):
    (tmp_path / "empty.csv").write_text("text,label\n", "utf-8")
    result = run("fit", tmp_path / "empty.csv", "--output", tmp_path / "model")
    assert result.exit_code == 2
    assert "has a header but no rows" in result.stderr


def test_a_dev_set_may_have_a_label_that_is_only_described(run, described, films, tmp_path):
    result = fitted(
        run, "--label-descriptions", described, "--dev", films, "--output", tmp_path / "m", "--json"
    )
    assert json.loads(result.stdout)["held_out"]["n"] == 8
