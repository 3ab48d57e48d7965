"""Trainings take turns: each uses all cores, and the global random generator."""

from collections.abc import Generator
from threading import Condition
from typing import Any

from cptuning.app.background_job import BackgroundJob, Progress


class TrainingQueue:
    """One job at a time, for all visitors, in the order in which they came.

    >>> queue = TrainingQueue()
    >>> [progress.doing for progress in queue.run(BackgroundJob(lambda job: job.report(1, "done")))]
    ['done']
    """

    def __init__(self) -> None:
        self._jobs: list[BackgroundJob[Any]] = []
        self._changed = Condition()

    def run(self, job: BackgroundJob[Any], patience: float = 1.0) -> Generator[Progress]:
        """The reports of a job once it is its turn, and until then how long it has to wait.

        It looks every ``patience`` seconds whether it was cancelled meanwhile.
        """
        with self._changed:
            self._jobs.append(job)
        try:
            while ahead := self._ahead_of(job):
                job.require_wanted()
                yield waiting(ahead)
                with self._changed:
                    self._changed.wait_for(lambda: self._jobs[0] is job, timeout=patience)
            yield from job.run()
        finally:
            with self._changed:
                self._jobs.remove(job)
                self._changed.notify_all()

    def _ahead_of(self, job: BackgroundJob[Any]) -> list[BackgroundJob[Any]]:
        with self._changed:
            return self._jobs[: self._jobs.index(job)]


def waiting(ahead: list[BackgroundJob[Any]]) -> Progress:
    """What is said to whom waits for these jobs; it says how long if all of them know.

    >>> first, second = BackgroundJob(print, seconds=20), BackgroundJob(print)
    >>> waiting([first])
    Progress(share=0.0, doing='Another training is running, yours is next', seconds_left=20, ...)
    >>> waiting([first, second]).doing, waiting([first, second]).seconds_left
    ('2 trainings come before yours', None)
    """
    left = [job.seconds_left for job in ahead]
    known = [seconds for seconds in left if seconds is not None]
    doing = (
        "Another training is running, yours is next"
        if len(ahead) == 1
        else f"{len(ahead)} trainings come before yours"
    )
    return Progress(0.0, doing, sum(known) if len(known) == len(left) else None, is_waiting=True)
