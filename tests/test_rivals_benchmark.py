"""The benchmark of the rivals: dev chooses, test is read once, a finished run is never repeated."""

import importlib.util
import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from cptuning.data.writing import open_writer

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "rivals.py"
GOOD = ("a great movie", "so good", "great food", "it was great")
BAD = ("a dull movie", "so bad", "cold food", "it was terrible")


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("rivals_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a small CR in it."""
    root = tmp_path_factory.mktemp("data")
    rows = [{"text_a": t, "label": "positive"} for t in GOOD]
    rows += [{"text_a": t, "label": "negative"} for t in BAD]
    for part in ("train", "test", "16-13/train", "16-13/dev", "16-21/train", "16-21/dev"):
        path = root / "CR" / f"{part}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_writer(str(path)) as writer:
            writer.write(rows)
    return root


def options(folder, tiny, **changes):
    values = {"data": folder, "backbone": str(tiny("bert")), "device": "cpu", "steps": 2}
    return Namespace(**values | {"factors": [0.5, 1.0]} | changes)


def test_the_test_set_is_read_once_after_everything_is_chosen(benchmark, folder, tiny, monkeypatch):
    events = []
    kind = benchmark.classifier_class("fine-tuning")
    fit, load_test = kind.fit, benchmark.load_test
    monkeypatch.setattr(kind, "fit", lambda *a: (events.append("fit"), fit(*a))[1])
    monkeypatch.setattr(
        benchmark, "load_test", lambda *a: (events.append("test"), load_test(*a))[1]
    )
    record = benchmark.one_run("fine-tuning", "CR", 13, options(folder, tiny))
    assert events == ["fit", "fit", "test"]
    assert set(record["dev_by_rate"]) == {"5e-05", "0.0001"}
    assert record["dev_accuracy"] == max(record["dev_by_rate"].values())
    assert record["test_rows"] == 8
    assert record["majority"] == 0.5


def test_the_row_of_a_search_states_its_candidates_and_steps(benchmark, folder, tiny):
    record = benchmark.one_run("lm-bff-l", "CR", 13, options(folder, tiny, factors=[1.0]))
    assert record["search"] == {"search": "Auto-L", "candidates": 8, "candidate_steps": 2}
    assert record["label_words"].keys() == {"negative", "positive"}


def test_zero_shot_is_untrained_and_has_no_rate_to_choose(benchmark, folder, tiny):
    record = benchmark.one_run("zero-shot", "CR", 13, options(folder, tiny))
    assert record["best_step"] == 0
    assert len(record["dev_by_rate"]) == 1


def test_it_prints_the_table_and_goes_on_where_it_was(folder, tiny, tmp_path):
    output = tmp_path / "runs.jsonl"
    command = [sys.executable, str(SCRIPT), "--data", str(folder), "--output", str(output)]
    command += ["--datasets", "CR", "--seeds", "13", "21", "--backbone", str(tiny("bert"))]
    command += ["--methods", "zero-shot", "warp", "--steps", "1", "--workers", "2"]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line for line in first.stdout.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows[:4]] == [
        "| accuracy in %",
        "| majority",
        "| zero-shot",
        "| warp",
    ]
    assert "±" in rows[3]
    assert len(output.read_text().splitlines()) == 4
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(output.read_text().splitlines()) == 4
    assert [line for line in again.stdout.splitlines() if line.startswith("| ")] == rows
    assert all(json.loads(line)["row"] in ("zero-shot", "warp") for line in output.open())
