"""Work in a background thread that reports its progress and can be cancelled."""

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import Any, Generic, TypeVar

from cptuning.errors import CPTuningError
from cptuning.training import Callback

T = TypeVar("T")

# Seconds between two reports: a small model makes hundreds of steps per second, and a browser that
# had to draw each of them would not react to clicks.
_PAUSE = 0.2


class CancelledError(CPTuningError):
    """The visitor cancelled the job."""


@dataclass(frozen=True)
class Progress:
    """The progress of a job."""

    share: float
    """Between 0 and 1."""
    doing: str
    seconds_left: float | None = None
    news: Any = None
    """An intermediate result, if there is one."""
    is_waiting: bool = False
    """Whether the job has not begun; the seconds are those until it does."""


class BackgroundJob(Generic[T]):
    """A function that runs in a thread of its own and reports through the job it is passed.

    ``seconds`` is how long it will take, if that is known.

    >>> def work(job):
    ...     job.report(0.5, "counting")
    ...     return 42
    >>> job = BackgroundJob(work)
    >>> [progress.doing for progress in job.run()], job.result
    (['counting'], 42)
    """

    def __init__(
        self, work: Callable[["BackgroundJob[T]"], T], seconds: float | None = None
    ) -> None:
        self.seconds_left = seconds
        """By its latest report, or else as was expected."""
        self._work = work
        self._reports: SimpleQueue[Progress | None] = SimpleQueue()
        self._stop = Event()
        self._began = 0.0
        self._result: T | None = None
        self._error: BaseException | None = None

    def report(self, share: float, doing: str, news: Any = None) -> None:
        """Report progress; raises ``CancelledError`` if the job was cancelled."""
        self.require_wanted()
        if share > 0.02:
            spent = monotonic() - self._began
            self.seconds_left = spent / share - spent
        self._reports.put(Progress(share, doing, self.seconds_left, news))

    def expect(self, seconds: float) -> None:
        """Say how many seconds the work will take from now on, until reports tell better."""
        self.seconds_left = seconds

    def require_wanted(self) -> None:
        """Raise ``CancelledError`` if the job was cancelled."""
        if self._stop.is_set():
            raise CancelledError("Cancelled: nothing is lost.")

    def cancel(self) -> None:
        """Stop the work at its next report."""
        self._stop.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether the work stops at its next report, or has stopped."""
        return self._stop.is_set()

    def run(self) -> Generator[Progress, None, None]:
        """Start the work and yield its reports; closing the generator cancels the work."""
        self._began = monotonic()
        thread = Thread(target=self._run, daemon=True)
        thread.start()
        try:
            while (report := self._reports.get()) is not None:
                while not self._reports.empty():  # Skip to the newest report.
                    newer = self._reports.get()
                    if newer is None:
                        self._reports.put(None)
                        break
                    report = newer
                yield report
                thread.join(_PAUSE)
        finally:
            self.cancel()
            thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._result = self._work(self)
        except BaseException as error:  # Raised again by run().
            self._error = error
        finally:
            self._reports.put(None)

    @property
    def result(self) -> T:
        """What the function returned."""
        if self._result is None:
            raise RuntimeError("The job has not finished.")
        return self._result


class TrainingProgressCallback(Callback):
    """Reports the steps of one or several trainings to a job.

    ``about`` is the part of the job's progress that these trainings cover, from 0 to 1.
    """

    def __init__(
        self, job: BackgroundJob[Any], trainings: int, about: tuple[float, float] = (0, 1)
    ) -> None:
        self._job, self._trainings, self._about = job, trainings, about
        self._begun, self._stage, self._last = 0, "", 1

    def on_start(self, stage: str, step: int, last: int) -> None:
        """The next training begins."""
        self._begun += 1
        self._stage, self._last = _plain(stage), max(1, last)
        self._tell(step)

    def on_step(self, step: int, losses: Any) -> None:
        """A step is done."""
        self._tell(step)

    def on_evaluate(self, step: int, score: Any) -> None:
        """Held-out examples were answered."""
        self._tell(step)

    def _tell(self, step: int) -> None:
        start, end = self._about
        done = min(1.0, (self._begun - 1 + step / self._last) / self._trainings)
        doing = f"{self._stage}: step {step} of {self._last}".capitalize()
        self._job.report(start + done * (end - start), doing)


def _plain(stage: str) -> str:
    """The name of a stage for somebody who has not heard of folds.

    >>> _plain("fold 1 of 2"), _plain("training")
    ('checking (1 of 2)', 'training')
    """
    return re.sub(r"fold (\d+) of (\d+)", r"checking (\1 of \2)", stage)
