"""From class scores to calibrated probabilities."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cptuning.inference.scoring import Scores
    from cptuning.inference.support import IntArray

_RANGE = (1e-3, 10.0)
_GOLDEN = (5**0.5 - 1) / 2


def softmax(scores: "Scores", temperature: float) -> "Scores":
    """Probabilities of the classes.

    >>> softmax(np.array([[1.0, 1.0]]), temperature=0.5).tolist()
    [[0.5, 0.5]]
    """
    logits = scores / temperature
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def prior_correction(
    class_prior: "Scores", training_prior: "Scores", temperature: float
) -> "Scores":
    """What to add to class scores for probabilities under another distribution of the classes.

    By Bayes' rule p'(c|x) ∝ p(c|x) π'(c) / π(c), with π the distribution that the scores assume.
    As p(c|x) ∝ exp(s / T), that is s'(c) = s(c) + T log(π'(c) / π(c)).

    >>> even = np.array([0.5, 0.5])
    >>> scores = np.array([[1.0, 0.0]]) + prior_correction(np.array([0.1, 0.9]), even, 1.0)
    >>> softmax(scores, 1.0).round(3).tolist()  # e : 1 becomes 0.1 e : 0.9
    [[0.232, 0.768]]
    """
    return np.asarray(temperature * np.log(class_prior / training_prior))


def log_loss(
    scores: "Scores", labels: "IntArray", temperature: float, weights: "Scores | None" = None
) -> float:
    """The mean negative log-probability of the true classes.

    >>> round(log_loss(np.array([[1.0, 1.0]]), np.array([0]), temperature=1.0), 4)
    0.6931
    """
    return float(np.average(log_losses(scores, labels, temperature), weights=weights))


def log_losses(scores: "Scores", labels: "IntArray", temperature: float) -> "Scores":
    """The negative log-probability of the true class of each row.

    >>> log_losses(np.array([[1.0, 1.0], [9.0, 0.0]]), np.array([0, 0]), 1.0).round(4).tolist()
    [0.6931, 0.0001]
    """
    logits = scores / temperature
    return np.asarray(_log_sum_exp(logits) - logits[np.arange(len(labels)), labels])


def fit_temperature(scores: "Scores", labels: "IntArray", weights: "Scores | None" = None) -> float:
    """The temperature under which held-out labels are the most likely.

    The scores must come from examples that the model did not train on. If a handful of examples
    are all answered correctly, the best temperature would be zero and every answer certain; one
    imagined half-right answer (a label smoothing of 1 / (n + 1)) keeps it modest. An answer with a
    weight counts as so many.

    >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> warm = fit_temperature(scores, np.array([0, 1, 1]))    # one of three is wrong
    >>> cold = fit_temperature(scores, np.array([0, 1, 0]))    # all are right
    >>> cold < warm
    True
    """
    weights = np.ones(len(scores)) if weights is None else weights
    doubt = 1.0 / (weights.sum() + 1)
    rows = np.arange(len(labels))
    wanted = (1 - doubt) * scores[rows, labels] + doubt * scores.mean(axis=1)

    def loss(log_temperature: float) -> float:
        temperature = float(np.exp(log_temperature))
        losses = _log_sum_exp(scores / temperature) - wanted / temperature
        return float(np.average(losses, weights=weights))

    # The loss is convex in 1/T, so it has one valley: golden-section search finds it.
    low, high = np.log(_RANGE)
    while high - low > 1e-4:
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if loss(left) <= loss(right) else (left, high)
    return float(np.exp((low + high) / 2))


def _log_sum_exp(logits: "Scores") -> "Scores":
    largest = logits.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1)))


def expected_calibration_error(confidence: "Scores", correct: np.ndarray, bins: int = 10) -> float:
    """The mean gap between confidence and accuracy over equal-width bins of confidence.

    >>> expected_calibration_error(np.array([0.8] * 5), np.array([1, 1, 1, 1, 0]))
    0.0...
    """
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        abs(confidence[which == b].mean() - correct[which == b].mean()) * np.mean(which == b)
        for b in np.unique(which)
    ]
    return float(np.sum(gaps))


def uncertainty(probabilities: "Scores") -> "Scores":
    """One minus the margin between the two likeliest classes: 1 if they are equally likely.

    >>> uncertainty(np.array([[0.5, 0.5], [0.75, 0.25]])).tolist()
    [1.0, 0.5]
    """
    if probabilities.shape[1] < 2:
        return np.zeros(len(probabilities))
    ordered = np.sort(probabilities, axis=1)
    return np.asarray(1.0 - (ordered[:, -1] - ordered[:, -2]))
