"""The paper's table of unbalanced classes."""

import numpy as np

from cptuning.experiments.report.common_tables import StudyResults, standard_tables, values_and_mean
from cptuning.experiments.report.parts import Line, ResultTable
from cptuning.experiments.studies.study import Row, Study
from cptuning.experiments.titles import title_of

# The paper compares with one "LM-BFF": here the variant that searches for everything.
_METHODS = ("pet", "lm-bff-tl", "p-tuning", "cp-tuning")


def _rows(_dataset: str) -> list[Row]:
    return [
        Row(f"{method}, {kind} batches", method, {"batches": kind})
        for kind in ("uniform", "balanced")
        for method in _METHODS
    ]


def _tables(results: StudyResults) -> list[ResultTable]:
    return [*standard_tables(results), _by_rare_class(results)]


def _by_rare_class(results: StudyResults) -> ResultTable:
    """The results without pooling: which class has 8 examples, and which has 24."""
    scores: dict[tuple[str, str], dict[str, list[float]]] = {}
    names = results.accuracy.datasets
    for one in results.outcomes:
        # The variants are named after labels, which differ by data set: here by their order.
        way = "first class rare" if one.cell.counts[0][1] < one.cell.counts[1][1] else "second rare"
        by_name = scores.setdefault((one.cell.row, way), {})
        by_name.setdefault(one.cell.dataset, []).append(100 * one.test["accuracy"])
    lines = [
        Line(
            f"{title_of(row)}: {way}",
            values_and_mean([float(np.mean(by[name])) if name in by else None for name in names]),
        )
        for (row, way), by in scores.items()
    ]
    return ResultTable(
        "Test accuracy in % by which class is rare",
        ["", *names, "mean"],
        lines,
        "Classes in alphabetical order. The table above pools both ways round.",
    )


UNBALANCED = Study(
    "unbalanced",
    "Unbalanced classes",
    "8 examples of one class and 24 of the other, in dev too, both ways round; with batches drawn "
    "uniformly, and with batches that hold equally many examples of each class.",
    _rows,
    rates_only=True,
    unbalanced=(8, 24),
    reference="cp-tuning, uniform batches",
    variants="both ways round",
    tables=_tables,
)
