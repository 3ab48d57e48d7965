"""How many spans were found: F1 by seqeval's strict rule, of all and by type, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cptuning.data.tag_schemes import WordSpan, types_of
from cptuning.reporting.metrics import ClassScore, Counts

_RESAMPLES = 1000
_SEED = 0


@dataclass(frozen=True)
class SpanScores:
    """True spans and those found, sentence by sentence.

    A span is right if its type, its first word and its last word are, as with seqeval's
    ``mode="strict", scheme=IOB2``.

    >>> city, day = WordSpan(0, 2, "city"), WordSpan(3, 4, "day")
    >>> scores = SpanScores([[city, day]], [[WordSpan(0, 1, "city"), day]])
    >>> scores.f1, [one.f1 for one in scores.by_type()]
    (0.5, [0.0, 1.0])
    """

    truth: Sequence[Sequence[WordSpan]]
    found: Sequence[Sequence[WordSpan]]

    @property
    def overall(self) -> ClassScore:
        """Precision, recall and F1 over all spans (micro average)."""
        right, there, found = self._counts.sum(axis=0).tolist()
        return ClassScore("all", right, there, found)

    @property
    def f1(self) -> float:
        """F1 over all spans; 0 if there are none."""
        overall = self.overall
        return overall.f1 if overall.support + overall.answered else 0.0

    def by_type(self) -> list[ClassScore]:
        """Precision, recall and F1 of each type that is there or was found."""
        scores = []
        for label in types_of([*self.truth, *self.found]):
            truth = [{span for span in spans if span.label == label} for spans in self.truth]
            found = [{span for span in spans if span.label == label} for spans in self.found]
            right = sum(len(a & b) for a, b in zip(truth, found, strict=True))
            scores.append(ClassScore(label, right, sum(map(len, truth)), sum(map(len, found))))
        return scores

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of F1: percentiles over resampled sentences (bootstrap)."""
        n = len(self._counts)
        draws = np.random.default_rng(_SEED).multinomial(n, np.full(n, 1 / n), _RESAMPLES)
        right, there, found = (draws @ self._counts).T
        scores = 2 * right / np.maximum(there + found, 1)
        low, high = np.percentile(scores, [2.5, 97.5]).tolist()
        return low, high

    @cached_property
    def _counts(self) -> Counts:
        """For each sentence how many spans are right, there and found."""
        rows = [
            (len(set(truth) & set(found)), len(set(truth)), len(set(found)))
            for truth, found in zip(self.truth, self.found, strict=True)
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)
