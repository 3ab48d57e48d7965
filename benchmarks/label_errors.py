"""How many planted label errors `cptuning check` finds, beside cleanlab on the same embedding.

    CPTUNING_DATA=folder python -m benchmarks.label_errors [--sets TREC HWU64] [--seeds 1 2 3]

Of each training file a sample is drawn without repeated texts, 16 examples per class or 1,000 in
all, and one label in ten is replaced by another class at random. Both methods see the sentences in
the embedding of the preset "instant". cptuning: its leave-one-out answers, a label is reported if
it is wrong with a probability of at least one half. cleanlab: the probabilities of scikit-learn's
logistic regression (C = 1), cross-validated with five folds as its tutorials have it,
``find_label_issues`` with its default filter, ``get_label_quality_scores`` for the ranking; a class
with fewer than five examples is left out of both, for its folds.

Precision and recall are those of the reported labels, AUROC and AP (average precision) those of the
ranking. Labels that were wrong already count as false alarms. Every run adds one line to the output
file; when started again, the command skips these runs.

The way of reporting was chosen on other sets (DSTC11_insurance, Airline_tweets, Clickbait, SST5 and
dbpedia14, seeds 1 to 3) before the first run on these.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.everyday.data import _root
from benchmarks.runs import Job, run_all
from cptuning import CPTuningClassifier
from cptuning.cleaning import ErrorEstimate
from cptuning.cleaning.label_errors import LIKELY
from cptuning.data import Examples, read_table
from cptuning.inference.support import FloatArray, IntArray

RECORDS = Path("benchmarks/label_errors.jsonl")
SETS = ("TREC", "HWU64", "tweeteval_emotion", "Bitext_support", "StackOverflow20")
SIZES = ("16 per class", "1000")
SEEDS = (1, 2, 3)
SHARE = 0.1
FOLDS = 5
METHODS = ("cptuning", "cleanlab")
FIGURES = ("precision", "recall", "auroc", "ap")


def sample(name: str, size: str, seed: int) -> tuple[Examples, list[str]]:
    """Different texts of a training file, of classes that have at least five of them."""
    table = read_table(_root() / name / "train.jsonl.gz", need_label=True)
    first = {text: row for row, text in reversed(list(enumerate(table.examples)))}
    rows = sorted(first.values())
    labels = [str(label) for label in table.labels or []]
    rng = np.random.default_rng(seed)
    order = [rows[place] for place in rng.permutation(len(rows))]
    if size == "16 per class":
        taken: Counter[str] = Counter()
        kept = []
        for row in order:
            taken[labels[row]] += 1
            if taken[labels[row]] <= 16:
                kept.append(row)
    else:
        kept = order[: int(size)]
    counts = Counter(labels[row] for row in kept)
    kept = [row for row in kept if counts[labels[row]] >= FOLDS]
    return table.examples.take(kept), [labels[row] for row in kept]


def with_errors(labels: Sequence[str], seed: int) -> tuple[list[str], IntArray]:
    """The labels with one in ten replaced by another class, and the rows of those."""
    rng = np.random.default_rng(1000 + seed)
    classes = sorted(set(labels))
    rows = np.sort(rng.choice(len(labels), round(SHARE * len(labels)), replace=False))
    changed = list(labels)
    for row in rows:
        changed[row] = str(rng.choice([label for label in classes if label != labels[row]]))
    return changed, rows


def cleanlab_answers(embeddings: FloatArray, labels: IntArray) -> tuple[IntArray, FloatArray]:
    """The rows that cleanlab reports, and a score for each row, higher if it is more doubtful."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    shares = cross_val_predict(
        LogisticRegression(max_iter=1000),
        embeddings,
        labels,
        cv=StratifiedKFold(FOLDS, shuffle=True, random_state=0),
        method="predict_proba",
    )
    reported = find_label_issues(labels, shares, n_jobs=1)
    return np.flatnonzero(reported), -get_label_quality_scores(labels, shares)


