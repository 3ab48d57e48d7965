"""From the scores of a study to its section: ours, the paper's, the majority, the difference."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from cptuning.experiments.document import Document, Line, Picture, Section, Table, Value
from cptuning.experiments.paper import is_paper_backbone, paper, paper_backbone, paper_scores
from cptuning.experiments.pictures import (
    averages_pictures,
    embedding_pictures,
    parameter_pictures,
)
from cptuning.experiments.plan import Cell
from cptuning.experiments.records import Record, Records
from cptuning.experiments.results import Outcome, Scores, outcomes
from cptuning.experiments.statistics import PairedTest, paired_t_test
from cptuning.experiments.studies import PARAMETERS, SELECTIONS, TUNED, Study, title_of
from cptuning.reporting.durations import format_duration

# Which row the others are tested against.
REFERENCE = {
    "main": "cp-tuning",
    "ablation": "full",
    "unbalanced": "cp-tuning, uniform batches",
    "inference": "prototypes",
}
MARK = "†"


def document(records: Records, studies: Sequence[Study]) -> Document:
    """The report on some studies of a result directory, as far as they are done."""
    names = [study.name for study in studies]
    cells = [cell for cell in records.planned() if cell.study in names]
    found = [one for one in outcomes(records) if one.cell.study in names]
    sections = [
        _section(
            study,
            records,
            [cell for cell in cells if cell.study == study.name],
            [one for one in found if one.cell.study == study.name],
        )
        for study in studies
    ]
    title = studies[0].title if len(studies) == 1 else "CP-Tuning: the paper's experiments"
    return Document(title, _costs(records, cells), _about_backbone(records, studies), sections)


def _section(study: Study, records: Records, cells: list[Cell], found: list[Outcome]) -> Section:
    backbone = str(records.backbone["name"])
    left = [cell for cell in cells if not records.is_done(cell)]
    # Means over other splits can't be compared: of an unfinished study, those that are whole.
    whole = sorted({cell.seed for cell in cells} - {cell.seed for cell in left})
    if whole:
        found = [one for one in found if one.cell.seed in whole]
    accuracy, f1 = Scores.of(found), Scores.of(found, "f1")
    theirs = paper_backbone(study.name, backbone)
    tables, pictures = [], []
    if found:
        majority = {one.cell.dataset: 100 * one.test["majority"] for one in found}
        # A table has a best of its own: one for each parameter.
        parts = {"": ""}
        if study.name == "parameters":
            parts = {f"{symbol} = ": f", by {symbol}" for symbol in PARAMETERS}
        for begins, by in parts.items():
            if (part := accuracy.only(begins)).values:
                tables.append(_score_table(study, part, majority, theirs, by))
        if f1.values and len(parts) == 1:
            tables.append(_f1_table(f1))
        tables += _more_tables(study, found, accuracy) + _tuning_tables(records, found)
        pictures = _pictures(study, records, found, accuracy, theirs)
    return Section(
        study.name,
        study.title,
        study.question,
        _facts(cells, found),
        _unfinished(cells, left, whole) + _failures(records, cells),
        tables,
        pictures,
    )


def _more_tables(study: Study, found: list[Outcome], accuracy: Scores) -> list[Table]:
    tables = []
    reference = REFERENCE.get(study.name)
    if reference in accuracy.rows and len(accuracy.rows) > 1:
        assert reference is not None
        tables.append(_test_table(reference, accuracy))
    if study.name == "unbalanced":
        tables.append(_ways_table(found))
    if study.name == "prompts":
        tables.append(_prompts_table(accuracy))
    if study.name == "selection":
        tables.append(_selection_table(accuracy))
    return tables


def _pictures(
    study: Study, records: Records, found: list[Outcome], accuracy: Scores, theirs: str
) -> list[Picture]:
    if study.name == "main":
        return averages_pictures(accuracy, theirs)
    if study.name == "parameters":
        return parameter_pictures(accuracy)
    if study.keeps_embeddings:
        return embedding_pictures(records, found)
    return []


def _score_table(
    study: Study, accuracy: Scores, majority: dict[str, float], theirs: str, by: str = ""
) -> Table:
    """Every row of ours, then the paper's and the difference where the paper has that row."""
    names = accuracy.datasets
    lines = [Line("majority", _values([majority[name] for name in names]), "majority")]
    best = _best(accuracy)
    for row in accuracy.rows:
        values = _own_values(accuracy, row, best, REFERENCE.get(study.name))
        lines.append(Line(title_of(row), values))
        printed = paper_scores(study.name, row, theirs)
        if any(name in printed for name in names):
            means = [accuracy.mean(row, name) for name in names]
            numbers = [printed.get(name) for name in names]
            gaps = [
                None if mean is None or number is None else mean - number
                for mean, number in zip(means, numbers, strict=True)
            ]
            lines.append(Line("the paper", _values(numbers, digits=2), "paper"))
            lines.append(Line("difference", _values(gaps, signed=True), "difference"))
    reference = REFERENCE.get(study.name)
    pooled = {"prompts": " and the prompts", "unbalanced": " and both ways round"}
    over = pooled.get(study.name, "") if accuracy.pools else ""
    note = (
        f"The paper's backbone: {theirs}. Bold: the best of ours. ±: standard deviation over "
        f"the splits{over}."
    )
    if reference and any(v.mark for line in lines for v in line.values):
        note += (
            f" {MARK}: {title_of(reference)} is significantly better there (p < 0.05, "
            "single-tailed paired t-test over the splits)."
        )
    return Table(f"Test accuracy in %{by}", ["", *names, "mean"], lines, note)


