"""The labelled examples that a prediction is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cptuning.data import Examples
from cptuning.inference.choice import Analysis, analysis_of
from cptuning.inference.closed_form import Discriminants
from cptuning.inference.index import ApproximateIndex, Index
from cptuning.inference.label_regression import LabelFunctions, LabelRegression

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]

# Similarities of this many queries and examples are in memory at a time: 16 MB.
_QUERIES = 256
_EXAMPLES = 16_384


@dataclass(frozen=True)
class SupportSet:
    """Examples with their unit-norm embeddings and class numbers.

    The label sets of a multi-label task are a 0/1 matrix with a column for each label.
    """

    examples: Examples
    embeddings: FloatArray
    labels: IntArray
    index: ApproximateIndex | None = None
    """Finds the nearest examples; without one, all of them are compared."""
    weights: NDArray[np.float64] | None = None
    """The weight of each example; None if all are 1."""
    is_description: NDArray[np.bool_] | None = None
    """Which of them describe their class instead of being an example of it; None if none does."""

    def __len__(self) -> int:
        return len(self.labels)

    def __add__(self, more: "SupportSet") -> "SupportSet":
        return SupportSet(
            self.examples + more.examples,
            np.concatenate([self.embeddings, more.embeddings]),
            np.concatenate([self.labels, more.labels]),
            index=self.index and self.index.extended(more.embeddings),
            weights=_joined((self.weights, more.weights), (self, more), 1.0),
            is_description=_joined((self.is_description, more.is_description), (self, more), False),
        )

    @property
    def n_examples(self) -> int:
        """How many of them are examples, not descriptions."""
        described = 0 if self.is_description is None else int(self.is_description.sum())
        return len(self) - described

    def take(self, rows: Sequence[int] | IntArray) -> "SupportSet":
        """Some of it, in the order asked for, searched in the same way."""
        some = SupportSet(
            self.examples.take(rows),
            self.embeddings[rows],
            self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            is_description=None if self.is_description is None else self.is_description[rows],
        )
        return some.searched("approximate" if self.index else "exact")

    def without_texts(self) -> "SupportSet":
        """The same embeddings and labels, without what the examples say."""
        return replace(self, examples=self.examples.without_texts())

    def with_columns(self, n_labels: int) -> "SupportSet":
        """The same label sets with columns for more labels, which none of the examples has."""
        more = n_labels - self.labels.shape[1]
        return replace(self, labels=np.pad(self.labels, ((0, 0), (0, more))))

    def searched(self, index: Index) -> "SupportSet":
        """The same examples, of which a query is compared with all, or only with the likely ones.

        >>> support = SupportSet(Examples(("a",)), np.ones((1, 1), np.float32), np.array([0]))
        >>> support.searched("exact").index is None
        True
        """
        built = ApproximateIndex(self.embeddings) if index == "approximate" else None
        return replace(self, index=built)

    @cached_property
    def class_means(self) -> FloatArray:
        """The weighted mean embedding of the examples of each class; zeros for one without any.

        Computed once: however many examples there are, an answer by prototypes costs the same.
        """
        n_classes = int(self.labels.max(initial=-1)) + 1
        sums = np.zeros((n_classes, self.embeddings.shape[1]), dtype=np.float64)
        for start in range(0, len(self), _EXAMPLES):
            labels = self.labels[start : start + _EXAMPLES]
            order = np.argsort(labels, kind="stable")
            found, firsts = np.unique(labels[order], return_index=True)
            block: NDArray[np.floating] = self.embeddings[start : start + _EXAMPLES][order]
            if self.weights is not None:
                block = self.weights[start : start + _EXAMPLES][order][:, None] * block
            sums[found] += np.add.reduceat(block, firsts, axis=0, dtype=np.float64)
        counts = np.bincount(self.labels, self.weights, minlength=n_classes)
        return np.asarray(sums / np.where(counts > 0, counts, 1)[:, None], dtype=np.float32)

    @cached_property
    def analysis(self) -> Analysis:
        """What answers in closed form: linear discriminant analysis, or one of label sets."""
        return analysis_of(self.embeddings, self.labels, self.weights, self.is_description)

    @property
    def label_regression(self) -> LabelRegression:
        """The analysis of label sets."""
        assert isinstance(self.analysis, LabelRegression)
        return self.analysis

    @cached_property
    def discriminants(self) -> Discriminants | LabelFunctions:
        """The score of each class as a linear function, with the shrinkage chosen for it."""
        return self.analysis.discriminants(self.analysis.shrinkage)

    def nearest(self, queries: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        """The k most similar examples of each query, best first, and their similarities.

        Equally similar ones come in the order of the support set. Queries and examples are
        compared in blocks, so memory stays small however many there are of either. An index may
        miss some of the nearest; the similarities of those it finds are the true ones.

        >>> support = SupportSet(Examples(("up", "right")), np.eye(2, dtype=np.float32),
        ...                      np.array([0, 1]))
        >>> indices, similarities = support.nearest(np.array([[0.6, 0.8]], dtype=np.float32), k=5)
        >>> indices.tolist()
        [[1, 0]]
        """
        k = min(k, len(self))
        nearest = self._among_all if self.index is None else self._among_candidates
        found = [
            nearest(queries[start : start + _QUERIES], k)
            for start in range(0, len(queries), _QUERIES)
        ]
        if not found:
            return np.empty((0, k), dtype=np.int64), np.empty((0, k), dtype=np.float32)
        indices, similarities = zip(*found, strict=True)
        return np.concatenate(indices), np.concatenate(similarities)

    def _among_candidates(self, queries: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        assert self.index is not None
        indices = np.sort(self.index.candidates(queries, k), axis=1)
        similarities = np.einsum("qd,qkd->qk", queries, self.embeddings[indices])
        return _best_first(indices, similarities, k)

    def _among_all(self, queries: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        indices = np.empty((len(queries), 0), dtype=np.int64)
        similarities = np.empty((len(queries), 0), dtype=np.float32)
        for start in range(0, len(self), _EXAMPLES):
            block = queries @ self.embeddings[start : start + _EXAMPLES].T
            columns = np.arange(block.shape[1])
            if indices.shape[1] == k:  # Few examples are nearer to some query than its k so far.
                columns = np.flatnonzero((block > similarities[:, -1:]).any(axis=0))
                block = block[:, columns]
            best = _largest(block, k)
            # Those found so far stand before those of this block, as in the support set.
            indices = np.concatenate([indices, columns[best] + start], axis=1)
            values = np.take_along_axis(block, best, axis=1)
            similarities = np.concatenate([similarities, values], axis=1)
            indices, similarities = _best_first(indices, similarities, k)
        return indices, similarities


def _joined(
    parts: Sequence[NDArray[Any] | None], sets: Sequence[SupportSet], default: Any
) -> NDArray[Any] | None:
    """What two sets say about their examples; None if neither says anything."""
    if all(part is None for part in parts):
        return None
    filled = [
        np.full(len(one), default) if part is None else part
        for part, one in zip(parts, sets, strict=True)
    ]
    return np.concatenate(filled)


def _best_first(indices: IntArray, similarities: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """The k most similar ones of each row; of equals, the one that stood before the other."""
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
    return (
        np.take_along_axis(indices, order, axis=1),
        np.take_along_axis(similarities, order, axis=1),
    )


def _largest(values: FloatArray, k: int) -> IntArray:
    """The columns of the k largest values of each row, in their order; of equals, the first.

    >>> _largest(np.array([[1, 3, 2, 3, 3]], dtype=np.float32), 2).tolist()
    [[1, 3]]
    """
    rows, columns = values.shape
    if k >= columns:
        return np.tile(np.arange(columns), (rows, 1))
    # Partitioning is much faster than sorting, but takes any of those that equal the last one.
    last = np.partition(values, columns - k, axis=1)[:, columns - k, None]
    above, equal = values > last, values == last
    missing = k - above.sum(axis=1, keepdims=True)
    chosen = above | (equal & (np.cumsum(equal, axis=1) <= missing))
    return np.nonzero(chosen)[1].reshape(rows, k)
