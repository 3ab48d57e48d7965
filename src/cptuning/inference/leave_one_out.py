"""The choice of a strength of regularisation by leave-one-out answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_ANSWERS = 2048
"""Choices are made by the answers to at most so many rows: more would hardly change them."""

# Log-losses that differ by less differ by rounding.
_SAME_LOSS = 1e-9
# A sum of weights that is smaller than this is rounding.
_NO_WEIGHT = 1e-10


@dataclass(frozen=True)
class Trial:
    """Leave-one-out answers with one strength: their log-losses, once calibrated."""

    temperature: float
    losses: NDArray[np.float64]
    errors: NDArray[np.float64]
    """1 where the answer is wrong, else 0."""
    weights: NDArray[np.float64]
    """What each answer counts."""

    @property
    def mean_loss(self) -> float:
        """The weighted mean of the losses."""
        return float(np.average(self.losses, weights=self.weights))


def strongest_equal(trials: Mapping[float, Trial]) -> float:
    """The first strength whose mean log-loss is within a standard error of the least one.

    The strongest comes first, and a few examples can't tell less regularisation from chance.

    >>> weights, right = np.ones(4), np.zeros(4)
    >>> strong = Trial(1.0, np.array([0.5, 0.6, 0.5, 0.6]), right, weights)
    >>> weak = Trial(1.0, np.array([0.6, 0.4, 0.6, 0.5]), right, weights)
    >>> strongest_equal({1.0: strong, 0.1: weak})
    1.0
    """
    losses = np.stack([trial.losses for trial in trials.values()])
    weights = next(iter(trials.values())).weights
    return list(trials)[int(nearly_least(losses, weights).argmax())]


def nearly_best(trials: Sequence[Trial]) -> NDArray[np.bool_]:
    """Which trials are within a standard error of the best one, in log-loss and in errors.

    They are answers to the same rows. A temperature makes the loss of wrong answers small, but does
    not make them right.
    """
    losses, errors = (
        np.stack(values)
        for values in zip(*((trial.losses, trial.errors) for trial in trials), strict=True)
    )
    weights = trials[0].weights
    return nearly_least(losses, weights) & nearly_least(errors, weights)


def nearly_least(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows have a mean within a standard error of the least one.

    The columns are answers, with what each counts. The error is that of the difference.

    >>> nearly_least(np.array([[1.0, 1.0], [0.9, 1.0], [2.0, 2.1]]), np.ones(2)).tolist()
    [True, True, False]
    """
    excess = values - values[np.average(values, axis=1, weights=weights).argmin()]
    means = np.average(excess, axis=1, weights=weights)
    squares = (weights * (excess - means[:, None]) ** 2).sum(axis=1)
    n = weights.sum()
    errors = np.sqrt(squares / max(n - 1, _NO_WEIGHT)) / np.sqrt(n)
    return np.asarray(means <= errors + _SAME_LOSS)
