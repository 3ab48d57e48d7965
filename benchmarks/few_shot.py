"""16-shot accuracy on the paper's data sets: trained against untrained and PET, five splits each.

    CPTUNING_DATA=folder python -m benchmarks.few_shot [--backbones embedded folder] [--workers 8]
    CPTUNING_DATA=folder python -m benchmarks.few_shot --datasets TREC

Everything is chosen on the dev split (the step whose weights are kept, the temperature); the test
split is only scored. A finished run is one line in the output file: when started again, the command
skips these runs and prints the table.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.runs import Job, run_all
from cptuning import make_classifier
from cptuning.data import MORE_DATASETS, PAPER_DATASETS, SEEDS, load_dataset_split

NAMED_DATASETS = (*PAPER_DATASETS, *MORE_DATASETS)

VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "untrained": ("cp-tuning", {"steps": 0}),
    "instant": ("cp-tuning", {"preset": "instant"}),
    "default": ("cp-tuning", {}),
    "paper": ("cp-tuning", {"preset": "paper"}),
    "PET": ("pet", {}),
    "PET, untrained": ("pet", {"steps": 0}),
}


def one_run(job: Job) -> Job:
    split = load_dataset_split(job["dataset"], seed=job["seed"])
    method, settings = VARIANTS[job["variant"]]
    if method == "pet":  # The manual template and label words of the data set.
        settings = settings | {"task": job["dataset"]}
    classifier = make_classifier(
        method, backbone=job["backbone"], random_state=job["seed"], verbose=False, **settings
    )
    start = time.perf_counter()
    classifier.fit(split.train, split.train_labels, split.dev, split.dev_labels)
    seconds = time.perf_counter() - start
    test_labels = np.array(split.test_labels)
    return {
        "test": float(np.mean(classifier.predict(split.test) == test_labels)),
        "dev": classifier.held_out_score_,
        "step": classifier.history_.best_step,
        "majority": float(max(np.mean(test_labels == c) for c in set(split.test_labels))),
        "test_rows": len(split.test),
        "seconds": round(seconds, 2),
    }


def table(records: Sequence[Job]) -> str:
    """One row per backbone and variant: mean and standard deviation over the splits."""
    names = [n for n in NAMED_DATASETS if any(r["dataset"] == n for r in records)]
    lines = ["| | " + " | ".join(names) + " | mean |", "|---" * (len(names) + 2) + "|"]
    majority = {r["dataset"]: 100 * r["majority"] for r in records}
    shown = " | ".join(f"{majority[name]:.1f}" for name in names)
    lines.append(f"| majority | {shown} | {np.mean(list(majority.values())):.1f} |")
    for row in dict.fromkeys((r["backbone"], r["variant"]) for r in records):
        cells, means, counts = [], [], set()
        for name in names:
            scores = [
                100 * r["test"]
                for r in records
                if (r["backbone"], r["variant"], r["dataset"]) == (*row, name)
            ]
            counts.add(len(scores))
            means.append(np.mean(scores) if scores else np.nan)
            spread = f" ± {np.std(scores, ddof=1):.1f}" if len(scores) > 1 else ""
            cells.append(f"{means[-1]:.1f}{spread}")
        splits = "" if counts == {len(SEEDS)} else f" ({min(counts)} to {max(counts)} splits)"
        lines.append(
            f"| {', '.join(row)}{splits} | " + " | ".join(cells) + f" | {np.mean(means):.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="*", default=list(PAPER_DATASETS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--variants", nargs="*", default=["untrained", "default"])
    parser.add_argument("--backbones", nargs="*", default=["embedded"])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/few_shot.jsonl"))
    chosen = parser.parse_args()
    jobs = [
        {"backbone": backbone, "variant": variant, "dataset": name, "seed": seed}
        for backbone in chosen.backbones
        for variant in chosen.variants
        for seed in chosen.seeds
        for name in chosen.datasets
    ]
    print(table(run_all(jobs, one_run, chosen.output, chosen.workers)))


if __name__ == "__main__":
    main()
