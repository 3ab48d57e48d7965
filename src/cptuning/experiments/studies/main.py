"""The paper's main table: every method on every data set."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cptuning.data import PAPER_DATASETS
from cptuning.experiments.paper import paper_scores
from cptuning.experiments.report.common_tables import StudyResults
from cptuning.experiments.report.parts import Picture
from cptuning.experiments.report.study_pictures import Averages, averages_picture
from cptuning.experiments.studies.study import Row, Study
from cptuning.experiments.titles import title_of

# The method of a row, and what is set for it. The paper has the first eight.
METHOD_ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "fine-tuning": ("fine-tuning", {}),
    "pet": ("pet", {}),
    "lm-bff-t": ("lm-bff-t", {}),
    "lm-bff-l": ("lm-bff-l", {}),
    "lm-bff-tl": ("lm-bff-tl", {}),
    "p-tuning": ("p-tuning", {}),
    "warp": ("warp", {}),
    "cp-tuning": ("cp-tuning", {}),
    "zero-shot": ("pet", {"steps": 0}),
    "warp-random": ("warp", {"class_vectors": "random"}),
    "cp-tuning-released": ("cp-tuning", {"preset": "released"}),
}
PAPER_METHODS = tuple(METHOD_ROWS)[:8]
_UNASKED = (*PAPER_METHODS, "zero-shot", "warp-random")


def _rows(_dataset: str) -> list[Row]:
    return [Row(name, method, dict(changes)) for name, (method, changes) in METHOD_ROWS.items()]


def _named(rows: list[Row], methods: Sequence[str]) -> list[Row]:
    """Here ``--methods`` names rows, since a method has several.

    >>> [row.name for row in MAIN.rows("MR", ["zero-shot"])]
    ['zero-shot']
    >>> [row.name for row in MAIN.rows("MR")][-3:]
    ['cp-tuning', 'zero-shot', 'warp-random']
    """
    return [row for row in rows if row.name in (methods or _UNASKED)]


def _averages(results: StudyResults) -> list[Picture]:
    """The table at a glance: the average of every row that has all data sets."""
    accuracy, theirs = results.accuracy, results.paper_backbone
    names = accuracy.datasets
    rows: Averages = {}
    for row in accuracy.rows:
        means = [mean for name in names if (mean := accuracy.mean(row, name)) is not None]
        if len(means) == len(names):
            printed = paper_scores("main", row, theirs)
            numbers = [printed[name] for name in names if name in printed]
            average = float(np.mean(numbers)) if len(numbers) == len(names) else None
            rows[title_of(row)] = means, average
    if len(rows) < 2 or len(names) < 2:
        return []
    return [
        averages_picture(
            "main-averages",
            f"Test accuracy on the {len(names)} data sets (small dots), its average (large dots), "
            f"and the paper's average with {theirs} (diamonds).",
            rows,
        )
    ]


MAIN = Study(
    "main",
    "The methods on every data set",
    "Is CP-Tuning better than its seven rivals with 16 examples per class? PET has one pattern "
    "here and no unlabelled texts; LM-BFF's templates are filled in by the backbone itself (MLM), "
    "not by a T5 as in the paper. Dev also chooses the step, by the same rule for all methods: "
    "the best one.",
    _rows,
    PAPER_DATASETS,
    choose_rows=_named,
    reference="cp-tuning",
    pictures=_averages,
)
