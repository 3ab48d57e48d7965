"""Figures agree with scikit-learn, and with sums done by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)

from cptuning.inference import expected_calibration_error
from cptuning.reporting.metrics import ConfusionMatrix, reliability, wilson_interval

LABELS = st.sampled_from(["a", "b", "c", "unknown"])
ANSWERS = st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=30)


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(ANSWERS)
def test_scores_are_those_of_scikit_learn(pairs):
    truth, answers = map(list, zip(*pairs, strict=True))
    confusion = ConfusionMatrix.of(truth, answers)
    assert confusion.accuracy == accuracy_score(truth, answers)
    assert confusion.macro_f1 == pytest.approx(f1_score(truth, answers, average="macro"))
    counts = confusion_matrix(truth, answers, labels=list(confusion.classes))
    assert confusion.counts.tolist() == counts.tolist()
    scores = precision_recall_fscore_support(
        truth, answers, labels=list(confusion.classes), zero_division=0
    )
    ours = [(s.precision, s.recall, s.f1, s.support) for s in confusion.by_class()]
    np.testing.assert_allclose(ours, np.transpose(scores))


def test_classes_stand_in_the_models_order_and_absent_ones_are_left_out():
    confusion = ConfusionMatrix.of(["x", "b"], ["b", "b"], order=["a", "b"])
    assert confusion.classes == ("b", "x")


def test_majority_counts_the_true_labels_not_the_answers():
    assert ConfusionMatrix.of(["a", "a", "b"], ["b", "b", "b"]).majority == pytest.approx(2 / 3)


def test_mistakes_come_most_frequent_first():
    confusion = ConfusionMatrix.of(["a", "a", "b", "b", "b"], ["b", "a", "a", "a", "b"])
    assert confusion.mistakes() == [("b", "a", 2), ("a", "b", 1)]


@pytest.mark.parametrize(
    ("right", "n", "expected"),
    # From Newcombe (1998), "Two-sided confidence intervals for the single proportion", method 3.
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_wilson_interval_matches_published_values(right, n, expected):
    assert wilson_interval(right, n) == pytest.approx(expected, abs=5e-5)


def test_wilson_interval_of_all_right_ends_at_one_and_of_nothing_says_nothing():
    low, high = wilson_interval(20, 20)
    assert 0.8 < low < 0.85
    assert high == 1.0
    assert wilson_interval(0, 0) == (0.0, 1.0)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_the_reliability_bins_add_up_to_the_calibration_error(pairs):
    confidence = np.array([p for p, _ in pairs])
    right = np.array([r for _, r in pairs])
    bins = reliability(confidence, right)
    assert sum(b.n for b in bins) == len(pairs)
    error = sum(b.n * abs(b.confidence - b.accuracy) for b in bins) / len(pairs)
    assert error == pytest.approx(expected_calibration_error(confidence, right))
