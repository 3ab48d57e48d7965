import os
from collections import Counter

import pytest

from cptuning.data import benchmark_datasets
from cptuning.data.benchmark_datasets import (
    PAIR_DATASETS,
    PAPER_DATASETS,
    SEEDS,
    full_train,
    load_dataset_split,
)
from cptuning.data.hub_datasets import HubSource
from cptuning.data.splits import k_shot_split
from cptuning.data.writing import open_writer
from cptuning.errors import CPTuningError

DATA = os.environ.get("CPTUNING_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="CPTUNING_DATA is not set")


@pytest.fixture
def folder(tmp_path):
    """A folder with a small CR in it: a pool, a test file, and one ready-made split."""
    parts = {
        "train": [f"{i} pool" for i in range(8)],
        "test": ["test"],
        "2-13/train": ["ready train"],
        "2-13/dev": ["ready dev"],
    }
    for part, texts in parts.items():
        path = tmp_path / "CR" / f"{part}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_writer(path) as writer:
            labels = ["negative", "positive"] * len(texts)
            pairs = zip(texts, labels, strict=False)
            writer.write([{"text_a": text, "label": label} for text, label in pairs])
    return tmp_path


def test_a_ready_made_split_is_taken_as_it_is(folder):
    split = load_dataset_split("CR", folder, k=2, seed=13)
    assert list(split.train) == ["ready train"]
    assert split.train_labels == ["negative"]
    assert list(split.dev) == ["ready dev"]
    assert list(split.test) == ["test"]
    assert split.name == "CR"


def test_another_split_is_drawn_from_the_pool(folder):
    split = load_dataset_split("CR", folder, k=2, seed=21)
    pool = full_train("CR", folder)
    train, dev = k_shot_split(pool.labels, 2, 21)
    assert split.train == pool.examples.take(train)
    assert split.dev == pool.examples.take(dev)
    assert split.train_labels == [pool.labels[row] for row in train]
    assert split.dev_labels == [pool.labels[row] for row in dev]


def test_the_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("CPTUNING_DATA", str(folder))
    assert len(full_train("CR").examples) == 8


def test_a_folder_in_the_layout_of_lm_bff_is_read(tmp_path):
    (tmp_path / "original" / "mr").mkdir(parents=True)
    (tmp_path / "original" / "mr" / "train.csv").write_text("1,lively\n")
    assert full_train("MR", tmp_path).labels == ["positive"]


def test_what_no_folder_has_comes_from_the_hub(folder, monkeypatch):
    def offline(path, config, split):
        texts = [f"{split} {i}" for i in range(6)]
        return {"sentence1": texts, "sentence2": texts, "label": [0, 1] * 3}

    monkeypatch.setattr(benchmark_datasets, "HubSource", lambda name: HubSource(name, load=offline))
    split = load_dataset_split("RTE", folder, k=1)
    assert Counter(split.train_labels) == {"entailment": 1, "not_entailment": 1}
    assert split.test.first[0] == "validation 0"
    monkeypatch.delenv("CPTUNING_DATA", raising=False)
    assert len(full_train("RTE").examples) == 6


def test_what_is_nowhere_is_named(folder, tmp_path):
    with pytest.raises(CPTuningError, match="CLINC150 was not found: set CPTUNING_DATA"):
        full_train("CLINC150", folder)
    with pytest.raises(CPTuningError, match="There is no data set 'cr'"):
        full_train("cr", folder)
    with pytest.raises(CPTuningError, match="missing is not a folder"):
        full_train("CR", tmp_path / "missing")


@needs_data
@pytest.mark.parametrize("name", PAPER_DATASETS)
def test_the_paper_s_data_sets_are_whole(name):
    for seed in SEEDS:
        split = load_dataset_split(name, DATA, seed=seed)
        for labels in (split.train_labels, split.dev_labels):
            assert sorted(Counter(labels).values()) == [16, 16]
        assert split.train.is_pair == split.test.is_pair == (name in PAIR_DATASETS)
        assert set(split.test_labels) == set(split.train_labels)
    train, dev = set(split.train), set(split.dev)
    assert len(split.test) > 200
    assert len(set(full_train(name, DATA).examples) & (train | dev)) == len(train | dev)


@needs_data
@pytest.mark.parametrize(("name", "classes"), [("TREC", 6), ("SNLI", 3)])
def test_more_data_sets_are_there(name, classes):
    split = load_dataset_split(name, DATA, k=8)
    assert sorted(Counter(split.train_labels).values()) == [8] * classes
