"""Two result directories side by side: the same cells, pair by pair."""

from dataclasses import dataclass
from pathlib import Path

from cptuning.errors import CPTuningError
from cptuning.experiments.records import Records
from cptuning.experiments.results import outcomes
from cptuning.experiments.statistics import PairedTest, paired_t_test


@dataclass(frozen=True)
class Comparison:
    """One row on one data set in both directories."""

    study: str
    row: str
    dataset: str
    first: float
    """Mean test accuracy in % over the pairs."""
    second: float
    test: PairedTest
    """Of "the second is better"; a pair is a split that both have."""


def compare(first: Path, second: Path) -> list[Comparison]:
    """Every row and data set that both directories have.

    >>> compare(Path("no/such"), Path("folder"))
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: no/such holds no results: name a folder that `cptuning
    reproduce` wrote.
    """
    both = [
        {one.cell.place: 100 * one.test["accuracy"] for one in outcomes(Records(folder))}
        for folder in (first, second)
    ]
    pairs: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for place, score in both[0].items():
        if place in both[1]:
            study, row, _, dataset, _ = place
            pairs.setdefault((study, row, dataset), []).append((score, both[1][place]))
    if not pairs:
        raise CPTuningError(f"{first} and {second} have no finished cell in common.")
    found = []
    for (study, row, dataset), scores in pairs.items():
        earlier, later = (list(part) for part in zip(*scores, strict=True))
        test = paired_t_test(later, earlier)
        means = [sum(part) / len(part) for part in (earlier, later)]
        found.append(Comparison(study, row, dataset, means[0], means[1], test))
    return found
