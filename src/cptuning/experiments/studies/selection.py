"""Which step is kept: the best on dev, or the last one unless it is clearly worse."""

from cptuning.data import PAPER_DATASETS
from cptuning.experiments.report.common_tables import (
    StudyResults,
    number_of_pairs,
    standard_tables,
    tested,
)
from cptuning.experiments.report.parts import Line, ResultTable
from cptuning.experiments.studies.main import PAPER_METHODS
from cptuning.experiments.studies.study import Row, Study
from cptuning.experiments.titles import title_of

_BEST, _LAST = "best step", "last step"


def _rows(_dataset: str) -> list[Row]:
    return [
        Row(f"{method}, {kept}", method, {"selection": rule})
        for method in PAPER_METHODS
        for rule, kept in (("best", _BEST), ("one-standard-error", _LAST))
    ]


def _tables(results: StudyResults) -> list[ResultTable]:
    return [*standard_tables(results), _last_against_best(results)]


def _last_against_best(results: StudyResults) -> ResultTable:
    """The two rows of every method against each other: over the tasks, and task by task."""
    accuracy = results.accuracy
    methods = [row.removesuffix(f", {_LAST}") for row in accuracy.rows if row.endswith(_LAST)]
    pairs = {method: (f"{method}, {_LAST}", f"{method}, {_BEST}") for method in methods}
    tasks = {method: accuracy.over_tasks(*both) for method, both in pairs.items()}
    lines = [
        Line(
            title_of(method),
            [
                tested(tasks[method]),
                *(tested(accuracy.over_seeds(*both, name)) for name in accuracy.datasets),
            ],
        )
        for method, both in pairs.items()
    ]
    return ResultTable(
        "Is the last step better than the best on dev? Difference in points and p",
        ["", "over tasks", *accuracy.datasets],
        lines,
        "Single-tailed paired t-tests. Over tasks a pair is a data set "
        f"({number_of_pairs(list(tasks.values()))}), in the other columns a split. “Last step”: "
        "unless the best on dev is better by more than a standard error. Bold: p < 0.05, not "
        "corrected for the number of tests.",
    )


SELECTION = Study(
    "selection",
    "Which step is kept",
    "Is it better to keep the step that is best on dev, or the last one unless the best is better "
    "by more than a standard error (“one-standard-error”), as CP-Tuning's default preset does? "
    "For every method; the paper has no such study.",
    _rows,
    PAPER_DATASETS,
    rates_only=True,
    tables=_tables,
)
