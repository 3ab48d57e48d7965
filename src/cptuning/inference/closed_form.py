"""Linear discriminant analysis in closed form, with exact leave-one-out answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cptuning.data import stratified_sample
from cptuning.inference.calibration import fit_temperature, log_losses

if TYPE_CHECKING:
    from cptuning.inference.scoring import Scores
    from cptuning.inference.support import IntArray

Floats = NDArray[np.floating]
Matrix = NDArray[np.float64]

SHRINKAGES = tuple(1 / (1 + ratio) for ratio in (0, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 100))
"""What the shrinkage is chosen from; 1 is the nearest class mean."""

MOST_ANSWERS = 2048
"""Choices are made by the answers to at most so many rows: more would hardly change them."""

# Log-losses that differ by less differ by rounding.
_SAME_LOSS = 1e-9
# If the mean squared distance of rows to their class means is below this, it is rounding.
_NO_SPREAD = 1e-10
# Rows that are computed with at a time.
_ROWS = 1024
# The best score of a row is at least 0, so a class without examples is never the best.
_ABSENT = -1.0


@dataclass(frozen=True)
class Discriminants:
    """One linear function of the embedding per class: its score."""

    directions: Matrix
    offsets: Matrix

    def scores(self, queries: Floats) -> "Scores":
        """One row per query; in a row, the scores of the classes with examples sum to zero."""
        return np.asarray(queries @ self.directions.T + self.offsets)

    def for_classes(self, n_classes: int) -> "Discriminants":
        """The same for more classes, of which the last have no examples yet."""
        more = n_classes - len(self.offsets)
        return Discriminants(
            np.pad(self.directions, ((0, more), (0, 0))),
            np.pad(self.offsets, (0, more), constant_values=_ABSENT),
        )


@dataclass(frozen=True)
class Trial:
    """Leave-one-out answers with one shrinkage: their best temperature, and log-losses at it."""

    temperature: float
    losses: Matrix


@dataclass(frozen=True)
class _Projected:
    """What the scores of some rows need that is the same for every shrinkage."""

    labels: "IntArray"
    residual_squares: Matrix
    """The squared distance of each row to its class mean."""
    squares: Matrix
    """That to the centre."""
    distances: Matrix
    """That to each class mean."""
    coordinates: Matrix
    """The row in the eigenbasis."""


class DiscriminantAnalysis:
    """Linear discriminant analysis (LDA) of labelled embeddings, for every shrinkage at once.

    The score of a class is minus half the squared distance to its mean μ under the metric
    P = γ t ((1 - γ) S + γ t I)⁻¹. S is the scatter of the rows about their class means, t its mean
    eigenvalue, and γ the shrinkage. With γ = 1 the nearest mean wins; the smaller γ is, the less
    do directions count in which examples of one class differ. All classes are equally likely a
    priori. A mean of n rows is too long by tr(P Σ) / n on average, with Σ the covariance within
    classes; this is subtracted, so that a class of one example competes fairly with large ones.
    Last, the scores of a row are centred and divided by the mean squared distance of all rows to
    their centre, so that they are of the order of 1 whatever the encoder.

    P is the identity except in the directions that S spans. So one eigendecomposition, in the
    smaller of the two dimensions, gives P for every γ, and leaving a row out is an update of rank
    one.

    >>> rows, labels = np.array([[0.8, 0.6], [0.8, -0.6], [0.6, 0.8], [0.6, -0.8]]), [0, 0, 1, 1]
    >>> lda = DiscriminantAnalysis(rows, np.array(labels))
    >>> lda.discriminants(shrinkage=0.5).scores(rows).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    def __init__(self, embeddings: Floats, labels: "IntArray") -> None:
        self.labels = labels
        self.counts = np.bincount(labels)
        self._embeddings = embeddings
        self._present = np.flatnonzero(self.counts)
        sums = np.zeros((len(self.counts), embeddings.shape[1]))
        for part in _blocks(len(labels)):
            np.add.at(sums, labels[part], embeddings[part].astype(np.float64))
        self._centre = sums.sum(axis=0) / len(labels)
        self._means = sums / np.maximum(self.counts, 1)[:, None]
        self._means[self._present] -= self._centre
        squares = [(self._residuals(part) ** 2).sum(axis=1) for part in _blocks(len(labels))]
        self._squares = np.concatenate(squares)
        self._spread = float(self._squares.sum())
        self._total = self._spread + float(self.counts @ (self._means**2).sum(axis=1))
        self._eigenvalues, self._basis = self._eigenbasis()

    @cached_property
    def left_out(self) -> "IntArray":
        """The rows that can be left out: all but those that are alone in their class."""
        return np.flatnonzero(self.counts[self.labels] > 1)

    @cached_property
    def shrinkage(self) -> float:
        """The shrinkage that leave-one-out answers choose, each judged at its best temperature.

        It is the largest one whose log-loss is within a standard error of the least one: a few
        examples can't tell more from chance. It is 1 if nothing can be left out.
        """
        if len(self.left_out) == 0:
            return SHRINKAGES[0]
        losses = np.stack([trial.losses for trial in self.trials.values()])
        excess = losses - losses[losses.mean(axis=1).argmin()]
        errors = excess.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
        return SHRINKAGES[int((excess.mean(axis=1) <= errors + _SAME_LOSS).argmax())]

    @property
    def least_loss(self) -> float:
        """The mean log-loss of the best leave-one-out answers; 0 if nothing can be left out."""
        if len(self.left_out) == 0:
            return 0.0
        return min(float(trial.losses.mean()) for trial in self.trials.values())

    @cached_property
    def trials(self) -> "dict[float, Trial]":
        """How well each shrinkage answers rows that are left out."""
        rows = self.left_out
        if len(rows) == 0:
            return dict.fromkeys(SHRINKAGES, Trial(1.0, np.empty(0)))
        rows = rows[stratified_sample(self.labels[rows], MOST_ANSWERS, seed=0)]
        parts = [self._projected(rows[part]) for part in _blocks(len(rows))]
        trials = {}
        for shrinkage in SHRINKAGES:
            scores, labels = self._left_out_scores(parts, shrinkage), self.labels[rows]
            temperature = fit_temperature(scores, labels)
            trials[shrinkage] = Trial(temperature, log_losses(scores, labels, temperature))
        return trials

    def restricted(self, rows: "IntArray") -> "DiscriminantAnalysis":
        """The analysis of some of the rows alone."""
        return DiscriminantAnalysis(self._embeddings[rows], self.labels[rows])

    def discriminants(self, shrinkage: float) -> Discriminants:
        """The score of each class as a function of the embedding."""
        [ratio] = self._ratios(np.array([self._spread]), len(self.labels), shrinkage)
        weights = 1 / (1 + ratio * self._eigenvalues)
        means, counts = self._means[self._present], self.counts[self._present]
        directions = means - ((means @ self._basis) * (1 - weights)) @ self._basis.T
        noise = (weights @ self._eigenvalues) / max(len(self.labels) - len(counts), 1)
        offsets = (noise / counts - (means * directions).sum(axis=1)) / 2
        [variance] = _variances(np.array([self._total]), len(self.labels))
        directions = (directions - directions.mean(axis=0)) / variance
        offsets = (offsets - offsets.mean()) / variance - directions @ self._centre
        all_directions = np.zeros_like(self._means)
        all_offsets = np.full(len(self._means), _ABSENT)
        all_directions[self._present], all_offsets[self._present] = directions, offsets
        return Discriminants(all_directions, all_offsets)

    def leave_one_out(self, shrinkage: float, rows: "IntArray | None" = None) -> "Scores":
        """The scores of some rows of ``left_out``, or all, each by a fit to all other rows.

        Means, scatter and centre are those without the row. The shrinkage is given; one that was
        chosen by these very answers makes them a little too good: see
        :class:`~cptuning.inference.choice.LeaveOneOut`.
        """
        rows = self.left_out if rows is None else rows
        parts = (self._projected(rows[part]) for part in _blocks(len(rows)))
        return self._left_out_scores(parts, shrinkage)

    def _left_out_scores(self, parts: "Iterable[_Projected]", shrinkage: float) -> "Scores":
        scores = [np.empty((0, len(self._means)))]
        for part in parts:
            scores.append(np.full((len(part.labels), len(self._means)), _ABSENT))
            scores[-1][:, self._present] = self._scores_without_each(part, shrinkage)
        return np.concatenate(scores)

    def _projected(self, rows: "IntArray") -> "_Projected":
        x, means = self._centred(rows), self._means[self._present]
        squares = (x**2).sum(axis=1)
        distances = squares[:, None] - 2 * x @ means.T + (means**2).sum(axis=1)
        return _Projected(
            self.labels[rows], self._squares[rows], squares, distances, x @ self._basis
        )

    def _scores_without_each(self, rows: "_Projected", shrinkage: float) -> Matrix:
        """The scores for the classes that have examples.

        With r a row minus its class mean and a = n / (n - 1) for a class of n rows, leaving the
        row out takes a r rᵀ from S, and the row is then a r away from its class mean.
        """
        labels, x, counts = rows.labels, rows.coordinates, self.counts
        means = self._projected_means
        a = counts[labels] / (counts[labels] - 1)
        n = len(self.labels) - 1
        ratios = self._ratios(self._spread - a * rows.residual_squares, n, shrinkage)
        weights = 1 / (1 + ratios[:, None] * self._eigenvalues)
        # First under a metric in which only t is without the row. S spans r, but not all of x - μ.
        distances = rows.distances - _distances(x, means, 1 - weights)
        own = np.arange(len(labels)), np.searchsorted(self._present, labels)
        r = x - means[own[1]]
        products = (weights * r * x).sum(axis=1)[:, None] - (weights * r) @ means.T
        length = (weights * r**2).sum(axis=1)
        distances[own], products[own] = a**2 * length, a * length
        # Then with S without the row, by the Sherman-Morrison formula.
        # Rounding must not take its denominator below the least that it can be.
        least = 1 / (1 + ratios * a * rows.residual_squares)
        gain = ratios * a / np.maximum(1 - ratios * a * length, least)
        distances += gain[:, None] * products**2
        within = weights @ self._eigenvalues - a * length
        within += gain * ((weights * r) ** 2 @ self._eigenvalues - a * length**2)
        noise = within / max(n - len(means), 1)
        remaining = counts[self._present] - (self._present == labels[:, None])
        scores = (noise[:, None] / remaining - distances) / 2
        scores /= _variances(self._total - (n + 1) / n * rows.squares, n)[:, None]
        return np.asarray(scores - scores.mean(axis=1, keepdims=True))

    @cached_property
    def _projected_means(self) -> Matrix:
        return np.asarray(self._means[self._present] @ self._basis)

    def _ratios(self, traces: Matrix, n_rows: int, shrinkage: float) -> Matrix:
        """For some traces of S, what S is multiplied by: P = (I + ratio S)⁻¹."""
        has_spread = traces > _NO_SPREAD * n_rows
        targets = np.where(has_spread, shrinkage * traces / len(self._centre), 1.0)
        return np.where(has_spread, (1 - shrinkage) / targets, 0.0)

    def _centred(self, rows: "IntArray | slice") -> Matrix:
        return np.asarray(self._embeddings[rows].astype(np.float64) - self._centre)

    def _residuals(self, rows: slice) -> Matrix:
        return np.asarray(self._centred(rows) - self._means[self.labels[rows]])

    def _eigenbasis(self) -> tuple[Matrix, Matrix]:
        """The eigenvalues of S that are not zero, and their eigenvectors as columns."""
        n, d = self._embeddings.shape
        if n < d:
            residuals = self._residuals(slice(n))
            values, vectors = np.linalg.eigh(residuals @ residuals.T)
        else:
            blocks = (self._residuals(part) for part in _blocks(n))
            values, vectors = np.linalg.eigh(sum(block.T @ block for block in blocks))
        kept = values > values[-1] * max(n, d) * np.finfo(np.float64).eps
        values, vectors = values[kept], vectors[:, kept]
        return values, residuals.T @ vectors / np.sqrt(values) if n < d else vectors


def _variances(traces: Matrix, n_rows: int) -> Matrix:
    """The mean squared distance to the centre, or 1 if it is zero, for some traces of a scatter."""
    return np.where(traces > _NO_SPREAD * n_rows, traces / n_rows, 1.0)


def _distances(rows: Matrix, means: Matrix, weights: Matrix) -> Matrix:
    """The squared distance of each row to each mean, with the row's own weights of the columns."""
    weighted = weights * rows
    return np.asarray(
        (weighted * rows).sum(axis=1)[:, None] - 2 * weighted @ means.T + weights @ (means**2).T
    )


def _blocks(n: int) -> list[slice]:
    """Slices that are small enough to compute with."""
    return [slice(start, start + _ROWS) for start in range(0, n, _ROWS)]
