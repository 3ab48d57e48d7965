"""Exported models on the paper's test sets: torch's labels, also in 8 bits.

The small sets whole, of the others the first 1,000 texts; ``benchmarks.agreement`` reads all.
"""

import os

import pytest

from benchmarks.agreement import agreements
from cptuning import CPTuningClassifier
from cptuning.data import PAPER_DATASETS, load_dataset_split

MOST_TEXTS = 1000
TEXTS = dict.fromkeys(("MR", "CR", "SUBJ", "QQP", "QNLI"), MOST_TEXTS) | {
    "SST-2": 872,
    "MRPC": 408,
    "RTE": 277,
}
needs_data = pytest.mark.skipif(
    "CPTUNING_DATA" not in os.environ, reason="CPTUNING_DATA does not name the data sets' folder"
)
# The largest first, and each a group of its own: workers that share them finish together.
EACH_APART = [
    pytest.param(name, marks=pytest.mark.xdist_group(f"labels of {name}"))
    for name in sorted(PAPER_DATASETS, key=lambda name: -TEXTS[name])
]


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("name", EACH_APART)
def test_an_export_has_the_labels_of_torch(name, tmp_path):
    split = load_dataset_split(name, seed=13)
    classifier = CPTuningClassifier(validation="none", random_state=13, verbose=False)
    classifier.fit(split.train, split.train_labels)
    texts = split.test.take(range(min(MOST_TEXTS, len(split.test))))
    found = dict(agreements(classifier, texts, tmp_path))
    for agreement in found.values():
        assert agreement.texts == TEXTS[name]
        assert agreement.ties < TEXTS[name] / 100
    assert found["float32"].other_labels == 0
    assert found["float32"].cosine > 1 - 1e-5
    assert found["int8"].share >= 0.99
    assert found["int8"].cosine > 0.99
