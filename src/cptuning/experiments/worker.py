"""A worker: takes cells that nobody else has, trains their candidates, tests what dev chose."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO

from cptuning.experiments.plan import Cell, Request, Task
from cptuning.experiments.records import Record, Records, dev_score, make_folder
from cptuning.experiments.trainer import Fitted, Trainer
from cptuning.files.atomic import write_whole

# How long to wait for others to finish what they have begun, or to die.
_PATIENCE = 0.5

Watch = Callable[[], None]


def work(
    tasks: Sequence[Task], records: Records, trainer: Trainer, watch: Watch = lambda: None
) -> None:
    """Go on until every cell is done, by this process or by others on the same directory.

    There is no queue: whoever holds a cell's lock works on it, and a lock is free again when its
    holder dies, so a cell is finished by whoever comes next. ``watch`` is told of every run.
    """
    left = list(tasks)
    with _quiet():
        while left:
            moved = [_worked_on(task, records, trainer, watch) for task in left]
            left = [task for task in left if not records.is_done(task.cell)]
            if left and not any(moved):
                time.sleep(_PATIENCE)


def work_on_request(request: Request, tasks: Sequence[Task]) -> None:
    """The same in a process of its own."""
    _single_thread(request)
    work(tasks, Records(request.output), Trainer.of(request))


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside, what a user should know of one training is not said of thousands."""
    logger = logging.getLogger("cptuning")

    def matters(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR

    logger.addFilter(matters)
    try:
        yield
    finally:
        logger.removeFilter(matters)


def _single_thread(request: Request) -> None:
    """Several workers share the cores: threads that wait for each other would be most of it."""
    import torch

    if request.workers > 1:
        torch.set_num_threads(1)


def _worked_on(task: Task, records: Records, trainer: Trainer, watch: Watch) -> bool:
    """Whether anything was done for a cell."""
    if records.is_done(task.cell):
        return False
    with records.lock(f"cell-{cell_name(task.cell)}") as is_mine:
        return is_mine and _finish(task, records, trainer, watch)


def cell_name(cell: Cell) -> str:
    """A name for a cell's lock; cells with the same candidates are one piece of work.

    >>> cell_name(Cell("main", "pet", "MR", 13, "pet", ("a", "b")))
    'c8687a08aa5d6ed2'
    """
    return sha256(" ".join(cell.keys).encode()).hexdigest()[:16]


def _finish(task: Task, records: Records, trainer: Trainer, watch: Watch) -> bool:
    best: Fitted | None = None
    for candidate in task.candidates:
        if records.run(candidate.key):
            continue
        with records.lock(candidate.key) as is_mine:
            if not is_mine:  # It belongs to another cell too, and somebody is at it: later.
                return best is not None
            if records.run(candidate.key):
                continue
            fitted = trainer.fit(task.cell, candidate)
            records.write("runs", candidate.key, fitted.record)
            watch()
            if best is None or dev_score(fitted.record) > dev_score(best.record):
                best = fitted
                trainer.hold(best)
    chosen = records.chosen(task.cell)
    if chosen is not None:
        _test(task, chosen, best, records, trainer)
    return True


def _test(
    task: Task, chosen: Record, held: Fitted | None, records: Records, trainer: Trainer
) -> None:
    """Test the chosen candidate; its weights are still here, or are trained once more."""
    key = chosen["key"]
    wanted = task.cell.keeps_embeddings and not records.embeddings(key).is_file()
    if records.test(key) and not wanted:
        return
    if held is None or held.record["key"] != key:
        held = trainer.fit(task.cell, next(c for c in task.candidates if c.key == key))
    if not records.test(key):
        score, answers = trainer.test(task.cell, held)
        # What was tested: on a GPU a second training need not end in the very same weights.
        score["dev_accuracy"] = held.record["dev"]["accuracy"]
        records.write_predictions(key, answers)
        records.write("tests", key, score)
    if wanted:
        _write_embeddings(task.cell, held, records, trainer)


def _write_embeddings(cell: Cell, held: Fitted, records: Records, trainer: Trainer) -> None:
    import numpy as np

    buffer = BytesIO()
    np.savez_compressed(buffer, **trainer.embeddings(cell, held))
    path = records.embeddings(held.record["key"])
    make_folder(path.parent)
    write_whole(path, buffer.getvalue())
