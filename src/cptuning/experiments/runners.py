"""Where the work is done: in this process, in several, or on the workers of a Ray cluster."""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cptuning.backbone import is_folder
from cptuning.cluster.connection import connect_ray, gpu_share
from cptuning.errors import CPTuningError
from cptuning.experiments.cells import PlannedCell
from cptuning.experiments.directory import ResultDirectory
from cptuning.experiments.request import Request
from cptuning.experiments.sweep_progress import Sweep, SweepDisplay
from cptuning.experiments.sweep_worker import work, work_on_request
from cptuning.experiments.trainer import CandidateTrainer

_SECONDS_BETWEEN_LOOKS = 0.5
# How often Ray repeats a task whose worker died.
_RETRIES = 3


def run_local(request: Request, planned: Sequence[PlannedCell], trainer: CandidateTrainer) -> None:
    """One worker in this process, or several processes that share the directory."""
    directory = ResultDirectory(request.output)
    with SweepDisplay(Sweep(planned, directory), request.workers) as display:
        if request.workers == 1:
            work(planned, directory, trainer, display.update)
            return
        context = multiprocessing.get_context("spawn")
        # These are read when torch and tokenizers are imported, which the new processes do later.
        os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        workers = [
            context.Process(target=_process, args=(request, list(planned)), daemon=True)
            for _ in range(request.workers)
        ]
        try:
            for worker in workers:
                worker.start()
            while running := sum(worker.is_alive() for worker in workers):
                display.update(running)
                time.sleep(_SECONDS_BETWEEN_LOOKS)
        finally:  # Also on Ctrl-C: finished runs are safe.
            for worker in workers:
                if worker.is_alive():
                    worker.terminate()
    if not all(directory.is_done(one.cell) for one in planned):
        raise CPTuningError(
            "The workers stopped before everything was done: start the command again to continue."
        )


def _process(request: Request, planned: Sequence[PlannedCell]) -> None:
    """A worker that says in one sentence why it can't continue."""
    try:
        work_on_request(request, planned)
    except CPTuningError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:  # The parent process tells the user.
        sys.exit(1)


def run_on_ray(request: Request, planned: Sequence[PlannedCell], trainer: CandidateTrainer) -> None:
    """The same workers as tasks of Ray, on this machine or on the cluster at $RAY_ADDRESS.

    The directory, the data and a backbone's folder must be where every machine can see them.
    Workers share the GPUs evenly; one that dies is restarted and continues from the directory.
    """
    ray = connect_ray(request.workers)
    share = 0.0 if request.device == "cpu" else gpu_share(ray, request.workers)
    # Ray's workers run in folders of their own.
    request = replace(
        request,
        output=request.output.absolute(),
        data=request.data and request.data.absolute(),
        backbone=str(Path(name).absolute()) if is_folder(name := request.backbone) else name,
    )
    remote = ray.remote(num_cpus=1, num_gpus=share, max_retries=_RETRIES)(work_on_request)
    directory = ResultDirectory(request.output)
    with SweepDisplay(Sweep(planned, directory), request.workers) as display:
        running = [remote.remote(request, list(planned)) for _ in range(request.workers)]
        while running:
            done, running = ray.wait(running, timeout=_SECONDS_BETWEEN_LOOKS)
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
            f"A worker of Ray died {_RETRIES + 1} times: start the command again to continue."
        ) from error


RUNNERS: dict[str, Callable[[Request, Sequence[PlannedCell], CandidateTrainer], None]] = {
    "local": run_local,
    "ray": run_on_ray,
}
