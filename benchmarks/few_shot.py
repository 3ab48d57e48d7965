"""16-shot accuracy on the paper's data sets: trained against untrained, five splits each.

    CPTUNING_DATA=folder python benchmarks/few_shot.py [--datasets SST-2 MR] [--seeds 13 21]

Everything is chosen on the dev split (the step whose weights are kept, the temperature); the test
split is only scored. A finished run is one line in the output file: started again, the command
skips what is there. The table is printed at the end, and again with ``--datasets`` of none.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from cptuning import CPTuningClassifier
from cptuning.data import PAPER_DATASETS, SEEDS, load_dataset_split

SINGLE = ("SST-2", "MR", "CR", "SUBJ")

VARIANTS = {
    "untrained": {"steps": 0},
    "default": {},
    "paper": {"preset": "paper"},
}


def one_run(variant: str, name: str, seed: int, device: str) -> dict[str, object]:
    split = load_dataset_split(name, seed=seed)
    classifier = CPTuningClassifier(random_state=seed, device=device, **VARIANTS[variant])
    start = time.perf_counter()
    classifier.fit(split.train, split.train_labels, split.dev, split.dev_labels)
    seconds = time.perf_counter() - start
    test_labels = np.array(split.test_labels)
    return {
        "variant": variant,
        "dataset": name,
        "seed": seed,
        "test": float(np.mean(classifier.predict(split.test) == test_labels)),
        "dev": classifier.held_out_score_,
        "step": classifier.history_.best_step,
        "majority": float(max(np.mean(test_labels == c) for c in set(split.test_labels))),
        "test_rows": len(split.test),
        "seconds": seconds,
    }


def table(records: list[dict[str, object]]) -> str:
    """A row a variant: the mean over the splits, its standard deviation, their mean."""
    names = [n for n in PAPER_DATASETS if any(r["dataset"] == n for r in records)]
    lines = ["| | " + " | ".join(names) + " | mean |", "|---" * (len(names) + 2) + "|"]
    majority = {r["dataset"]: 100 * float(r["majority"]) for r in records}  # type: ignore[arg-type]
    rows = {"majority": [(majority[n], None, 1) for n in names]}
    for variant in VARIANTS:
        cells = []
        for name in names:
            scores = [
                100 * float(r["test"])  # type: ignore[arg-type]
                for r in records
                if (r["variant"], r["dataset"]) == (variant, name)
            ]
            cells.append((np.mean(scores), np.std(scores, ddof=1), len(scores)) if scores else None)
        if all(cells):
            rows[variant] = cells
    for variant, cells in rows.items():
        shown = [
            f"{mean:.1f}" + ("" if spread is None else f" ± {spread:.1f}")
            for mean, spread, _ in cells
        ]
        mean = np.mean([mean for mean, _, _ in cells])
        lines.append(f"| {variant} | " + " | ".join(shown) + f" | {mean:.1f} |")
    counts = {n for cells in rows.values() for _, sd, n in cells if sd is not None}
    lines.append(f"\nSplits a cell: {min(counts)} to {max(counts)}." if counts else "")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="*", default=list(SINGLE))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--variants", nargs="*", default=["untrained", "default"])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/few_shot.jsonl"))
    chosen = parser.parse_args()
    records = []
    if chosen.output.exists():
        records = [json.loads(line) for line in chosen.output.read_text("utf-8").splitlines()]
    done = {(r["variant"], r["dataset"], r["seed"]) for r in records}
    for seed in chosen.seeds:
        for name in chosen.datasets:
            for variant in chosen.variants:
                if (variant, name, seed) in done:
                    continue
                record = one_run(variant, name, seed, chosen.device)
                records.append(record)
                with chosen.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
                print(json.dumps(record), flush=True)
    print(table(records))


if __name__ == "__main__":
    main()
