"""Metrics in plain numpy: confidence intervals, the confusion matrix, F1, reliability."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

# The 97.5 % quantile of the normal distribution, for 95 % intervals.
_Z = 1.959963984540054


def wilson_interval(right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % confidence interval of a share, given ``right`` of ``n``.

    Unlike the normal approximation, it stays within [0, 1] and holds for small ``n``.

    >>> low, high = wilson_interval(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    if n == 0:
        return 0.0, 1.0
    share = right / n
    scale = 1 + _Z**2 / n
    centre = (share + _Z**2 / (2 * n)) / scale
    half = _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / scale
    # The exact limits at the ends are 0 and 1; the formula would miss them by rounding.
    low = 0.0 if right == 0 else max(0.0, centre - half)
    high = 1.0 if right == n else min(1.0, centre + half)
    return low, high


@dataclass(frozen=True)
class ConfusionMatrix:
    """How often each true class (row) got each answer (column)."""

    classes: tuple[Hashable, ...]
    counts: Counts

    @classmethod
    def of(
        cls,
        truth: Sequence[Hashable],
        answers: Sequence[Hashable],
        order: Sequence[Hashable] = (),
    ) -> "ConfusionMatrix":
        """The matrix of true labels and answers.

        Classes are in the given order, then in order of appearance. A class of ``order`` that
        occurs in neither is omitted.

        >>> ConfusionMatrix.of(["a", "b", "b"], ["a", "a", "b"]).counts.tolist()
        [[1, 0], [1, 1]]
        """
        present = set(truth) | set(answers)
        listed = dict.fromkeys([*(c for c in order if c in present), *truth, *answers])
        index = {label: number for number, label in enumerate(listed)}
        counts = np.zeros((len(index), len(index)), dtype=np.int64)
        rows = [index[label] for label in truth]
        columns = [index[label] for label in answers]
        np.add.at(counts, (rows, columns), 1)
        return cls(tuple(listed), counts)

    @property
    def n(self) -> int:
        """The number of answers."""
        return int(self.counts.sum())

    @property
    def right(self) -> int:
        """The number of correct answers."""
        return int(self.counts.trace())

    @property
    def accuracy(self) -> float:
        """The share of correct answers.

        >>> ConfusionMatrix.of(["a", "b", "b"], ["a", "a", "b"]).accuracy
        0.666...
        """
        return self.right / self.n

    @property
    def majority(self) -> float:
        """The accuracy of always predicting the most frequent true class.

        >>> ConfusionMatrix.of(["a", "b", "b"], ["a", "a", "a"]).majority
        0.666...
        """
        return float(self.counts.sum(axis=1).max() / self.n)

    def by_class(self) -> "list[ClassScore]":
        """Precision, recall and F1 of each class.

        >>> [score.f1 for score in ConfusionMatrix.of(["a", "b", "b"], ["a", "a", "b"]).by_class()]
        [0.666..., 0.666...]
        """
        scores = []
        for number, label in enumerate(self.classes):
            right = int(self.counts[number, number])
            support = int(self.counts[number].sum())
            answered = int(self.counts[:, number].sum())
            scores.append(ClassScore(label, right, support, answered))
        return scores

    @property
    def macro_f1(self) -> float:
        """The mean F1 over the classes that occur, as scikit-learn counts it.

        >>> ConfusionMatrix.of(["a", "b", "b"], ["a", "a", "b"]).macro_f1
        0.666...
        """
        return float(np.mean([score.f1 for score in self.by_class()]))

    def mistakes(self) -> list[tuple[Hashable, Hashable, int]]:
        """The true class, the wrong answer and how often, most frequent first.

        >>> ConfusionMatrix.of(["a", "b", "b"], ["a", "a", "a"]).mistakes()
        [('b', 'a', 2)]
        """
        wrong = self.counts - np.diag(np.diag(self.counts))
        rows, columns = np.nonzero(wrong)
        order = np.argsort(-wrong[rows, columns], kind="stable")
        return [
            (self.classes[rows[i]], self.classes[columns[i]], int(wrong[rows[i], columns[i]]))
            for i in order
        ]


@dataclass(frozen=True)
class ClassScore:
    """Precision, recall and F1 of one class; zero if it has no examples or no answers."""

    label: Hashable
    right: int
    support: int
    """How many examples of the class there are."""
    answered: int
    """How many examples were answered with it."""

    @property
    def precision(self) -> float:
        """The share of its answers that are correct.

        >>> ClassScore("a", right=3, support=4, answered=6).precision
        0.5
        """
        return self.right / self.answered if self.answered else 0.0

    @property
    def recall(self) -> float:
        """The share of its examples that were found.

        >>> ClassScore("a", right=3, support=4, answered=6).recall
        0.75
        """
        return self.right / self.support if self.support else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall.

        >>> ClassScore("a", right=3, support=4, answered=6).f1
        0.6
        """
        return 2 * self.right / (self.support + self.answered)


@dataclass(frozen=True)
class ReliabilityBin:
    """Answers of similar confidence: their mean confidence and their accuracy."""

    n: int
    confidence: float
    accuracy: float


def reliability(
    confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = 10
) -> list[ReliabilityBin]:
    """The non-empty bins of equal width, the lowest confidence first.

    >>> reliability(np.array([0.55, 0.95, 0.91]), np.array([False, True, True]))
    [ReliabilityBin(n=1, confidence=0.55, accuracy=0.0),
     ReliabilityBin(n=2, confidence=0.9299..., accuracy=1.0)]
    """
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        ReliabilityBin(
            n=int((which == b).sum()),
            confidence=float(confidence[which == b].mean()),
            accuracy=float(right[which == b].mean()),
        )
        for b in np.unique(which)
    ]
