"""Can texts that belong to no class be detected? CLINC150's out-of-scope queries.

    CPTUNING_DATA=folder python benchmarks/out_of_scope.py [--shots 16] [--steps 0 40]

150 intents, with a few training examples of each; the test set has 4,500 queries of these intents
and 1,000 of none. Prints the accuracy on the former and the AUROC with which familiarity (the
similarity to the nearest training example) separates the two.
"""

import argparse
import time

import numpy as np

from cptuning import CPTuningClassifier
from cptuning.data import Examples, full_train, k_shot_split, load_dataset_split
from cptuning.inference import auroc, familiarity

OUTSIDE = "oos"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shots", type=int, default=16)
    parser.add_argument("--steps", type=int, nargs="*", default=[0, 40])
    parser.add_argument("--seed", type=int, default=13)
    chosen = parser.parse_args()
    pool, labels = full_train("CLINC150")
    inside = np.array([i for i, label in enumerate(labels) if label != OUTSIDE])
    rows, _ = k_shot_split([labels[i] for i in inside], chosen.shots, chosen.seed)
    train: Examples = pool.take(inside[rows])
    train_labels = [labels[i] for i in inside[rows]]
    split = load_dataset_split("CLINC150", k=chosen.shots, seed=chosen.seed)
    test_labels = np.array(split.test_labels)
    known = test_labels != OUTSIDE
    for steps in chosen.steps:
        start = time.perf_counter()
        classifier = CPTuningClassifier(
            steps=steps, batch_size=64, validation="none", random_state=chosen.seed
        ).fit(train, train_labels)
        seconds = time.perf_counter() - start
        predictor = classifier.predictor_
        embeddings = predictor.transform(split.test)
        right = predictor.labels_of(embeddings)[known] == test_labels[known]
        near = familiarity(embeddings, predictor.support)
        print(
            f"{chosen.shots} examples of each of {len(set(train_labels))} intents, {steps} steps "
            f"({seconds:.0f} s): accuracy in scope {100 * right.mean():.1f} %, "
            f"AUROC of out-of-scope queries {auroc(near[known], near[~known]):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
