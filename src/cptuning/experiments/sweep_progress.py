"""The progress of a sweep: runs done, running and waiting, and the time left."""

import sys
import time
from collections.abc import Sequence
from typing import Any

from cptuning.experiments.cells import PlannedCell
from cptuning.experiments.directory import ResultDirectory
from cptuning.reporting.formatting import format_duration

_SECONDS_BETWEEN_COUNTS = 0.5
# Where the output is not a terminal.
_SECONDS_BETWEEN_LINES = 30.0


class Sweep:
    """The runs of some cells, counted in their result directory, no matter who made them."""

    def __init__(self, planned: Sequence[PlannedCell], directory: ResultDirectory) -> None:
        self.directory = directory
        self._missing = {key for one in planned for key in one.cell.keys}
        self.total = len(self._missing)
        self._started = time.monotonic()
        self.count()
        self._at_first = self.done

    def count(self) -> int:
        """How many runs are done by now."""
        self._missing -= self.directory.finished()
        return self.done

    @property
    def done(self) -> int:
        """How many were done when they were last counted."""
        return self.total - len(self._missing)

    def seconds_left(self) -> float | None:
        """An estimate from the speed so far; None before a run is finished."""
        here = self.done - self._at_first
        if here == 0:
            return None
        return (time.monotonic() - self._started) / here * len(self._missing)

    def line(self, running: int) -> str:
        """All of it in words."""
        done = self.count()
        left = self.total - done
        running = min(running, left)
        seconds = self.seconds_left()
        time_left = (
            "" if seconds is None or left == 0 else f", about {format_duration(seconds)} left"
        )
        return f"{done} runs done, {running} running, {left - running} waiting{time_left}"


class SweepDisplay:
    """Shows a sweep on standard error: a bar on a terminal, else a line now and then."""

    def __init__(self, sweep: Sweep, running: int) -> None:
        self.sweep, self.running = sweep, running
        self._counted = self._printed = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> "SweepDisplay":
        if sys.stderr.isatty():
            try:
                from rich.console import Console
                from rich.progress import BarColumn, Progress, TextColumn
            except ImportError:  # The runs do not need it.
                return self
            self._bar = Progress(
                BarColumn(bar_width=None),
                TextColumn("{task.description}"),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=self.sweep.total)
        self.update()
        return self

    def __exit__(self, *_: object) -> None:
        self.update()
        if self._bar is not None:
            self._bar.stop()

    def update(self, running: int | None = None) -> None:
        """Count again, unless that was done just before."""
        if self._bar is None and time.monotonic() - self._printed < _SECONDS_BETWEEN_LINES:
            return
        if time.monotonic() - self._counted < _SECONDS_BETWEEN_COUNTS:
            return
        self._counted = time.monotonic()
        line = self.sweep.line(self.running if running is None else running)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.sweep.done, description=line)
        else:
            self._printed = time.monotonic()
            print(line, file=sys.stderr, flush=True)
