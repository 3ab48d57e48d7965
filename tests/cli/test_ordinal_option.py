"""Labels with an order on the command line."""

import json

import numpy as np
import pytest
from tests.cli.conftest import read_csv, write_csv
from tests.inference.test_ordinal import LABELS, TEXTS


def test_on_the_command_line(run, tmp_path):
    rows = list(zip(TEXTS, LABELS, strict=True))
    train = write_csv(tmp_path / "train.csv", ("text", "label"), rows)
    model = tmp_path / "model"
    result = run("fit", train, "--output", model, "--preset", "instant", "--ordinal", "numbers")
    assert result.exit_code == 0, result.stderr
    order = json.loads((model / "cptuning.json").read_text())["order"]
    assert [float(label) for label in order] == [1, 2, 3, 4, 5]
    shown = json.loads(run("evaluate", model, train, "--json").stdout)
    answers = [float(row["prediction"]) for row in read_csv(run("predict", model, train).stdout)]
    assert shown["mean_distance"] == pytest.approx(np.abs(np.subtract(answers, LABELS)).mean())
    assert "mean distance to the right label" in run("evaluate", model, train).stdout
    refused = run("fit", train, "--output", tmp_path / "no", "--ordinal", "1,2,3,4")
    assert refused.exit_code == 2
    assert "no place for the label '5'" in refused.stderr
