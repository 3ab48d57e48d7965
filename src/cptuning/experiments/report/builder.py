"""The report on some studies of a result directory, as far as they are finished."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cptuning.experiments.cells import Cell
from cptuning.experiments.directory import Outcome, Record, ResultDirectory
from cptuning.experiments.paper import is_paper_backbone, paper, paper_backbone
from cptuning.experiments.report.common_tables import (
    StudyResults,
    counted,
    number_range,
    tuning_tables,
)
from cptuning.experiments.report.parts import Picture, Report, Section
from cptuning.experiments.report.study_pictures import Splits, splits_picture
from cptuning.experiments.studies import Study, in_study_order
from cptuning.experiments.titles import title_of
from cptuning.reporting.formatting import format_duration


def build_report(directory: ResultDirectory, studies: Sequence[Study]) -> Report:
    """A section per study."""
    names = [study.name for study in studies]
    cells = [cell for cell in directory.planned() if cell.study in names]
    outcomes = in_study_order(one for one in directory.outcomes() if one.cell.study in names)
    sections = [
        _section(
            study,
            directory,
            [cell for cell in cells if cell.study == study.name],
            [one for one in outcomes if one.cell.study == study.name],
        )
        for study in studies
    ]
    title = studies[0].title if len(studies) == 1 else "CP-Tuning: all studies"
    warnings = []
    if any(section.has_paper_numbers for section in sections):
        warnings = _about_backbone(directory, studies)
    return Report(title, _costs(directory, cells), warnings, sections)


def _section(
    study: Study, directory: ResultDirectory, cells: list[Cell], outcomes: list[Outcome]
) -> Section:
    left = [cell for cell in cells if not directory.is_done(cell)]
    # Means over different splits can't be compared: of an unfinished study, show the whole splits.
    whole = sorted({cell.seed for cell in cells} - {cell.seed for cell in left})
    if whole:
        outcomes = [one for one in outcomes if one.cell.seed in whole]
    theirs = paper_backbone(study.name, str(directory.backbone["name"]))
    results = StudyResults(study, directory, outcomes, theirs)
    return Section(
        study.name,
        study.title,
        study.question,
        _facts(cells, outcomes),
        _unfinished(cells, left, whole) + _failures(directory, cells),
        study.tables(results) + tuning_tables(directory, outcomes) if outcomes else [],
        study.pictures(results) if outcomes else [],
        _splits(results),
    )


def _splits(results: StudyResults) -> list[Picture]:
    """By data set, the score of every split, where there are rows to compare."""
    accuracy = results.accuracy
    pictures = []
    for name in accuracy.datasets:
        rows: Splits = {
            title_of(row): {
                f"split {seed}{f', {variant}' if variant else ''}": score
                for (variant, seed), score in accuracy.values[row, name].items()
            }
            for row in accuracy.rows
            if (row, name) in accuracy.values
        }
        if len(rows) > 1:
            pictures.append(
                splits_picture(
                    f"{results.study.name}-splits-{name.lower()}",
                    f"{name}: every split (dots) and the mean (bars).",
                    rows,
                )
            )
    return pictures


def _about_backbone(directory: ResultDirectory, studies: Sequence[Study]) -> list[str]:
    """A warning where the backbone is not the paper's."""
    backbone = directory.backbone
    theirs = paper_backbone(studies[0].name, str(backbone["name"]))
    if is_paper_backbone(str(backbone["name"]), theirs):
        return []
    size = f"{backbone['parameters'] / 1e6:.1f} M parameters"
    return [
        f"The backbone is {backbone['name']} ({size}), not the paper's {theirs}: do "
        "not expect the levels to agree. What can be compared is which row is above which."
    ]


def _costs(directory: ResultDirectory, cells: list[Cell]) -> list[str]:
    """How many runs there are, how long they took, and on what."""
    runs = {key: run for cell in cells for key in cell.keys if (run := directory.run(key))}
    if not runs:
        return []
    seconds: dict[str, list[float]] = {}
    for run in runs.values():
        seconds.setdefault(run["configuration"]["method"], []).append(run["seconds"])
    total = sum(sum(part) for part in seconds.values())
    # Not the mean: a run that was paused, or on a busy machine, says little about the others.
    each = ", ".join(f"{method} {np.median(part):.2f} s" for method, part in seconds.items())
    devices = sorted({run["hardware"]["device"] for run in runs.values()})
    return [
        f"{len(runs)} training runs, {format_duration(total)} in total, on {', '.join(devices)}."
        + _by_the_clock([run for run in runs.values() if "ended" in run]),
        f"A run takes, in the median: {each}.",
        f"Steps of a run: {'; '.join(_budget(list(runs.values()), m) for m in seconds)}.",
    ]


def _by_the_clock(runs: Sequence[Record]) -> str:
    """How long runs took that may have run in parallel, without the pauses between them.

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
    """How many steps a method was trained for at most, and how much it searched."""
    mine = [run for run in runs if run["configuration"]["method"] == method]
    steps = sorted({run["configuration"]["settings"]["steps"] for run in mine})
    said = f"{method} {number_range(steps)}"
    searches = [run["search"] for run in mine if run.get("search")]
    if searches:
        tried = counted({search["candidates"] for search in searches}, "candidate")
        each = counted({search["candidate_steps"] for search in searches}, "step")
        said += f" (after a search: {tried} tuned for {each})"
    return said


def _facts(cells: list[Cell], outcomes: list[Outcome]) -> list[str]:
    seeds = sorted({cell.seed for cell in cells})
    sizes = sorted({len(cell.keys) for cell in cells})
    points = number_range(sizes or [0])
    facts = [
        f"Splits: {', '.join(map(str, seeds))}. Configurations among which dev chose, for each "
        f"split: {points}. The test set was scored once, with the chosen one."
    ]
    if any(cell.fast for cell in cells):
        facts.append(
            "This is the fast version: at most two splits and two learning rates, one batch size."
        )
    rows = {one.cell.dataset: one.test["rows"] for one in outcomes}
    printed = paper()["sizes"]
    other = [
        f"{name} {rows[name]:,} ({printed[name][1]:,})"
        for name in rows
        if name in printed and printed[name][1] != rows[name]
    ]
    if other:
        facts.append(f"Test sets whose size differs from the paper's: {', '.join(other)}.")
    return facts


def _unfinished(cells: list[Cell], left: list[Cell], whole: list[int]) -> list[str]:
    if not left:
        return [] if cells else ["None of it was run."]
    shown = "Rows may be means over different splits."
    if whole:
        splits = f"split {whole[0]}" if len(whole) == 1 else f"splits {', '.join(map(str, whole))}"
        shown = f"Shown: {splits}, for which every row is finished."
    return [f"Not finished: {len(left)} of {len(cells)} cells are still to be run. {shown}"]


def _failures(directory: ResultDirectory, cells: list[Cell]) -> list[str]:
    failures = Counter(
        (cell.row, cell.dataset, run["failed"])
        for cell in cells
        for key in cell.keys
        if (run := directory.run(key)) and "failed" in run
    )
    return [
        f"{title_of(row)} on {dataset} failed in {counted({count}, 'run')}: {why}"
        for (row, dataset, why), count in failures.items()
    ]
