"""cptuning reproduce, without its command line: plan, run what is missing, report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from cptuning.errors import CPTuningError
from cptuning.experiments.cells import PlannedCell
from cptuning.experiments.directory import ResultDirectory
from cptuning.experiments.planning import left_out, plan
from cptuning.experiments.report.rendering import write_report
from cptuning.experiments.request import Request
from cptuning.experiments.runners import RUNNERS
from cptuning.experiments.trainer import CandidateTrainer
from cptuning.reporting.formatting import format_duration


@dataclass(frozen=True)
class Workload:
    """How much there is to do."""

    runs: int
    left: int
    seconds: float
    """Of the runs that are left, one after the other."""
    source: str
    """How the seconds are known."""
    by_method: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By method, the runs that are left and their seconds."""

    def sentence(self, workers: int) -> str:
        """All of it in words.

        >>> print(Workload(24, 12, 7200.0, "measured now").sentence(2))
        24 runs, 12 of them still to do: about 2 h 0 min of training (measured now), 1 h 0 min
        with 2 workers if they don't slow each other down.
        """
        said = f"{self.runs} runs, {self.left} of them still to do"
        if self.left == 0:
            return f"{said}."
        said += f": about {format_duration(self.seconds)} of training ({self.source})"
        if workers == 1:
            return f"{said}."
        return (
            f"{said}, {format_duration(self.seconds / workers)} with {workers} workers "
            "if they don't slow each other down."
        )

    def details(self) -> list[str]:
        """What is left, one line per method, the longest first.

        >>> Workload(9, 5, 7.0, "measured now", {"pet": (4, 600.0), "warp": (1, 660.0)}).details()
        ['  warp: 1 run, 11 min', '  pet: 4 runs, 10 min']
        """
        longest = sorted(self.by_method.items(), key=lambda item: -item[1][1])
        return [
            f"  {method}: {runs} run{'s' if runs > 1 else ''}, {format_duration(seconds)}"
            for method, (runs, seconds) in longest
        ]


def reproduce(request: Request, say: Callable[[str], None]) -> list[Path]:
    """Do what the request asks; give the files of the report, none for a dry run."""
    if request.runner not in RUNNERS:
        raise CPTuningError(
            f"There is no runner {request.runner!r}: use one of {', '.join(RUNNERS)}."
        )
    request.studies()  # Refuse an unknown one before anything is loaded.
    if request.report_only:
        return _report(request, say)
    trainer = CandidateTrainer.of(request)
    backbone = trainer.backbone_facts
    planned = plan(request, backbone)
    if out := left_out(request, backbone):
        say(
            f"{backbone['name']} is read without a prompt, as sentence encoders are: "
            f"left out are {', '.join(out)}."
        )
    directory = ResultDirectory(request.output)
    if request.dry_run:
        _say_workload(request, planned, directory, trainer, say)
        return []
    if request.fast:
        say("This is the fast version: two splits, two learning rates, one batch size.")
    directory.add_to_plan([one.cell for one in planned], backbone)
    if not all(directory.is_done(one.cell) for one in planned):
        RUNNERS[request.runner](request, planned, trainer)
    return _report(request, say)


def _say_workload(
    request: Request,
    planned: Sequence[PlannedCell],
    directory: ResultDirectory,
    trainer: CandidateTrainer,
    say: Callable[[str], None],
) -> None:
    """How long it would take: in all, by method, and in the fast version."""
    work = workload(planned, directory, trainer)
    say(work.sentence(request.workers))
    for line in work.details():
        say(line)
    if not work.left:
        return
    if not request.fast:
        fast = plan(replace(request, fast=True), trainer.backbone_facts)
        runs = {candidate.key: one for one in fast for candidate in one.candidates}
        seconds = {method: total / count for method, (count, total) in work.by_method.items()}
        left = [one.cell.method for key, one in runs.items() if not directory.run(key)]
        if all(method in seconds for method in left):
            took = format_duration(sum(seconds[method] for method in left))
            say(
                f"With --fast (two splits, two learning rates, one batch size): {len(left)} runs, "
                f"about {took}. It shows whether everything works, and no significance."
            )
    if request.workers == 1:
        say(
            "With --workers N, N processes share the runs: on CPUs as many as there are cores, "
            "on one large GPU ten or more."
        )


def _report(request: Request, say: Callable[[str], None]) -> list[Path]:
    """Write the report on what is finished.

    It covers the cells in the directory's plan, and needs neither their backbone nor their data:
    both may have changed since.
    """
    studies = request.studies()
    directory = ResultDirectory(request.output)
    names = {study.name for study in studies}
    if not any(directory.is_done(cell) for cell in directory.planned() if cell.study in names):
        raise CPTuningError(
            f"Nothing of {request.study} is finished in {request.output}: leave out --report-only."
        )
    if find_spec("matplotlib") is None:  # A machine that only trains need not have it.
        say(
            f"The finished runs are in {request.output}. The report needs matplotlib: "
            "start the same command where it is installed."
        )
        return []
    if request.publish is not None:
        write_report(directory.publish(request.publish), studies, request.study)
    return write_report(directory, studies, request.study)


def workload(
    planned: Sequence[PlannedCell], directory: ResultDirectory, trainer: CandidateTrainer
) -> Workload:
    """How many runs there are, and how long those that are left will take.

    The time is known from finished runs of the same method; where there are none, it is measured
    on two steps.
    """
    keys = {key for one in planned for key in one.cell.keys}
    known: dict[str, list[float]] = {}
    for run in filter(None, map(directory.run, keys)):
        known.setdefault(run["configuration"]["method"], []).append(run["seconds"])
    mean = {method: float(np.mean(seconds)) for method, seconds in known.items()}
    sources = {"from the records"} if mean else set()
    left: dict[str, tuple[str, float]] = {}
    for one in planned:
        for candidate in one.candidates:
            if candidate.key in left or directory.run(candidate.key):
                continue
            method = one.cell.method
            if method not in mean:
                mean[method] = trainer.estimate_seconds(one)
                sources.add("measured now")
            left[candidate.key] = method, mean[method]
    by_method: dict[str, tuple[int, float]] = {}
    for method, seconds in left.values():
        runs, total = by_method.get(method, (0, 0.0))
        by_method[method] = runs + 1, total + seconds
    total = sum(seconds for _, seconds in left.values())
    return Workload(len(keys), len(left), total, " and ".join(sorted(sources)), by_method)
