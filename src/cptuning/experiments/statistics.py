"""The paper's significance tests, confidence intervals over splits, and rank correlations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SIGNIFICANT = 0.05
FEWEST_PAIRS = 3
"""With two, even a difference of a tenth of a point can have p < 0.05."""

_RESAMPLES = 10_000


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

    There is no p for fewer than three pairs.

    >>> paired_t_test([3.0, 5.0], [1.0, 3.1])
    PairedTest(difference=1.95, p=None, pairs=2)
    """
    from scipy.stats import ttest_rel  # type: ignore[import-untyped]  # comes with scikit-learn

    differences = np.subtract(first, second)
    mean = float(np.mean(differences)) if len(differences) else 0.0
    if len(differences) < FEWEST_PAIRS or np.ptp(differences) == 0:
        return PairedTest(mean, None, len(differences))
    p = float(ttest_rel(first, second, alternative="greater").pvalue)
    return PairedTest(mean, p, len(differences))


def bootstrap_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % percentile bootstrap interval of the mean, one score per split.

    None for fewer than three splits.

    >>> low, high = bootstrap_interval([80.0, 82.0, 84.0, 81.0, 83.0])
    >>> round(low, 1), round(high, 1)
    (80.8, 83.2)
    >>> bootstrap_interval([80.0, 82.0])
    """
    if len(scores) < FEWEST_PAIRS:
        return None
    values = np.asarray(scores)
    drawn = np.random.default_rng(0).integers(len(values), size=(_RESAMPLES, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def average_ranks(scores: Sequence[Sequence[float]]) -> list[float | None]:
    """By row, its rank in every column, averaged; 1 is the best, and ties share their ranks.

    None for a row that lacks a score (NaN).

    >>> average_ranks([[80.0, 70.0], [90.0, 70.0], [95.0, float("nan")]])
    [2.25, 1.75, None]
    """
    from scipy.stats import rankdata

    if not len(scores):
        return []
    ranks = rankdata(-np.asarray(scores), axis=0, nan_policy="omit").mean(axis=1)
    return [None if np.isnan(rank) else float(rank) for rank in ranks]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rho; None for fewer than three pairs, or if one side is constant.

    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 20.0, 15.0])
    0.5
    >>> rank_correlation([1.0, 1.0, 1.0], [10.0, 20.0, 15.0])
    """
    from scipy.stats import spearmanr

    if len(first) < FEWEST_PAIRS or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return round(float(spearmanr(first, second).statistic), 12)
