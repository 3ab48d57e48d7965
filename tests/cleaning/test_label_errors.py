"""Labels that are probably wrong: the mixture against a slow search, and planted errors."""

import math

import numpy as np
import pytest

from cptuning.cleaning import ErrorEstimate, label_errors
from cptuning.cleaning.label_errors import _SHARES, _TEMPERATURES
from cptuning.data import Examples, LabelSpace
from cptuning.inference import SupportSet
from cptuning.inference.closed_form import DiscriminantAnalysis


def slow_estimate(scores, labels):
    """The share and the temperature of the largest posterior, one number at a time."""
    best = (-math.inf, 0.0, 0.0)
    for temperature in _TEMPERATURES:
        shares = []
        for row, label in zip(scores, labels, strict=True):
            weights = [math.exp((score - max(row)) / temperature) for score in row]
            shares.append(min(max(weights[label] / sum(weights), 1e-12), 1 - 1e-12))
        for share in _SHARES:
            value = 5 * math.log(share) + 45 * math.log(1 - share)
            for p in shares:
                value += math.log((1 - share) * p + share * (1 - p) / (len(scores[0]) - 1))
            best = max(best, (value, temperature, share))
    return best[1:]


def blobs(n_classes=4, n_each=40, noise=0.8, wrong=0.1, seed=0):
    rng = np.random.default_rng(seed)
    true = np.repeat(np.arange(n_classes), n_each)
    embeddings = np.eye(n_classes, 12)[true] * 3 + noise * rng.normal(size=(len(true), 12))
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    planted = rng.choice(len(true), round(wrong * len(true)), replace=False)
    labels = true.copy()
    labels[planted] = (labels[planted] + rng.integers(1, n_classes, len(planted))) % n_classes
    texts = tuple(f"text {i}" for i in range(len(true)))
    support = SupportSet(Examples(texts), embeddings.astype(np.float32), labels)
    analysis = DiscriminantAnalysis(embeddings, labels)
    return support, analysis.leave_one_out(analysis.shrinkage), true, set(planted.tolist())


def test_share_and_temperature_are_those_of_a_slow_search():
    support, scores, _, _ = blobs(n_each=6)
    estimate = ErrorEstimate.of(scores, support.labels)
    assert (estimate.temperature, estimate.share) == pytest.approx(
        slow_estimate(scores, support.labels)
    )


def test_planted_errors_are_found_with_the_right_label_and_the_right_neighbours():
    support, scores, true, planted = blobs()
    space = LabelSpace(("a", "b", "c", "d"))
    found, estimate = label_errors(scores, np.arange(len(true)), support, space)
    reported = {error.row for error in found}
    assert len(reported & planted) >= 0.9 * len(planted)
    assert len(reported - planted) <= 0.1 * len(reported)
    assert estimate.share == pytest.approx(0.1, abs=0.04)
    for error in found:
        assert error.label == space.classes[support.labels[error.row]]
        assert all(space.classes[support.labels[row]] == error.suggestion for row in error.nearest)
    right = [e for e in found if e.row in planted]
    assert all(e.suggestion == space.classes[true[e.row]] for e in right)
    assert [e.probability for e in found] == sorted((e.probability for e in found), reverse=True)


def test_the_probabilities_are_as_good_as_they_promise():
    promised, kept = [], []
    for seed in range(12):
        support, scores, _, planted = blobs(noise=1.6, seed=seed)
        estimate = ErrorEstimate.of(scores, support.labels)
        promised += estimate.probabilities.tolist()
        kept += [row in planted for row in range(len(support))]
    promised, kept = np.array(promised), np.array(kept)
    for low, high in ((0.0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.0)):
        some = (promised >= low) & (promised <= high)
        assert some.sum() > 20
        assert kept[some].mean() == pytest.approx(promised[some].mean(), abs=0.15)


def test_good_labels_are_hardly_doubted():
    support, scores, _, _ = blobs(wrong=0.0)
    estimate = ErrorEstimate.of(scores, support.labels)
    assert estimate.share < 0.04
    assert (estimate.probabilities >= 0.5).mean() < 0.02


def test_only_the_rows_that_were_answered_are_judged():
    support, scores, true, _ = blobs()
    space = LabelSpace(("a", "b", "c", "d"))
    rows = np.flatnonzero(np.arange(len(true)) % 2)
    found, estimate = label_errors(scores[rows], rows, support, space)
    assert len(estimate.probabilities) == len(rows)
    assert found
    assert {error.row for error in found} <= set(rows.tolist())
