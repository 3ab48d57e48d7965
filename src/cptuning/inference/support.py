"""The labelled examples that a prediction is compared with."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cptuning.data import Examples

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]

_BLOCK = 1024


@dataclass(frozen=True)
class SupportSet:
    """Examples with their unit-norm embeddings and class numbers."""

    examples: Examples
    embeddings: FloatArray
    labels: IntArray

    def __len__(self) -> int:
        return len(self.labels)

    def __add__(self, more: "SupportSet") -> "SupportSet":
        return SupportSet(
            self.examples + more.examples,
            np.concatenate([self.embeddings, more.embeddings]),
            np.concatenate([self.labels, more.labels]),
        )

    def nearest(self, queries: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        """The k most similar examples of each query, best first, and their similarities.

        Equally similar ones come in the order of the support set. Queries are compared in
        blocks, so memory stays small for long lists.

        >>> support = SupportSet(Examples(("up", "right")), np.eye(2, dtype=np.float32),
        ...                      np.array([0, 1]))
        >>> indices, similarities = support.nearest(np.array([[0.6, 0.8]], dtype=np.float32), k=5)
        >>> indices.tolist()
        [[1, 0]]
        """
        k = min(k, len(self))
        indices = np.empty((len(queries), k), dtype=np.int64)
        similarities = np.empty((len(queries), k), dtype=np.float32)
        for start in range(0, len(queries), _BLOCK):
            block = queries[start : start + _BLOCK] @ self.embeddings.T
            best = np.argsort(-block, axis=1, kind="stable")[:, :k]
            indices[start : start + _BLOCK] = best
            similarities[start : start + _BLOCK] = np.take_along_axis(block, best, axis=1)
        return indices, similarities
