"""Training in bfloat16 beside float32 on this CPU: time and accuracy.

    CPTUNING_DATA=folder python -m benchmarks.cpu_precision [--seeds 1 2 3]

The default preset on the embedded backbone learns the examples of :mod:`benchmarks.views` and
answers 300 others of the same training file, once in each precision, in turns. Test files are not
read. The seconds are CPU seconds of one thread.

The rule, written down before the first run: ``precision="auto"`` means bfloat16 on a CPU that
computes it natively if it takes at most three quarters of the time and if its mean accuracy is at
most one standard error, over data sets and splits in pairs, below that of float32.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.runs import Job, run_all
from benchmarks.views import split
from cptuning import CPTuningClassifier

RECORDS = Path("benchmarks/cpu_precision.jsonl")
SETS = ("CR", "TREC", "QQP")
SEEDS = (1, 2, 3)
PRECISIONS = ("float32", "bfloat16")


def one_run(job: Job) -> Job:
    """Accuracy and CPU seconds of a fit in each precision on one split."""
    import torch

    torch.set_num_threads(1)
    train, held_out = split(job["dataset"], job["seed"])
    found: Job = {}
    for precision in PRECISIONS:
        classifier = CPTuningClassifier(
            validation="none",
            instant_first=False,
            precision=precision,
            random_state=job["seed"],
            verbose=False,
            device="cpu",
        )
        began = time.process_time()
        classifier.fit(train.examples, train.labels)
        seconds = time.process_time() - began
        right = classifier.predict(held_out.examples) == np.array(held_out.labels)
        found[precision] = {"accuracy": round(float(right.mean()), 5), "seconds": round(seconds, 2)}
    return found


def table(records: Sequence[Job]) -> str:
    """One row per data set, and what the rule compares."""
    lines = ["| | float32 | bfloat16 | share of the time |", "|---|---|---|---|"]
    shares, gains = [], []
    for name in dict.fromkeys(r["dataset"] for r in records):
        own = [r for r in records if r["dataset"] == name]
        means = [100 * np.mean([r[p]["accuracy"] for r in own]) for p in PRECISIONS]
        ratios = [r["bfloat16"]["seconds"] / r["float32"]["seconds"] for r in own]
        lines.append(f"| {name} | {means[0]:.1f} | {means[1]:.1f} | {np.median(ratios):.2f} |")
        shares += ratios
        gains += [100 * (r["bfloat16"]["accuracy"] - r["float32"]["accuracy"]) for r in own]
    error = np.std(gains, ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
    lines.append(
        f"\nbfloat16 takes {np.median(shares):.2f} of the time ({min(shares):.2f} to "
        f"{max(shares):.2f}); accuracy {np.mean(gains):+.2f} ± {error:.2f} points."
    )
    return "\n".join(lines)


def main() -> None:
    """Run what is left, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--output", type=Path, default=RECORDS)
    chosen = parser.parse_args()
    jobs = [{"dataset": name, "seed": seed} for seed in chosen.seeds for name in SETS]
    print(table(run_all(jobs, one_run, chosen.output)))


if __name__ == "__main__":
    main()
