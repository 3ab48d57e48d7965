"""cptuning reproduce, without its command line: plan, run what is missing, report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
        say(workload(planned, directory, trainer).sentence(request.workers))
        return []
    if request.fast:
        say("This is the fast version: two splits, two learning rates, one batch size.")
    directory.add_to_plan([one.cell for one in planned], backbone)
    if not all(directory.is_done(one.cell) for one in planned):
        RUNNERS[request.runner](request, planned, trainer)
    return _report(request, say)


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
    left: dict[str, float] = {}
    for one in planned:
        for candidate in one.candidates:
            if candidate.key in left or directory.run(candidate.key):
                continue
            method = one.cell.method
            if method not in mean:
                mean[method] = trainer.estimate_seconds(one)
                sources.add("measured now")
            left[candidate.key] = mean[method]
    return Workload(len(keys), len(left), sum(left.values()), " and ".join(sorted(sources)))
