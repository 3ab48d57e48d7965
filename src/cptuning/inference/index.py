"""An approximate search for support sets of hundreds of thousands of examples (faiss)."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cptuning.extras import needed_for

Index = Literal["exact", "approximate"]

# There are about √n cells, of which a query searches the nearest few.
_PROBES = 16
# The centres of the cells are found from this many examples each; more would change little.
_EXAMPLES_PER_CELL = 64
_ROUNDS = 10


class ApproximateIndex:
    """Embeddings in cells: a query is compared with those in the cells nearest to it.

    It is never changed once it is made, so adding examples does not disturb predictions that are
    being made. The embeddings in it are float16, half of what the support set itself takes.

    >>> corners = np.eye(3, dtype=np.float32)
    >>> index = ApproximateIndex(corners[:2]).extended(corners[2:])
    >>> index.candidates(corners, k=1).tolist()
    [[0], [1], [2]]
    """

    def __init__(self, embeddings: NDArray[np.float32]) -> None:
        faiss = _faiss()
        n, width = embeddings.shape
        cells = max(1, int(n**0.5))
        centres = faiss.IndexFlatIP(width)
        self._index = faiss.IndexIVFScalarQuantizer(
            centres, width, cells, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        self._index.cp.niter = _ROUNDS
        self._index.cp.min_points_per_centroid = 1  # otherwise it warns about small support sets
        self._index.cp.max_points_per_centroid = _EXAMPLES_PER_CELL
        self._index.train(embeddings)
        self._index.add(embeddings)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def extended(self, more: NDArray[np.float32]) -> "ApproximateIndex":
        """The same cells with more embeddings in them, numbered from the last one on."""
        other = object.__new__(ApproximateIndex)
        other._index = _faiss().clone_index(self._index)
        other._index.add(more)
        return other

    def candidates(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """The numbers of k embeddings for each query that are likely to be the nearest ones."""
        found = self._search(queries, k, _PROBES)
        short = (found < 0).any(axis=1)  # the cells that were searched hold fewer than k
        if short.any():
            found[short] = self._search(queries[short], k, self._index.nlist)
        return found

    def _search(self, queries: NDArray[np.float32], k: int, probes: int) -> NDArray[np.int64]:
        parameters = _faiss().SearchParametersIVF(nprobe=probes)
        _, found = self._index.search(queries, k, params=parameters)
        return np.asarray(found, dtype=np.int64)


def _faiss() -> Any:
    with needed_for('index="approximate"'):
        import faiss
    return faiss
