"""The thread that runs a model: it takes requests from a bounded queue, in batches."""

import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from threading import Condition, Thread
from typing import Any

from cptuning.data import Examples
from cptuning.inference import MultiLabelPredictor, Predictor, Reasons
from cptuning.inference.predictor import Answered
from cptuning.serving.api_errors import ApiError, overloaded
from cptuning.serving.limits import Limits
from cptuning.serving.served_model import AddResult, ServedModel

_log = logging.getLogger("cptuning")

# The weight of the newest batch in the moving average of the seconds per text.
_SMOOTHING = 0.2


LabelReasonsOfText = dict[Any, Reasons]
"""By label, where texts may have several."""


@dataclass(frozen=True)
class ModelOutput:
    """The predictions for the texts of one request, and the predictor that made them."""

    predictor: Predictor
    answered: Answered
    reasons: Sequence[Reasons | LabelReasonsOfText] | None


@dataclass(frozen=True)
class _QueuedTexts:
    """Texts to classify, in a batch with those of other requests."""

    examples: Examples
    neighbours: int
    future: Future[ModelOutput] = field(default_factory=Future)

    def __len__(self) -> int:
        return len(self.examples)


@dataclass(frozen=True)
class _QueuedExamples:
    """Examples to add, not batched."""

    examples: Examples
    labels: Sequence[Hashable]
    future: Future[AddResult] = field(default_factory=Future)

    def __len__(self) -> int:
        return len(self.examples)


class BatchWorker:
    """A model with its thread and its queue.

    Requests are handled in the order in which they arrived, so a prediction uses all examples that
    were added before it. ``predecessor`` is the worker that this one replaces: it first finishes
    the requests that it accepted, and then this one adds the examples that were stored meanwhile.
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
        self._draining = False
        self._seconds_per_row = 0.01
        self.queued_rows = 0
        # A daemon, so that a batch that hangs does not keep the process from ending.
        self._thread = Thread(target=self._run, daemon=True)
        self._predecessor = predecessor
        if predecessor is not None:
            predecessor.drain()
        self._thread.start()

    def predict(self, examples: Examples, neighbours: int = 0) -> Future[ModelOutput]:
        """Queue texts for prediction; raises ``ApiError`` at once if the queue is full."""
        job = _QueuedTexts(examples, neighbours)
        self._accept(job)
        return job.future

    def add_examples(self, examples: Examples, labels: Sequence[Hashable]) -> Future[AddResult]:
        """Queue examples to add; they are on disk when the future has its result."""
        job = _QueuedExamples(examples, labels)
        self._accept(job)
        return job.future

    def drain(self) -> None:
        """Accept no more requests; the thread ends when it has finished those it accepted."""
        with self._changed:
            self._draining = True
            self._changed.notify()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout)

    @property
    def is_alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def _accept(self, job: _QueuedTexts | _QueuedExamples) -> None:
        with self._changed:
            if self._draining:
                raise ApiError(503, "The server is shutting down.")
            # With an empty queue, a request of any size is accepted: it would never be otherwise.
            if self._jobs and self._is_overload(self.queued_rows + len(job)):
                raise overloaded(self.queued_rows * self._seconds_per_row)
            self._jobs.append(job)
            self.queued_rows += len(job)
            self._changed.notify()

    def _is_overload(self, rows: int) -> bool:
        """Whether this many rows exceed the queue, or would take so long that some time out."""
        is_late = rows * self._seconds_per_row > self._limits.seconds / 4
        return rows > self._limits.queue_rows or is_late

    def _run(self) -> None:
        if self._predecessor is not None:
            self._predecessor.join()
            self._predecessor = None  # Frees the memory of its model.
            self._catch_up()
        while batch := self._next_batch():
            started = time.monotonic()
            # Requests whose client has disconnected are skipped.
            wanted = [job for job in batch if job.future.set_running_or_notify_cancel()]
            if not wanted:
                continue
            if isinstance(wanted[0], _QueuedExamples):
                self._add_examples(wanted[0])
            else:
                self._predict([job for job in wanted if isinstance(job, _QueuedTexts)])
            rows = sum(map(len, wanted))
            self._seconds_per_row += _SMOOTHING * (
                (time.monotonic() - started) / rows - self._seconds_per_row
            )

    def _catch_up(self) -> None:
        try:
            self.model.catch_up()
        except Exception:
            _log.exception("%s: examples added during the reload are missing.", self.model.folder)

    def _next_batch(self) -> list[_QueuedTexts | _QueuedExamples]:
        """The next jobs to run together, the oldest first; empty when the worker has finished."""
        with self._changed:
            while not self._jobs:
                if self._draining:
                    return []
                self._changed.wait()
            batch = [self._jobs.popleft()]
            if isinstance(batch[0], _QueuedTexts):
                self._fill(batch)
            self.queued_rows -= sum(map(len, batch))
            return batch

    def _fill(self, batch: list[_QueuedTexts | _QueuedExamples]) -> None:
        """Add queued texts, and those that arrive soon, while they fit into the batch."""
        rows = len(batch[0])
        deadline = time.monotonic() + self._limits.batch_wait
        while rows < self._limits.batch_rows:
            if not self._jobs:
                remaining = deadline - time.monotonic()
                if remaining <= 0 or self._draining:
                    return
                self._changed.wait(remaining)
                continue
            following = self._jobs[0]
            too_many = rows + len(following) > self._limits.batch_rows
            if too_many or isinstance(following, _QueuedExamples):
                return
            batch.append(self._jobs.popleft())
            rows += len(following)

    def _add_examples(self, job: _QueuedExamples) -> None:
        try:
            job.future.set_result(self.model.add_examples(job.examples, job.labels))
        except Exception as error:
            job.future.set_exception(error)

    def _predict(self, jobs: list[_QueuedTexts]) -> None:
        self._observe_batch(sum(map(len, jobs)))
        try:
            answered = self.model.predict(reduce(add, (job.examples for job in jobs)))
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
                return
            # One of the requests fails: run each by itself, so that the others succeed.
            for job in jobs:
                self._predict([job])
            return
        start = 0
        for job in jobs:
            self._answer(job, _rows(answered, start, start + len(job)))
            start += len(job)

    def _answer(self, job: _QueuedTexts, answered: Answered) -> None:
        predictor = self.model.predictor
        try:
            reasons: Sequence[Reasons | LabelReasonsOfText] | None = None
            if job.neighbours:
                asked = job.examples, answered, job.neighbours
                if isinstance(predictor, MultiLabelPredictor):
                    reasons = predictor.explained_by_label(*asked)
                else:
                    reasons = predictor.explained(*asked)
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
