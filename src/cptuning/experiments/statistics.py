"""The paper's significance tests: single-tailed paired t-tests."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class PairedTest:
    """The result of a test whether the first of each pair is better than the second."""

    difference: float
    """The mean of first minus second."""
    p: float | None
    """How likely a difference at least this large is by chance; None if it can't be computed."""
    pairs: int

    @property
    def is_significant(self) -> bool:
        """Whether p is below 5 %."""
        return self.p is not None and self.p < SIGNIFICANT

    @property
    def p_text(self) -> str:
        """The p value as it is printed.

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
