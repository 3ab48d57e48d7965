"""Metrics of label sets: F1 over all labels, by label and by text, and subset accuracy."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cptuning.inference.label_calibration import f1_per_row
from cptuning.reporting.metrics import ClassScore, Counts

LabelSets = Sequence[tuple[Hashable, ...]]

_RESAMPLES = 1000


@dataclass(frozen=True)
class LabelScores:
    """The true labels and the given ones, each a 0/1 matrix with a row per text.

    >>> truth, given = [("late", "rude"), ("late",), ()], [("late",), ("late",), ("rude",)]
    >>> scores = LabelScores.of(truth, given)
    >>> round(scores.micro_f1, 3), round(scores.macro_f1, 3), round(scores.sample_f1, 3)
    (0.667, 0.5, 0.556)
    >>> scores.subset_accuracy
    0.333...
    """

    labels: tuple[Hashable, ...]
    truth: Counts
    given: Counts

    @classmethod
    def of(
        cls, truth: LabelSets, given: LabelSets, order: Sequence[Hashable] = ()
    ) -> "LabelScores":
        """The labels that occur, those of ``order`` first, then in order of appearance."""
        present = dict.fromkeys(label for sets in (truth, given) for own in sets for label in own)
        labels = tuple(dict.fromkeys([*(c for c in order if c in present), *present]))
        index = {label: number for number, label in enumerate(labels)}

        def matrix(sets: LabelSets) -> Counts:
            rows = np.zeros((len(sets), len(labels)), dtype=np.int64)
            for row, own in enumerate(sets):
                rows[row, [index[label] for label in own]] = 1
            return rows

        return cls(labels, matrix(truth), matrix(given))

    @property
    def n(self) -> int:
        """The number of texts."""
        return len(self.truth)

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which texts were given exactly their labels."""
        return np.asarray((self.truth == self.given).all(axis=1))

    @property
    def subset_accuracy(self) -> float:
        """The share of texts that were given exactly their labels."""
        return float(self.right.mean())

    @property
    def majority(self) -> float:
        """The subset accuracy of always giving the most frequent label set."""
        return max(Counter(map(bytes, self.truth)).values()) / self.n

    @property
    def micro_precision(self) -> float:
        """The share of all given labels that are right; 0 if none is given."""
        return self._both / max(int(self.given.sum()), 1)

    @property
    def micro_recall(self) -> float:
        """The share of all true labels that are given; 0 if there is none."""
        return self._both / max(int(self.truth.sum()), 1)

    @property
    def micro_f1(self) -> float:
        """F1 over all labels of all texts together."""
        return _f1(self._both, int(self.truth.sum() + self.given.sum()))

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the labels that are true or given somewhere."""
        return float(np.mean([score.f1 for score in self.by_label()])) if self.labels else 1.0

    @cached_property
    def by_text(self) -> NDArray[np.float64]:
        """The F1 of each text's label set; 1 where there is rightly no label."""
        return f1_per_row(self.given, self.truth)

    @property
    def sample_f1(self) -> float:
        """The mean of the F1 of each text."""
        return float(self.by_text.mean())

    @cached_property
    def micro_f1_interval(self) -> tuple[float, float]:
        """A 95 % interval of the micro-F1: that of 1000 samples of as many texts, with repeats."""
        both = (self.truth & self.given).sum(axis=1)
        sizes = (self.truth + self.given).sum(axis=1)
        random = np.random.default_rng(0)
        found = []
        for _ in range(_RESAMPLES):
            rows = random.integers(0, self.n, self.n)
            found.append(_f1(int(both[rows].sum()), int(sizes[rows].sum())))
        low, high = np.percentile(found, [2.5, 97.5])
        return float(low), float(high)

    @property
    def constant_f1(self) -> float:
        """The best micro-F1 of giving every text the same labels.

        Of k labels, the most frequent ones are the best.

        >>> LabelScores.of([("a",), ("a", "b")], [(), ()]).constant_f1
        0.857...
        """
        counts = np.sort(self.truth.sum(axis=0))[::-1]
        right, total = np.cumsum(counts), int(counts.sum())
        sizes = self.n * np.arange(1, len(counts) + 1) + total
        return float((2 * right / sizes).max()) if total else 1.0

    def by_label(self) -> list[ClassScore]:
        """Precision, recall and F1 of each label.

        >>> [score.f1 for score in LabelScores.of([("a", "b")], [("a",)]).by_label()]
        [1.0, 0.0]
        """
        right = (self.truth & self.given).sum(axis=0)
        support, given = self.truth.sum(axis=0), self.given.sum(axis=0)
        return [
            ClassScore(label, *map(int, numbers))
            for label, *numbers in zip(self.labels, right, support, given, strict=True)
        ]

    def mistakes(self) -> list[tuple[Hashable, Hashable, int]]:
        """A label that is missing, one that is given though it is not true, and in how many texts.

        The most frequent ones come first.

        >>> LabelScores.of([("a",), ("a", "b")], [("c",), ("b", "c")]).mistakes()
        [('a', 'c', 2)]
        """
        missing, extra = self.truth & ~self.given & 1, self.given & ~self.truth & 1
        together = missing.T @ extra
        rows, columns = np.nonzero(together)
        order = np.argsort(-together[rows, columns], kind="stable")
        return [
            (self.labels[rows[i]], self.labels[columns[i]], int(together[rows[i], columns[i]]))
            for i in order
        ]

    @property
    def _both(self) -> int:
        return int((self.truth & self.given).sum())


def _f1(both: int, sizes: int) -> float:
    """F1 of what is in both of two sets, by the sum of their sizes; 1 if both are empty."""
    return 2 * both / sizes if sizes else 1.0
