"""Exported models on four of the paper's test sets: torch's labels, also in 8 bits.

The first 400 texts of each; ``benchmarks.agreement`` reads all eight sets whole.
"""

import os

import pytest

from benchmarks.agreement import agreements
from cptuning import CPTuningClassifier
from cptuning.data import load_dataset_split

TEXTS = {"MRPC": 400, "SST-2": 400, "CR": 400, "RTE": 277}
needs_data = pytest.mark.skipif(
    "CPTUNING_DATA" not in os.environ, reason="CPTUNING_DATA does not name the data sets' folder"
)
# Each a group of its own: workers that share them finish together.
EACH_APART = [
    pytest.param(name, marks=pytest.mark.xdist_group(f"labels of {name}")) for name in TEXTS
]


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("name", EACH_APART)
def test_an_export_has_the_labels_of_torch(name, tmp_path):
    split = load_dataset_split(name, seed=13)
    classifier = CPTuningClassifier(validation="none", random_state=13, verbose=False)
    classifier.fit(split.train, split.train_labels)
    found = dict(agreements(classifier, split.test.take(range(TEXTS[name])), tmp_path))
    for agreement in found.values():
        assert agreement.texts == TEXTS[name]
        assert agreement.ties < TEXTS[name] / 100
    assert found["float32"].other_labels == 0
    assert found["float32"].cosine > 1 - 1e-5
    assert found["int8"].share >= 0.99
    assert found["int8"].cosine > 0.99
