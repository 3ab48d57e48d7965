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
from cptuning.data import Examples, LabelledData, full_train, k_shot_split, load_test
from cptuning.inference import auroc, familiarity

OUTSIDE = "oos"


def apart(data: LabelledData) -> tuple[LabelledData, LabelledData]:
    """The examples of a class, and those of none.

    >>> inside, outside = apart(LabelledData(Examples(("hi", "?", "bye")), ["a", "oos", "b"]))
    >>> inside.examples.first, outside.examples.first
    (('hi', 'bye'), ('?',))
    """
    is_outside = np.array([label == OUTSIDE for label in data.labels], dtype=bool)
    return data.take(np.flatnonzero(~is_outside)), data.take(np.flatnonzero(is_outside))


def familiarity_of(classifier: CPTuningClassifier, examples: Examples) -> np.ndarray:
    """The similarity of each text to its nearest training example."""
    predictor = classifier.predictor_
    return familiarity(predictor.transform(examples), predictor.support)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shots", type=int, default=16)
    parser.add_argument("--steps", type=int, nargs="*", default=[0, 40])
    parser.add_argument("--seed", type=int, default=13)
    chosen = parser.parse_args()
    pool, _ = apart(full_train("CLINC150"))
    train = pool.take(k_shot_split(pool.labels, chosen.shots, chosen.seed)[0])
    inside, outside = apart(load_test("CLINC150"))
    for steps in chosen.steps:
        start = time.perf_counter()
        classifier = CPTuningClassifier(
            steps=steps, batch_size=64, validation="none", random_state=chosen.seed
        ).fit(*train)
        seconds = time.perf_counter() - start
        right = classifier.predict(inside.examples) == np.array(inside.labels)
        near, far = (familiarity_of(classifier, part.examples) for part in (inside, outside))
        print(
            f"{chosen.shots} examples of each of {len(set(train.labels))} intents, {steps} steps "
            f"({seconds:.0f} s): accuracy in scope {100 * right.mean():.1f} %, "
            f"AUROC of out-of-scope queries {auroc(near, far):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
