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


def log_loss(scores: "Scores", labels: "IntArray", temperature: float) -> float:
    """The mean negative log-probability of the true classes.

    >>> round(log_loss(np.array([[1.0, 1.0]]), np.array([0]), temperature=1.0), 4)
    0.6931
    """
    return float(np.mean(log_losses(scores, labels, temperature)))


def log_losses(scores: "Scores", labels: "IntArray", temperature: float) -> "Scores":
    """The negative log-probability of the true class of each row.

    >>> log_losses(np.array([[1.0, 1.0], [9.0, 0.0]]), np.array([0, 0]), 1.0).round(4).tolist()
    [0.6931, 0.0001]
    """
    logits = scores / temperature
    return np.asarray(_log_sum_exp(logits) - logits[np.arange(len(labels)), labels])


def fit_temperature(scores: "Scores", labels: "IntArray") -> float:
    """The temperature under which held-out labels are the most likely.

    The scores must come from examples that the model did not train on. If a handful of examples
    are all answered correctly, the best temperature would be zero and every answer certain; one
    imagined half-right answer (a label smoothing of 1 / (n + 1)) keeps it modest.

    >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> warm = fit_temperature(scores, np.array([0, 1, 1]))    # one of three is wrong
    >>> cold = fit_temperature(scores, np.array([0, 1, 0]))    # all are right
    >>> cold < warm
    True
    """
    doubt = 1.0 / (len(scores) + 1)
    rows = np.arange(len(labels))
    wanted = (1 - doubt) * scores[rows, labels] + doubt * scores.mean(axis=1)

    def loss(log_temperature: float) -> float:
        temperature = float(np.exp(log_temperature))
        return float(np.mean(_log_sum_exp(scores / temperature) - wanted / temperature))

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
