"""The paper's main table: every method on every data set, five splits, learning rate by dev.

    python benchmarks/rivals.py --data FOLDER [--workers 8] [--device cuda] [--methods pet warp]

Each run tries a few learning rates around the preset's own. Step, rate, temperature and whatever
a method searches for are chosen on the dev split; only then is the test split read, and scored
once, with the chosen model. A finished run is one line in the output file: started again, the
command skips what is there. The table is printed at the end; ``--datasets`` of none prints it
from what is there.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from cptuning.data import PAPER_DATASETS, SEEDS, load_few_shot, load_test
from cptuning.registry import classifier_class, make_classifier

# A row of the table: the method, and what is set for it. Zero-shot is PET with no step.
ROWS = {
    "zero-shot": ("pet", {"steps": 0}),
    "fine-tuning": ("fine-tuning", {}),
    "pet": ("pet", {}),
    "lm-bff-t": ("lm-bff-t", {}),
    "lm-bff-l": ("lm-bff-l", {}),
    "lm-bff-tl": ("lm-bff-tl", {}),
    "p-tuning": ("p-tuning", {}),
    "warp": ("warp", {}),
    "warp-random": ("warp", {"class_vectors": "random"}),
    "cp-tuning-released": ("cp-tuning", {"preset": "released"}),
    "cp-tuning": ("cp-tuning", {}),
}
FACTORS = (0.5, 1.0, 2.0)


def one_run(row: str, name: str, seed: int, chosen: argparse.Namespace) -> dict[str, object]:
    """Choose by dev, then score test once."""
    started = time.perf_counter()
    (train, train_labels), (dev, dev_labels) = load_few_shot(name, chosen.data, seed=seed)
    best, tried = None, {}
    for classifier in candidates(row, name, seed, train, chosen):
        classifier.fit(train, train_labels, dev, dev_labels)
        tried[f"{classifier.settings_.learning_rate:g}"] = classifier.held_out_score_
        if best is None or classifier.history_.best > best.history_.best:
            best = classifier
    trained = time.perf_counter() - started
    test, truth = load_test(name, chosen.data)
    answers = best.predict(test)
    training = best.training_
    return {
        "row": row,
        "method": best.method,
        "dataset": name,
        "seed": seed,
        "accuracy": float(np.mean(answers == np.array(truth))),
        "macro_f1": macro_f1(answers, np.array(truth)),
        "majority": max(truth.count(label) for label in set(truth)) / len(truth),
        "test_rows": len(truth),
        "dev_accuracy": best.held_out_score_,
        "dev_by_rate": tried,
        "learning_rate": best.settings_.learning_rate,
        "steps": best.settings_.steps,
        "best_step": training["best_step"],
        "template": best.settings_.template,
        "label_words": getattr(best.settings_, "label_words", None),
        "search": {k: training[k] for k in SEARCH_FACTS if k in training},
        "backbone": chosen.backbone,
        "device": chosen.device,
        "train_seconds": round(trained, 2),
        "seconds": round(time.perf_counter() - started, 2),
    }


SEARCH_FACTS = ("search", "candidates", "candidate_steps")


def candidates(row, name, seed, train, chosen):
    """The classifiers that dev chooses among: one a learning rate."""
    method, changes = ROWS[row]
    fixed = {
        "backbone": chosen.backbone,
        "random_state": seed,
        "device": chosen.device,
        "verbose": False,
        **changes,
    }
    if chosen.steps is not None and "steps" not in changes:
        fixed |= {"steps": chosen.steps, "evaluate_every": max(1, chosen.steps // 10)}
    if "task" in classifier_class(method).parameter_names():
        fixed["task"] = name
    usual = make_classifier(method, **fixed).settings_for(train).learning_rate
    factors = chosen.factors if fixed.get("steps") != 0 else [1.0]
    for factor in factors:
        yield make_classifier(method, **fixed, learning_rate=factor * usual)


def macro_f1(answers: np.ndarray, truth: np.ndarray) -> float:
    """The mean over the classes of 2·hits / (answered + true)."""
    scores = [
        2
        * np.sum((answers == c) & (truth == c))
        / max(1, np.sum(answers == c) + np.sum(truth == c))
        for c in np.unique(truth)
    ]
    return float(np.mean(scores))


def table(records: list[dict[str, object]], key: str = "accuracy") -> str:
    """A row a method: mean ± standard deviation over the splits, and the mean over data sets."""
    names = [n for n in PAPER_DATASETS if any(r["dataset"] == n for r in records)]
    lines = [f"| {key} in % | " + " | ".join(names) + " | mean |"]
    lines.append("|---" * (len(names) + 2) + "|")
    majority = {r["dataset"]: 100 * r["majority"] for r in records}
    if key == "accuracy" and names:
        cells = [f"{majority[n]:.1f}" for n in names]
        mean = np.mean([majority[n] for n in names])
        lines.append(f"| majority | {' | '.join(cells)} | {mean:.1f} |")
    for row in ROWS:
        by_name = {
            n: [100 * r[key] for r in records if (r["row"], r["dataset"]) == (row, n)]
            for n in names
        }
        if not any(by_name.values()):
            continue
        cells = [shown(by_name[n]) for n in names]
        whole = all(by_name.values())
        mean = f"{np.mean([np.mean(s) for s in by_name.values()]):.1f}" if whole else "–"
        lines.append(f"| {row} | {' | '.join(cells)} | {mean} |")
    counts = [sum((r["row"], r["dataset"]) == (w, n) for r in records) for w in ROWS for n in names]
    runs = sorted({count for count in counts if count})
    lines.append(f"\nSplits a cell: {', '.join(map(str, runs)) or 'none'}.")
    return "\n".join(lines)


def shown(scores: list[float]) -> str:
    """A cell."""
    if not scores:
        return "–"
    spread = f" ± {np.std(scores, ddof=1):.1f}" if len(scores) > 1 else ""
    return f"{np.mean(scores):.1f}{spread}"


def single_threaded() -> None:
    """Workers share the cores: one thread each."""
    import torch

    torch.set_num_threads(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=None, help="the folder of the data sets")
    parser.add_argument("--methods", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--datasets", nargs="*", default=list(PAPER_DATASETS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--steps", type=int, default=None, help="in place of the presets' own")
    parser.add_argument(
        "--factors", nargs="+", type=float, default=list(FACTORS), help="of the preset's rate"
    )
    parser.add_argument("--backbone", default="embedded")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/rivals.jsonl"))
    chosen = parser.parse_args()
    records = []
    if chosen.output.exists():
        records = [json.loads(line) for line in chosen.output.read_text("utf-8").splitlines()]
    done = {(r["row"], r["dataset"], r["seed"]) for r in records}
    # Split by split, so that a table can be read early.
    jobs = [(r, n, s) for s in chosen.seeds for n in chosen.datasets for r in chosen.methods]
    jobs = [job for job in jobs if job not in done]
    if chosen.workers > 1:
        os.environ["OMP_NUM_THREADS"] = "1"
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
    failed = 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(chosen.workers, context, initializer=single_threaded) as pool:
        running = {pool.submit(one_run, *job, chosen): job for job in jobs}
        for future in as_completed(running):
            try:
                record = future.result()
            except Exception as error:
                print(f"{running[future]} failed: {error!r}", file=sys.stderr, flush=True)
                failed += 1
                continue
            records.append(record)
            with chosen.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            brief = {k: record[k] for k in ("row", "dataset", "seed", "accuracy", "train_seconds")}
            print(json.dumps(brief), flush=True)
    print(table(records))
    print(table(records, "macro_f1"))
    if failed:
        sys.exit(f"{failed} runs failed: start the command again to repeat them.")


if __name__ == "__main__":
    main()
