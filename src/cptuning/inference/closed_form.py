"""Linear discriminant analysis in closed form, with exact leave-one-out answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cptuning.data import stratified_sample
from cptuning.inference.calibration import fit_temperature, log_losses
from cptuning.inference.leave_one_out import MOST_ANSWERS, Trial, strongest_equal

if TYPE_CHECKING:
    from cptuning.inference.scoring import Scores
    from cptuning.inference.support import IntArray

Floats = NDArray[np.floating]
Matrix = NDArray[np.float64]
Flags = NDArray[np.bool_]

SHRINKAGES = tuple(1 / (1 + ratio) for ratio in (0, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 100))
"""What the shrinkage is chosen from; 1 is the nearest class mean."""

# If the mean squared distance of rows to their class means is below this, it is rounding.
_NO_SPREAD = 1e-10
# If less than this share of a class's weight is left without a row, it is rounding.
_NO_WEIGHT = 1e-12
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
class _Projected:
    """What the scores of some rows need that is the same for every shrinkage."""

    labels: "IntArray"
    weights: Matrix
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

    With ``weights`` a row counts as so many copies of it would: in means, scatter and numbers of
    rows. To leave it out is to leave out all of its weight.

    A row that is a *description* of its class is never left out. It is one row however much it
    weighs: the mean of a class with the weight W has the noise q tr(P Σ) / W² instead of
    tr(P Σ) / W, with q the sum of the weights of its examples and of the squared weights of its
    descriptions. Then tr(P S) / (n - Σ q / W) estimates tr(P Σ), with the sum over the C classes;
    without descriptions that is tr(P S) / (n - C). A description may weigh 0. If an example is left
    out and nothing of its class is left that weighs more than 0, no class is preferred: all its
    scores are 0.

    >>> rows, labels = np.array([[0.8, 0.6], [0.8, -0.6], [0.6, 0.8], [0.6, -0.8]]), [0, 0, 1, 1]
    >>> lda = DiscriminantAnalysis(rows, np.array(labels))
    >>> lda.discriminants(shrinkage=0.5).scores(rows).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        embeddings: Floats,
        labels: "IntArray",
        weights: Floats | None = None,
        is_description: "Flags | None" = None,
    ) -> None:
        n = len(labels)
        self.labels = labels
        self.weights = np.ones(n) if weights is None else weights.astype(np.float64)
        self.is_description = np.zeros(n, bool) if is_description is None else is_description
        self.counts = np.bincount(labels)
        self._embeddings = embeddings
        self._class_weights = np.bincount(labels, self.weights)
        self._present = np.flatnonzero(self._class_weights)
        own = np.where(self.is_description, self.weights**2, self.weights)
        self._class_squares = np.bincount(labels, own)
        self._weight = float(self.weights.sum())
        sums = np.zeros((len(self.counts), embeddings.shape[1]))
        for part in _blocks(len(labels)):
            rows = self.weights[part, None] * embeddings[part].astype(np.float64)
            np.add.at(sums, labels[part], rows)
        self._centre = sums.sum(axis=0) / self._weight
        self._means = sums / np.where(self._class_weights > 0, self._class_weights, 1.0)[:, None]
        self._means[self._present] -= self._centre
        squares = [(self._residuals(part) ** 2).sum(axis=1) for part in _blocks(len(labels))]
        self._squares = np.concatenate(squares)
        self._spread = float((self.weights * self._squares).sum())
        self._total = self._spread + float(self._class_weights @ (self._means**2).sum(axis=1))
        self._eigenvalues, self._basis = self._eigenbasis()

    @property
    def n_classes(self) -> int:
        """How many classes there are, with those that have no examples."""
        return len(self.counts)

    @cached_property
    def left_out(self) -> "IntArray":
        """The rows that can be left out: examples that are not alone in their class."""
        return np.flatnonzero((self.counts[self.labels] > 1) & ~self.is_description)

    @cached_property
    def shrinkage(self) -> float:
        """The shrinkage that leave-one-out answers choose, each judged at its best temperature.

        It is the largest one whose log-loss is within a standard error of the least one: a few
        examples can't tell more from chance. It is 1 if nothing can be left out.
        """
        if len(self.left_out) == 0:
            return SHRINKAGES[0]
        return strongest_equal(self.trials)

    @property
    def best(self) -> Trial:
        """The trial with the least mean log-loss."""
        return min(self.trials.values(), key=attrgetter("mean_loss"))

    @property
    def least_loss(self) -> float:
        """The mean log-loss of the best leave-one-out answers; 0 if nothing can be left out."""
        return self.best.mean_loss if len(self.left_out) else 0.0

    @cached_property
    def trials(self) -> dict[float, Trial]:
        """How well each shrinkage answers rows that are left out."""
        rows = self.left_out
        if len(rows) == 0:
            return dict.fromkeys(SHRINKAGES, Trial(1.0, *[np.empty(0)] * 3))
        rows = rows[stratified_sample(self.labels[rows], MOST_ANSWERS, seed=0)]
        parts = [self._projected(rows[part]) for part in _blocks(len(rows))]
        trials, labels, weights = {}, self.labels[rows], self.weights[rows]
        for shrinkage in SHRINKAGES:
            scores = self._left_out_scores(parts, shrinkage)
            temperature = fit_temperature(scores, labels, weights)
            losses = log_losses(scores, labels, temperature)
            errors = (scores.argmax(axis=1) != labels).astype(np.float64)
            trials[shrinkage] = Trial(temperature, losses, errors, weights)
        return trials

    def restricted(self, rows: "IntArray") -> "DiscriminantAnalysis":
        """The analysis of some of the rows alone."""
        return DiscriminantAnalysis(
            self._embeddings[rows], self.labels[rows], self.weights[rows], self.is_description[rows]
        )

    def discriminants(self, shrinkage: float) -> Discriminants:
        """The score of each class as a function of the embedding."""
        [ratio] = self._ratios(np.array([self._spread]), self._weight, shrinkage)
        weights = 1 / (1 + ratio * self._eigenvalues)
        means, n = self._means[self._present], self._class_weights[self._present]
        directions = means - ((means @ self._basis) * (1 - weights)) @ self._basis.T
        noise = (weights @ self._eigenvalues) / max(self._weight - self._in_means.sum(), 1)
        noise_of_means = noise * self._class_squares[self._present] / n**2
        offsets = (noise_of_means - (means * directions).sum(axis=1)) / 2
        [variance] = _variances(np.array([self._total]), self._weight)
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
            self.labels[rows],
            self.weights[rows],
            self._squares[rows],
            squares,
            distances,
            x @ self._basis,
        )

    def _scores_without_each(self, rows: "_Projected", shrinkage: float) -> Matrix:
        """The scores for the classes that have examples.

        With r a row minus its class mean, w its weight and a = n / (n - w) for a class of weight
        n, leaving the row out takes w a r rᵀ from S, and the row is then a r away from its class
        mean.
        """
        labels, x, counts = rows.labels, rows.coordinates, self._class_weights
        means = self._projected_means
        # Nothing that weighs anything may be left of a class; then a is of no use.
        left = counts[labels] - rows.weights
        is_alone = left <= _NO_WEIGHT * counts[labels]
        a = counts[labels] / np.where(is_alone, counts[labels], left)
        lost = rows.weights * a
        n = self._weight - rows.weights
        ratios = self._ratios(self._spread - lost * rows.residual_squares, n, shrinkage)
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
        least = 1 / (1 + ratios * lost * rows.residual_squares)
        gain = ratios * lost / np.maximum(1 - ratios * lost * length, least)
        distances += gain[:, None] * products**2
        within = weights @ self._eigenvalues - lost * length
        within += gain * ((weights * r) ** 2 @ self._eigenvalues - lost * length**2)
        own_squares = self._class_squares[labels] - rows.weights
        in_means = self._in_means.sum() - self._in_means[own[1]]
        in_means += own_squares / np.where(is_alone, 1, left)
        noise = within / np.maximum(n - in_means, 1)
        own_weight = rows.weights[:, None] * (self._present == labels[:, None])
        remaining = counts[self._present] - own_weight
        remaining[is_alone] = 1
        noise_of_means = noise[:, None] * (self._class_squares[self._present] - own_weight)
        scores = (noise_of_means / remaining**2 - distances) / 2
        total = self._total - rows.weights * ((n + rows.weights) / n) * rows.squares
        scores /= _variances(total, n)[:, None]
        scores[is_alone] = 0
        return np.asarray(scores - scores.mean(axis=1, keepdims=True))

    @cached_property
    def _in_means(self) -> Matrix:
        """The q / W of each class: how many rows' worth of scatter is lost to its mean."""
        return np.asarray(self._class_squares[self._present] / self._class_weights[self._present])

    @cached_property
    def _projected_means(self) -> Matrix:
        return np.asarray(self._means[self._present] @ self._basis)

    def _ratios(self, traces: Matrix, n_rows: float | Matrix, shrinkage: float) -> Matrix:
        """For some traces of S, what S is multiplied by: P = (I + ratio S)⁻¹."""
        has_spread = traces > _NO_SPREAD * n_rows
        targets = np.where(has_spread, shrinkage * traces / len(self._centre), 1.0)
        return np.where(has_spread, (1 - shrinkage) / targets, 0.0)

    def _centred(self, rows: "IntArray | slice") -> Matrix:
        return np.asarray(self._embeddings[rows].astype(np.float64) - self._centre)

    def _residuals(self, rows: slice) -> Matrix:
        return np.asarray(self._centred(rows) - self._means[self.labels[rows]])

    def _weighted_residuals(self, rows: slice) -> Matrix:
        """Rows whose sum of squares is S."""
        return np.asarray(np.sqrt(self.weights[rows, None]) * self._residuals(rows))

    def _eigenbasis(self) -> tuple[Matrix, Matrix]:
        """The eigenvalues of S that are not zero, and their eigenvectors as columns."""
        n, d = self._embeddings.shape
        if n < d:
            residuals = self._weighted_residuals(slice(n))
            values, vectors = np.linalg.eigh(residuals @ residuals.T)
        else:
            blocks = (self._weighted_residuals(part) for part in _blocks(n))
            values, vectors = np.linalg.eigh(sum(block.T @ block for block in blocks))
        kept = values > values[-1] * max(n, d) * np.finfo(np.float64).eps
        values, vectors = values[kept], vectors[:, kept]
        return values, residuals.T @ vectors / np.sqrt(values) if n < d else vectors


def _variances(traces: Matrix, n_rows: float | Matrix) -> Matrix:
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
