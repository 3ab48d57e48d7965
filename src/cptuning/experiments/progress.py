"""How far a sweep is: runs done, running and left, and the time left."""

import sys
import time
from collections.abc import Sequence
from typing import Any

from cptuning.experiments.plan import Task
from cptuning.experiments.records import Records
from cptuning.reporting.durations import format_duration

_SECONDS_A_LOOK = 0.5
# Where nobody watches a terminal, a line now and then.
_SECONDS_A_LINE = 30.0


class Sweep:
    """The runs of some tasks, counted from their result directory: whoever made them."""

    def __init__(self, tasks: Sequence[Task], records: Records) -> None:
        self.records = records
        self._missing = {key for task in tasks for key in task.cell.keys}
        self.total = len(self._missing)
        self._started = time.monotonic()
        self.count()
        self._at_first = self.done

    def count(self) -> int:
        """How many runs are done by now."""
        self._missing -= self.records.finished()
        return self.done

    @property
    def done(self) -> int:
        """How many were done when they were last counted."""
        return self.total - len(self._missing)

    def seconds_left(self) -> float | None:
        """By the speed so far; None before there is any."""
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


class Display:
    """Shows a sweep on standard error: a bar on a terminal, else a line now and then."""

    def __init__(self, sweep: Sweep, running: int) -> None:
        self.sweep, self.running = sweep, running
        self._looked = self._told = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> "Display":
        if sys.stderr.isatty():
            try:
                from rich.console import Console
                from rich.progress import BarColumn, Progress, TextColumn
            except ImportError:  # The runs themselves do without it.
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
        """Look again, unless it was only just looked at."""
        if self._bar is None and time.monotonic() - self._told < _SECONDS_A_LINE:
            return
        if time.monotonic() - self._looked < _SECONDS_A_LOOK:
            return
        self._looked = time.monotonic()
        line = self.sweep.line(self.running if running is None else running)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.sweep.done, description=line)
        else:
            self._told = time.monotonic()
            print(line, file=sys.stderr, flush=True)
