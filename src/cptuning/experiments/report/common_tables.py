"""The tables that most studies have, made from their scores: ours, the paper's, the difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cptuning.experiments.directory import Outcome, Record, ResultDirectory
from cptuning.experiments.hyperparameters import TUNED
from cptuning.experiments.paper import paper_scores
from cptuning.experiments.report.parts import Line, ResultTable, Value
from cptuning.experiments.scores import Scores
from cptuning.experiments.statistics import PairedTest, average_ranks, rank_correlation
from cptuning.experiments.titles import title_of

if TYPE_CHECKING:
    from cptuning.experiments.studies.study import Study

_MARK = "†"


@dataclass(frozen=True)
class StudyResults:
    """What a study's tables and pictures are made from."""

    study: "Study"
    directory: ResultDirectory
    outcomes: list[Outcome]
    paper_backbone: str
    """The backbone of the paper whose numbers stand beside ours."""

    @cached_property
    def accuracy(self) -> Scores:
        """Test accuracy."""
        return Scores.of(self.outcomes)

    @cached_property
    def f1(self) -> Scores:
        """F1 of the class that says “the same”, where a data set has one."""
        return Scores.of(self.outcomes, "f1")

    @cached_property
    def majority(self) -> dict[str, float]:
        """By data set, the share of its largest class in %."""
        return {one.cell.dataset: 100 * one.test["majority"] for one in self.outcomes}

    def published(self, accuracy: Scores) -> dict[str, list[float | None]]:
        """The paper's accuracy on our data sets, for the rows of ours that the paper has."""
        names = accuracy.datasets
        rows = {
            row: paper_scores(self.study.name, row, self.paper_backbone) for row in accuracy.rows
        }
        return {
            row: [printed.get(name) for name in names]
            for row, printed in rows.items()
            if any(name in printed for name in names)
        }


def standard_tables(results: StudyResults) -> list[ResultTable]:
    """Accuracy with its intervals, F1 where a data set has it, and tests against the reference."""
    tables = [score_table(results, results.accuracy, "Test accuracy in %")]
    tables += agreement_tables(results, results.accuracy) + interval_tables(results.accuracy)
    if results.f1.values:
        tables.append(_f1_table(results.f1))
    reference, rows = results.study.reference, results.accuracy.rows
    if reference in rows and len(rows) > 1:
        tables.append(_test_table(reference, results.accuracy))
    return tables


def score_table(results: StudyResults, accuracy: Scores, caption: str) -> ResultTable:
    """Every row of ours, then the paper's and the difference where the paper has that row."""
    study, theirs, names = results.study, results.paper_backbone, accuracy.datasets
    majority = values_and_mean([results.majority[name] for name in names])
    lines = [Line("majority", majority, "majority")]
    best = _best(accuracy)
    published = results.published(accuracy)
    means_of = {row: [accuracy.mean(row, name) for name in names] for row in accuracy.rows}
    own_ranks, paper_ranks = mean_ranks(means_of), mean_ranks(published)
    for row, means in means_of.items():
        values = _own_values(accuracy, row, best, study.reference)
        lines.append(Line(title_of(row), [*values, own_ranks[row]]))
        if row in published:
            numbers = published[row]
            gaps = [
                None if mean is None or number is None else mean - number
                for mean, number in zip(means, numbers, strict=True)
            ]
            shown = [*values_and_mean(numbers, digits=2), paper_ranks[row]]
            lines.append(Line("the paper", shown, "paper"))
            lines.append(Line("difference", values_and_mean(gaps, signed=True), "difference"))
    over = f"the splits and {study.variants}" if accuracy.pools else "the splits"
    note = f"The paper's backbone: {theirs}. " if published else ""
    note += (
        f"Bold: the best of ours. ±: standard deviation over {over}; for the mean, of the splits' "
        "means."
    )
    has_ranks = len(accuracy.rows) > 1
    if has_ranks:
        note += " Rank: 1 is the best row of a data set; the mean over the data sets"
        note += ", among the paper's rows for the paper." if published else "."
    if study.reference and any(value.mark for line in lines for value in line.values):
        note += (
            f" {_MARK}: {title_of(study.reference)} is significantly better there (p < 0.05, "
            "single-tailed paired t-test over the splits)."
        )
    width = len(names) + (2 if has_ranks else 1)
    lines = [
        Line(line.name, (line.values + [Value("")] * width)[:width], line.kind) for line in lines
    ]
    return ResultTable(caption, ["", *names, "mean", "rank"][: width + 1], lines, note)


