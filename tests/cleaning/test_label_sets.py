"""Checks of label sets: repeats, leaks and unknown labels as of classes, and planted errors."""

import json

import numpy as np
import pytest
from tests.cli.conftest import write_csv

from cptuning.cleaning import check
from cptuning.cleaning.label_errors import label_set_errors
from cptuning.errors import CPTuningError
from cptuning.methods.evaluation_log import HeldOut


def test_the_same_labels_in_another_order_are_no_conflict():
    texts = ["good film", "Good film!", "bad", "bad", "so so"]
    sets = [["a", "b"], ["b", "a"], ["a"], [], ["B"]]
    found = check(texts, sets)
    [conflict] = found.of_kind("conflict")
    assert conflict.reason == "\"bad\" is labelled 'a' in X[2] and not at all in X[3]."
    assert len(found.of_kind("duplicate")) == 1
    [similar] = found.of_kind("similar-labels")
    assert "'B' (1 row) and 'b' (2 rows)" in similar.reason


def test_leaks_and_unknown_labels_of_a_test_set():
    train = ["the film is good", "the songs are bad", "no idea"]
    found = check(train, [["a"], ["b"], []], ["The film is good", "new"], [["a", "b"], ["c"]])
    [leak] = found.of_kind("leak")
    assert "but is labelled 'a, b', not 'a'" in leak.reason
    [unknown] = found.of_kind("unknown-label")
    assert unknown.reason == "'c' is the label of X_test[1]."


def test_single_labels_beside_label_sets_are_refused():
    with pytest.raises(CPTuningError, match="give both the same kind"):
        check(["a", "b"], [["x"], ["y"]], ["c"], ["x"])


def test_planted_errors_of_both_kinds_are_found():
    """Scores that tell three labels apart nearly always; 12 of 360 cells are turned over."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (120, 3))
    scores = 2.0 * truth - 1 + rng.normal(scale=0.4, size=truth.shape)
    turned = rng.choice(truth.size, 12, replace=False)
    labels = truth.copy()
    labels.ravel()[turned] ^= 1
    held_out = HeldOut(scores, np.ones(len(truth), np.float32), labels)
    found = label_set_errors(held_out, ["a", "b", "c"])
    places = {error.row * 3 + "abc".index(error.label) for error in found}
    assert len(places & set(turned.tolist())) >= 10
    assert len(places) <= 15
    for error in found:
        assert error.is_given == bool(labels[error.row, "abc".index(error.label)])
    probabilities = [error.probability for error in found]
    assert probabilities == sorted(probabilities, reverse=True)


def test_the_command_tells_them_with_lines(run, tmp_path):
    rows = [("good film", "a;b"), ("good film", "a"), ("bad", ""), ("so so", "a")]
    path = write_csv(tmp_path / "t.csv", ("text", "label"), rows)
    words = ("check", path, "--label-separator", ";")
    report = tmp_path / "r.html"
    told = json.loads(run(*words, "--json", "--report", report).stdout)
    assert told["counts"]["conflict"] == 1
    [conflict] = [f for f in told["findings"] if f["kind"] == "conflict"]
    assert conflict["rows"][0]["label"] == ["a", "b"]
    assert conflict["rows"][0]["where"].endswith("t.csv, line 2")
    assert "a, b" in report.read_text("utf-8")
    assert "'a, b' in" in run(*words).stdout


@pytest.fixture
def run():
    from typer.testing import CliRunner

    from cptuning.cli import app

    return lambda *words: CliRunner().invoke(app, list(map(str, words)))
