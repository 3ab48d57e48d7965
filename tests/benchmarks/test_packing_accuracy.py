"""Whether packing is measured: the same backbone before and after, on the same splits."""

import pytest
import torch

from benchmarks import packing_accuracy
from benchmarks.packing_accuracy import both, one_run, table, top_words
from cptuning.data.writing import open_writer


def write(path, texts):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"text_a": text, "label": label} for label, some in texts.items() for text in some]
    with open_writer(str(path)) as writer:
        writer.write(rows)


@pytest.fixture
def data(tmp_path, monkeypatch):
    texts = {"good": ["great movie", "good film"], "bad": ["dull train", "bad book"]}
    for part in ("16-13/train", "16-13/dev", "test", "train"):
        write(tmp_path / "SST-2" / f"{part}.jsonl.gz", texts)
    monkeypatch.setenv("CPTUNING_DATA", str(tmp_path))


def test_the_packed_one_is_rounded_and_the_original_is_not(tiny):
    backbones = both(str(tiny("bert")))
    weights = [dict(b.model.named_parameters()) for b in backbones.values()]
    gaps = {name: (weights[0][name] - weights[1][name]).abs().max() for name in weights[0]}
    assert max(gaps.values()) > 0
    for name, gap in gaps.items():
        rows = weights[0][name].abs()
        assert gap <= (rows.amax() / 127 if rows.ndim > 1 else 1e-2 * rows.amax() + 1e-6)
    assert len(top_words(backbones["packed"], "a [MASK] movie")) == 5


def test_both_are_trained_and_tested_and_put_back(tiny, data):
    folder = str(tiny("bert"))
    job = {"backbone": folder, "state": "trained", "dataset": "SST-2", "seed": 13}
    packing_accuracy.STATES["trained"]["steps"] = 2
    before = [
        {n: v.clone() for n, v in b.model.state_dict().items()} for b in both(folder).values()
    ]
    try:
        made = one_run(job)
    finally:
        packing_accuracy.STATES["trained"].clear()
    assert set(made) == {"original", "packed", "same"}
    assert all(0 <= share <= 1 for share in made.values())
    after = [b.model.state_dict() for b in both(folder).values()]
    assert all(torch.equal(a[n], b[n]) for a, b in zip(before, after, strict=True) for n in a)


def test_the_table_has_the_difference_of_the_same_splits():
    def record(state, original, packed):
        return {"state": state, "original": original, "packed": packed, "same": 0.99}

    records = [record("untrained", 0.8, 0.8), record("untrained", 0.9, 0.88)]
    records += [record("trained", 0.9, 0.91), record("trained", 0.7, 0.73)]
    made = table(records)
    assert "| untrained | 85.00 | 84.00 | -1.00 ± 1.00 | 99.0 % |" in made
    assert "| trained | 80.00 | 82.00 | +2.00 ± 1.00 | 99.0 % |" in made