def _own_values(
    accuracy: Scores, row: str, best: dict[str, float], reference: str | None = None
) -> list[Value]:
    """Mean and deviation on each data set; marked where the reference is better for sure."""
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
        values.append(Value(text, mean == best[name], MARK if beaten else ""))
    average = accuracy.average(row)
    shown = "–" if average is None else f"{average:.1f}"
    return [*values, Value(shown, average is not None and average == best["mean"])]


def _best(scores: Scores) -> dict[str, float]:
    """The highest mean of every column; a table of a single row has no best."""
    if len(scores.rows) < 2:
        return dict.fromkeys([*scores.datasets, "mean"], float("inf"))
    best = {
        name: max(m for row in scores.rows if (m := scores.mean(row, name)) is not None)
        for name in scores.datasets
    }
    averages = [a for row in scores.rows if (a := scores.average(row)) is not None]
    return best | {"mean": max(averages, default=float("inf"))}


def _values(
    numbers: Sequence[float | None], *, signed: bool = False, digits: int = 1
) -> list[Value]:
    """Numbers and their mean, if all are known."""
    known = [number for number in numbers if number is not None]
    mean = float(np.mean(known)) if len(known) == len(numbers) else None
    return [Value(_number(number, signed=signed, digits=digits)) for number in (*numbers, mean)]


def _number(number: float | None, *, signed: bool = False, digits: int = 1) -> str:
    """A number with a real minus, and no minus before nothing.

    >>> _number(-0.04, signed=True), _number(-1.0), _number(None)
    ('+0.0', '−1.0', '–')
    """
    if number is None:
        return "–"
    rounded = round(number, digits) + 0.0
    return f"{rounded:{'+' if signed else ''}.{digits}f}".replace("-", "−")


def _f1_table(f1: Scores) -> Table:
    lines = [Line(title_of(row), _own_values(f1, row, _best(f1))) for row in f1.rows]
    return Table(
        "F1 in % of the class that says “the same”",
        ["", *f1.datasets, "mean"],
        lines,
        "Read it beside the accuracy: a model that always says “the same” has an F1 of 2p/(1 + p), "
        "p being their share, 81 % with the 68 % of MRPC; one that never says it has 0.",
    )


