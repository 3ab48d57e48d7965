"""Probabilities: that they sum to one, mean what they say, and are as likely as they can be."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cptuning.inference import expected_calibration_error, fit_temperature, log_loss, softmax
from cptuning.inference.calibration import prior_correction

VALUES = st.floats(-2, 2).map(lambda x: round(x, 3))


@st.composite
def scored(draw, max_size=12):
    n, classes = draw(st.integers(1, max_size)), draw(st.integers(2, 4))
    row = st.lists(VALUES, min_size=classes, max_size=classes)
    scores = np.array(draw(st.lists(row, min_size=n, max_size=n)))
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    return scores, np.array(labels)


@given(scored(), st.floats(1e-3, 100))
def test_probabilities_sum_to_one_and_keep_the_order_of_the_scores(data, temperature):
    scores, _ = data
    probabilities = softmax(scores, temperature)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (probabilities >= 0).all()
    for row, before in zip(probabilities, scores, strict=True):
        assert row[before.argmax()] == row.max()


def test_probabilities_by_hand():
    expected = [[math.exp(2) / (1 + math.exp(2)), 1 / (1 + math.exp(2))]]
    np.testing.assert_allclose(softmax(np.array([[1.5, 0.5]]), 0.5), expected)


@pytest.mark.parametrize("scores", [[1e6, -1e6], [-1e6, -1e6], [0.0, 0.0]])
def test_extreme_scores_stay_finite(scores):
    scores = np.array([scores])
    assert np.isfinite(softmax(scores, 1e-3)).all()
    assert math.isfinite(log_loss(scores, np.array([1]), 1e-3))


@given(scored(), st.floats(0.05, 10))
def test_log_loss_is_that_of_the_probabilities(data, temperature):
    scores, labels = data
    slow = [
        -math.log(math.exp(row[label] / temperature) / sum(math.exp(s / temperature) for s in row))
        for row, label in zip(scores, labels, strict=True)
    ]
    assert log_loss(scores, labels, temperature) == pytest.approx(np.mean(slow), abs=1e-9)


def smoothed_loss(scores, labels, temperature):
    """Cross-entropy with labels of which 1 / (n + 1) is spread over all classes."""
    n, classes = scores.shape
    doubt = 1 / (n + 1)
    wanted = np.full((n, classes), doubt / classes)
    wanted[np.arange(n), labels] += 1 - doubt
    logits = scores / temperature
    logits -= logits.max(axis=1, keepdims=True)
    return -(wanted * (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))).sum() / n


GRID = np.geomspace(1e-3, 10, 300)


@given(scored())
@example((np.array([[0.001, 0.0]]), np.array([0])))  # best below the coldest
@example((np.array([[0.9, 0.1]]), np.array([1])))  # best above the warmest
def test_no_temperature_on_a_fine_grid_is_better(data):
    scores, labels = data
    found = fit_temperature(scores, labels)
    assert 1e-3 <= found <= 10
    best = min(smoothed_loss(scores, labels, temperature) for temperature in GRID)
    assert smoothed_loss(scores, labels, found) <= best + 1e-4


@pytest.mark.parametrize("true_temperature", [0.05, 0.3, 1.0, 4.0])
def test_a_known_temperature_is_found_again(true_temperature):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40_000, 3)) * max(0.5, true_temperature)
    chances = softmax(scores, true_temperature).cumsum(axis=1)
    labels = (rng.random((len(scores), 1)) > chances).sum(axis=1)
    assert fit_temperature(scores, labels) == pytest.approx(true_temperature, rel=0.05)


def test_a_few_right_answers_do_not_make_every_answer_certain():
    scores, labels = np.array([[0.9, 0.1], [0.1, 0.9]] * 4), np.array([0, 1] * 4)
    probability = softmax(scores, fit_temperature(scores, labels)).max(axis=1)
    assert ((probability > 0.9) & (probability < 0.99)).all()


def test_the_more_answers_are_right_the_colder():
    def temperature(n):
        return fit_temperature(np.tile([0.9, 0.1], (n, 1)), np.zeros(n, dtype=np.int64))

    assert temperature(64) < temperature(16) < temperature(4)


def test_scores_that_say_nothing_get_the_highest_temperature():
    scores = np.array([[0.9, 0.1], [0.9, 0.1]])
    assert fit_temperature(scores, np.array([0, 1])) == pytest.approx(10, rel=0.01)


PREDICTIONS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


@given(PREDICTIONS, st.integers(1, 12))
@example([(1.0, False), (0.95, True)], 10)
def test_calibration_error_is_that_of_the_slow_loop(predictions, bins):
    confidence, correct = (np.array(column) for column in zip(*predictions, strict=True))
    expected = 0.0
    for b in range(bins):
        last = b + 1 == bins
        inside = [(c, r) for c, r in predictions if b <= c * bins < b + 1 or (c == 1 and last)]
        if inside:
            gap = np.mean([c for c, _ in inside]) - np.mean([r for _, r in inside])
            expected += abs(gap) * len(inside) / len(predictions)
    found = expected_calibration_error(confidence, correct, bins)
    assert found == pytest.approx(expected, abs=1e-9)


def test_calibration_error_of_the_certain():
    certain = np.ones(4)
    assert expected_calibration_error(certain, np.array([True] * 4)) == 0
    assert expected_calibration_error(certain, np.array([False] * 4)) == 1
    assert expected_calibration_error(certain, np.array([True, False] * 2)) == 0.5


def test_whole_weights_of_answers_count_as_copies():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(30, 3)), rng.integers(0, 3, 30)
    times = rng.integers(1, 4, 30)
    copies = np.repeat(scores, times, axis=0), np.repeat(labels, times)
    weights = times.astype(float)
    assert fit_temperature(scores, labels, weights) == pytest.approx(fit_temperature(*copies))
    found = log_loss(scores, labels, 0.7, weights)
    assert found == pytest.approx(log_loss(*copies, 0.7))
    ones = np.ones(30)
    assert fit_temperature(scores, labels, ones) == fit_temperature(scores, labels)
    assert log_loss(scores, labels, 0.7, ones) == log_loss(scores, labels, 0.7)


@pytest.mark.parametrize("temperature", [0.05, 1.0, 3.0])
def test_a_class_prior_is_bayes_rule(temperature):
    rng = np.random.default_rng(0)
    scores, old, new = rng.normal(size=(7, 4)), rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    before = softmax(scores, temperature)
    found = softmax(scores + prior_correction(new, old, temperature), temperature)
    for row in range(7):
        wanted = [before[row, c] * new[c] / old[c] for c in range(4)]
        np.testing.assert_allclose(found[row], np.array(wanted) / sum(wanted))
    same = scores + prior_correction(old, old, temperature)
    np.testing.assert_array_equal(same, scores)
