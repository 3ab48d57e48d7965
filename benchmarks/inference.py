"""Answers from frozen embeddings: prototypes, LDA and logistic regression.

    CPTUNING_DATA=folder python -m benchmarks.inference [--backbone embedded] [--datasets TREC ...]

Up to 1,700 examples of each training file, at least 20 of each class that has them, are embedded by
the untrained model. A few per class are learned, the others are answered; test files are not read.
Prints the mean accuracy of the splits. docs/presets.md tells how LDA was chosen on such examples.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from cptuning import CPTuningClassifier
from cptuning.data import LabelSpace, as_labels, k_shot_split, read_table, stratified_sample
from cptuning.inference import SupportSet, class_scores
from cptuning.inference.support import FloatArray, IntArray

DATASETS = [
    *("TREC", "HWU64", "Bitext_support", "DSTC11_insurance", "tweeteval_emotion", "SST5", "CR"),
    *("SST-2", "StackOverflow20"),
]
SHOTS = (2, 4, 8, 16)
SPLITS = 5
MOST_EXAMPLES, LEAST_PER_CLASS = 1700, 20


def logistic_regression(support: SupportSet, queries: FloatArray) -> IntArray:
    """The answers of scikit-learn's, with C = 10, as is usual for unit vectors."""
    centre = support.embeddings.mean(axis=0)
    model = LogisticRegression(C=10, max_iter=300).fit(support.embeddings - centre, support.labels)
    return np.asarray(model.predict(queries - centre))


def closed_form(inference: str) -> Callable[[SupportSet, FloatArray], IntArray]:
    """The answers of the package's own inference."""

    def answers(support: SupportSet, queries: FloatArray) -> IntArray:
        n_classes = int(support.labels.max()) + 1
        scores = class_scores(queries, support, n_classes, inference, k=3)  # type: ignore[arg-type]
        return np.asarray(scores.argmax(axis=1))

    return answers


ANSWERS = {
    "unit-prototype": closed_form("unit-prototype"),
    "lda": closed_form("lda"),
    "logistic regression": logistic_regression,
}


def embedded(dataset: str, backbone: str) -> SupportSet:
    """Examples of a training file, as the untrained model sees them."""
    path = Path(os.environ["CPTUNING_DATA"]) / dataset / "train.jsonl.gz"
    table = read_table(path, text="text_a", need_label=True)
    pool, names = table.examples, as_labels(table.labels)
    labels = LabelSpace.from_labels(names).encode(names)
    few, _ = k_shot_split(names, LEAST_PER_CLASS, seed=0)
    rows = np.union1d(few, stratified_sample(names, MOST_EXAMPLES - len(few), seed=0))
    model = CPTuningClassifier(
        backbone, steps=0, centred=False, validation="none", verbose=False
    ).fit(pool.take(few), [names[row] for row in few])
    return SupportSet(pool.take(rows), model.transform(pool.take(rows)), labels[rows])


def accuracies(known: SupportSet, shots: int) -> dict[str, float]:
    """The mean accuracy of each way to answer, in per cent."""
    found: dict[str, list[float]] = {name: [] for name in ANSWERS}
    for seed in range(SPLITS):
        train, _ = k_shot_split(known.labels, shots, seed)
        asked = np.setdiff1d(np.arange(len(known)), train)
        for name, answers in ANSWERS.items():
            right = answers(known.take(train), known.embeddings[asked]) == known.labels[asked]
            found[name].append(100 * float(right.mean()))
    return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    """Print a line for each data set and number of examples per class."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default="embedded")
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    chosen = parser.parse_args()
    print("| data set | per class | " + " | ".join(ANSWERS) + " |")
    print("|---" * (2 + len(ANSWERS)) + "|")
    for dataset in chosen.datasets:
        known = embedded(dataset, chosen.backbone)
        for shots in SHOTS:
            cells = [f"{value:.1f}" for value in accuracies(known, shots).values()]
            print(f"| {dataset} | {shots} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
