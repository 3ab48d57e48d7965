"""Exported models on the paper's test sets: torch's own labels, and nearly always in 8 bits."""

import os

import numpy as np
import pytest

from benchmarks.agreement import compare, exports
from cptuning import CPTuningClassifier
from cptuning.data import PAIR_DATASETS, PAPER_DATASETS, load_dataset_split

pytestmark = pytest.mark.skipif(
    "CPTUNING_DATA" not in os.environ, reason="CPTUNING_DATA does not name the data sets' folder"
)

ROWS = 250  # of each test set; python -m benchmarks.agreement compares them whole


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A classifier of texts and one of pairs, each with its exports."""
    found = {}
    for pair, name in ((False, "SST-2"), (True, "MRPC")):
        split = load_dataset_split(name, seed=13)
        classifier = CPTuningClassifier(steps=0, validation="none", verbose=False)
        classifier.fit(split.train, split.train_labels)
        found[pair] = (classifier, exports(classifier, tmp_path_factory.mktemp(name)))
    return found


@pytest.fixture(scope="module")
def agreements(models):
    found = {}
    for name in PAPER_DATASETS:
        classifier, exported = models[name in PAIR_DATASETS]
        test = load_dataset_split(name, seed=13).test
        rows = np.random.default_rng(0).permutation(len(test))[:ROWS]
        for precision, model in exported.items():
            found[name, precision] = compare(classifier, model, test.take(rows))
    return found


@pytest.mark.parametrize("name", PAPER_DATASETS)
def test_the_labels_are_those_of_torch(agreements, name):
    found = agreements[name, "float32"]
    assert found.texts == ROWS  # No test set is smaller.
    assert found.ties < ROWS / 4
    assert found.other_labels == 0
    assert found.cosine > 1 - 1e-5


@pytest.mark.parametrize("name", PAPER_DATASETS)
def test_in_8_bits_the_vectors_are_nearly_the_same(agreements, name):
    found = agreements[name, "int8"]
    assert found.cosine > 0.985
    assert found.other_labels <= 0.02 * ROWS  # No set falls apart.


def test_in_8_bits_nearly_all_labels_are_the_same(agreements):
    found = [agreements[name, "int8"] for name in PAPER_DATASETS]
    compared = sum(one.texts - one.ties for one in found)
    assert sum(one.other_labels for one in found) <= 0.01 * compared