def _test_table(reference: str, accuracy: Scores) -> Table:
    """The reference against every other row: over the tasks, and task by task over the seeds."""
    others = [row for row in accuracy.rows if row != reference]
    tasks = [accuracy.over_tasks(reference, row) for row in others]
    splits = [
        [accuracy.over_seeds(reference, row, name) for name in accuracy.datasets] for row in others
    ]
    lines = [
        Line(f"against {title_of(row)}", list(map(_tested, [over_tasks, *over_splits])))
        for row, over_tasks, over_splits in zip(others, tasks, splits, strict=True)
    ]
    return Table(
        f"Is “{title_of(reference)}” better? Difference in points and p",
        ["", "over tasks", *accuracy.datasets],
        lines,
        "Single-tailed paired t-tests. Over tasks, as in the paper: a pair is a data set "
        f"({_pairs(tasks)}). In the other columns a pair is a split, with the mean of both ways "
        f"round if there are two ({_pairs([test for row in splits for test in row])}). "
        "Bold: p < 0.05, not corrected for the number of tests.",
    )


def _tested(test: PairedTest) -> Value:
    if test.pairs == 0:
        return Value("–")
    difference = _number(test.difference, signed=True)
    return Value(difference, test.is_significant, detail=f"p {test.p_text}")


def _pairs(tests: Sequence[PairedTest]) -> str:
    """How many pairs there are in tests.

    >>> _pairs([PairedTest(1.0, 0.1, 5), PairedTest(1.0, 0.1, 3)]), _pairs([])
    ('n = 3 to 5', 'n = 0')
    """
    return f"n = {_range(sorted({test.pairs for test in tests} - {0}) or [0])}"


def _ways_table(found: list[Outcome]) -> Table:
    """The unbalanced results apart: who has 8 examples, and who 24."""
    scores: dict[tuple[str, str], dict[str, list[float]]] = {}
    names = Scores.of(found).datasets
    for one in found:
        # The ways are named after labels, which differ by data set: here by their order.
        way = "first class rare" if one.cell.counts[0][1] < one.cell.counts[1][1] else "second rare"
        by_name = scores.setdefault((one.cell.row, way), {})
        by_name.setdefault(one.cell.dataset, []).append(100 * one.test["accuracy"])
    lines = [
        Line(
            f"{title_of(row)}: {way}",
            _values([float(np.mean(by[name])) if name in by else None for name in names]),
        )
        for (row, way), by in scores.items()
    ]
    return Table(
        "Test accuracy in % by which class is rare",
        ["", *names, "mean"],
        lines,
        "Classes in alphabetical order. In the table above both ways are pooled.",
    )


def _prompts_table(accuracy: Scores) -> Table:
    """Mean and deviation over the prompts, with the tests on both."""
    lines: list[Line] = []
    tests: list[tuple[PairedTest, PairedTest]] = []
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
        tests += [(better, steadier)]
        lines.append(Line(name, [*numbers, _tested(better), _tested(steadier)]))
        printed = [_printed_prompt(row, name) for row in by_row]
        if all(printed):
            lines.append(Line("the paper", [*map(Value, printed), Value(""), Value("")], "paper"))
    return Table(
        "Five prompts: mean accuracy in % ± deviation over the prompts",
        ["", title_of("cp-tuning"), title_of("pet"), "more accurate", "steadier"],
        lines,
        "The deviation is that over the prompts, averaged over the splits. A pair is a split "
        f"({_pairs([test for both in tests for test in both])}): more accurate, with the mean over "
        "the prompts; steadier, with PET's deviation minus CP-Tuning's. Bold: p < 0.05.",
    )


