"""On the paper's own data: the embedded backbone learns from 16 examples a class."""

import os

import numpy as np
import pytest

from cptuning import CPTuningClassifier
from cptuning.data import load_dataset_split
from cptuning.inference import auroc, familiarity

pytestmark = pytest.mark.skipif(
    "CPTUNING_DATA" not in os.environ, reason="CPTUNING_DATA does not name the data sets' folder"
)


def some(examples, labels, n):
    rows = np.random.default_rng(0).permutation(len(examples))[:n]
    return examples.take(rows), [labels[i] for i in rows]


# Far below what is measured (86 and 91 %), far above chance: a floor that only a defect breaks.
@pytest.mark.parametrize(("name", "floor"), [("SST-2", 0.65), ("SUBJ", 0.78)])
def test_sixteen_examples_a_class_are_enough_to_be_far_above_chance(name, floor):
    split = load_dataset_split(name, seed=42)
    classifier = CPTuningClassifier(steps=20, random_state=42, verbose=False)
    classifier.fit(split.train, split.train_labels, split.dev, split.dev_labels)
    assert classifier.score(*some(split.test, split.test_labels, 300)) > floor
    kept, untrained = classifier.history_.best, classifier.history_.scores[0]
    assert kept.accuracy >= untrained.accuracy - untrained.error  # the default's rule


def test_training_pays_with_more_than_two_classes():
    split = load_dataset_split("TREC", seed=13)
    test, labels = some(split.test, split.test_labels, 300)
    untrained, trained = (
        CPTuningClassifier(steps=steps, validation="none", random_state=13, verbose=False)
        .fit(split.train, split.train_labels)
        .score(test, labels)
        for steps in (0, None)
    )
    assert trained > untrained + 0.04


def test_queries_of_no_class_are_farther_away_than_others():
    split = load_dataset_split("CLINC150", k=2, seed=13)
    inside = [i for i, label in enumerate(split.train_labels) if label != "oos"]
    classifier = CPTuningClassifier(steps=0, validation="none", verbose=False)
    classifier.fit(split.train.take(inside), [split.train_labels[i] for i in inside])
    test, labels = some(split.test, split.test_labels, 600)
    near = familiarity(classifier.transform(test), classifier.predictor_.support)
    known = np.array(labels) != "oos"
    assert auroc(near[known], near[~known]) > 0.6
