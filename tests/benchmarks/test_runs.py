"""The benchmarks' own machinery: runs are kept, skipped and tabled as they should be."""

import json

import pytest
import torch

from benchmarks import few_shot, gpu, support_growth
from benchmarks.runs import run_all


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


def test_growing_support_sets_are_measured_drawn_and_tabled(tmp_path):
    picture = tmp_path / "growth.png"
    text = support_growth.section(sizes=(2000,), picture=picture)
    assert picture.stat().st_size > 10_000
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| 2,000")]
    assert [row[2].strip() for row in rows] == list(support_growth.WAYS)
    recalls = [row[6].strip() for row in rows]
    assert recalls[0] == "1.000"
    assert float(recalls[1]) >= 0.95
    assert recalls[2] == ""
    assert all(row[7].strip() == "100.0 %" for row in rows)


def test_the_gpu_benchmark_can_be_rehearsed_without_one(monkeypatch):
    monkeypatch.setattr(gpu, "LENGTH", 16)
    monkeypatch.setattr(gpu, "WARM_UP", 1)
    monkeypatch.setattr(gpu, "SHAPES", {"ALBERT-large": gpu.SHAPES["ALBERT-large"]})
    text = gpu.section(batches=(4,), steps=1, device=torch.device("cpu"), tiny=True)
    rows = [line for line in text.splitlines() if line.startswith("| ALBERT-large, batch 4")]
    assert len(rows) == 2 * len(gpu.WAYS)  # speed and profile
    assert all(float(row.split("|")[2]) > 0 for row in rows)
    for row in rows[len(gpu.WAYS) :]:
        shares = [float(cell.strip(" %")) for cell in row.split("|")[3:-1]]
        assert len(shares) == len(gpu.KINDS) + 2
        assert sum(shares) == pytest.approx(100, abs=0.5)


def test_the_operations_of_a_step_are_those_of_its_products():
    """Three products a weight (forward, and two backward) of two operations each, and a little."""
    device = torch.device("cpu")
    backbone = gpu.backbone_of("RoBERTa-large", device, tiny=True)
    bench = gpu.Bench.of(backbone, 4, device, replay=False)
    layers = bench.task.objective.encoder.model.base_model.encoder.layer
    weights = sum(p.numel() for p in layers.parameters() if p.ndim == 2)
    in_layers = 6 * weights * 4 * gpu.LENGTH
    assert in_layers < bench.operations() < 3 * in_layers + 6 * 4 * gpu.LENGTH * 32 * 16_384
