"""Exported models on the paper's test sets: torch's own labels, and nearly always in 8 bits."""

import os

import numpy as np
import pytest

from benchmarks.agreement import compare, exports
from cptuning import CPTuningClassifier
from cptuning.data import PAPER_DATASETS, load_dataset_split

pytestmark = pytest.mark.skipif(
    "CPTUNING_DATA" not in os.environ, reason="CPTUNING_DATA does not name the data sets' folder"
)

ROWS = 300  # of each test set, RTE's 277 whole; python -m benchmarks.agreement compares all whole


@pytest.fixture(scope="module", params=PAPER_DATASETS)
def agreements(request, tmp_path_factory):
    """By precision, what the exports of a model that was trained on a set answer to its tests."""
    split = load_dataset_split(request.param, seed=13)
    classifier = CPTuningClassifier(validation="none", random_state=13, verbose=False)
    classifier.fit(split.train, split.train_labels)
    rows = np.random.default_rng(0).permutation(len(split.test))[:ROWS]
    exported = exports(classifier, tmp_path_factory.mktemp("exports"))
    return {
        precision: compare(classifier, model, split.test.take(rows))
        for precision, model in exported.items()
    }


def test_the_labels_are_those_of_torch(agreements):
    found = agreements["float32"]
    assert found.texts >= 277
    assert found.ties < found.texts / 4
    assert found.other_labels == 0
    assert found.cosine > 1 - 1e-5


def test_in_8_bits_99_of_100_labels_are_those_of_torch(agreements):
    found = agreements["int8"]
    assert found.share >= 0.99
    assert found.cosine > 0.99
