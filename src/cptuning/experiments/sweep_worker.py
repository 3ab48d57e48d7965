"""A worker takes free cells, trains their candidates, and tests the one that dev chose."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO

from cptuning.experiments.cells import Cell, PlannedCell
from cptuning.experiments.directory import Record, ResultDirectory, dev_score, make_folder
from cptuning.experiments.request import Request
from cptuning.experiments.trainer import CandidateTrainer, TrainedCandidate
from cptuning.files.atomic import write_whole

# How long to wait for other workers to finish what they have begun, or to die.
_SECONDS_TO_WAIT = 0.5

OnRun = Callable[[], None]


def work(
    planned: Sequence[PlannedCell],
    directory: ResultDirectory,
    trainer: CandidateTrainer,
    on_run: OnRun = lambda: None,
) -> None:
    """Continue until every cell is done, by this process or by others on the same directory.

    There is no queue: whoever holds a cell's lock works on it, and the lock is free again when its
    holder dies, so that the next worker finishes the cell. ``on_run`` is called after every run.
    """
    left = list(planned)
    with _quiet():
        while left:
            progress = [_work_on(one, directory, trainer, on_run) for one in left]
            left = [one for one in left if not directory.is_done(one.cell)]
            if left and not any(progress):
                time.sleep(_SECONDS_TO_WAIT)


def work_on_request(request: Request, planned: Sequence[PlannedCell]) -> None:
    """The same in a process of its own."""
    _single_thread(request)
    work(planned, ResultDirectory(request.output), CandidateTrainer.of(request))


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside, only errors are logged: hints about one training are noise in thousands."""
    logger = logging.getLogger("cptuning")

    def is_error(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR

    logger.addFilter(is_error)
    try:
        yield
    finally:
        logger.removeFilter(is_error)


def _single_thread(request: Request) -> None:
    """Several workers share the cores: more threads would only wait for each other."""
    import torch

    if request.workers > 1:
        torch.set_num_threads(1)


def _work_on(
    planned: PlannedCell, directory: ResultDirectory, trainer: CandidateTrainer, on_run: OnRun
) -> bool:
    """Work on a cell if it is free; give whether anything was done."""
    if directory.is_done(planned.cell):
        return False
    with directory.lock(f"cell-{lock_name(planned.cell)}") as is_mine:
        return is_mine and _finish(planned, directory, trainer, on_run)


def lock_name(cell: Cell) -> str:
    """The name of a cell's lock; cells with the same candidates are one piece of work.

    >>> lock_name(Cell("main", "pet", "MR", 13, "pet", ("a", "b")))
    'c8687a08aa5d6ed2'
    """
    return sha256(" ".join(cell.keys).encode()).hexdigest()[:16]


def _finish(
    planned: PlannedCell, directory: ResultDirectory, trainer: CandidateTrainer, on_run: OnRun
) -> bool:
    best: TrainedCandidate | None = None
    for candidate in planned.candidates:
        if directory.run(candidate.key):
            continue
        with directory.lock(candidate.key) as is_mine:
            if not is_mine:  # It belongs to another cell too, and another worker trains it: later.
                return best is not None
            if directory.run(candidate.key):
                continue
            trained = trainer.fit(planned.cell, candidate)
            directory.write("runs", candidate.key, trained.record)
            on_run()
            if best is None or dev_score(trained.record) > dev_score(best.record):
                best = trained
                trainer.hold(best)
    chosen = directory.chosen(planned.cell)
    if chosen is not None:
        _test(planned, chosen, best, directory, trainer)
    return True


def _test(
    planned: PlannedCell,
    chosen: Record,
    held: TrainedCandidate | None,
    directory: ResultDirectory,
    trainer: CandidateTrainer,
) -> None:
    """Test the chosen candidate; if its weights are no longer in memory, train it once more."""
    key = chosen["key"]
    wanted = planned.cell.keeps_embeddings and not directory.embeddings(key).is_file()
    if directory.test(key) and not wanted:
        return
    if held is None or held.record["key"] != key:
        held = trainer.fit(planned.cell, next(c for c in planned.candidates if c.key == key))
    if not directory.test(key):
        score, answers = trainer.test(planned.cell, held)
        # Of what was tested: on a GPU a second training need not give the very same weights.
        score["dev_accuracy"] = held.record["dev"]["accuracy"]
        directory.write_predictions(key, answers)
        directory.write("tests", key, score)
    if wanted:
        _write_embeddings(planned.cell, held, directory, trainer)


def _write_embeddings(
    cell: Cell, held: TrainedCandidate, directory: ResultDirectory, trainer: CandidateTrainer
) -> None:
    import numpy as np

    buffer = BytesIO()
    np.savez_compressed(buffer, **trainer.embeddings(cell, held))
    path = directory.embeddings(held.record["key"])
    make_folder(path.parent)
    write_whole(path, buffer.getvalue())