def mean_ranks(scores: Mapping[str, Sequence[float | None]]) -> dict[str, Value]:
    """By row, its rank on every data set, averaged; ties share their ranks.

    >>> ranks = mean_ranks({"PET": [80.0, 70.0], "WARP": [90.0, 70.0], "new": [95.0, None]})
    >>> {row: rank.text for row, rank in ranks.items()}
    {'PET': '2.2', 'WARP': '1.8', 'new': '–'}
    """
    table = [[np.nan if v is None else v for v in row] for row in scores.values()]
    means = average_ranks(table)
    return {row: Value(_number(rank)) for row, rank in zip(scores, means, strict=True)}


def agreement_tables(results: StudyResults, accuracy: Scores) -> list[ResultTable]:
    """Whether our rows are in the order of the paper's, where it has at least three of them."""
    names, published = accuracy.datasets, results.published(accuracy)
    columns = []
    for place in range(len(names)):
        pairs = [
            (ours, theirs[place])
            for row, theirs in published.items()
            if (ours := accuracy.mean(row, names[place])) is not None and theirs[place] is not None
        ]
        columns.append(_correlation(pairs))
    averages = [
        (ours, float(np.mean([number for number in theirs if number is not None])))
        for row, theirs in published.items()
        if (ours := accuracy.average(row)) is not None and None not in theirs
    ]
    columns.append(_correlation(averages))
    if all(value.text == "–" for value in columns):
        return []
    return [
        ResultTable(
            "Are our rows in the paper's order? Spearman's ρ",
            ["", *names, "mean"],
            [Line("ρ with the paper", columns)],
            f"1: the same order as with {results.paper_backbone}; −1: the opposite; 0: unrelated. "
            "It can be compared where the levels can't. The last column is that of the rows' means "
            "over the data sets.",
        )
    ]


def _correlation(pairs: Sequence[tuple[float, float | None]]) -> Value:
    known = [(ours, theirs) for ours, theirs in pairs if theirs is not None]
    rho = rank_correlation([ours for ours, _ in known], [theirs for _, theirs in known])
    return Value(_number(rho, signed=True, digits=2), detail=f"{len(known)} rows" if known else "")


def interval_tables(accuracy: Scores) -> list[ResultTable]:
    """The 95 % bootstrap intervals of the means, where there are at least three splits."""
    lines = [
        Line(
            title_of(row),
            [_interval(accuracy.interval(row, name)) for name in [*accuracy.datasets, None]],
        )
        for row in accuracy.rows
    ]
    if all(value.text == "–" for line in lines for value in line.values):
        return []
    return [
        ResultTable(
            "95 % confidence intervals of these means",
            ["", *accuracy.datasets, "mean"],
            lines,
            "Percentile bootstrap over the splits. With so few splits such intervals are rather "
            "too narrow, and they are about other splits of these data sets, not about other data.",
        )
    ]


def _interval(ends: tuple[float, float] | None) -> Value:
    return Value("–" if ends is None else f"{ends[0]:.1f} to {ends[1]:.1f}")


def _own_values(
    accuracy: Scores, row: str, best: dict[str, float], reference: str | None = None
) -> list[Value]:
    """Mean and deviation on each data set, marked where the reference is significantly better."""
    values = []
    for name in accuracy.datasets:
        mean, spread = accuracy.mean(row, name), accuracy.spread(row, name)
        if mean is None:
            values.append(Value("–"))
            continue
        beaten = (
            reference is not None
            and row != reference
            and accuracy.over_seeds(reference, row, name).is_significant
        )
        text = f"{mean:.1f}" if spread is None else f"{mean:.1f} ± {spread:.1f}"
        values.append(Value(text, mean == best[name], _MARK if beaten else ""))
    average, by_split = accuracy.average(row), accuracy.by_split(row)
    shown = "–" if average is None else f"{average:.1f}"
    if average is not None and len(by_split) > 1:
        shown += f" ± {np.std(by_split, ddof=1):.1f}"
    return [*values, Value(shown, average is not None and average == best["mean"])]


def _best(scores: Scores) -> dict[str, float]:
    """The highest mean of each column; a table with a single row has no best."""
    if len(scores.rows) < 2:
        return dict.fromkeys([*scores.datasets, "mean"], float("inf"))
    best = {
        name: max(m for row in scores.rows if (m := scores.mean(row, name)) is not None)
        for name in scores.datasets
    }
    averages = [a for row in scores.rows if (a := scores.average(row)) is not None]
    return best | {"mean": max(averages, default=float("inf"))}


def values_and_mean(
    numbers: Sequence[float | None], *, signed: bool = False, digits: int = 1
) -> list[Value]:
    """Numbers and their mean, if all are known."""
    known = [number for number in numbers if number is not None]
    mean = float(np.mean(known)) if len(known) == len(numbers) else None
    return [Value(_number(number, signed=signed, digits=digits)) for number in (*numbers, mean)]


