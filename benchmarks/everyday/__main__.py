r"""Accuracy and seconds on twelve everyday sets, beside what people use today.

    CPTUNING_DATA=folder python -m benchmarks.everyday --encoder minilm=FOLDER \
        --encoder gte-small=FOLDER [--only tfidf frozen] [--sets TREC] [--shots 8] [--splits 13]

Each finished run is one line in benchmarks/everyday.jsonl: when started again, the command goes on
where it was ended. It writes the tables of all records to benchmarks/everyday.md. Rows that can't
be run are named and left out. ``--dry-run`` only says how long the rest would take, and
``--picture docs/images/everyday.png`` draws accuracy against seconds.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.everyday.data import TASKS, Task, load_task
from benchmarks.everyday.one_run import one_run
from benchmarks.everyday.report import picture, report
from benchmarks.everyday.rows import GUESSES, ROWS, Places, Row, encoder_folder
from benchmarks.runs import Job, run_all
from cptuning.files.atomic import write_whole
from cptuning.files.journal import Journal

RECORDS = Path("benchmarks/everyday.jsonl")


def planned(rows: Sequence[Row], tasks: Sequence[Task], places: Places) -> list[Job]:
    """All runs of these rows, those of a task's data together."""
    jobs = {}
    for task in tasks:
        data = load_task(task)
        for row in rows:
            if row.covers(task):
                jobs[row, task] = {
                    "set": task.name,
                    "shots": task.shots,
                    "split": task.split,
                    "data": data.digest,
                    **row.key(data, places),
                }
    return [jobs[row, task] for row in rows for task in tasks if (row, task) in jobs]


def estimated_seconds(job: Job, records: Sequence[Job]) -> float:
    """What a run will take: as long as the row did on that set, on any set, or a guess."""
    own = [r for r in records if (r["row"], r["encoder"]) == (job["row"], job["encoder"])]
    alike = [r for r in own if (r["set"], r["shots"]) == (job["set"], job["shots"])]
    seconds = [
        r["fit_seconds"] + r["seconds_per_1000"] * r["test_texts"] / 1000 for r in alike or own
    ]
    return median(seconds) if seconds else GUESSES[job["row"]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is left, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = list(dict.fromkeys(row.kind for row in ROWS))
    sets = list(dict.fromkeys(task.name for task in TASKS))
    splits = list(dict.fromkeys(str(task.split) for task in TASKS))
    shots = sorted({task.shots for task in TASKS})
    parser.add_argument("--encoder", action="append", type=encoder_folder, default=[])
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds, metavar="ROW")
    parser.add_argument("--sets", nargs="+", choices=sets, default=sets, metavar="SET")
    parser.add_argument("--shots", nargs="+", type=int, choices=shots, default=shots)
    parser.add_argument("--splits", nargs="+", choices=splits, default=splits)
    parser.add_argument("--dry-run", action="store_true", help="Only say how long it would take.")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path(".cache/everyday"))
    parser.add_argument("--output", type=Path, default=RECORDS)
    parser.add_argument("--picture", type=Path, help="Draw accuracy against seconds to this file.")
    chosen = parser.parse_args(arguments)
    places = Places(dict(chosen.encoder), chosen.cache)
    rows = []
    for row in (row for row in ROWS if row.kind in chosen.only):
        if obstacle := row.obstacle(places):
            print(f"Left out: {row.title}: {obstacle}.", flush=True)
        else:
            rows.append(row)
    tasks = [
        task
        for task in TASKS
        if task.name in chosen.sets
        and task.shots in chosen.shots
        and str(task.split) in chosen.splits
    ]
    jobs = planned(rows, tasks, places)
    records = Journal(chosen.output).entries(dict)
    left = [job for job in jobs if not any(job.items() <= r.items() for r in records)]
    seconds = sum(estimated_seconds(job, records) for job in left)
    print(
        f"{len(jobs)} runs, {len(left)} of them left: about {seconds / 60:.0f} minutes of one core",
        flush=True,
    )
    if chosen.dry_run:
        return
    run_all(jobs, partial(one_run, places=places), chosen.output, chosen.workers)
    records = Journal(chosen.output).entries(dict)
    write_whole(chosen.output.with_suffix(".md"), report(records))
    if chosen.picture:
        write_whole(chosen.picture, picture(records))


if __name__ == "__main__":
    main()
