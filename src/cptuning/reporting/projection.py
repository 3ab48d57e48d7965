"""Embeddings in the plane: by t-SNE, or by PCA if there are too few of them."""

import numpy as np
from numpy.typing import NDArray

from cptuning.inference.support import FloatArray, IntArray

# t-SNE shows neighbourhoods; fewer points have none to show.
FEWEST_FOR_TSNE = 30


def subsample(n: int, most: int, seed: int = 0) -> IntArray:
    """``most`` of ``n`` row numbers at random, sorted; all of them if ``n`` is not larger.

    >>> subsample(3, most=5).tolist(), len(subsample(9, most=5))
    ([0, 1, 2], 5)
    """
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size=most, replace=False))


def project(embeddings: FloatArray, seed: int = 0) -> tuple[NDArray[np.float64], str]:
    """One point in the plane per embedding, and the name of the method.

    >>> points, method = project(np.eye(4, dtype=np.float32))
    >>> points.shape, method
    ((4, 2), 'PCA')
    """
    # Identical rows have no neighbourhoods either, however many there are.
    distinct = len(np.unique(embeddings, axis=0))
    if distinct < FEWEST_FOR_TSNE:
        return _principal_components(embeddings), "PCA"
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(embeddings) - 1) / 3)
    method = TSNE(perplexity=perplexity, init="pca", random_state=seed)
    return np.asarray(method.fit_transform(embeddings), dtype=np.float64), "t-SNE"


def _principal_components(embeddings: FloatArray) -> NDArray[np.float64]:
    centred = embeddings.astype(np.float64) - embeddings.mean(axis=0, dtype=np.float64)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(embeddings), 2))
    plane = centred @ directions[:2].T
    points[:, : plane.shape[1]] = plane
    return points
