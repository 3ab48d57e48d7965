"""Two result directories side by side: the same cells, pair by pair."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cptuning.errors import CPTuningError
from cptuning.experiments.directory import ResultDirectory
from cptuning.experiments.scores import over_splits
from cptuning.experiments.statistics import PairedTest
from cptuning.experiments.studies import in_study_order


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
        {
            one.cell.place: 100 * one.test["accuracy"]
            for one in in_study_order(ResultDirectory(folder).outcomes())
        }
        for folder in (first, second)
    ]
    pairs: dict[tuple[str, str, str], dict[tuple[str, int], tuple[float, float]]] = {}
    for place, score in both[0].items():
        if place in both[1]:
            study, row, variant, dataset, seed = place
            scores = pairs.setdefault((study, row, dataset), {})
            scores[variant, seed] = both[1][place], score
    if not pairs:
        raise CPTuningError(f"{first} and {second} have no finished cell in common.")
    found = []
    for (study, row, dataset), scores in pairs.items():
        later, earlier = np.mean(list(scores.values()), axis=0).tolist()
        found.append(Comparison(study, row, dataset, earlier, later, over_splits(scores)))
    return found


def caveats(first: Path, second: Path) -> list[str]:
    """What else differs between two directories, so that their scores are hard to compare."""
    directories = [ResultDirectory(folder) for folder in (first, second)]
    sentences = []
    backbones = [directory.backbone for directory in directories]
    if backbones[0]["weights"] != backbones[1]["weights"]:
        sentences.append(
            f"The backbones differ: {backbones[0]['name']} and {backbones[1]['name']}."
        )
    by_place = [{one.cell.place: one for one in each.outcomes()} for each in directories]
    tests, grids = set(), set()
    for place, one in by_place[0].items():
        other = by_place[1].get(place)
        if other is None:
            continue
        if one.test.get("sha256") != other.test.get("sha256"):
            tests.add(one.cell.dataset)
        if len(one.cell.keys) != len(other.cell.keys):
            grids.add(one.cell.row)
    if tests:
        sentences.append(f"The test sets differ: {', '.join(sorted(tests))}.")
    if grids:
        sentences.append(
            "Dev chose among more configurations in one of them than in the other: "
            f"{', '.join(sorted(grids))}."
        )
    return sentences
