"""Span F1 with 5 or 20 sentences per type, beside a CRF, frozen prototypes and fine-tuning.

    CPTUNING_DATA=folder python -m benchmarks.tagging [--encoder gte-small=FOLDER] [--splits 5]
        [--shots 5 20] [--sets ...] [--rows ...] [--output benchmarks/tagging.jsonl] [--table]

Each run is a line of the output file; finished ones are not repeated, so it can be stopped at any
time. A split is a greedy sample of the training sentences (cptuning/data/sentence_sampling.py); it
is tested on all test sentences, or on the first of a shuffle with ``--test-sentences``.
``--table`` only prints the table of what is in the file.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runs import Job, run_all
from cptuning import CPTuningTagger
from cptuning.backbone import load_backbone
from cptuning.data.benchmark_datasets import FOLDER_VARIABLE
from cptuning.data.sentence_files import read_sentences
from cptuning.data.sentence_sampling import k_to_2k_sample
from cptuning.data.sentences import TaggedSentences
from cptuning.files.journal import Journal
from cptuning.reporting.span_metrics import SpanScores

SETS = ("CrossNER_politics", "CrossNER_science", "CrossNER_ai", "WNUT17", "MIT_restaurant")
ROWS = ("tagger", "instant", "prototypes", "fine-tuning", "crf")


@lru_cache(maxsize=2)
def sentences(name: str, part: str) -> TaggedSentences:
    """A part of a data set."""
    path = Path(os.environ[FOLDER_VARIABLE], name, f"{part}.jsonl.gz")
    tagged = read_sentences(path, need_tags=True).tagged
    assert tagged is not None
    return tagged


def measured(job: Job, folders: dict[str, str]) -> Job:
    """One row on one split: F1, how long it took, and what it chose."""
    pool, test = sentences(job["set"], "train"), sentences(job["set"], "test")
    if job["test_sentences"]:
        order = np.random.default_rng(0).permutation(len(test))
        test = test.take(order[: job["test_sentences"]].tolist())
    examples = pool.take(k_to_2k_sample(pool.spans, job["shots"], job["split"]))
    began = time.process_time()
    found, facts = _found(job, examples, test, folders)
    seconds = time.process_time() - began
    scores = SpanScores(test.spans, found)
    by_type = {str(one.label): round(one.f1, 4) for one in scores.by_type()}
    return {
        "f1": round(scores.f1, 4),
        "interval": [round(limit, 4) for limit in scores.interval],
        "sentences": len(examples),
        "seconds": round(seconds, 1),
        "types": by_type,
        **facts,
    }


def _found(
    job: Job, examples: TaggedSentences, test: TaggedSentences, folders: dict[str, str]
) -> tuple[Any, dict[str, Any]]:
    from benchmarks.tagging.rivals import crf, fine_tuning

    row, seed = job["row"], job["split"]
    if row == "crf":
        return crf(examples, test.sentences), {}
    folder = folders[job["encoder"]]
    if row == "fine-tuning":
        return fine_tuning(load_backbone(folder), examples, test.sentences, seed), {}
    more: dict[str, Any] = {"preset": "default" if row == "tagger" else "instant"}
    if row == "prototypes":
        more |= {"inference": "prototype", "shape_weight": 0.0, "depth": 1.0}
    tagger = CPTuningTagger(folder, random_state=seed, verbose=False, **more).fit_tagged(examples)
    found = [[one.span for one in spans] for spans in tagger.predictor_.found(test.sentences)]
    facts = {
        "answer": vars(tagger.predictor_.answer).copy(),
        "held_out_f1": round(tagger.held_out_score_ or 0.0, 4),
        "kept": tagger.training_["kept"],
        "instant_f1": tagger.training_["instant_f1"],
        "trained_f1": tagger.training_.get("trained_f1"),
        "depth": tagger.settings_.depth,
    }
    return found, facts


def jobs_of(
    sets: Sequence[str],
    shots: Sequence[int],
    splits: int,
    rows: Sequence[str],
    encoders: Sequence[str],
    test_sentences: int,
) -> list[Job]:
    """All runs; a CRF needs no encoder."""
    return [
        {
            "set": name,
            "shots": k,
            "split": split,
            "row": row,
            "encoder": encoder,
            "test_sentences": test_sentences,
        }
        for k in shots
        for split in range(splits)
        for name in sets
        for row in rows
        for encoder in ([""] if row == "crf" else encoders)
    ]


def table(records: Sequence[Job]) -> str:
    """F1 as Markdown: of one split with its interval, of several their mean and deviation."""
    cells: dict[tuple[Any, ...], list[Job]] = defaultdict(list)
    for record in records:
        key = record["shots"], record["encoder"], record["row"], record["set"]
        cells[key].append(record)
    lines = [
        "| sentences per type | encoder | row | " + " | ".join(SETS) + " |",
        "|---|---|---|" + "---|" * len(SETS),
    ]
    heads = dict.fromkeys(key[:3] for key in sorted(cells, key=_order))
    for head in heads:
        shown = [_cell(cells.get((*head, name), [])) for name in SETS]
        lines.append(f"| {head[0]} | {head[1] or '–'} | {head[2]} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _cell(found: Sequence[Job]) -> str:
    """The F1 of some splits.

    >>> _cell([{"f1": 0.5, "interval": [0.4, 0.6]}]), _cell([])
    ('50.0 (40.0 to 60.0)', '–')
    >>> _cell([{"f1": 0.5}, {"f1": 0.6}])
    '55.0 ± 5.0 (2 splits)'
    """
    if not found:
        return "–"
    values = [100 * record["f1"] for record in found]
    if len(found) == 1:
        low, high = (100 * limit for limit in found[0]["interval"])
        return f"{values[0]:.1f} ({low:.1f} to {high:.1f})"
    return f"{np.mean(values):.1f} ± {np.std(values):.1f} ({len(values)} splits)"


def _order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return key[0], key[1], ROWS.index(key[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--rows", nargs="*", default=ROWS, choices=ROWS)
    parser.add_argument("--shots", nargs="*", type=int, default=[5, 20])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--test-sentences", type=int, default=0, help="0: all of them")
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "tagging.jsonl")
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    if chosen.table:
        print(table(Journal(chosen.output).entries(dict)))
        return
    folders = {"embedded": "embedded"} | dict(one.split("=", 1) for one in chosen.encoder)
    encoders = [name for name in folders if chosen.encoder == [] or name != "embedded"]
    jobs = jobs_of(
        chosen.sets, chosen.shots, chosen.splits, chosen.rows, encoders, chosen.test_sentences
    )
    records = run_all(jobs, lambda job: measured(job, folders), chosen.output)
    print(table(records))


if __name__ == "__main__":
    main()
