"""Whether exports of a model answer a whole test set of the paper as torch does."""

import os

import pytest

from benchmarks.agreement import agreements
from cptuning import CPTuningClassifier
from cptuning.data import PAPER_DATASETS, load_dataset_split

# The tests are two files that take about as long: two workers share them.
SECOND_HALF = ("MRPC", "QNLI")
FIRST_HALF = tuple(name for name in PAPER_DATASETS if name not in SECOND_HALF)
TEXTS = dict.fromkeys(("MR", "CR", "SUBJ"), 2000) | {
    "SST-2": 872,
    "MRPC": 408,
    "QQP": 3000,
    "QNLI": 5463,
    "RTE": 277,
}
needs_data = pytest.mark.skipif(
    "CPTUNING_DATA" not in os.environ, reason="CPTUNING_DATA does not name the data sets' folder"
)


def check_exports(name, folder):
    """Train on a few examples, export in both precisions, and compare all answers."""
    texts = TEXTS[name]
    split = load_dataset_split(name, seed=13)
    classifier = CPTuningClassifier(validation="none", random_state=13, verbose=False)
    classifier.fit(split.train, split.train_labels)
    found = dict(agreements(classifier, split.test, folder))
    for agreement in found.values():
        assert agreement.texts == texts
        assert agreement.ties < texts / 100
    assert found["float32"].other_labels == 0
    assert found["float32"].cosine > 1 - 1e-5
    assert found["int8"].share >= 0.99
    assert found["int8"].cosine > 0.99