def _number(number: float | None, *, signed: bool = False, digits: int = 1) -> str:
    """A number with a real minus sign, and none before a zero.

    >>> _number(-0.04, signed=True), _number(-1.0), _number(None)
    ('+0.0', '−1.0', '–')
    """
    if number is None:
        return "–"
    rounded = round(number, digits) + 0.0
    return f"{rounded:{'+' if signed else ''}.{digits}f}".replace("-", "−")


def _f1_table(f1: Scores) -> ResultTable:
    lines = [Line(title_of(row), _own_values(f1, row, _best(f1))) for row in f1.rows]
    return ResultTable(
        "F1 in % of the class that says “the same”",
        ["", *f1.datasets, "mean"],
        lines,
        "Read it beside the accuracy: a model that always says “the same” has an F1 of 2p/(1 + p), "
        "p being the share of that class: 81 % for the 68 % of MRPC. One that never says it has 0.",
    )


def _test_table(reference: str, accuracy: Scores) -> ResultTable:
    """The reference against every other row: over the tasks, and task by task over the seeds."""
    others = [row for row in accuracy.rows if row != reference]
    tasks = [accuracy.over_tasks(reference, row) for row in others]
    splits = [
        [accuracy.over_seeds(reference, row, name) for name in accuracy.datasets] for row in others
    ]
    lines = [
        Line(f"against {title_of(row)}", list(map(tested, [over_tasks, *over_splits])))
        for row, over_tasks, over_splits in zip(others, tasks, splits, strict=True)
    ]
    return ResultTable(
        f"Is “{title_of(reference)}” better? Difference in points and p",
        ["", "over tasks", *accuracy.datasets],
        lines,
        "Single-tailed paired t-tests. Over tasks, as in the paper: a pair is a data set "
        f"({number_of_pairs(tasks)}). In the other columns a pair is a split, with the mean of "
        "both ways round if there are two "
        f"({number_of_pairs([test for row in splits for test in row])}). "
        "There is no p for fewer than three pairs. Bold: p < 0.05, not corrected for the number "
        "of tests.",
    )


def tested(test: PairedTest) -> Value:
    """The difference and p of a test; bold where it is significant."""
    if test.pairs == 0:
        return Value("–")
    difference = _number(test.difference, signed=True)
    return Value(difference, test.is_significant, detail=f"p {test.p_text}")


def number_of_pairs(tests: Sequence[PairedTest]) -> str:
    """How many pairs there are in tests.

    >>> number_of_pairs([PairedTest(1.0, 0.1, 5), PairedTest(1.0, 0.1, 3)]), number_of_pairs([])
    ('n = 3 to 5', 'n = 0')
    """
    return f"n = {number_range(sorted({test.pairs for test in tests} - {0}) or [0])}"


def tuning_tables(directory: ResultDirectory, outcomes: Sequence[Outcome]) -> list[ResultTable]:
    """The values that --tune chose: the median over the splits, the smallest and the largest."""
    chosen: dict[tuple[str, str], list[Record]] = {}
    for one in outcomes:
        runs = filter(None, map(directory.run, one.cell.keys))
        tried = [run["configuration"]["settings"] for run in runs]
        if any(
            len({repr(settings.get(name)) for settings in tried}) > 1 for name in TUNED.values()
        ):
            place = (one.cell.row, one.cell.dataset)
            chosen.setdefault(place, []).append(one.run["configuration"]["settings"])
    if not chosen:
        return []
    lines = []
    for (row, name), settings in chosen.items():
        columns = [[one[setting] for one in settings] for setting in TUNED.values()]
        columns = [
            [1 / value for value in column] if "/" in symbol else column
            for symbol, column in zip(TUNED, columns, strict=True)
        ]
        values = [
            Value(f"{np.median(c):.3g}", detail=f"{min(c):.3g} to {max(c):.3g}") for c in columns
        ]
        lines.append(Line(f"{title_of(row)}, {name}", values))
    return [
        ResultTable(
            "What the tuning chose: median over the splits",
            ["", *TUNED],
            lines,
            "In brackets: the smallest and the largest. Where the preset's own inference was "
            "chosen and uses prototypes, k has no effect. The CSV file has every split.",
        )
    ]


def number_range(numbers: Sequence[int]) -> str:
    """The only number, or the smallest and the largest.

    >>> number_range([4]), number_range([4, 8, 16])
    ('4', '4 to 16')
    """
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def counted(numbers: set[int], noun: str) -> str:
    """How many of something there are.

    >>> counted({1}, "step"), counted({8, 9}, "candidate")
    ('1 step', '8 to 9 candidates')
    """
    return f"{number_range(sorted(numbers))} {noun if numbers == {1} else noun + 's'}"