def figures(reported: IntArray, doubts: FloatArray, planted: IntArray) -> dict[str, float | int]:
    """Precision and recall of the reported rows, AUROC and average precision of the ranking."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    is_planted = np.isin(np.arange(len(doubts)), planted)
    hits = int(is_planted[reported].sum())
    return {
        "reported": len(reported),
        "hits": hits,
        "precision": round(hits / max(len(reported), 1), 5),
        "recall": round(hits / len(planted), 5),
        "auroc": round(float(roc_auc_score(is_planted, doubts)), 5),
        "ap": round(float(average_precision_score(is_planted, doubts)), 5),
    }


def one_run(job: Job) -> Job:
    """Plant errors in a sample, and look for them in both ways."""
    examples, labels = sample(job["dataset"], job["size"], job["seed"])
    noisy, planted = with_errors(labels, job["seed"])
    classifier = CPTuningClassifier(preset="instant", verbose=False).fit(examples, noisy)
    support, held_out = classifier.predictor_.support, classifier.held_out_
    assert held_out is not None
    rows = classifier.held_out_rows_
    estimate = ErrorEstimate.of(held_out.scores, held_out.labels)
    doubts = np.zeros(len(labels))
    doubts[rows] = estimate.probabilities
    wrong = held_out.scores.argmax(axis=1) != held_out.labels
    reported = rows[(estimate.probabilities >= LIKELY) & wrong]
    known_rows, known_scores = cleanlab_answers(support.embeddings, support.labels)
    # How many are reported, and promised to be wrong, if nothing is planted.
    clean = CPTuningClassifier(preset="instant", verbose=False).fit(examples, labels)
    without = ErrorEstimate.of(clean.held_out_.scores, clean.held_out_.labels)
    clean_wrong = clean.held_out_.scores.argmax(axis=1) != clean.held_out_.labels
    return {
        "rows": len(labels),
        "classes": len(set(labels)),
        "planted": len(planted),
        "cptuning": figures(reported, doubts, planted),
        "cleanlab": figures(known_rows, known_scores, planted),
        "estimated_share": round(estimate.share, 5),
        "mean_probability_of_reported": round(float(doubts[reported].mean()), 5)
        if len(reported)
        else None,
        "reported_without_planting": int(((without.probabilities >= LIKELY) & clean_wrong).sum()),
    }


def table(records: Sequence[Job]) -> str:
    """One row per set, size and method; a figure is the mean over the splits ± its deviation."""
    lines = [
        "| set | rows | method | reported | " + " | ".join(FIGURES) + " |",
        "|---|---|---|---|" + "---|" * len(FIGURES),
    ]
    for size in SIZES:
        means: dict[str, list[list[float]]] = {method: [] for method in METHODS}
        for name in SETS:
            runs = [r for r in records if (r["dataset"], r["size"]) == (name, size)]
            for method in METHODS if runs else ():
                values = [[r[method][figure] for figure in FIGURES] for r in runs]
                mean, deviation = np.mean(values, axis=0), np.std(values, axis=0)
                means[method].append(list(mean))
                shown = " | ".join(
                    f"{m:.2f} ± {d:.2f}" for m, d in zip(mean, deviation, strict=True)
                )
                n = np.mean([r["rows"] for r in runs])
                reported = np.mean([r[method]["reported"] for r in runs])
                lines.append(f"| {name} | {n:.0f} | {method} | {reported:.0f} | {shown} |")
        for method, values in means.items():
            if values:
                shown = " | ".join(f"{m:.2f}" for m in np.mean(values, axis=0))
                lines.append(f"| **mean of sets** | {size} | {method} | | {shown} |")
    return "\n".join(lines)


def calibration(records: Sequence[Job]) -> str:
    """What is promised beside what is found."""
    shares = [r["estimated_share"] for r in records]
    told = [r["mean_probability_of_reported"] for r in records if r["cptuning"]["reported"]]
    hits = sum(r["cptuning"]["hits"] for r in records)
    reported = sum(r["cptuning"]["reported"] for r in records)
    clean = sum(r["reported_without_planting"] for r in records)
    rows = sum(r["rows"] for r in records)
    return (
        f"Estimated share of wrong labels: {np.mean(shares):.3f} (from {min(shares):.3f} to "
        f"{max(shares):.3f}), planted: {SHARE}. Mean probability of the reported labels: "
        f"{np.mean(told):.2f}; {hits} of {reported} reported are planted. Without planted errors "
        f"{clean} of {rows} labels are reported."
    )


def main() -> None:
    """Run what is left, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RECORDS)
    chosen = parser.parse_args()
    jobs = [
        {"dataset": name, "size": size, "seed": seed}
        for size in chosen.sizes
        for name in chosen.sets
        for seed in chosen.seeds
    ]
    records = run_all(jobs, one_run, chosen.output, chosen.workers)
    print(table(records), calibration(records), sep="\n\n")


if __name__ == "__main__":
    main()
