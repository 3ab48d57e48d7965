"""Which texts to label next: those the model is unsure of, and no two that are alike."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.inference.predictor import Predictor
from cptuning.inference.support import FloatArray, IntArray

# How many unsure texts are candidates for each one that is suggested.
_CANDIDATES_PER_SUGGESTION = 4


def suggested(embeddings: FloatArray, unsure: NDArray[np.float64], n: int) -> IntArray:
    """The rows of ``n`` texts that are unsure and unlike each other, the one to begin with first.

    Of the most unsure texts the first is the most unsure one; each next one is farthest from
    those that were taken (farthest-first traversal). Texts that are all alike are taken once.

    >>> vectors = np.array([[1, 0], [1, 0], [0, 1], [-1, 0]], dtype=np.float32)
    >>> suggested(vectors, np.array([0.9, 0.8, 0.5, 0.1]), n=2).tolist()
    [0, 3]
    """
    candidates = np.argsort(-unsure, kind="stable")[: max(0, n) * _CANDIDATES_PER_SUGGESTION]
    vectors = embeddings[candidates]
    chosen: list[int] = []
    distance = np.full(len(candidates), np.inf)
    while len(chosen) < min(n, len(candidates)):
        farthest = int(distance.argmax())  # the first of equally far ones, so the most unsure
        # Rounding leaves a hair between equal vectors.
        if distance[farthest] < 1e-5:
            break
        chosen.append(farthest)
        distance = np.minimum(distance, 1.0 - vectors @ vectors[farthest])
    return candidates[chosen]


@dataclass(frozen=True)
class Suggestion:
    """A text that is worth a label."""

    row: int
    """Its place among those that were asked about."""
    text: str | tuple[str, str]
    guess: Any
    """What the model would answer."""
    uncertainty: float


def suggestions(predictor: Predictor, pool: Examples, n: int) -> list[Suggestion]:
    """What to label next in a pool of texts; those that the model knows are left out."""
    known = set(predictor.support.examples) if predictor.support is not None else set()
    first_row: dict[str | tuple[str, str], int] = {}
    for row, text in enumerate(pool):
        first_row.setdefault(text, row)
    rows = [row for text, row in first_row.items() if text not in known]
    if not rows:
        raise CPTuningError("The model knows every one of these texts already: give other ones.")
    answered = predictor.answer(pool.take(rows))
    if answered.embeddings is None:
        raise CPTuningError(
            "This model does not compare texts, so it can't tell which are alike: "
            "use method cp-tuning."
        )
    unsure = predictor.uncertainty(answered.probabilities)
    texts, guesses = list(pool), answered.labels.tolist()
    return [
        Suggestion(rows[i], texts[rows[i]], guesses[i], float(unsure[i]))
        for i in suggested(answered.embeddings, unsure, n).tolist()
    ]
