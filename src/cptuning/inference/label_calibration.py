"""From the scores of labels to their probabilities, and from which probability one is given."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cptuning.inference.scoring import Scores
    from cptuning.inference.support import IntArray

Floats = NDArray[np.float64]

_MOST_STEPS = 100
_SMALL_STEP = 1e-9
# Of the slope 1 / T and of the biases: so that a fit to a handful of examples has an answer.
_RIDGE = 1e-6
_LEAST_SLOPE = 1e-3
_LEAST_THRESHOLD = 1e-6
_UNINFORMED = 0.5


@dataclass(frozen=True)
class LabelCalibration:
    """How likely a label is by its score s, and from which probability on it is given.

    The probability of label c is 1 / (1 + exp(b_c - s / T)), with one temperature T for all labels
    and a bias b_c for each. A label is given if its probability is at least the threshold. By its
    bias, each label has a threshold of its own for scores.

    >>> calibration = LabelCalibration(0.5, np.array([0.0, 2.0]), threshold=0.5)
    >>> calibration.probabilities(np.array([[0.0, 1.0]])).tolist()
    [[0.5, 0.5]]
    """

    temperature: float
    biases: Floats
    threshold: float

    @classmethod
    def fit(
        cls,
        scores: "Scores",
        labels: "IntArray",
        weights: Floats | None = None,
        temperature: float | None = None,
    ) -> "LabelCalibration":
        """The calibration under which the labels of held-out examples are the most likely.

        A label with p examples has the target (p + 1) / (p + 2) where it is set and 1 / (q + 2) in
        the q rows where it is not, as Platt has it, so that no answer is certain. The threshold is
        the one with the best F1 of all answers together (micro-F1): one for all labels, because few
        examples of a label say too little about one of its own. The temperature may be given.
        """
        weights = np.ones(len(scores)) if weights is None else weights
        slope = None if temperature is None else 1 / temperature
        slope, biases = _logistic(scores, _smoothed(labels, weights), weights, slope)
        shares = _sigmoid(slope * scores - biases)
        return cls(1 / slope, biases, best_threshold(shares, labels, weights))

    def probabilities(self, scores: "Scores") -> "Scores":
        """The probability of each label, one row per text."""
        return _sigmoid(scores / self.temperature - self.biases)

    def given(self, scores: "Scores") -> "IntArray":
        """Which labels are given, as a 0/1 matrix."""
        return (self.margins(scores) >= 0).astype(np.int64)

    def margins(self, scores: "Scores") -> "Scores":
        """How far each score is above the threshold of its label."""
        return np.asarray(scores - self.temperature * (self.biases + _logit(self.threshold)))

    def log_losses(self, scores: "Scores", labels: "IntArray") -> Floats:
        """The negative log-probability of each row's labels, as a mean over the labels."""
        logits = scores / self.temperature - self.biases
        return np.asarray(np.logaddexp(0.0, np.where(labels == 1, -logits, logits)).mean(axis=1))

    def take(self, columns: "IntArray") -> "LabelCalibration":
        """That of some of the labels."""
        return replace(self, biases=self.biases[columns])

    def extended(self, more: "LabelCalibration") -> "LabelCalibration":
        """The same with the biases of the labels that ``more`` has beyond these."""
        biases = np.concatenate([self.biases, more.biases[len(self.biases) :]])
        return replace(self, biases=biases)


def best_threshold(
    probabilities: "Scores", labels: "IntArray", weights: Floats | None = None
) -> float:
    """The threshold with the best micro-F1; it lies half-way between two of the probabilities.

    >>> best_threshold(np.array([[0.9, 0.5], [0.6, 0.2]]), np.array([[1, 0], [1, 0]]))
    0.55
    """
    weights = np.ones(len(labels)) if weights is None else weights
    flat, truth = probabilities.ravel(), labels.ravel() * np.repeat(weights, labels.shape[1])
    if not truth.any():
        return _UNINFORMED
    order = np.argsort(-flat, kind="stable")
    flat = flat[order]
    right = np.cumsum(truth[order])
    f1 = 2 * right / (np.cumsum(np.repeat(weights, labels.shape[1])[order]) + truth.sum())
    f1[:-1][flat[:-1] == flat[1:]] = 0.0  # Equal probabilities are on the same side.
    best = int(f1.argmax())
    below = flat[best + 1] if best + 1 < len(flat) else 0.0
    threshold = float(flat[best] + below) / 2
    return min(max(threshold, _LEAST_THRESHOLD), 1 - _LEAST_THRESHOLD)


def f1_per_row(given: "IntArray", labels: "IntArray") -> Floats:
    """The F1 of each row's label set; 1 where there is rightly none.

    >>> f1_per_row(np.array([[1, 1], [0, 0]]), np.array([[1, 0], [0, 0]])).round(2).tolist()
    [0.67, 1.0]
    """
    both = (given & labels).sum(axis=1)
    sizes = given.sum(axis=1) + labels.sum(axis=1)
    return np.where(sizes > 0, 2 * both / np.maximum(sizes, 1), 1.0)


def _smoothed(labels: "IntArray", weights: Floats) -> Floats:
    positive = weights @ labels
    negative = weights.sum() - positive
    return np.where(labels == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))


def _logistic(
    scores: "Scores", targets: Floats, weights: Floats, fixed: float | None
) -> tuple[float, Floats]:
    """The slope a and the biases b that minimise the log-loss of 1 / (1 + exp(b - a s)).

    Newton's method; of the Hessian only the row and the column of the slope have more than the
    diagonal. The slope may be fixed.
    """
    slope, biases = (1.0 if fixed is None else fixed), np.zeros(scores.shape[1])
    w = weights[:, None] / max(weights.sum(), _RIDGE)

    def loss(slope: float, biases: Floats) -> float:
        logits = slope * scores - biases
        fit = w * (np.logaddexp(0.0, logits) - targets * logits)
        return float(fit.sum() + _RIDGE * (slope**2 + (biases**2).sum()) / 2)

    now = loss(slope, biases)
    for _ in range(_MOST_STEPS):
        shares = _sigmoid(slope * scores - biases)
        error, curve = w * (shares - targets), w * shares * (1 - shares)
        of_biases = -error.sum(axis=0) + _RIDGE * biases
        diagonal = curve.sum(axis=0) + _RIDGE
        border = -(curve * scores).sum(axis=0)
        step = 0.0
        if fixed is None:
            of_slope = (error * scores).sum() + _RIDGE * slope
            corner = (curve * scores**2).sum() + _RIDGE - (border**2 / diagonal).sum()
            step = float(of_slope - (border * of_biases / diagonal).sum()) / max(corner, _RIDGE)
        steps = (of_biases - border * step) / diagonal
        size = 1.0
        while (new := loss(slope - size * step, biases - size * steps)) > now and size > _RIDGE:
            size /= 2
        slope, biases = slope - size * step, biases - size * steps
        if now - new < _SMALL_STEP:
            break
        now = new
    return max(slope, _LEAST_SLOPE), biases


def _sigmoid(logits: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0.0, -logits)))


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))
