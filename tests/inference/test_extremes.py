"""Every inference and calibration at its extremes: finite scores, valid probabilities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cptuning.data import Examples
from cptuning.inference.calibration import fit_temperature, softmax
from cptuning.inference.closed_form import SHRINKAGES, DiscriminantAnalysis
from cptuning.inference.label_regression import LabelRegression
from cptuning.inference.scoring import class_scores
from cptuning.inference.support import SupportSet

INFERENCES = ("knn", "prototype", "unit-prototype", "lda")


def unit(n, d=8, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, d))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def alike(n, spread=0.0):
    rows = unit(1) + spread * unit(n)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


SUPPORTS = {
    "identical texts of several classes": (alike(6), [0, 0, 1, 1, 2, 2]),
    "collapsed but for rounding": (alike(6, 1e-7), [0, 0, 1, 1, 2, 2]),
    "collapsed but for less than rounding": (alike(6, 1e-20), [0, 0, 1, 1, 2, 2]),
    "collapsed classes apart": (np.repeat(unit(3), 2, axis=0), [0, 0, 1, 1, 2, 2]),
    "opposite directions": (np.concatenate([alike(3), -alike(3)]), [0, 1, 0, 1, 0, 1]),
    "one example per class": (unit(6), list(range(6))),
    "two examples": (unit(2), [0, 1]),
    "one class among many": (unit(101), [0] * 100 + [1]),
    "2000 classes": (unit(2000), list(range(2000))),
    "one dimension": (np.array([[1], [-1], [1], [-1]], np.float32), [0, 0, 1, 1]),
    "vectors of zeros": (np.zeros((4, 8), np.float32), [0, 0, 1, 1]),
}
every_support = pytest.mark.parametrize("support", SUPPORTS)


def check(probabilities):
    assert np.isfinite(probabilities).all()
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)


def support_set(rows, labels):
    return SupportSet(Examples(tuple(map(str, labels))), rows, np.array(labels))


@every_support
@pytest.mark.parametrize("inference", INFERENCES)
def test_probabilities_are_valid(support, inference):
    rows, labels = SUPPORTS[support]
    n_classes = max(labels) + 2  # The last one has no examples.
    found = support_set(rows, labels)
    queries = np.concatenate([rows[:3], -rows[:3], unit(3, rows.shape[1], seed=1)])
    scores = class_scores(queries, found, n_classes, inference, k=3)
    assert np.isfinite(scores).all()
    for temperature in (1e-6, 1.0, 1e6):
        check(softmax(scores, temperature))


@every_support
def test_leave_one_out_answers_and_their_calibration_are_finite(support):
    rows, labels = SUPPORTS[support]
    analysis = DiscriminantAnalysis(rows, np.array(labels))
    if not len(analysis.left_out):
        return
    assert 0 < analysis.shrinkage <= 1
    assert np.isfinite(analysis.least_loss)
    for shrinkage in (SHRINKAGES[0], SHRINKAGES[4], SHRINKAGES[-1]):
        scores = analysis.leave_one_out(shrinkage)
        assert np.isfinite(scores).all()
        temperature = fit_temperature(scores, np.array(labels)[analysis.left_out])
        assert np.isfinite(temperature)
        check(softmax(scores, temperature))


@every_support
def test_label_sets_are_answered_with_finite_scores(support):
    rows, labels = SUPPORTS[support]
    if max(labels) > 500:  # a matrix of millions
        rows, labels = rows[:500], labels[:500]
    sets = np.eye(max(labels) + 1, dtype=np.int64)[labels]
    sets[0] = 0
    regression = LabelRegression(rows, sets)
    assert np.isfinite(regression.discriminants(1.0).scores(rows)).all()
    if len(regression.left_out):
        assert np.isfinite(regression.leave_one_out(1.0)).all()
        probabilities = regression.calibration.probabilities(regression.leave_one_out(1.0))
        assert ((probabilities >= 0) & (probabilities <= 1)).all()


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=n, max_size=n
        )
    )
)
@settings(max_examples=60)
def test_a_temperature_is_found_for_any_scores(rows):
    scores = np.array(rows)
    temperature = fit_temperature(scores, np.arange(len(rows)) % 3)
    assert 0 < temperature < np.inf
    check(softmax(scores, temperature))


@pytest.mark.parametrize("scores", [np.zeros((4, 3)), np.full((4, 3), 1e300), np.eye(4) * 1e-300])
def test_scores_that_tell_nothing_give_a_temperature_too(scores):
    temperature = fit_temperature(scores, np.array([0, 1, 2, 0]))
    assert 0 < temperature < np.inf
    check(softmax(scores, temperature))
