"""The tests of the paper: single-tailed and paired."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class PairedTest:
    """Whether one thing is better than another, from pairs of scores."""

    difference: float
    """The mean of first minus second."""
    p: float | None
    """How likely at least such a difference is if there is none; None where pairs can't tell."""
    pairs: int

    @property
    def is_significant(self) -> bool:
        """Whether p is below 5 %."""
        return self.p is not None and self.p < SIGNIFICANT

    @property
    def p_text(self) -> str:
        """The p value as people read it.

        >>> PairedTest(1.0, 0.0123, 5).p_text, PairedTest(1.0, 1e-9, 5).p_text
        ('0.012', '< 0.001')
        """
        if self.p is None:
            return "–"
        return "< 0.001" if self.p < 0.001 else f"{self.p:.3f}"


def paired_t_test(first: Sequence[float], second: Sequence[float]) -> PairedTest:
    """The single-tailed paired t-test of "the first is greater".

    >>> paired_t_test([3.0, 5.0, 4.0], [1.0, 2.0, 3.0])
    PairedTest(difference=2.0, p=0.0370..., pairs=3)
    >>> paired_t_test([3.0], [1.0])
    PairedTest(difference=2.0, p=None, pairs=1)
    """
    from scipy.stats import ttest_rel  # type: ignore[import-untyped]  # comes with scikit-learn

    differences = np.subtract(first, second)
    mean = float(np.mean(differences)) if len(differences) else 0.0
    if len(differences) < 2 or np.ptp(differences) == 0:
        return PairedTest(mean, None, len(differences))
    p = float(ttest_rel(first, second, alternative="greater").pvalue)
    return PairedTest(mean, p, len(differences))
