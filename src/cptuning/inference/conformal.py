"""Sets of labels that hold the right one with a given probability, from held-out answers."""

from dataclasses import dataclass
from math import ceil
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cptuning.errors import CPTuningError

if TYPE_CHECKING:
    from cptuning.inference.scoring import Scores
    from cptuning.inference.support import IntArray

# So that rounding does not decide: (n + 1) * coverage of 9 answers and 0.9 is 9.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ConformalSets:
    """The probabilities that held-out examples' right labels were given, sorted.

    A label is in a text's set if its probability is at least the k-th largest of these n, with
    k = ⌈(n + 1) coverage⌉: conformal prediction with the score 1 - p (Sadinle et al., 2019: "least
    ambiguous" sets). If a new text is like the held-out ones, its right label is in the set with at
    least the probability ``coverage``. The likeliest label is always in it. With k > n the examples
    are too few, and a set has all labels.

    >>> sets = ConformalSets(np.array([0.3, 0.6, 0.8, 0.9]))
    >>> sets.members(np.array([[0.5, 0.3, 0.2], [0.9, 0.06, 0.04]]), coverage=0.75).tolist()
    [[True, True, False], [True, False, False]]
    >>> sets.members(np.array([[0.9, 0.06, 0.04]]), coverage=0.9).tolist()
    [[True, True, True]]
    """

    probabilities: NDArray[np.float64]

    @classmethod
    def of(cls, probabilities: "Scores", labels: "IntArray") -> "ConformalSets":
        """Those of held-out examples, from the probabilities of all labels."""
        return cls(np.sort(probabilities[np.arange(len(labels)), labels]))

    def members(self, probabilities: "Scores", coverage: Any) -> NDArray[np.bool_]:
        """Which labels are in the set of each text, from their probabilities."""
        members = probabilities >= self.threshold(coverage)
        members[np.arange(len(members)), probabilities.argmax(axis=1)] = True
        return members

    def threshold(self, coverage: Any) -> float:
        """The least probability of a label in a set."""
        check_coverage(coverage)
        n = len(self.probabilities)
        k = ceil((n + 1) * float(coverage) - _ROUNDING)
        return float(self.probabilities[n - k]) if k <= n else 0.0


def check_coverage(coverage: Any) -> None:
    """Reject values that are not shares."""
    is_number = isinstance(coverage, Real) and not isinstance(coverage, bool)
    if not (is_number and 0 < float(coverage) < 1):
        raise CPTuningError(f"coverage is {coverage!r}: give a number between 0 and 1.")
