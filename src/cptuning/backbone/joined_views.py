"""Views of a text: what its vector is joined from. Here in numpy, in ``adapter.py`` in torch.

A *mask view* is the vector at [OMSK] of the prompted text: what the language model would say about
it. A *sentence view* is the pooled vector of its tokens: what it is about. For a pair the sentence
view is the relation of the two texts' vectors.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from cptuning.files.tensors import save_tensors

FloatArray = NDArray[np.float32]

VIEWS_FILE = "views.safetensors"
"""Beside a graph that gives features: how they are joined."""


@dataclass(frozen=True)
class Views:
    """How the vectors that are read for an example become one.

    ``centre`` is subtracted from every vector that is read: first the part of the mask view, of
    ``mask_width`` numbers, then that of the sentence view. With both views the embedding is

        (m / |m|, w s / |s|),

    with m and s the vectors of the two views and w the weight of the sentence view. For a pair s
    is (u · v, |u − v|), with u and v the vectors of the two texts, of unit length.

    >>> views = Views(np.zeros(4, np.float32), mask_width=2, sentence_weight=2.0)
    >>> views.joined(np.array([[[0, 3, 5, 0]]], np.float32)).tolist()
    [[0.0, 1.0, 2.0, 0.0]]
    """

    centre: FloatArray
    mask_width: int
    sentence_weight: float = 1.0

    def joined(self, read: FloatArray) -> FloatArray:
        """One vector per example from what was read: (examples, sequences, numbers)."""
        read = read - self.centre
        mask, sentence = read[:, 0, : self.mask_width], read[..., self.mask_width :]
        if sentence.shape[-1] == 0:
            return mask
        texts = sentence[:, 1:] if self.mask_width and sentence.shape[1] > 1 else sentence
        about = texts[:, 0] if texts.shape[1] == 1 else relation(texts[:, 0], texts[:, 1])
        if self.mask_width == 0:
            return about
        weight = np.float32(self.sentence_weight)
        return np.concatenate([unit(mask), weight * unit(about)], axis=1)

    def embeddings(self, read: FloatArray) -> FloatArray:
        """The same, of unit length."""
        return unit(self.joined(read))

    def save(self, folder: Path) -> None:
        """Write them, without the weight of the sentence view, which is a setting."""
        width = {"mask_width": str(self.mask_width)}
        save_tensors(folder / VIEWS_FILE, {"centre": self.centre}, width)

    @classmethod
    def load(cls, folder: Path, sentence_weight: float | None) -> "Views":
        """The inverse of :meth:`save`; ``ValueError`` if the file says something impossible."""
        with safe_open(folder / VIEWS_FILE, framework="numpy") as file:
            centre, width = file.get_tensor("centre"), (file.metadata() or {}).get("mask_width", "")
        if centre.dtype != np.float32 or centre.ndim != 1 or not np.isfinite(centre).all():
            raise ValueError(f"the centre in {VIEWS_FILE} is not a vector of float32")
        if not (width.isdecimal() and len(width) < 10 and int(width) <= len(centre)):
            raise ValueError(f"{VIEWS_FILE} does not say how wide the mask view is")
        return cls(centre, int(width), 1.0 if sentence_weight is None else sentence_weight)


def relation(first: FloatArray, second: FloatArray) -> FloatArray:
    """How two texts are related: their cosine, and the difference of their unit vectors.

    >>> relation(np.array([[0.0, 2.0]]), np.array([[0.0, 5.0]])).tolist()
    [[1.0, 0.0, 0.0]]
    """
    first, second = unit(first), unit(second)
    cosine = (first * second).sum(axis=1, keepdims=True)
    return np.concatenate([cosine, np.abs(first - second)], axis=1)


def unit(rows: FloatArray) -> FloatArray:
    """The rows at unit length; a row of zeros stays one.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
