"""Ridge regression of label sets: its formula, exact leave-one-out answers, calibration."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score

from cptuning.inference.label_calibration import LabelCalibration, best_threshold, f1_per_row
from cptuning.inference.label_regression import PENALTIES, LabelRegression


@st.composite
def label_sets(draw):
    """Rows, their label sets, and weights; n may be below or above d."""
    n, d = draw(st.integers(3, 9)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    labels = rng.integers(0, 2, (n, 3))
    weights = rng.integers(1, 4, n).astype(float) if draw(st.booleans()) else np.ones(n)
    return rng.normal(size=(n, d)), labels, weights


def refit(regression, x, y, w, penalty):
    """The score of any row by scikit-learn's ridge regression, at the λ and v of ``regression``."""
    centred = x_all_centred(regression)
    trace = float((regression.weights[:, None] * centred**2).sum())
    strength, variance = penalty * trace / x.shape[1], trace / regression.weights.sum()
    shares = np.average(y, axis=0, weights=w)
    spread = shares * (1 - shares)
    fitted = Ridge(alpha=strength).fit(x, y, sample_weight=w)
    scale = strength / (w.sum() * variance * np.where(spread > 0, spread, 1))
    return lambda query: np.where(spread > 0, scale * (fitted.predict(query) - shares), 0)


def x_all_centred(regression):
    rows = regression._embeddings
    return rows - np.average(rows, axis=0, weights=regression.weights)


@given(label_sets(), st.sampled_from(PENALTIES))
@settings(max_examples=30)
def test_scores_are_those_of_ridge_regression(data, penalty):
    x, y, w = data
    regression = LabelRegression(x, y, w)
    queries = np.random.default_rng(1).normal(size=(4, x.shape[1]))
    np.testing.assert_allclose(
        regression.discriminants(penalty).scores(queries),
        refit(regression, x, y, w, penalty)(queries),
        rtol=1e-6,
        atol=1e-8,
    )


@given(label_sets(), st.sampled_from(PENALTIES))
@settings(max_examples=30)
def test_leave_one_out_answers_are_those_of_refits(data, penalty):
    x, y, w = data
    regression = LabelRegression(x, y, w)
    found = regression.leave_one_out(penalty)
    for row in range(len(x)):
        rest = np.arange(len(x)) != row
        without = refit(regression, x[rest], y[rest], w[rest], penalty)
        np.testing.assert_allclose(found[row], without(x[[row]])[0], rtol=1e-5, atol=1e-7)


@given(label_sets(), st.sampled_from(PENALTIES))
@settings(max_examples=20)
def test_whole_weights_count_as_copies(data, penalty):
    x, y, w = data
    copies = np.repeat(np.arange(len(x)), w.astype(int))
    weighted = LabelRegression(x, y, w).discriminants(penalty)
    copied = LabelRegression(x[copies], y[copies]).discriminants(penalty)
    np.testing.assert_allclose(weighted.scores(x), copied.scores(x), rtol=1e-6, atol=1e-8)


def test_a_large_penalty_compares_the_means_with_and_without_a_label():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 4)), rng.integers(0, 2, (20, 2))
    regression = LabelRegression(x, y)
    variance = float(((x - x.mean(axis=0)) ** 2).sum() / 20)
    for label in range(2):
        difference = x[y[:, label] == 1].mean(axis=0) - x[y[:, label] == 0].mean(axis=0)
        expected = (x - x.mean(axis=0)) @ difference / variance
        found = regression.discriminants(1e9).scores(x)[:, label]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_texts_without_labels_are_data():
    rng = np.random.default_rng(0)
    liked, none = rng.normal(2, 1, (8, 3)), rng.normal(-2, 1, (8, 3))
    x, y = np.concatenate([liked, none]), np.repeat([[1], [0]], 8, axis=0)
    regression = LabelRegression(x, y)
    scores = regression.discriminants(regression.shrinkage).scores(x)
    assert regression.calibration.given(scores).tolist() == y.tolist()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_collapsed_embeddings_and_few_rows_have_finite_answers(n):
    regression = LabelRegression(np.ones((n, 3)), np.ones((n, 2), int))
    scores = regression.discriminants(regression.shrinkage).scores(np.ones((2, 3)))
    assert np.isfinite(scores).all()
    assert np.isfinite(regression.calibration.probabilities(scores)).all()


def test_the_calibration_is_the_best_logistic_fit():
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    labels = (rng.random((200, 3)) < [0.1, 0.3, 0.6]).astype(int)
    scores = labels + rng.normal(size=(200, 3))
    found = LabelCalibration.fit(scores, labels)
    positive = labels.sum(axis=0)
    target = np.where(labels, (positive + 1) / (positive + 2), 1 / (200 - positive + 2))

    def loss(p):
        logits = p[0] * scores - p[1:]
        return (np.logaddexp(0, logits) - target * logits).sum() / 200

    best = minimize(loss, np.array([1.0, 0, 0, 0]), tol=1e-12).x
    assert 1 / found.temperature == pytest.approx(best[0], rel=1e-3)
    np.testing.assert_allclose(found.biases, best[1:], atol=1e-3)
    # The probabilities are right on average.
    np.testing.assert_allclose(found.probabilities(scores).mean(axis=0), positive / 200, atol=0.02)


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 3))
def test_the_threshold_has_the_best_micro_f1(seed, n, n_labels):
    rng = np.random.default_rng(seed)
    shares, labels = rng.integers(1, 6, (n, n_labels)) / 6, rng.integers(0, 2, (n, n_labels))
    assume(labels.any())
    found = best_threshold(shares, labels)
    f1 = f1_score(labels.ravel(), shares.ravel() >= found, zero_division=0)
    for other in np.arange(-1, 13) / 12:
        assert f1 >= f1_score(labels.ravel(), shares.ravel() >= other, zero_division=0) - 1e-12


def test_a_label_is_given_from_its_threshold_on():
    calibration = LabelCalibration(0.5, np.array([0.0, 3.0]), threshold=0.25)
    scores = np.linspace(-3, 3, 50)[:, None] * np.ones(2)
    given = calibration.probabilities(scores) >= 0.25
    assert calibration.given(scores).tolist() == given.astype(int).tolist()
    assert ((calibration.margins(scores) >= 0) == given).all()


def test_f1_of_a_row_is_that_of_scikit_learn_except_where_there_is_nothing_to_find():
    rng = np.random.default_rng(0)
    given, labels = rng.integers(0, 2, (50, 4)), rng.integers(0, 2, (50, 4))
    given[0] = labels[0] = 0
    expected = [f1_score(t, g, zero_division=1.0) for g, t in zip(given, labels, strict=True)]
    np.testing.assert_allclose(f1_per_row(given, labels), expected)
