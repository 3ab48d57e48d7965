"""cptuning learning-curve: a table, a chart, a verdict; and Ctrl-C keeps what there is."""

import json

import pytest
from tests.cli.conftest import write_csv


@pytest.fixture
def curve(run, tiny, films):
    def measure(*more):
        words = ("--backbone", tiny("bert"), "--set", "steps=1", "--repeats", "2", *more)
        return run("learning-curve", films, *words)

    return measure


def test_people_get_a_table_a_chart_and_a_verdict(curve):
    result = curve("--sizes", "1,2,99")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["examples", "per", "class", "accuracy", "95", "%", "interval"]
    assert lines[1].split()[0] == "1"
    assert "█" in result.stdout
    assert (
        "It is unclear whether more labels would help: there are only 8 test answers"
        in result.stdout
    )
    assert "The rule:" in result.stdout
    assert "4 trainings will take" in result.stderr
    assert "repeat 2 of 2, 2 examples per class: " in result.stderr
    assert "Skipped: 99 (no class has more than 2 examples to train on)." in result.stderr


def test_json_with_a_test_file(curve, tmp_path):
    test = write_csv(tmp_path / "t.csv", ("text", "label"), [("a joy", "good"), ("dull", "bad")])
    result = curve("--test", test, "--json", "--quiet")
    answer = json.loads(result.stdout)
    assert [point["size"] for point in answer["sizes"]] == [2, 4]
    assert [len(point["repeats"]) for point in answer["sizes"]] == [2, 2]
    assert answer["test_answers"] == 2
    assert answer["complete"] is True
    assert result.stderr == ""


@pytest.mark.parametrize(("name", "start"), [("c.html", b"<!doctype html>"), ("c.png", b"\x89PNG")])
def test_the_curve_can_be_written(curve, tmp_path, name, start):
    result = curve("--sizes", "1,2", "--output", tmp_path / name, "--quiet")
    assert result.exit_code == 0
    assert (tmp_path / name).read_bytes().startswith(start)


def test_ctrl_c_shows_what_was_measured(curve, monkeypatch):
    from cptuning.estimator import CPTuningClassifier

    fit, calls = CPTuningClassifier.fit_prepared, []

    def interrupted(self, *arguments, **options):
        calls.append(self)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return fit(self, *arguments, **options)

    monkeypatch.setattr(CPTuningClassifier, "fit_prepared", interrupted)
    result = curve("--json", "--sizes", "1,2")
    answer = json.loads(result.stdout)
    assert result.exit_code == 130
    assert [point["size"] for point in answer["sizes"]] == [1]
    assert answer["complete"] is False
    assert "Stopped: this is what was measured so far." in result.stderr
