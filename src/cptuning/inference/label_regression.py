"""Ridge regression of all labels of a multi-label task, with exact leave-one-out answers."""

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cptuning.data import strata, stratified_sample
from cptuning.inference.label_calibration import LabelCalibration
from cptuning.inference.leave_one_out import MOST_ANSWERS, Trial, strongest_equal

if TYPE_CHECKING:
    from cptuning.inference.scoring import Scores
    from cptuning.inference.support import IntArray

Floats = NDArray[np.floating]
Matrix = NDArray[np.float64]

PENALTIES = (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
"""What the penalty is chosen from, in units of the mean eigenvalue of the scatter."""

# Eigenvalues and spreads below this share of the number of rows are rounding.
_NO_SPREAD = 1e-10
# A leave-one-out residual is divided by 1 - h, which only a row that spans a direction of its own
# takes near 0.
_LEAST_REST = 1e-9


@dataclass(frozen=True)
class LabelFunctions:
    """One linear function of the embedding per label: its score."""

    directions: Matrix
    offsets: Matrix

    def scores(self, queries: Floats) -> "Scores":
        """One row per query and one column per label; 0 is the score of the mean example."""
        return np.asarray(queries @ self.directions.T + self.offsets)

    def for_classes(self, n_classes: int) -> "LabelFunctions":
        """The same for more labels, of which the last have no examples yet."""
        more = n_classes - len(self.offsets)
        return LabelFunctions(
            np.pad(self.directions, ((0, more), (0, 0))), np.pad(self.offsets, (0, more))
        )


@dataclass(frozen=True)
class LabelTrial(Trial):
    """Leave-one-out answers with one penalty, and the calibration that they are judged with."""

    calibration: LabelCalibration


class LabelRegression:
    """Ridge regression of the 0/1 column of each label on the embedding, for every penalty at once.

    With x̄ and ȳ the weighted means, S = Σ wᵢ (xᵢ - x̄)(xᵢ - x̄)ᵀ and a penalty λ = r tr(S) / d,
    the answer for a label is the least-squares fit

        f(x) = ȳ + (x - x̄)ᵀ (S + λ I)⁻¹ Σ wᵢ (xᵢ - x̄)(yᵢ - ȳ).

    Its score is λ (f(x) - ȳ) / (n v ȳ (1 - ȳ)), with n the sum of the weights and v = tr(S) / n.
    So scores are of the order of 1 whatever the encoder, are comparable between rare and frequent
    labels, and become (x - x̄)ᵀ(μ₁ - μ₀) / v for large penalties, with μ₁ and μ₀ the means of the
    rows with the label and of those without. All labels share one eigendecomposition. A row without
    any label is an example of what none of them is like.

    Leaving row i out takes its residual eᵢ to eᵢ / (1 - hᵢ), with hᵢ its leverage, at the same λ
    and v: these answers are those of refits.

    >>> rows = np.array([[0.8, 0.6], [0.8, -0.6], [0.6, 0.8], [0.6, -0.8]])
    >>> sets = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    >>> regression = LabelRegression(rows, sets)
    >>> (regression.discriminants(penalty=1.0).scores(rows) > 0).astype(int).tolist()
    [[1, 0], [0, 1], [1, 0], [0, 1]]
    """

    def __init__(
        self, embeddings: Floats, labels: "IntArray", weights: Floats | None = None
    ) -> None:
        self.labels = labels
        self.weights = np.ones(len(labels)) if weights is None else weights.astype(np.float64)
        self._embeddings = embeddings
        self._weight = float(self.weights.sum())
        self._centre = self.weights @ embeddings / self._weight
        self._shares = self.weights @ labels / self._weight
        centred = embeddings.astype(np.float64) - self._centre
        self._values, self._basis = _eigenbasis(np.sqrt(self.weights)[:, None] * centred)
        self._coordinates = centred @ self._basis
        trace = float(self._values.sum())
        self._target = trace / embeddings.shape[1] if trace > 0 else 1.0
        self._variance = trace / self._weight if trace > 0 else 1.0
        # Σ wᵢ (xᵢ - x̄)(yᵢ - ȳ): the weighted rows add up to zero, so ȳ may be left out.
        self._moments = (self.weights[:, None] * self._coordinates).T @ labels

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return int(self.labels.shape[1])

    @cached_property
    def left_out(self) -> "IntArray":
        """The rows that can be left out: all of them, if there are two."""
        return np.arange(len(self.labels) if len(self.labels) > 1 else 0)

    @cached_property
    def shrinkage(self) -> float:
        """The penalty that leave-one-out answers choose, each judged by its calibrated log-loss.

        It is the largest one whose log-loss is within a standard error of the least one.
        """
        if len(self.left_out) == 0:
            return PENALTIES[0]
        return strongest_equal(self.trials)

    @property
    def best(self) -> LabelTrial:
        """The trial with the least mean log-loss."""
        return min(self.trials.values(), key=attrgetter("mean_loss"))

    @property
    def least_loss(self) -> float:
        """The mean log-loss of the best leave-one-out answers; 0 if nothing can be left out."""
        return self.best.mean_loss if len(self.left_out) else 0.0

    @cached_property
    def trials(self) -> dict[float, LabelTrial]:
        """How well each penalty answers rows that are left out."""
        rows = self.left_out
        rows = rows[stratified_sample(strata(self.labels[rows]), MOST_ANSWERS, seed=0)]
        labels, weights = self.labels[rows], self.weights[rows]
        trials = {}
        for penalty in PENALTIES:
            scores = self.leave_one_out(penalty, rows)
            calibration = LabelCalibration.fit(scores, labels, weights)
            losses = calibration.log_losses(scores, labels)
            errors = (calibration.given(scores) != labels).any(axis=1).astype(np.float64)
            trials[penalty] = LabelTrial(
                calibration.temperature, losses, errors, weights, calibration
            )
        return trials

    @property
    def calibration(self) -> LabelCalibration:
        """That of the leave-one-out answers with the chosen penalty."""
        if len(self.left_out) == 0:
            return LabelCalibration(1.0, np.zeros(self.n_classes), 0.5)
        return self.trials[self.shrinkage].calibration

    def restricted(self, rows: "IntArray") -> "LabelRegression":
        """The regression of some of the rows alone."""
        return LabelRegression(self._embeddings[rows], self.labels[rows], self.weights[rows])

    def discriminants(self, penalty: float) -> LabelFunctions:
        """The score of each label as a function of the embedding."""
        strength = penalty * self._target
        inner = self._moments / (self._values + strength)[:, None]
        spread = self._shares * (1 - self._shares)
        scales = strength / (self._weight * self._variance * np.where(spread > 0, spread, 1.0))
        directions = (self._basis @ inner * scales).T
        return LabelFunctions(directions, -directions @ self._centre)

    def leave_one_out(self, penalty: float, rows: "IntArray | None" = None) -> "Scores":
        """The scores of some rows, or all, each by a fit to all other rows.

        The penalty is given; one that was chosen by these very answers makes them a little too
        good: see :class:`~cptuning.inference.choice.LeaveOneOut`.
        """
        rows = self.left_out if rows is None else rows
        strength = penalty * self._target
        x, y, w = self._coordinates[rows], self.labels[rows], self.weights[rows]
        shrunk = x / (self._values + strength)
        fitted = self._shares + shrunk @ self._moments
        leverages = w * (1 / self._weight + (shrunk * x).sum(axis=1))
        answers = y - (y - fitted) / np.maximum(1 - leverages, _LEAST_REST)[:, None]
        rest = (self._weight - w)[:, None]
        shares = (self._weight * self._shares - w[:, None] * y) / rest
        spread = shares * (1 - shares)
        has_both = spread > _NO_SPREAD
        scales = strength / (rest * self._variance * np.where(has_both, spread, 1.0))
        return np.where(has_both, scales * (answers - shares), 0.0)


def _eigenbasis(rows: Matrix) -> tuple[Matrix, Matrix]:
    """The eigenvalues of the scatter that are not zero, and their eigenvectors as columns."""
    n, d = rows.shape
    values, vectors = np.linalg.eigh(rows @ rows.T if n < d else rows.T @ rows)
    kept = values > max(values[-1], _NO_SPREAD) * max(n, d) * np.finfo(np.float64).eps
    values, vectors = values[kept], vectors[:, kept]
    return values, rows.T @ vectors / np.sqrt(values) if n < d else vectors
