"""Long texts in overlapping windows: where they begin, and what becomes of what is read of each."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cptuning.prompting.layout import Encoding, IntArray

# What keeps a window that is drawn for a training step apart from the masks of the same step.
_DRAW = 1


def all_windows(encodings: Sequence[Encoding]) -> tuple[list[Encoding], IntArray]:
    """Every window of every example, and at which place each example's first one is."""
    windows = [window for encoding in encodings for window in windows_of(encoding)]
    counts = [1 + len(encoding.windows) for encoding in encodings]
    return windows, np.cumsum([0, *counts[:-1]]) if counts else np.empty(0, np.int64)


def windows_of(encoding: Encoding) -> list[Encoding]:
    """The windows of one example, each by itself."""
    if not encoding.windows:
        return [encoding]
    return [replace(encoding, windows=()), *encoding.windows]


def pooled(read: NDArray[np.float32], first: IntArray) -> NDArray[np.float32]:
    """The mean over each example's windows, which all have equally many tokens.

    >>> pooled(np.array([[1.0], [2.0], [4.0]], np.float32), np.array([0, 1])).tolist()
    [[1.0], [3.0]]
    """
    if len(first) == len(read):
        return read
    counts = np.diff([*first, len(read)]).astype(np.float32)
    sums = np.add.reduceat(read, first, axis=0)
    return np.asarray(sums / counts.reshape(-1, *[1] * (read.ndim - 1)))


def drawn_windows(encodings: Sequence[Encoding], seeds: Sequence[Sequence[int]]) -> list[Encoding]:
    """One window of each example, at random."""
    drawn = []
    for encoding, seed in zip(encodings, seeds, strict=True):
        windows = windows_of(encoding)
        place = np.random.default_rng([*seed, _DRAW]).integers(len(windows)) if windows[1:] else 0
        drawn.append(windows[place])
    return drawn
