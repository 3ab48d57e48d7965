"""The score of each class: neighbours' votes, similarity to prototypes, or discriminants."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cptuning.inference.support import FloatArray, IntArray, SupportSet

Inference = Literal["knn", "prototype", "unit-prototype", "lda"]
Scores = NDArray[np.float64]


def class_scores(
    queries: FloatArray, support: SupportSet, n_classes: int, inference: Inference, k: int
) -> Scores:
    """One score per class for each query; the largest one is the prediction.

    ``"prototype"`` is the paper's: the product with the mean of a class's unit vectors. The
    more alike the examples of a class are, the longer that mean is, which favours compact classes;
    ``"unit-prototype"`` uses its direction alone. ``"lda"`` is linear discriminant analysis, see
    :class:`~cptuning.inference.closed_form.DiscriminantAnalysis`.
    """
    if inference == "knn":
        return knn_votes(queries, support, n_classes, k)
    if inference == "lda":
        return support.discriminants.for_classes(n_classes).scores(queries)
    centres = prototypes(support, n_classes)
    if inference == "unit-prototype":
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    return (queries @ centres.T).astype(np.float64)


def knn_votes(queries: FloatArray, support: SupportSet, n_classes: int, k: int) -> Scores:
    """The similarity-weighted votes of the k nearest examples, as a share of k.

    A vote weighs (1 + similarity) / 2, which is never negative, times the example's own weight. Of
    classes with equal votes the one with the nearest example wins: nearness raises votes by less
    than any real difference.

    >>> from cptuning.data import Examples
    >>> support = SupportSet(Examples(("a", "b", "c")), np.eye(3, dtype=np.float32),
    ...                      np.array([0, 1, 1]))
    >>> knn_votes(np.eye(3, dtype=np.float32)[:1], support, n_classes=2, k=1).tolist()
    [[1.0..., 0.0]]
    """
    indices, similarities = support.nearest(queries, k)
    return _votes(support, indices, similarities, n_classes)


def _votes(
    support: SupportSet, indices: IntArray, similarities: FloatArray, n_classes: int
) -> Scores:
    """The votes of neighbours, one row per query, the nearest first."""
    labels = support.labels[indices]
    votes_of = (1.0 + similarities) / 2
    if support.weights is not None:
        votes_of = votes_of * support.weights[indices]
    rows = np.arange(len(labels))
    votes = np.zeros((len(labels), n_classes))
    nearness = np.zeros_like(votes)
    found = labels.shape[1]
    for neighbour in reversed(range(found)):  # so that the nearest of a class comes last
        voted = labels[:, neighbour]
        votes[rows, voted] += votes_of[:, neighbour]
        nearness[rows, voted] = found - neighbour
    return np.asarray((votes + 1e-9 * nearness) / found)


def close_calls(
    queries: FloatArray,
    scores: Scores,
    support: SupportSet,
    inference: Inference,
    k: int,
    clear_lead: float,
    correction: Scores | None = None,
) -> IntArray:
    """The rows of queries whose class would change were all others nearer by the clear lead.

    ``correction`` is what the class scores contain beside nearness.

    >>> from cptuning.data import Examples
    >>> support = SupportSet(Examples(("a", "b")), np.eye(2, dtype=np.float32), np.array([0, 1]))
    >>> queries = np.array([[0.6, 0.8], [0.71, 0.7]], np.float32)
    >>> for inference in ("knn", "prototype"):
    ...     scores = class_scores(queries, support, 2, inference, k=1)
    ...     print(close_calls(queries, scores, support, inference, k=1, clear_lead=0.1))
    [1]
    [1]
    """
    best = scores.argmax(axis=1)[:, None]
    if inference == "knn":
        # Those that would then be nearest are among twice as many, unless very many are alike.
        indices, similarities = support.nearest(queries, 2 * k)
        labels = support.labels[indices]
        nearer = similarities + np.float32(clear_lead) * (labels != best)
        order = np.argsort(-nearer, axis=1, kind="stable")[:, :k]
        indices, nearer = (np.take_along_axis(each, order, axis=1) for each in (indices, nearer))
        scores = _votes(support, indices, nearer, scores.shape[1])
        scores = scores if correction is None else scores + correction
    else:
        scores = scores + clear_lead * (np.arange(scores.shape[1]) != best)
    return np.flatnonzero(scores.argmax(axis=1) != best[:, 0])


def prototypes(support: SupportSet, n_classes: int) -> FloatArray:
    """The mean embedding of each class's examples (Section "Model Inference" of the paper).

    >>> from cptuning.data import Examples
    >>> support = SupportSet(Examples(("a", "b", "c")), np.eye(3, dtype=np.float32),
    ...                      np.array([0, 1, 1]))
    >>> prototypes(support, n_classes=2).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    """
    means = np.zeros((n_classes, support.embeddings.shape[1]), dtype=np.float32)
    means[: len(support.class_means)] = support.class_means
    return means
