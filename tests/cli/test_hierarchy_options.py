"""Labels with levels on the command line."""

import json

import pytest
from tests.cli.conftest import read_csv, write_csv

ROWS = [
    ("give me my money back", "billing > refund"),
    ("i want a refund", "billing > refund"),
    ("send me the bill", "billing > invoice"),
    ("where is my invoice", "billing > invoice"),
    ("thank you so much", "praise"),
    ("what a great shop", "praise"),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A model of labels with levels, and its examples."""
    from typer.testing import CliRunner

    from cptuning.cli import app

    folder = tmp_path_factory.mktemp("shop")
    data = write_csv(folder / "shop.csv", ("text", "label"), ROWS)
    arguments = ["fit", str(data), "--output", str(folder / "model"), "--preset", "instant"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    return folder / "model", data


def test_predict_answers_at_the_level_that_is_certain_enough(run, shop):
    options = ("--hierarchy", " > ", "--min-confidence", "0.9", "--probabilities", "--quiet")
    answers = run("predict", *shop, *options)
    assert answers.exit_code == 0, answers.stderr
    for row in read_csv(answers.stdout):
        of_billing = float(row["p_billing > refund"]) + float(row["p_billing > invoice"])
        assert float(row["p_billing"]) == pytest.approx(of_billing, abs=1e-5)
        assert row["prediction"] == "" or float(row["confidence"]) >= 0.9
        if row["prediction"]:
            column = f"p_{row['prediction']}"
            assert float(row["confidence"]) == pytest.approx(float(row[column]), abs=1e-5)


def test_evaluate_tells_each_level(run, shop):
    found = json.loads(run("evaluate", *shop, "--hierarchy", ">", "--json").stdout)
    assert [(level["level"], level["texts"]) for level in found["levels"]] == [(1, 6), (2, 4)]
    shown = run("evaluate", *shop, "--hierarchy", ">", "--min-confidence", "0.7").stdout
    assert "answered with 70.0 %" in shown


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--min-confidence", "0.5"), "--min-confidence is for labels with levels"),
        (("--hierarchy", ">", "--min-confidence", "7"), "--min-confidence is 7: give a prob"),
        (("--hierarchy", "/"), "No label contains '/', so there is no hierarchy"),
    ],
)
def test_wrong_options_get_one_sentence(run, shop, options, sentence):
    for command in ("predict", "evaluate"):
        result = run(command, *shop, *options)
        assert result.exit_code == 2
        assert sentence in result.stderr
