"""The paper's table of prompts: CP-Tuning against PET over five prompts."""

from itertools import groupby

import numpy as np

from cptuning.experiments.paper import paper_scores
from cptuning.experiments.report.common_tables import (
    StudyResults,
    number_of_pairs,
    standard_tables,
    tested,
)
from cptuning.experiments.report.parts import Line, ResultTable, Value
from cptuning.experiments.statistics import PairedTest, paired_t_test
from cptuning.experiments.studies.study import Row, Study
from cptuning.experiments.titles import title_of
from cptuning.prompting.catalog import study_prompts


def _rows(dataset: str) -> list[Row]:
    prompts = study_prompts(dataset)
    own = [
        Row("cp-tuning", "cp-tuning", {"template": prompt.template}, prompt.template)
        for prompt in prompts
    ]
    pet = [
        Row(
            "pet",
            "pet",
            {"template": prompt.template, "label_words": prompt.label_words},
            prompt.template,
        )
        for prompt in prompts
    ]
    return own + pet


def _tables(results: StudyResults) -> list[ResultTable]:
    return [*standard_tables(results), _over_prompts(results)]


def _over_prompts(results: StudyResults) -> ResultTable:
    """Mean and deviation over the prompts, with a test of each."""
    accuracy = results.accuracy
    lines: list[Line] = []
    tests: list[PairedTest] = []
    for name in accuracy.datasets:
        by_row = {row: accuracy.values.get((row, name), {}) for row in ("cp-tuning", "pet")}
        if not all(by_row.values()):
            continue
        deviations = {row: _deviations(values) for row, values in by_row.items()}
        seeds = [seed for seed in deviations["cp-tuning"] if seed in deviations["pet"]]
        steadier = paired_t_test(
            [deviations["pet"][s] for s in seeds], [deviations["cp-tuning"][s] for s in seeds]
        )
        numbers = []
        for row, values in by_row.items():
            mean = f"{np.mean(list(values.values())):.1f}"
            spread = f"{np.mean(list(deviations[row].values())):.1f}" if deviations[row] else "–"
            numbers.append(Value(f"{mean} ± {spread}"))
        better = accuracy.over_seeds("cp-tuning", "pet", name)
        tests += [better, steadier]
        lines.append(Line(name, [*numbers, tested(better), tested(steadier)]))
        printed = [_printed(row, name) for row in by_row]
        if all(printed):
            lines.append(Line("the paper", [*map(Value, printed), Value(""), Value("")], "paper"))
    return ResultTable(
        "Five prompts: mean accuracy in % ± deviation over the prompts",
        ["", title_of("cp-tuning"), title_of("pet"), "more accurate", "steadier"],
        lines,
        "The deviation is that over the prompts, averaged over the splits. A pair is a split "
        f"({number_of_pairs(tests)}): for “more accurate”, the mean over the prompts; for "
        "“steadier”, PET's deviation minus CP-Tuning's. Bold: p < 0.05.",
    )


def _deviations(values: dict[tuple[str, int], float]) -> dict[int, float]:
    """By seed, the standard deviation over the prompts."""
    ordered = sorted(values.items(), key=lambda item: item[0][1])
    by_seed = {
        seed: [value for _, value in group]
        for seed, group in groupby(ordered, key=lambda item: item[0][1])
    }
    return {s: float(np.std(v, ddof=1)) for s, v in by_seed.items() if len(v) > 1}


def _printed(row: str, dataset: str) -> str:
    mean = paper_scores("prompts", row).get(dataset)
    spread = paper_scores("prompts", row, table="deviations").get(dataset)
    return "" if mean is None or spread is None else f"{mean:.2f} ± {spread:.2f}"


PROMPTS = Study(
    "prompts",
    "Prompts",
    "How much does the prompt matter? Five prompts; PET also uses the label words of each.",
    _rows,
    rates_only=True,
    variants="the prompts",
    tables=_tables,
)
