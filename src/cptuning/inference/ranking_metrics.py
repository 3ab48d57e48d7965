"""How good a ranking is: nDCG, reciprocal rank and recall, as trec_eval computes them."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

Document = TypeVar("Document", bound=Hashable)
Grades = Mapping[Document, float]
"""The relevance of the documents that were judged; above 0 is relevant."""


def ndcg(ranking: Sequence[Document], grades: Grades[Document], k: int = 10) -> float:
    """The normalised discounted cumulative gain of the first k documents.

    DCG = Σ gᵢ / log₂(i + 1) over the places i = 1 … k, with gᵢ the grade of the document there, 0
    if it was not judged or its grade is negative; it is divided by the DCG of the best ranking.

    >>> round(ndcg(["a", "b"], {"b": 1}), 3), ndcg(["b", "a"], {"b": 1}), ndcg(["a"], {})
    (0.631, 1.0, 0.0)
    """
    best = _dcg(sorted((max(grade, 0.0) for grade in grades.values()), reverse=True)[:k])
    return _dcg([max(grades.get(one, 0.0), 0.0) for one in ranking[:k]]) / best if best else 0.0


def reciprocal_rank(ranking: Sequence[Document], grades: Grades[Document]) -> float:
    """1 / the place of the first relevant document, 0 if there is none; its mean is MRR.

    >>> reciprocal_rank(["a", "b"], {"b": 1}), reciprocal_rank(["a"], {"b": 1})
    (0.5, 0.0)
    """
    places = (place for place, one in enumerate(ranking, start=1) if grades.get(one, 0) > 0)
    first = next(places, None)
    return 0.0 if first is None else 1 / first


def recall(ranking: Sequence[Document], grades: Grades[Document], k: int) -> float:
    """The share of the relevant documents that are among the first k.

    >>> recall(["a", "b", "c"], {"b": 1, "c": 2, "d": 1, "e": 0}, k=2)
    0.333...
    """
    relevant = {one for one, grade in grades.items() if grade > 0}
    return len(relevant & set(ranking[:k])) / len(relevant) if relevant else 0.0


def _dcg(gains: Sequence[float]) -> float:
    return float(np.sum(np.asarray(gains, dtype=float) / np.log2(np.arange(2, len(gains) + 2))))