def _selection_table(accuracy: Scores) -> Table:
    """Every method's rows against each other: over the tasks, and task by task."""
    best, last = SELECTIONS.values()
    methods = [row.removesuffix(f", {last}") for row in accuracy.rows if row.endswith(last)]
    pairs = {method: (f"{method}, {last}", f"{method}, {best}") for method in methods}
    tasks = {method: accuracy.over_tasks(*both) for method, both in pairs.items()}
    lines = [
        Line(
            title_of(method),
            [
                _tested(tasks[method]),
                *(_tested(accuracy.over_seeds(*both, name)) for name in accuracy.datasets),
            ],
        )
        for method, both in pairs.items()
    ]
    return Table(
        "Is the last step better than the best on dev? Difference in points and p",
        ["", "over tasks", *accuracy.datasets],
        lines,
        "Single-tailed paired t-tests. Over tasks a pair is a data set "
        f"({_pairs(list(tasks.values()))}), in the other columns a split. “Last step”: unless the "
        "best on dev is better by more than a standard error. Bold: p < 0.05, not corrected for "
        "the number of tests.",
    )


def _tuning_tables(records: Records, found: Sequence[Outcome]) -> list[Table]:
    """The values that --tune chose: the median over the splits, the smallest and the largest."""
    chosen: dict[tuple[str, str], list[Record]] = {}
    for one in found:
        tried = [run["configuration"]["settings"] for run in map(records.run, one.cell.keys) if run]
        if any(
            len({repr(settings.get(name)) for settings in tried}) > 1 for name in TUNED.values()
        ):
            place = (one.cell.row, one.cell.dataset)
            chosen.setdefault(place, []).append(one.run["configuration"]["settings"])
    if not chosen:
        return []
    lines = []
    for (row, name), runs in chosen.items():
        columns = [[run[setting] for run in runs] for setting in TUNED.values()]
        columns = [
            [1 / value for value in column] if "/" in symbol else column
            for symbol, column in zip(TUNED, columns, strict=True)
        ]
        values = [
            Value(f"{np.median(c):.3g}", detail=f"{min(c):.3g} to {max(c):.3g}") for c in columns
        ]
        lines.append(Line(f"{title_of(row)}, {name}", values))
    return [
        Table(
            "What the tuning chose: median over the splits",
            ["", *TUNED],
            lines,
            "In brackets the smallest and the largest. Where the preset's own inference was "
            "chosen, k has no effect if that is one of prototypes; the CSV file has every split.",
        )
    ]


def _deviations(values: dict[tuple[str, int], float]) -> dict[int, float]:
    """By seed, the standard deviation over the prompts."""
    ordered = sorted(values.items(), key=lambda item: item[0][1])
    by_seed = {
        seed: [value for _, value in group]
        for seed, group in groupby(ordered, key=lambda item: item[0][1])
    }
    return {s: float(np.std(v, ddof=1)) for s, v in by_seed.items() if len(v) > 1}


def _printed_prompt(row: str, dataset: str) -> str:
    mean = paper_scores("prompts", row).get(dataset)
    spread = paper_scores("prompts", row, table="deviations").get(dataset)
    return "" if mean is None or spread is None else f"{mean:.2f} ± {spread:.2f}"


def _about_backbone(records: Records, studies: Sequence[Study]) -> list[str]:
    """Plain words where the backbone is not the paper's."""
    backbone = records.backbone
    theirs = paper_backbone(studies[0].name, str(backbone["name"]))
    if is_paper_backbone(str(backbone["name"]), theirs):
        return []
    size = f"{backbone['parameters'] / 1e6:.1f} M parameters"
    return [
        f"The backbone is {backbone['name']} ({size}), not the paper's {theirs}: the levels are "
        "not to be expected to agree. What can be compared is which row is above which."
    ]


def _costs(records: Records, cells: list[Cell]) -> list[str]:
    """How many runs, how long each, and on what."""
    runs = {key: run for cell in cells for key in cell.keys if (run := records.run(key))}
    if not runs:
        return []
    seconds: dict[str, list[float]] = {}
    for run in runs.values():
        seconds.setdefault(run["configuration"]["method"], []).append(run["seconds"])
    total = sum(sum(part) for part in seconds.values())
    # Not the mean: a run that was paused or met a busy machine says little about the others.
    each = ", ".join(f"{method} {np.median(part):.2f} s" for method, part in seconds.items())
    devices = sorted({run["hardware"]["device"] for run in runs.values()})
    return [
        f"{len(runs)} training runs, {format_duration(total)} added up, on {', '.join(devices)}."
        + _by_the_clock([run for run in runs.values() if "ended" in run]),
        f"A run takes, in the median: {each}.",
        f"Steps of a run: {'; '.join(_budget(list(runs.values()), m) for m in seconds)}.",
    ]


