"""How near a text is to anything known: what decides between an answer and "unknown"."""

import numpy as np
from numpy.typing import NDArray

from cptuning.inference.support import FloatArray, SupportSet


def familiarity(queries: FloatArray, support: SupportSet) -> FloatArray:
    """The similarity of each query to its nearest labelled example.

    >>> from cptuning.data import Examples
    >>> support = SupportSet(Examples(("a",)), np.array([[1, 0]], np.float32), np.array([0]))
    >>> familiarity(np.array([[0, 1], [1, 0]], np.float32), support).tolist()
    [0.0, 1.0]
    """
    return support.nearest(queries, k=1)[1][:, 0]


def familiarity_of_examples(support: SupportSet) -> FloatArray:
    """The similarity of each labelled example to the nearest other one.

    >>> from cptuning.data import Examples
    >>> rows = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    >>> familiarity_of_examples(SupportSet(Examples(("a", "b", "c")), rows, np.array([0, 0, 1])))
    array([1., 1., 0.], dtype=float32)
    """
    indices, similarities = support.nearest(support.embeddings, k=2)
    own = indices[:, 0] == np.arange(len(support))
    return np.where(own, similarities[:, -1], similarities[:, 0])


def threshold_for(known: FloatArray, share_refused: float = 0.05) -> float:
    """The familiarity under which only a small share of known held-out texts falls.

    >>> threshold_for(np.linspace(0, 1, 101).astype(np.float32))
    0.05...
    """
    return float(np.quantile(known, share_refused))


def auroc(known: NDArray[np.floating], strange: NDArray[np.floating]) -> float:
    """The probability that a known text scores above a strange one (ties count half).

    >>> auroc(np.array([0.9, 0.8]), np.array([0.1, 0.8]))
    0.875
    """
    ordered = np.sort(strange)
    below = np.searchsorted(ordered, known, side="left")
    not_above = np.searchsorted(ordered, known, side="right")
    return float(np.mean(below + not_above) / (2 * len(strange)))
