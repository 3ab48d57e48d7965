"""The one thread that works with a model: takes requests from a bounded queue, in batches."""

import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from threading import Condition, Thread

from cptuning.data import Examples
from cptuning.inference import Predictor, Reasons
from cptuning.inference.predictor import Answered
from cptuning.serving.api_errors import ApiError, overloaded
from cptuning.serving.limits import Limits
from cptuning.serving.served_model import AddedExamples, ServedModel

_log = logging.getLogger("cptuning")

# How much the newest batch counts in the estimate of the time that a text takes.
_NEWEST = 0.2


@dataclass(frozen=True)
class ModelOutput:
    """What a model said of the texts of one request, and the model as it was then."""

    predictor: Predictor
    answered: Answered
    reasons: list[Reasons] | None


@dataclass(frozen=True)
class _QueuedTexts:
    """Texts to be read, with others in one batch."""

    examples: Examples
    neighbours: int
    future: Future[ModelOutput] = field(default_factory=Future)

    def __len__(self) -> int:
        return len(self.examples)


@dataclass(frozen=True)
class _QueuedExamples:
    """Examples to be learned, alone."""

    examples: Examples
    labels: Sequence[Hashable]
    future: Future[AddedExamples] = field(default_factory=Future)

    def __len__(self) -> int:
        return len(self.examples)


class BatchWorker:
    """A model with its thread and its queue.

    Requests are taken in the order in which they came: what is asked after examples were added
    is answered with them. ``predecessor`` is the worker that this one takes over from: it first
    finishes what it accepted, and the examples that it learned meanwhile are caught up on.
    """

    def __init__(
        self,
        model: ServedModel,
        limits: Limits,
        observe_batch: Callable[[int], None],
        predecessor: "BatchWorker | None" = None,
    ) -> None:
        self.model = model
        self._limits = limits
        self._observe_batch = observe_batch
        self._jobs: deque[_QueuedTexts | _QueuedExamples] = deque()
        self._changed = Condition()
        self._retired = False
        self._seconds_a_row = 0.01
        self.queued_rows = 0
        # A daemon: a batch that hangs must not keep the process from ending.
        self._thread = Thread(target=self._run, daemon=True)
        self._predecessor = predecessor
        if predecessor is not None:
            predecessor.retire()
        self._thread.start()

    def read(self, examples: Examples, neighbours: int = 0) -> Future[ModelOutput]:
        """The model's answer, in time; refused at once when too much is waiting."""
        reading = _QueuedTexts(examples, neighbours)
        self._accept(reading)
        return reading.future

    def learn(self, examples: Examples, labels: Sequence[Hashable]) -> Future[AddedExamples]:
        """What became of more examples, in time; they are on the disk by then."""
        learning = _QueuedExamples(examples, labels)
        self._accept(learning)
        return learning.future

    def retire(self) -> None:
        """Accept nothing more; the thread ends when what was accepted is done."""
        with self._changed:
            self._retired = True
            self._changed.notify()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread."""
        self._thread.join(timeout)

    @property
    def is_alive(self) -> bool:
        """Whether there is somebody to do the work."""
        return self._thread.is_alive()

    def _accept(self, job: _QueuedTexts | _QueuedExamples) -> None:
        with self._changed:
            if self._retired:
                raise ApiError(503, "The server is shutting down.")
            # A request that is alone is taken however large it is, or it never would be.
            if self._jobs and self._is_too_much(self.queued_rows + len(job)):
                raise overloaded(self.queued_rows * self._seconds_a_row)
            self._jobs.append(job)
            self.queued_rows += len(job)
            self._changed.notify()

    def _is_too_much(self, rows: int) -> bool:
        """Whether so many rows are more than may wait, or take so long that some come too late."""
        is_late = rows * self._seconds_a_row > self._limits.seconds / 4
        return rows > self._limits.queue_rows or is_late

    def _run(self) -> None:
        if self._predecessor is not None:
            self._predecessor.join()
            self._predecessor = None  # its model's memory is wanted back
            self._catch_up()
        while batch := self._next_batch():
            started = time.monotonic()
            # Those whose client gave up meanwhile are left out.
            wanted = [job for job in batch if job.future.set_running_or_notify_cancel()]
            if not wanted:
                continue
            if isinstance(wanted[0], _QueuedExamples):
                self._learn(wanted[0])
            else:
                self._read([job for job in wanted if isinstance(job, _QueuedTexts)])
            rows = sum(map(len, wanted))
            self._seconds_a_row += _NEWEST * (
                (time.monotonic() - started) / rows - self._seconds_a_row
            )

    def _catch_up(self) -> None:
        try:
            self.model.catch_up()
        except Exception:
            _log.exception("%s: examples added during a reload are missing.", self.model.folder)

    def _next_batch(self) -> list[_QueuedTexts | _QueuedExamples]:
        """The jobs to be done together, the oldest first; none when all is done for good."""
        with self._changed:
            while not self._jobs:
                if self._retired:
                    return []
                self._changed.wait()
            batch = [self._jobs.popleft()]
            if isinstance(batch[0], _QueuedTexts):
                self._fill(batch)
            self.queued_rows -= sum(map(len, batch))
            return batch

    def _fill(self, batch: list[_QueuedTexts | _QueuedExamples]) -> None:
        """Add readings that are there, or come soon, as long as they fit."""
        rows = len(batch[0])
        deadline = time.monotonic() + self._limits.batch_wait
        while rows < self._limits.batch_rows:
            if not self._jobs:
                remaining = deadline - time.monotonic()
                if remaining <= 0 or self._retired:
                    return
                self._changed.wait(remaining)
                continue
            following = self._jobs[0]
            too_many = rows + len(following) > self._limits.batch_rows
            if too_many or isinstance(following, _QueuedExamples):
                return
            batch.append(self._jobs.popleft())
            rows += len(following)

    def _learn(self, job: _QueuedExamples) -> None:
        try:
            job.future.set_result(self.model.learn(job.examples, job.labels))
        except Exception as error:
            job.future.set_exception(error)

    def _read(self, jobs: list[_QueuedTexts]) -> None:
        self._observe_batch(sum(map(len, jobs)))
        try:
            answered = self.model.read(reduce(add, (job.examples for job in jobs)))
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
                return
            # One request's trouble is not the others'.
            for job in jobs:
                self._read([job])
            return
        start = 0
        for job in jobs:
            self._answer(job, _rows(answered, start, start + len(job)))
            start += len(job)

    def _answer(self, job: _QueuedTexts, answered: Answered) -> None:
        predictor = self.model.predictor
        try:
            reasons = None
            if job.neighbours:
                labels = answered.labels.tolist()
                reasons = predictor.reasons(answered.embeddings, labels, job.neighbours)
            job.future.set_result(ModelOutput(predictor, answered, reasons))
        except Exception as error:
            job.future.set_exception(error)


def _rows(answered: Answered, start: int, stop: int) -> Answered:
    embeddings = answered.embeddings
    return Answered(
        answered.labels[start:stop],
        answered.probabilities[start:stop],
        None if embeddings is None else embeddings[start:stop],
    )
