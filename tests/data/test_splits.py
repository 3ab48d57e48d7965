import gzip
import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data.splits import (
    k_shot_split,
    stratified_folds,
    stratified_sample,
    unbalanced_split,
)
from cptuning.errors import CPTuningError

DATA = os.environ.get("CPTUNING_DATA")
SEEDS = (13, 21, 42, 87, 100)


def lm_bff_split(labels, k, seed):
    """What LM-BFF's script does to lines of a file, step by step."""
    lines = list(enumerate(labels))
    np.random.seed(seed)
    np.random.shuffle(lines)
    by_label = {}
    for row, label in lines:
        by_label.setdefault(label, []).append(row)
    train = [row for rows in by_label.values() for row in rows[:k]]
    dev = [row for rows in by_label.values() for row in rows[k : 2 * k]]
    return train, dev


@given(
    labels=st.lists(st.sampled_from("abc"), min_size=1, max_size=60),
    k=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_k_shot_splits_are_those_of_lm_bff(labels, k, seed):
    if min(Counter(labels).values()) < k:
        with pytest.raises(CPTuningError, match=f"too few for {k} training examples"):
            k_shot_split(labels, k, seed)
        return
    train, dev = k_shot_split(labels, k, seed)
    assert (train.tolist(), dev.tolist()) == lm_bff_split(labels, k, seed)


def rows_of(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.skipif(not DATA, reason="CPTUNING_DATA is not set")
@pytest.mark.parametrize("name", ["MRPC", "RTE"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_published_splits_of_mrpc_and_rte_come_out_row_by_row(name, seed):
    """Of these two, the training file has LM-BFF's order; of the others, the shuffle differs."""
    folder = Path(DATA, name)
    pool = rows_of(folder / "train.jsonl.gz")
    train, dev = k_shot_split([row["label"] for row in pool], k=16, seed=seed)
    assert [pool[row] for row in train] == rows_of(folder / f"16-{seed}" / "train.jsonl.gz")
    assert [pool[row] for row in dev] == rows_of(folder / f"16-{seed}" / "dev.jsonl.gz")


def test_dev_takes_what_is_left():
    train, dev = k_shot_split(["a"] * 5 + ["b"] * 3, k=3, seed=0)
    assert len(train) == 6
    assert len(dev) == 2
    assert set(dev.tolist()) <= set(range(5))
    assert not set(train.tolist()) & set(dev.tolist())


def test_a_class_may_have_a_count_of_its_own():
    labels = ["a", "b"] * 50
    train, dev = unbalanced_split(labels, {"a": 8, "b": 24}, seed=13)
    for split in (train, dev):
        assert Counter(labels[row] for row in split) == {"a": 8, "b": 24}
    assert len({*train.tolist(), *dev.tolist()}) == 64


def test_equal_counts_are_a_k_shot_split():
    labels = ["a", "b", "c"] * 20
    balanced = k_shot_split(labels, 5, seed=21)
    unbalanced = unbalanced_split(labels, {"c": 5, "b": 5, "a": 5}, seed=21)
    np.testing.assert_array_equal(balanced, unbalanced)


def test_a_count_of_zero_leaves_a_class_out():
    train, dev = unbalanced_split(["a", "b"] * 3, {"a": 1, "b": 0}, seed=0)
    assert {*train.tolist(), *dev.tolist()} <= {0, 2, 4}


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"a": 1}, "give each class a count"),
        ({"a": 1, "b": 1, "c": 1}, "give each class a count"),
        ({"a": 1, "b": -1}, "cannot be negative"),
        ({"a": 0, "b": 0}, "All counts are zero"),
        ({"a": 1, "b": 4}, "Class 'b' has 3 rows, too few for 4"),
    ],
)
def test_counts_must_fit_the_classes(counts, message):
    with pytest.raises(CPTuningError, match=message):
        unbalanced_split(["a", "b"] * 3, counts, seed=0)


def test_equal_labels_of_different_types_are_not_merged_in_a_split():
    with pytest.raises(CPTuningError, match="1 and True are equal"):
        k_shot_split([1, True, 1, True], 1, seed=0)


@given(
    labels=st.lists(st.sampled_from("abc"), min_size=2, max_size=60),
    data=st.data(),
    seed=st.integers(0, 1000),
)
def test_folds_spread_every_class_and_the_whole_evenly(labels, data, seed):
    n_folds = data.draw(st.integers(2, min(len(labels), 10)))
    folds = stratified_folds(labels, n_folds, seed)
    groups = [folds, *(folds[np.array(labels) == label] for label in set(labels))]
    for group in groups:
        sizes = np.bincount(group, minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


def test_folds_depend_on_the_seed_alone():
    labels = ["a", "b"] * 20
    folds = stratified_folds(labels, 4, seed=1)
    np.testing.assert_array_equal(folds, stratified_folds(labels, 4, seed=1))
    assert (folds != stratified_folds(labels, 4, seed=2)).any()


@pytest.mark.parametrize("n_folds", [1, 4])
def test_there_are_no_more_folds_than_rows(n_folds):
    with pytest.raises(CPTuningError, match="use 2 to 3"):
        stratified_folds(["a", "b", "a"], n_folds, seed=0)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    most=st.integers(1, 80),
    seed=st.integers(0, 99),
)
def test_a_sample_has_some_of_each_class_in_about_their_shares(sizes, most, seed):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rows = stratified_sample(labels, most, seed)
    assert rows.tolist() == sorted(set(rows.tolist()))
    share = min(1, most / len(labels))
    for code, size in enumerate(sizes):
        taken = np.sum(labels[rows] == code)
        assert max(1, size * share) <= taken + 1e-9 < size * share + 1
