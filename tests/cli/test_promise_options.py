"""Targets of error and label sets on the command line."""

import json

import pytest
from tests.cli.conftest import GOOD, read_csv, write_csv

from cptuning.data.sample_data import read_sample


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    table = read_sample("messages_test")
    rows = list(zip(table.examples, table.labels, strict=True))
    return write_csv(tmp_path_factory.mktemp("messages") / "m.csv", ("text", "label"), rows)


def test_a_target_is_met_told_and_kept_in_the_folder(run, messages, tmp_path):
    model = tmp_path / "model"
    options = ("--preset", "instant", "--unknown-threshold", "error<=20%")
    result = run("fit", messages, "--output", model, *options)
    assert result.exit_code == 0, result.stderr
    assert "At most 20 % of the answers are wrong, with 90 % certainty:" in result.stdout
    threshold = json.loads((model / "cptuning.json").read_text())["least_confidence"]
    for row in read_csv(run("predict", model, messages, "--probabilities", "--quiet").stdout):
        sure = max(float(row[name]) for name in row if name.startswith("p_"))
        assert (row["prediction"] == "unknown") == (sure <= threshold)
    assert "a confidence of" in run("info", model).stdout
    shown = run("evaluate", model, messages, "--report", tmp_path / "report.html")
    assert "the answer is not sure enough" in shown.stdout


def test_what_cannot_be_promised_is_told(run, films, tmp_path):
    options = ("--preset", "instant", "--unknown-threshold", "error<=0.05")
    result = run("fit", films, "--output", tmp_path / "model", *options, "--json")
    assert "can't be promised from 8 held-out answers, it takes at least 45" in result.stderr
    assert json.loads(result.stdout)["rejection"]["answered"] == 0
    rows = read_csv(run("predict", tmp_path / "model", films, "--quiet").stdout)
    assert {row["prediction"] for row in rows} == {"unknown"}


def test_label_sets_are_a_column(run, films, tmp_path):
    model = tmp_path / "model"
    assert run("fit", films, "--output", model, "--preset", "instant").exit_code == 0
    for coverage, sizes in (("0.99", {2}), ("0.5", {1, 2})):
        shown = run("predict", model, films, "--coverage", coverage, "--quiet")
        for row in read_csv(shown.stdout):
            found = json.loads(row["prediction_set"])
            assert found[0] == row["prediction"]
            assert len(found) in sizes
    new = tmp_path / "new.jsonl"
    new.write_text(json.dumps({"text": GOOD[0]}) + "\n")
    row = json.loads(run("predict", model, new, "--coverage", "0.99").stdout)
    assert sorted(row["prediction_set"]) == ["bad", "good"]


@pytest.mark.parametrize(
    ("coverage", "sentence"), [("1.5", "between 0 and 1"), ("0.9", "no held-out answers")]
)
def test_label_sets_that_cannot_be_are_refused(run, model, films, tmp_path, coverage, sentence):
    out = tmp_path / "out.csv"
    result = run("predict", model, films, "--coverage", coverage, "--output", out)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not out.exists()


def test_a_target_that_is_none_is_refused(run, films, tmp_path):
    options = ("--preset", "instant", "--unknown-threshold", "error<0.05")
    result = run("fit", films, "--output", tmp_path / "model", *options)
    assert result.exit_code == 2
    assert "--unknown-threshold is 'error<0.05'" in result.stderr
