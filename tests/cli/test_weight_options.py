"""Weights and shares of classes on the command line."""

import csv
import json

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.cli.conftest import read_csv, write_csv


@pytest.fixture
def weighted(tmp_path, films):
    """The sentences about films, each with a weight."""
    with films.open(encoding="utf-8") as file:
        rows = [
            (row["text"], row["label"], 1 + n % 2) for n, row in enumerate(csv.DictReader(file))
        ]
    return write_csv(tmp_path / "weighted.csv", ("text", "label", "n"), rows)


def test_a_fit_takes_weights_and_shares_and_predict_others(run, weighted, tmp_path):
    model = tmp_path / "model"
    options = ("--class-weight", "good=3", "--weight", "n", "--class-prior", "good=0.2,bad=0.8")
    result = run("fit", weighted, "--output", model, "--preset", "instant", *options)
    assert result.exit_code == 0, result.stderr
    weights = load_file(model / "support.safetensors")["weights"]
    np.testing.assert_array_equal(weights, [3, 6, 3, 6, 1, 2, 1, 2])
    assert json.loads((model / "cptuning.json").read_text())["class_prior"] == [0.8, 0.2]
    shares = {}
    for prior in ((), ("--class-prior", "good=0.9,bad=0.1")):
        answers = run("predict", model, weighted, "--probabilities", "--quiet", *prior)
        assert answers.exit_code == 0, answers.stderr
        shares[bool(prior)] = [float(row["p_good"]) for row in read_csv(answers.stdout)]
    for before, after in zip(shares[False], shares[True], strict=True):
        odds = before / (1 - before) * (0.9 / 0.2) / (0.1 / 0.8)
        assert after == pytest.approx(odds / (1 + odds), abs=1e-4)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--class-weight", "much"), "--class-weight is 'much': write LABEL=NUMBER"),
        (("--class-weight", "good=x"), "write LABEL=NUMBER"),
        (("--class-weight", "odd=2"), "class_weight names 'odd', which is not a label"),
        (("--weight", "m"), "has no column 'm'"),
        (("--weight", "text"), "line 2: the weight 'a wonderful film' is not a number"),
        (("--class-prior", "good=0.5"), "class_prior has no share for the label 'bad'"),
        (("--class-prior", "good=0.5,bad=0.1"), "they must add up to 1"),
        (
            ("--class-prior", "good=0.5,bad=0.5", "--method", "fine-tuning"),
            "--class-prior is for the method cp-tuning",
        ),
    ],
)
def test_wrong_options_get_one_sentence(run, weighted, tmp_path, options, sentence):
    result = run("fit", weighted, "--output", tmp_path / "model", "--preset", "instant", *options)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) <= 2
    assert not (tmp_path / "model").exists()
