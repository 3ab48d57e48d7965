"""Does it help to start from a model of other tasks? Leave one data set out, with few examples."""

from cptuning.data import EVERYDAY_DATASETS
from cptuning.experiments.report.common_tables import (
    StudyResults,
    number_of_pairs,
    standard_tables,
    tested,
)
from cptuning.experiments.report.parts import Line, ResultTable
from cptuning.experiments.studies.study import Row, Study

SHOTS = (4, 8, 16)
# One of its classes has 14 examples.
_DATASETS = tuple(name for name in EVERYDAY_DATASETS if name != "DSTC11_insurance")
_PLAIN, _TRANSFERRED = "from the backbone", "from other tasks"


def _rows(_dataset: str) -> list[Row]:
    return [
        Row(f"{shots} examples, {start}", "cp-tuning", shots=shots, transfers=transfers)
        for shots in SHOTS
        for start, transfers in ((_PLAIN, False), (_TRANSFERRED, True))
    ]


def _tables(results: StudyResults) -> list[ResultTable]:
    return [*standard_tables(results), _gains(results)]


def _gains(results: StudyResults) -> ResultTable:
    """What the start adds, for every number of examples: over the tasks, and task by task."""
    accuracy = results.accuracy
    counts = [row.removesuffix(f", {_PLAIN}") for row in accuracy.rows if row.endswith(_PLAIN)]
    pairs = {count: (f"{count}, {_TRANSFERRED}", f"{count}, {_PLAIN}") for count in counts}
    tasks = {count: accuracy.over_tasks(*both) for count, both in pairs.items()}
    lines = [
        Line(
            count,
            [
                tested(tasks[count]),
                *(tested(accuracy.over_seeds(*both, name)) for name in accuracy.datasets),
            ],
        )
        for count, both in pairs.items()
    ]
    return ResultTable(
        "Is it better to start from a model of the other tasks? Difference in points and p",
        ["", "over tasks", *accuracy.datasets],
        lines,
        "Single-tailed paired t-tests. Over tasks a pair is a data set "
        f"({number_of_pairs(list(tasks.values()))}), in the other columns a split. Bold: p < 0.05, "
        "not corrected for the number of tests.",
    )


TRANSFER = Study(
    "transfer",
    "Starting from other tasks",
    "Does it help to start from a model that was trained on other data sets (init_from), if there "
    "are 4, 8 or 16 examples per class? The start of a data set is one model of all others, with "
    "at most 16 examples of each of their classes. Everything else is the preset's, and dev "
    "chooses the step; the paper has no such study.",
    _rows,
    _DATASETS,
    in_all=False,
    own_rate=True,
    fast_datasets=("TREC", "tweeteval_emotion", "SST5", "Airline_tweets"),
    tables=_tables,
)
