r"""GoEmotions with a few texts per label: how well label sets are given, and in how many seconds.

    CPTUNING_DATA=folder python -m benchmarks.label_sets --encoder gte-small=FOLDER \
        [--only tfidf frozen instant] [--splits 13] [--dry-run]

Each text of GoEmotions has one or several of 28 emotions. Training texts are drawn in random order;
a text is taken if one of its labels has fewer than 16 texts so far. So each label has at least 16
texts, or as many as there are. All methods learn from the same texts and answer the same 1,000 test
texts.

Each finished run is one line in benchmarks/label_sets.jsonl: when started again, the command goes
on where it was ended. It writes the table of all records to benchmarks/label_sets.md.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.everyday.rows import Places, encoder_folder
from benchmarks.label_sets.data import SPLITS, load_split
from benchmarks.label_sets.report import report
from benchmarks.label_sets.rows import ROWS, one_run
from benchmarks.runs import run_all
from cptuning.files.atomic import write_whole
from cptuning.files.journal import Journal

RECORDS = Path("benchmarks/label_sets.jsonl")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is left, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = list(dict.fromkeys(row.kind for row in ROWS))
    parser.add_argument("--encoder", action="append", type=encoder_folder, default=[])
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds, metavar="ROW")
    parser.add_argument("--splits", nargs="+", type=int, choices=SPLITS, default=SPLITS)
    parser.add_argument("--dry-run", action="store_true", help="Only say what is left.")
    parser.add_argument("--cache", type=Path, default=Path(".cache/everyday"))
    parser.add_argument("--output", type=Path, default=RECORDS)
    chosen = parser.parse_args(arguments)
    places = Places(dict(chosen.encoder), chosen.cache)
    jobs = []
    for row in (row for row in ROWS if row.kind in chosen.only):
        if obstacle := row.obstacle(places):
            print(f"Left out: {row.title}: {obstacle}.", flush=True)
            continue
        for split in chosen.splits:
            data = load_split(split)
            jobs.append({"split": split, "data": data.digest, **row.key(places)})
    records = Journal(chosen.output).entries(dict)
    left = [job for job in jobs if not any(job.items() <= r.items() for r in records)]
    print(f"{len(jobs)} runs, {len(left)} of them left", flush=True)
    if chosen.dry_run:
        return
    run_all(jobs, partial(one_run, places=places), chosen.output)
    write_whole(chosen.output.with_suffix(".md"), report(Journal(chosen.output).entries(dict)))


if __name__ == "__main__":
    main()
