"""The benchmarks' own machinery: runs are kept, skipped and tabled as they should be."""

import gzip
import json
from types import SimpleNamespace

import pytest

from benchmarks import few_shot, prediction, presets
from benchmarks.runs import run_all
from cptuning import CPTuningClassifier
from cptuning.errors import CPTuningError


def work(job):
    return {"square": job["n"] ** 2}


def fail(job):
    raise AssertionError(f"{job} was done")


def test_a_finished_run_is_not_made_again(tmp_path):
    output = tmp_path / "runs.jsonl"
    assert run_all([{"n": 1}, {"n": 2}], work, output) == [
        {"n": 1, "square": 1},
        {"n": 2, "square": 4},
    ]
    again = run_all([{"n": 2}, {"n": 1}], fail, output)
    assert sorted(record["n"] for record in again) == [1, 2]
    more = run_all([{"n": 2}, {"n": 3}], work, output)
    assert sorted(record["square"] for record in more) == [4, 9]
    assert len(output.read_text().splitlines()) == 3


def test_several_processes_share_the_work(tmp_path):
    output = tmp_path / "runs.jsonl"
    done = run_all([{"n": n} for n in range(4)], work, output, workers=2)
    assert sorted(record["square"] for record in done) == [0, 1, 4, 9]
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert sorted(line["n"] for line in lines) == [0, 1, 2, 3]


def test_the_presets_are_ranked_by_the_last_step(tmp_path):
    records = [
        {
            "kind": "single",
            "variant": variant,
            "dataset": name,
            "accuracy": {"0": 0.9, "40": accuracy},
            "log_loss": {"0": 0.1, "40": 0.5},
        }
        for variant, accuracy in (("default", 0.5), ("knn", 0.75))
        for name in presets.DATASETS["single"]
    ]
    rows = presets.table(records, "single").splitlines()
    assert rows[2] == "| knn | 75.0 | 75.0 | 75.0 | 75.0 | 75.0 | 0.500 | 4 |"
    assert rows[3].startswith("| default | 50.0")


def test_the_presets_are_chosen_where_there_is_no_test_set(tiny, tmp_path, monkeypatch):
    for part in ("train", "dev"):
        path = tmp_path / "CR" / "16-13" / f"{part}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"text_a": f"{word} film", "label": word} for word in ("good", "bad") * 2]
        with gzip.open(path, "wt") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv("CPTUNING_DATA", str(tmp_path))
    job = {"backbone": str(tiny("bert")), "variant": "untrained", "dataset": "CR", "seed": 13}
    record = presets.one_run({**job, "kind": "single", "turned": True})
    assert set(record["accuracy"]) == set(record["log_loss"]) == {"0"}
    with pytest.raises(CPTuningError):
        few_shot.one_run(job)  # which does need a test set


def test_the_table_tells_mean_spread_and_majority():
    records = [
        {
            "backbone": "embedded",
            "variant": "default",
            "dataset": "CR",
            "seed": seed,
            "test": test,
            "majority": 0.5,
        }
        for seed, test in enumerate((0.7, 0.8, 0.9, 0.8, 0.8))
    ]
    rows = few_shot.table(records).splitlines()
    assert rows[0] == "| | CR | mean |"
    assert rows[2] == "| majority | 50.0 | 50.0 |"
    assert rows[3] == "| embedded, default | 80.0 ± 7.1 | 80.0 |"
    fewer = few_shot.table(records[:2]).splitlines()
    assert fewer[3].startswith("| embedded, default (2 to 2 splits)")


def test_the_prediction_section_compares_round_by_round():
    result = prediction.Result(
        {
            prediction.SETFIT: [100.0, 50.0, 80.0],
            prediction.FLOAT32: [150.0, 100.0, 112.0],
            prediction.INT8: [300.0, 200.0, 320.0],
            prediction.PRODUCTS: [200.0, 125.0, 160.0],
        },
        texts=872,
        threads=2,
    )
    text = prediction.section(result)
    assert "| cptuning, float32 | 112 (100 to 150) | 1.50 (1.40 to 2.00) |" in text
    assert "reaches 75 (70 to 80) % of its matrix products alone" in text


def test_the_prediction_benchmark_stops_where_the_work_is_not_the_same(tiny):
    classifier = CPTuningClassifier(
        backbone=str(tiny("bert")), steps=0, max_length=64, validation="none", verbose=False
    ).fit(["good film", "bad film"], ["good", "bad"])
    weights = classifier.predictor_.encoder.module.model.base_model.state_dict()
    other = {name: weight + 1 for name, weight in weights.items()}
    for theirs, complaint in ((other, "backbones differ"), (weights, "different lengths")):
        body = SimpleNamespace(state_dict=lambda theirs=theirs: theirs)
        setfit = SimpleNamespace(model_body=FakeBody([SimpleNamespace(auto_model=body)]))
        with pytest.raises(SystemExit, match=complaint):
            prediction.check_same_work(setfit, classifier, {}, threads=1)


class FakeBody(list):
    max_seq_length = 128
