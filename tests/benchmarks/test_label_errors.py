"""The benchmark of planted label errors: what is planted, and how an answer is measured."""

import gzip
import json
from collections import Counter

import numpy as np
import pytest

from benchmarks import label_errors
from benchmarks.label_errors import figures, one_run, sample, table, with_errors

SIZE = "16 per class"


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("CPTUNING_DATA", str(tmp_path))
    (tmp_path / "TREC").mkdir()
    topics = {"late": "parcel delivery train {}", "money": "refund cash bank {}"}
    rows = [
        {"text_a": topic.format(n % 40), "label": label}
        for n in range(50)
        for label, topic in topics.items()
    ]
    rows += [{"text_a": f"rare {n}", "label": "rare"} for n in range(4)]
    with gzip.open(tmp_path / "TREC" / "train.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def test_a_sample_has_different_texts_and_no_class_too_rare_for_folds(data):
    examples, labels = sample("TREC", SIZE, seed=1)
    assert Counter(labels) == {"late": 16, "money": 16}
    assert len(set(examples)) == 32
    assert sample("TREC", SIZE, seed=1) == (examples, labels)
    assert sample("TREC", SIZE, seed=2) != (examples, labels)
    assert len(sample("TREC", "1000", seed=1)[1]) == 80


def test_one_label_in_ten_is_changed_to_another_class():
    labels = ["a", "b", "c"] * 20
    changed, rows = with_errors(labels, seed=3)
    assert [i for i in range(60) if changed[i] != labels[i]] == rows.tolist()
    assert len(rows) == 6


def test_the_figures_of_a_known_answer():
    doubts, planted = np.array([0.9, 0.8, 0.1, 0.2]), np.array([0, 3])
    assert figures(np.array([0, 1]), doubts, planted) == {
        "reported": 2,
        "hits": 1,
        "precision": 0.5,
        "recall": 0.5,
        "auroc": 0.75,
        "ap": pytest.approx((1 + 2 / 3) / 2, abs=1e-4),
    }


def test_a_run_measures_both_and_is_in_the_table(data, monkeypatch):
    def nothing(embeddings, labels):
        return np.array([], dtype=int), np.zeros(len(labels))

    monkeypatch.setattr(label_errors, "cleanlab_answers", nothing)
    job = {"dataset": "TREC", "size": SIZE, "seed": 1}
    record = {**job, **one_run(job)}
    assert record["planted"] == 3
    assert record["cptuning"]["recall"] > 0.6
    assert (record["cleanlab"]["recall"], record["cleanlab"]["auroc"]) == (0, 0.5)
    assert "| TREC | 32 | cleanlab | 0 | 0.00 ± 0.00 |" in table([record])


def test_cleanlab_reports_a_label_among_others():
    pytest.importorskip("cleanlab", reason="cleanlab is in the extra [bench].")
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 30)
    embeddings = (np.eye(2)[labels] * 4 + rng.normal(size=(60, 2))).astype(np.float32)
    labels[7] = 1
    reported, doubts = label_errors.cleanlab_answers(embeddings, labels)
    assert 7 in reported
    assert doubts.argmax() == 7
