"""Labels with an order: the median of the probabilities beside the likeliest label, on SST5.

    CPTUNING_DATA=folder python -m benchmarks.ordinal [--presets instant] [--shots 8 16]

Each model is fitted once, and its probabilities are answered in both ways: with the likeliest
label, and with the median (``ordinal=[...]``). Printed are the accuracy and the mean absolute
error, with neighbouring labels at a distance of 1, over draws of the training examples. Every run
adds one line to the output file; when started again, the command skips these runs.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.everyday.data import SPLITS, Task, load_task
from benchmarks.runs import Job, run_all
from cptuning import CPTuningClassifier
from cptuning.inference import mean_distance, medians

RECORDS = Path("benchmarks/ordinal.jsonl")
ORDER = ("very negative", "negative", "neutral", "positive", "very positive")


def one_run(job: Job) -> Job:
    """Fit one draw; answer the test texts, and the held-out examples, in both ways."""
    data = load_task(Task("SST5", job["shots"], job["split"]))
    classifier = CPTuningClassifier(preset=job["preset"], verbose=False).fit(*data.train)
    classes, held_out = classifier.classes_, classifier.held_out_
    places = [classes.tolist().index(label) for label in ORDER]
    known = classes[held_out.labels].tolist()
    return {
        "test": scores(
            classifier.predict_proba(data.test.examples), data.test.labels, classes, places
        ),
        "held_out": scores(held_out.probabilities, known, classes, places),
    }


def scores(
    probabilities: np.ndarray, truth: Sequence[str], classes: np.ndarray, places: Sequence[int]
) -> dict[str, dict[str, float]]:
    """The accuracy and the mean absolute error of both ways to answer."""
    answers = {"likeliest": probabilities.argmax(axis=1), "median": medians(probabilities, places)}
    return {
        way: {
            "accuracy": round(float(np.mean(classes[found] == np.array(truth))), 5),
            "error": round(mean_distance(truth, classes[found].tolist(), ORDER) or 0.0, 5),
        }
        for way, found in answers.items()
    }


def table(records: Sequence[Job]) -> str:
    """One row per preset, number of examples and way: means ± standard deviation over the draws."""
    lines = [
        "| SST5 | examples per class | answer | accuracy, % | mean absolute error "
        "| held-out: accuracy, % | mean absolute error |",
        "|---|---|---|---|---|---|---|",
    ]
    for preset, shots in sorted({(r["preset"], r["shots"]) for r in records}, reverse=True):
        runs = [r for r in records if (r["preset"], r["shots"]) == (preset, shots)]
        for way in ("likeliest", "median"):
            cells = []
            for part in ("test", "held_out"):
                accuracy = [100 * r[part][way]["accuracy"] for r in runs]
                error = [r[part][way]["error"] for r in runs]
                cells.append(f"{np.mean(accuracy):.1f} ± {np.std(accuracy):.1f}")
                cells.append(f"{np.mean(error):.3f} ± {np.std(error):.3f}")
            name = f"{preset}, {len(runs)} draws"
            lines.append(f"| {name} | {shots} | {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is left, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", nargs="+", default=["instant"])
    parser.add_argument("--shots", nargs="+", type=int, default=[8, 16])
    parser.add_argument("--splits", nargs="+", type=int, default=list(SPLITS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RECORDS)
    chosen = parser.parse_args()
    jobs = [
        {"preset": preset, "shots": shots, "split": split}
        for preset in chosen.presets
        for shots in chosen.shots
        for split in chosen.splits
    ]
    print(table(run_all(jobs, one_run, chosen.output, chosen.workers)))


if __name__ == "__main__":
    main()
