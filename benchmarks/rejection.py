"""How promises about errors and label sets are kept on texts that the model has not seen.

    CPTUNING_DATA=folder python -m benchmarks.rejection [--sets TREC HWU64] [--shots 16]

The preset "instant" is fitted to a few examples per class of some everyday sets, five draws each.
It then answers their test texts with ``unknown_threshold="error<=0.05"`` and "error<=0.1", and with
label sets of 90 % coverage, and the command counts: the share of texts that is answered, the share
of wrong answers among them, the share of label sets that has the right label, and their size.

The promises are for texts like the examples, of which each class has equally many. So a test text
counts in inverse proportion to the size of its class; the last columns are without these weights,
with the classes as unequal as they are in the test set. Every run adds one line to the output file;
when started again, the command skips these runs.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.everyday.data import SPLITS, Task, load_task
from benchmarks.runs import Job, run_all
from cptuning import CPTuningClassifier
from cptuning.inference import UNKNOWN

RECORDS = Path("benchmarks/rejection.jsonl")
SETS = (
    "TREC",
    "HWU64",
    "StackOverflow20",
    "DSTC11_insurance",
    "Bitext_support",
    "tweeteval_emotion",
    "Airline_tweets",
    "Clickbait",
    "dbpedia14",
)
SHOTS = (16,)
TARGETS = (0.05, 0.1)
COVERAGE = 0.9


def balanced_weights(labels: Sequence[str]) -> np.ndarray:
    """Weights under which each class counts the same; their mean is 1.

    >>> balanced_weights(["a", "a", "a", "b"]).round(2).tolist()
    [0.67, 0.67, 0.67, 2.0]
    """
    counts = Counter(labels)
    return np.array([len(labels) / (len(counts) * counts[label]) for label in labels])


def realised(answers: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """The share of texts that is answered, and of these the share that is wrong."""
    answered = answers != UNKNOWN
    wrong = answered & (answers != truth)
    total = weights[answered].sum()
    return {
        "answered": round(float(total / weights.sum()), 5),
        "error": round(float(weights[wrong].sum() / total), 5) if total else 0.0,
    }


def one_run(job: Job) -> Job:
    """Fit one draw, and count what becomes of its promises."""
    data = load_task(Task(job["dataset"], job["shots"], job["split"]))
    truth, like_examples = np.array(data.test.labels), balanced_weights(data.test.labels)
    weightings = {"balanced": like_examples, "natural": np.ones(len(truth))}
    result: Job = {"examples": len(data.train.labels), "texts": len(truth)}
    classifier = CPTuningClassifier(preset="instant", verbose=False).fit(*data.train)
    predictor, held_out = classifier.predictor_, classifier.held_out_
    assert held_out is not None
    answered = predictor.answer(data.test.examples)
    for target in TARGETS:
        # What fit does with unknown_threshold="error<=...", without reading the texts again.
        threshold = held_out.rejection(target).threshold
        answers = answered.labels.astype(object)
        answers[answered.probabilities.max(axis=1) <= threshold] = UNKNOWN
        result[str(target)] = {
            name: realised(answers, truth, weights) for name, weights in weightings.items()
        }
    sets = predictor.sets_of(answered.probabilities, COVERAGE)
    covered = np.array([label in found for label, found in zip(truth, sets, strict=True)])
    sizes = np.array([len(found) for found in sets])
    result["sets"] = {
        name: {
            "coverage": round(float(np.average(covered, weights=weights)), 5),
            "size": round(float(np.average(sizes, weights=weights)), 5),
        }
        for name, weights in weightings.items()
    }
    result["accuracy"] = round(
        float(np.average([found[0] for found in sets] == truth, weights=like_examples)), 5
    )
    return result


def spread(values: Sequence[float], digits: int = 1, scale: float = 100) -> str:
    """The mean, and the least and the greatest of the draws.

    >>> spread([0.5, 0.625])
    '56.2 (50.0–62.5)'
    """
    low, mean, high = (scale * f(values) for f in (np.min, np.mean, np.max))
    return f"{mean:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def table(records: Sequence[Job], shots: int) -> str:
    """One row per set: means over the draws, and their range; in % but for sizes."""
    lines = [
        "| set, examples | accuracy | "
        + " | ".join(f"≤ {100 * t:g} %: answered | errors" for t in TARGETS)
        + " | sets: coverage | size | errors, natural shares | coverage, natural shares |",
        "|---|" + "---|" * (2 * len(TARGETS) + 5),
    ]
    for name in SETS:
        runs = [r for r in records if (r["dataset"], r["shots"]) == (name, shots)]
        if not runs:
            continue
        cells = [f"{name}, {runs[0]['examples']}", spread([r["accuracy"] for r in runs])]
        for target in map(str, TARGETS):
            cells.append(spread([r[target]["balanced"]["answered"] for r in runs]))
            cells.append(_errors(runs, target, "balanced"))
        cells.append(spread([r["sets"]["balanced"]["coverage"] for r in runs]))
        cells.append(spread([r["sets"]["balanced"]["size"] for r in runs], 2, scale=1))
        cells.append(_errors(runs, str(TARGETS[0]), "natural"))
        cells.append(spread([r["sets"]["natural"]["coverage"] for r in runs]))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _errors(runs: Sequence[Job], target: str, weighting: str) -> str:
    errors = [r[target][weighting]["error"] for r in runs if r[target][weighting]["answered"]]
    return spread(errors) if errors else "–"


def kept(records: Sequence[Job]) -> str:
    """In how many runs the promises were kept."""
    lines = []
    for target in TARGETS:
        promised = [r[str(target)]["balanced"] for r in records]
        promised = [found for found in promised if found["answered"]]
        broken = sum(found["error"] > target for found in promised)
        lines.append(
            f"error<={target:g}: promised in {len(promised)} of {len(records)} runs, "
            f"exceeded on the test texts in {broken}."
        )
    coverages = [r["sets"]["balanced"]["coverage"] for r in records]
    lines.append(
        f"Sets of {100 * COVERAGE:g} %: mean coverage {100 * np.mean(coverages):.1f} %, from "
        f"{100 * min(coverages):.1f} to {100 * max(coverages):.1f}."
    )
    return "\n".join(lines)


def main() -> None:
    """Run what is left, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--shots", nargs="+", type=int, default=list(SHOTS))
    parser.add_argument("--splits", nargs="+", type=int, default=list(SPLITS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RECORDS)
    chosen = parser.parse_args()
    jobs = [
        {"dataset": name, "shots": shots, "split": split}
        for shots in chosen.shots
        for name in chosen.sets
        for split in chosen.splits
    ]
    records = run_all(jobs, one_run, chosen.output, chosen.workers)
    for shots in chosen.shots:
        print(f"\n{shots} examples per class\n", table(records, shots), sep="\n")
    print(kept(records), sep="\n")


if __name__ == "__main__":
    main()
