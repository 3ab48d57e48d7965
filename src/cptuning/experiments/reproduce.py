"""cptuning reproduce, without its command line: plan, run what is missing, report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cptuning.errors import CPTuningError
from cptuning.experiments.plan import Request, Task, plan
from cptuning.experiments.records import Records
from cptuning.experiments.runners import RUNNERS
from cptuning.experiments.trainer import Trainer
from cptuning.reporting.durations import format_duration


@dataclass(frozen=True)
class Amount:
    """How much there is to do."""

    runs: int
    left: int
    seconds: float
    """Of the runs that are left, one after the other."""
    source: str
    """Where that is known from."""

    def sentence(self, workers: int) -> str:
        """All of it in words.

        >>> print(Amount(24, 12, 7200.0, "measured now").sentence(2))
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
    request.studies()  # An unknown one is refused before anything is loaded.
    if request.report_only:
        return _report(request, say)
    trainer = Trainer.of(request)
    tasks = plan(request, trainer.backbone_facts)
    records = Records(request.output)
    if request.dry_run:
        say(amount(tasks, records, trainer).sentence(request.workers))
        return []
    if request.fast:
        say("This is the fast version: two splits, two learning rates, one batch size.")
    records.add_to_plan([task.cell for task in tasks], trainer.backbone_facts)
    if not all(records.is_done(task.cell) for task in tasks):
        RUNNERS[request.runner](request, tasks, trainer)
    return _report(request, say)


def _report(request: Request, say: Callable[[str], None]) -> list[Path]:
    """Write the report of what is finished.

    It is of the runs that the directory says it is about, and needs neither their backbone nor
    their data: both may have changed since.
    """
    studies = request.studies()
    records = Records(request.output)
    names = {study.name for study in studies}
    if not any(records.is_done(cell) for cell in records.planned() if cell.study in names):
        raise CPTuningError(
            f"Nothing of {request.what} is finished in {request.output}: leave out --report-only."
        )
    # Imported only now: a machine that trains need not have what draws and tests.
    try:
        from cptuning.experiments.report import write_report

        if request.publish is not None:
            write_report(records.publish(request.publish), studies, request.what)
        return write_report(records, studies, request.what)
    except ModuleNotFoundError as error:
        say(
            f"All runs are in {request.output}. The report needs {error.name}: "
            "start the same command where it is installed."
        )
        return []


def amount(tasks: Sequence[Task], records: Records, trainer: Trainer) -> Amount:
    """How many runs there are and how long those take that are left.

    By the records of the same method, where there are any; else two steps are made to find out.
    """
    keys = {key for task in tasks for key in task.cell.keys}
    known: dict[str, list[float]] = {}
    for run in filter(None, map(records.run, keys)):
        known.setdefault(run["configuration"]["method"], []).append(run["seconds"])
    mean = {method: float(np.mean(seconds)) for method, seconds in known.items()}
    sources = {"from the records"} if mean else set()
    left: dict[str, float] = {}
    for task in tasks:
        for candidate in task.candidates:
            if candidate.key in left or records.run(candidate.key):
                continue
            method = task.cell.method
            if method not in mean:
                mean[method] = trainer.estimate_seconds(task)
                sources.add("measured now")
            left[candidate.key] = mean[method]
    return Amount(len(keys), len(left), sum(left.values()), " and ".join(sorted(sources)))
