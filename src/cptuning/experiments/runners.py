"""Who does the work: this process, several on this machine, or the workers of a Ray cluster."""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cptuning.cluster.connection import connect_ray, gpu_share
from cptuning.errors import CPTuningError
from cptuning.experiments.plan import Request, Task
from cptuning.experiments.progress import Display, Sweep
from cptuning.experiments.records import Records
from cptuning.experiments.trainer import Trainer
from cptuning.experiments.worker import work, work_on_request

_LOOK_EVERY = 0.5
# How often Ray starts a piece of work again whose worker died.
_RETRIES = 3


def run_local(request: Request, tasks: Sequence[Task], trainer: Trainer) -> None:
    """One worker in this process, or several processes that share the directory."""
    records = Records(request.output)
    with Display(Sweep(tasks, records), request.workers) as display:
        if request.workers == 1:
            work(tasks, records, trainer, display.update)
            return
        context = multiprocessing.get_context("spawn")
        # Read when torch and tokenizers are imported, which in the new processes is later.
        os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        workers = [
            context.Process(target=_process, args=(request, list(tasks)), daemon=True)
            for _ in range(request.workers)
        ]
        try:
            for worker in workers:
                worker.start()
            while running := sum(worker.is_alive() for worker in workers):
                display.update(running)
                time.sleep(_LOOK_EVERY)
        finally:  # Also on Ctrl-C: what is finished is safe.
            for worker in workers:
                if worker.is_alive():
                    worker.terminate()
    if not all(records.is_done(task.cell) for task in tasks):
        raise CPTuningError(
            "The workers ended before all was done: start the command again to go on from there."
        )


def _process(request: Request, tasks: Sequence[Task]) -> None:
    """A worker that says in a sentence why it can't go on."""
    try:
        work_on_request(request, tasks)
    except CPTuningError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:  # The process that started it tells the user.
        sys.exit(1)


def run_on_ray(request: Request, tasks: Sequence[Task], trainer: Trainer) -> None:
    """The same workers as tasks of Ray, on this machine or on the cluster of $RAY_ADDRESS.

    The directory, the data and a backbone's folder must be where every machine can see them.
    Workers share the GPUs evenly; one that dies is started again and goes on from the directory.
    """
    ray = connect_ray(request.workers)
    share = 0.0 if request.device == "cpu" else gpu_share(ray, request.workers)
    # Its workers have folders of their own to be in.
    request = replace(
        request,
        output=request.output.absolute(),
        data=request.data and request.data.absolute(),
        backbone=str(here.absolute()) if (here := Path(request.backbone)).is_dir() else str(here),
    )
    remote = ray.remote(num_cpus=1, num_gpus=share, max_retries=_RETRIES)(work_on_request)
    records = Records(request.output)
    with Display(Sweep(tasks, records), request.workers) as display:
        running = [remote.remote(request, list(tasks)) for _ in range(request.workers)]
        while running:
            done, running = ray.wait(running, timeout=_LOOK_EVERY)
            display.update(len(running))
            for finished in done:
                _ray_result(ray, finished)


def _ray_result(ray: Any, finished: Any) -> None:
    try:
        ray.get(finished)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, CPTuningError) else error from error
    except ray.exceptions.WorkerCrashedError as error:
        raise CPTuningError(
            f"A worker of Ray died {_RETRIES + 1} times: start the command again to go on."
        ) from error


RUNNERS: dict[str, Callable[[Request, Sequence[Task], Trainer], None]] = {
    "local": run_local,
    "ray": run_on_ray,
}