def _by_the_clock(runs: Sequence[Record]) -> str:
    """How long runs took that may have been made side by side, without the pauses between them.

    >>> spans = {100: 60, 130: 60, 160: 120, 500: 60}  # 40 to 160, and 440 to 500
    >>> _by_the_clock([{"ended": ended, "seconds": took} for ended, took in spans.items()])
    ' 4 of them took 3 min by the clock, one every 45 s.'
    """
    if not runs:
        return ""
    busy = until = 0.0
    for began, ended in sorted((run["ended"] - run["seconds"], run["ended"]) for run in runs):
        busy += max(0.0, ended - max(until, began))
        until = max(until, ended)
    each = busy / len(runs)
    return (
        f" {len(runs)} of them took {format_duration(busy)} by the clock, one every "
        f"{f'{each:.2f} s' if each < 10 else format_duration(each)}."
    )


def _budget(runs: Sequence[Record], method: str) -> str:
    """How long a method was trained at most, and how much it searched."""
    mine = [run for run in runs if run["configuration"]["method"] == method]
    steps = sorted({run["configuration"]["settings"]["steps"] for run in mine})
    said = f"{method} {_range(steps)}"
    searches = [run["search"] for run in mine if run.get("search")]
    if searches:
        tried = _range(sorted({search["candidates"] for search in searches}))
        each = _range(sorted({search["candidate_steps"] for search in searches}))
        steps_each = f"{each} step" if each == "1" else f"{each} steps"
        said += f" (after a search: {tried} candidates tuned for {steps_each})"
    return said


def _range(numbers: Sequence[int]) -> str:
    """The only number, or the smallest and the largest.

    >>> _range([4]), _range([4, 8, 16])
    ('4', '4 to 16')
    """
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _facts(cells: list[Cell], found: list[Outcome]) -> list[str]:
    seeds = sorted({cell.seed for cell in cells})
    sizes = sorted({len(cell.keys) for cell in cells})
    points = _range(sizes or [0])
    facts = [
        f"Splits: {', '.join(map(str, seeds))}. Configurations that the dev split chose among, "
        f"for each split: {points}. The test set was scored once, with the chosen one."
    ]
    if any(cell.fast for cell in cells):
        facts.append(
            "This is the fast version: two splits and two learning rates at most, one batch size."
        )
    rows = {one.cell.dataset: one.test["rows"] for one in found}
    printed = paper()["sizes"]
    other = [
        f"{name} {rows[name]:,} ({printed[name][1]:,})"
        for name in rows
        if name in printed and printed[name][1] != rows[name]
    ]
    if other:
        facts.append(f"Test sets of another size than the paper's: {', '.join(other)}.")
    return facts


def _unfinished(cells: list[Cell], left: list[Cell], whole: list[int]) -> list[str]:
    if not left:
        return [] if cells else ["Nothing of it was run."]
    shown = "Rows may be means over different splits."
    if whole:
        splits = f"split {whole[0]}" if len(whole) == 1 else f"splits {', '.join(map(str, whole))}"
        shown = f"What is shown is of {splits}, where every row is there."
    return [f"Not finished: {len(left)} of {len(cells)} cells are still to be run. {shown}"]


def _failures(records: Records, cells: list[Cell]) -> list[str]:
    failures = Counter(
        (cell.row, cell.dataset, run["failed"])
        for cell in cells
        for key in cell.keys
        if (run := records.run(key)) and "failed" in run
    )
    return [
        f"{title_of(row)} on {dataset} failed in {count} run{'' if count == 1 else 's'}: {why}"
        for (row, dataset, why), count in failures.items()
    ]
