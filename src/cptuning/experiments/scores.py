"""Test scores by row and data set, with their means, deviations and tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cptuning.data import PAPER_DATASETS
from cptuning.experiments.directory import Outcome
from cptuning.experiments.statistics import PairedTest, bootstrap_interval, paired_t_test

# What scores are paired by: the variant (a prompt, which class is rare) and the seed.
Pair = tuple[str, int]


@dataclass
class Scores:
    """A measure in % by row and data set, one value for each variant and seed."""

    values: dict[tuple[str, str], dict[Pair, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Sequence[Outcome], measure: str = "accuracy") -> "Scores":
        """The scores of those outcomes that have this measure."""
        scores = cls()
        for one in found:
            if measure in one.test:
                place = scores.values.setdefault((one.cell.row, one.cell.dataset), {})
                place[one.cell.variant, one.cell.seed] = 100 * one.test[measure]
        return scores

    def only(self, begins: str) -> "Scores":
        """The scores of the rows whose names begin like this."""
        return Scores({place: v for place, v in self.values.items() if place[0].startswith(begins)})

    @property
    def rows(self) -> list[str]:
        """The rows that have any score, in the order of their study."""
        return list(dict.fromkeys(row for row, _ in self.values))

    @property
    def pools(self) -> bool:
        """Whether any row pools several variants."""
        return any(len({variant for variant, _ in pairs}) > 1 for pairs in self.values.values())

    @property
    def datasets(self) -> list[str]:
        """The data sets that have any score, in the paper's order."""
        order = list(PAPER_DATASETS)
        found = dict.fromkeys(name for _, name in self.values)
        return sorted(found, key=lambda name: order.index(name) if name in order else len(order))

    def mean(self, row: str, dataset: str) -> float | None:
        """The mean over all pairs."""
        found = self.values.get((row, dataset))
        return float(np.mean(list(found.values()))) if found else None

    def spread(self, row: str, dataset: str) -> float | None:
        """The standard deviation over all pairs; None for a single one."""
        found = list(self.values.get((row, dataset), {}).values())
        return float(np.std(found, ddof=1)) if len(found) > 1 else None

    def average(self, row: str) -> float | None:
        """The mean over the data sets, if the row has them all."""
        means = [self.mean(row, name) for name in self.datasets]
        known = [mean for mean in means if mean is not None]
        return float(np.mean(known)) if known and len(known) == len(means) else None

    def by_split(self, row: str, dataset: str | None = None) -> list[float]:
        """One score per split, the mean over the variants.

        Without a data set, the mean over all of them: only for splits and rows that have them all.
        """
        names = self.datasets if dataset is None else [dataset]
        means: dict[int, list[float]] = {}
        for name in names:
            by_seed: dict[int, list[float]] = {}
            for (_, seed), value in self.values.get((row, name), {}).items():
                by_seed.setdefault(seed, []).append(value)
            for seed, values in by_seed.items():
                means.setdefault(seed, []).append(float(np.mean(values)))
        return [float(np.mean(found)) for found in means.values() if len(found) == len(names)]

    def interval(self, row: str, dataset: str | None = None) -> tuple[float, float] | None:
        """The bootstrap interval of the mean over the splits; without a data set, over all."""
        return bootstrap_interval(self.by_split(row, dataset))

    def over_tasks(self, first: str, second: str) -> PairedTest:
        """The paper's test: a pair is a data set, with the means over the seeds."""
        both = [
            (self.mean(first, name), self.mean(second, name))
            for name in self.datasets
            if (first, name) in self.values and (second, name) in self.values
        ]
        return paired_t_test(
            [a for a, _ in both if a is not None], [b for _, b in both if b is not None]
        )

    def over_seeds(self, first: str, second: str, dataset: str) -> PairedTest:
        """The test on one data set: a pair is a split that both were trained on.

        Variants of a split share its examples, so they are averaged: as pairs of their own they
        would count the same luck several times.
        """
        ours, theirs = (self.values.get((row, dataset), {}) for row in (first, second))
        return over_splits({pair: (ours[pair], theirs[pair]) for pair in ours if pair in theirs})


def over_splits(pairs: Mapping[Pair, tuple[float, float]]) -> PairedTest:
    """Is the first better? A pair is a seed, with the means over its variants.

    >>> over_splits({("a", 13): (3, 1), ("b", 13): (5, 1), ("a", 21): (3, 2)}).difference
    2.0
    """
    by_seed: dict[int, list[tuple[float, float]]] = {}
    for (_, seed), both in pairs.items():
        by_seed.setdefault(seed, []).append(both)
    means = [np.mean(both, axis=0).tolist() for both in by_seed.values()]
    return paired_t_test([first for first, _ in means], [second for _, second in means])
