"""Many runs, one JSON line each; finished ones are skipped, and processes share the work."""

import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from cptuning.files.journal import Journal

Job = dict[str, Any]


def run_all(
    jobs: Sequence[Job], work: Callable[[Job], Job], output: Path, workers: int = 1
) -> list[Job]:
    """The record of each job: from the file if it is there, else from ``work`` and added to it.

    A record is the job together with its result, so a job is done if a line contains it. A line
    that was torn when its process was killed counts for nothing.
    """
    journal = Journal(output)
    records = journal.entries(dict)
    done = [r for r in records if any(job.items() <= r.items() for job in jobs)]
    left = [job for job in jobs if not any(job.items() <= r.items() for r in done)]
    for record in _finished(left, work, workers):
        done.append(record)
        journal.append(record)
        print(f"{len(done)} of {len(jobs)}", json.dumps(record), flush=True)
    return done


def _finished(jobs: Sequence[Job], work: Callable[[Job], Job], workers: int) -> Any:
    if workers == 1:
        yield from ({**job, **work(job)} for job in jobs)
        return
    # One core per process: the threads of many processes would only wait for each other.
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = {pool.submit(work, job): job for job in jobs}
        for future in as_completed(waiting):
            yield {**waiting[future], **future.result()}
