"""`make bench`: sections in one file, failures said loudly, sides that differ refused."""

import re
import sys
from types import SimpleNamespace

import pytest

from benchmarks import training, training_growth
from benchmarks.__main__ import main
from benchmarks.alternating import Times
from benchmarks.setfit_side import OtherWorkError, require_same


@pytest.fixture
def sections(monkeypatch):
    def broken():
        raise OtherWorkError("The sides differ in threads: ours 2, theirs 1.")

    found = {
        "fast": lambda quick=False: f"## Fast\n\nquick: {quick}\n",
        "plain": lambda: "## Plain",
        "broken": broken,
    }
    for name, section in found.items():
        monkeypatch.setitem(sys.modules, f"benchmarks.{name}", SimpleNamespace(section=section))


@pytest.mark.usefixtures("sections")
def test_the_sections_are_written_one_after_the_other(tmp_path):
    path = tmp_path / "results.md"
    assert main(["fast", "plain"], path) == 0
    text = path.read_text()
    assert text.startswith("# Benchmarks\n")
    assert re.search(
        r"## Fast\n\n\*Measured on [^\n]*\*\n\nquick: False\n\n## Plain\n\n\*M[^\n]*\n$", text
    )
    assert [p.name for p in tmp_path.iterdir()] == ["results.md"]


@pytest.mark.usefixtures("sections")
def test_sections_that_are_not_run_stay_as_they_are(tmp_path):
    path = tmp_path / "results.md"
    main(["fast", "plain"], path)
    main(["--quick", "fast"], path)
    text = path.read_text()
    assert [text.count(title) for title in ("# Benchmarks", "## Fast", "## Plain")] == [1, 1, 1]
    assert text.index("quick: True") < text.index("## Plain")


@pytest.mark.usefixtures("sections")
def test_quick_is_for_those_that_can_and_is_said(tmp_path):
    path = tmp_path / "results.md"
    assert main(["--quick", "fast", "plain"], path) == 0
    assert "quick: True" in path.read_text()
    assert ", quickly: " in path.read_text()


@pytest.mark.usefixtures("sections")
def test_what_is_missing_or_fails_is_said_and_the_rest_is_run(tmp_path, capsys):
    path = tmp_path / "results.md"
    assert main(["broken", "nowhere", "plain"], path) == 1
    text = path.read_text()
    assert "**FAILED**: OtherWorkError: The sides differ in threads: ours 2, theirs 1." in text
    assert "**FAILED**: ModuleNotFoundError: No module named 'benchmarks.nowhere'" in text
    assert "## Plain" in text
    assert "FAILED: broken, nowhere" in capsys.readouterr().err


def test_sides_that_did_other_work_are_not_compared():
    require_same("threads", 2, 2)
    with pytest.raises(OtherWorkError, match="differ in threads: ours 2, theirs 1"):
        require_same("threads", 2, 1)


def test_the_training_table_tells_shares_and_accuracies():
    score = training.TestScore
    times = Times(
        {training.THEIRS: [10.0, 20.0], "ours": [4.0, 10.0]},
        {
            training.THEIRS: [score(0.7, {}), score(0.8, {})],
            "ours": [score(0.75, {}), score(0.75, {})],
        },
    )
    rows = training.table(times).splitlines()
    assert rows[2] == "| SetFit | 15.0 | 1 | 75.0 ± 7.1 |"
    assert rows[3] == "| ours | 7.0 | 0.45 (0.40 to 0.50) | 75.0 ± 0.0 |"


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("texts and labels", [("a", "b")]),
        ("threads", 7),
        ("longest input", 5),
        ("weights at the start", "d4"),
    ],
)
def test_a_training_on_other_work_fails(monkeypatch, part, other):
    work = {"texts and labels": [("good", "x")], "threads": 2, "longest input": 128}
    work |= {"weights at the start": "a1"}

    def side(**changes):
        return lambda _seed: training.TrainedSide(lambda texts: texts, work | changes)

    def sides(same):
        return {training.THEIRS: side(), "ours": side() if same else side(**{part: other})}

    task = training.SetFitComparison()
    monkeypatch.setattr(
        training.SetFitComparison, "score", lambda _, t: training.TestScore(0.5, t.work)
    )
    monkeypatch.setattr(training.SetFitComparison, "sides", lambda *_: sides(same=True))
    assert len(training.measure(task, [13]).seconds["ours"]) == 1
    monkeypatch.setattr(training.SetFitComparison, "sides", lambda *_: sides(same=False))
    with pytest.raises(OtherWorkError, match=part):
        training.measure(task, [13])


def test_growth_is_drawn_and_tabled(tmp_path):
    costs = [
        training_growth.TrainingCost(
            n, steps=40, batch_size=min(16, n), setting_up=1, step=0.5, evaluation=2, megabytes=900
        )
        for n in (10, 10_000)
    ]
    made = [
        training_growth.SetFitPairs(10, 60, 0.1),
        training_growth.SetFitPairs(10_000, 50_010_000, None),
    ]
    training_growth.draw(costs, made, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    rows = training_growth.table(costs, made).splitlines()
    assert rows[2] == "| 10 | 40 | 0.50 | 2.0 | 1.0 | 900 | 60 | 0 |"
    assert rows[3].endswith("| 900 | 50,010,000 | not made |")
