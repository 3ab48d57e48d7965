"""The rows of each training step, as a pure function of the seed and the step.

So a run that is resumed at step 500 draws what an uninterrupted run would have drawn. What steps
share, the rows of each class and the order of an epoch, is cached, so that the cost of a step does
not grow with the number of rows.
"""

from math import gcd
from typing import Any

import numpy as np

from cptuning.data.labels import IntArray
from cptuning.errors import CPTuningError


class UniformBatches:
    """``size`` of ``n`` row indices, all different; every row occurs once per epoch.

    An epoch is a new order of all rows. If the size does not divide ``n``, the last rows of an
    epoch share a batch with the first rows of the next. ``size`` is capped at ``n``.

    >>> batches = UniformBatches(6, 2, seed=0)
    >>> sorted(np.concatenate([batches(step) for step in range(3)]).tolist())
    [0, 1, 2, 3, 4, 5]
    """

    def __init__(self, n: int, size: int, seed: int) -> None:
        _check(n, size)
        self.size = min(size, n)
        self._walk = _Walk(n, (seed,))

    def __call__(self, step: int) -> IntArray:
        """The batch of a step."""
        return self._walk(self.size, step)


class BalancedBatches:
    """``size`` row indices, all different, with the classes as balanced as possible.

    A class in a batch has at least two rows in it, if it has two at all, so that each row has a
    positive; the exception is an odd size when every class has just two rows. If there are more
    classes than ``size // 2``, they take turns. ``size`` is capped at the number of rows.

    >>> labels = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    >>> sorted(labels[BalancedBatches(labels, 4, seed=0)(step=0)].tolist())
    [0, 0, 1, 1]
    """

    def __init__(self, labels: Any, size: int, seed: int) -> None:
        _, codes = np.unique(np.asarray(labels), return_inverse=True)
        _check(len(codes), size)
        self.size, self.seed = min(size, len(codes)), seed
        # The rows of each class, in their order.
        self._rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        self._class_walk = _Walk(len(self._rows), (seed, _CLASSES))
        self._row_walks = [
            _Walk(len(rows), (seed, _ROWS, code)) for code, rows in enumerate(self._rows)
        ]
        self._all = UniformBatches(len(codes), 1, seed)

    def __call__(self, step: int) -> IntArray:
        """The batch of a step."""
        if self.size == 1:  # There is nothing to balance.
            return self._all(step)
        rng = np.random.default_rng((self.seed, _SHUFFLE, step))
        n_classes = min(len(self._rows), self.size // 2)
        on_turn = self._class_walk(n_classes, step)
        others = rng.permutation(np.setdiff1d(np.arange(len(self._rows)), on_turn))
        order = np.concatenate([on_turn, others])
        counts = _class_counts([len(self._rows[code]) for code in order], n_classes, self.size)
        batch = [
            self._rows[code][self._row_walks[code](count, step)]
            for code, count in zip(order, counts, strict=True)
            if count
        ]
        # Shuffled, so that slices of a batch do not consist of one class.
        return rng.permutation(np.concatenate(batch))


# Keys of random streams that must differ for the same seed.
_CLASSES, _ROWS, _SHUFFLE = 1, 2, 3
_MOST_KEPT = 3


def _check(n: int, size: int) -> None:
    if n < 1:
        raise CPTuningError("There are no rows to draw a batch from.")
    if size < 1:
        raise CPTuningError(f"The batch size is {size}: use at least 1.")


class _Walk:
    """An endless walk through permutations of ``n``, in batches; the last epochs are cached."""

    def __init__(self, n: int, key: tuple[int, ...]) -> None:
        self.n, self.key = n, key
        self._kept: dict[tuple[int, int], IntArray] = {}

    def __call__(self, size: int, step: int) -> IntArray:
        """Batch number ``step`` of this size (at most n)."""
        epoch, start = divmod(step * size, self.n)
        batch = self._epoch(size, epoch)[start : start + size]
        if len(batch) < size:
            batch = np.concatenate([batch, self._epoch(size, epoch + 1)[: size - len(batch)]])
        return batch

    def _epoch(self, size: int, epoch: int) -> IntArray:
        if (size, epoch) not in self._kept:
            # The number of rows that a class contributes varies: each size has its own epochs.
            for oldest in list(self._kept)[:-_MOST_KEPT]:
                del self._kept[oldest]
            self._kept[size, epoch] = _epoch(self.n, size, self.key, epoch)
        return self._kept[size, epoch]


def _epoch(n: int, size: int, key: tuple[int, ...], epoch: int) -> IntArray:
    """The order of an epoch: a permutation whose head differs from the rest of its first batch."""
    # An epoch that begins together with a batch does not depend on the one before it.
    begin = epoch - epoch % (size // gcd(n, size))
    if n >= 2 * size:  # Then changing the head of an epoch does not change its tail.
        begin = max(begin, epoch - 1)
    order = _permutation(n, key, begin)
    for current in range(begin + 1, epoch + 1):
        n_tail = current * n % size
        tail = order[n - n_tail :]
        order = _permutation(n, key, current)
        head = order[~np.isin(order, tail)][: size - n_tail]
        order = np.concatenate([head, order[~np.isin(order, head)]])
    return order


def _permutation(n: int, key: tuple[int, ...], epoch: int) -> IntArray:
    return np.random.default_rng((*key, epoch)).permutation(n)


def _class_counts(available: list[int], n_classes: int, size: int) -> list[int]:
    """How many rows each class contributes when it is the turn of the first ``n_classes``.

    >>> _class_counts([9, 1, 9], n_classes=3, size=8)
    [4, 1, 3]
    """
    counts = [0] * len(available)
    room = size
    # Two rows of each, or the only one. Other classes fill up the batch if rows are too few.
    within_reach = 0
    for turn, rows in enumerate(available):
        if turn >= n_classes and within_reach >= size:
            break
        if min(rows, 2) <= room:
            counts[turn] = min(rows, 2)
            room -= counts[turn]
            within_reach += rows
    # The remaining room goes to the class that contributes least and has more rows.
    while room:
        able = [turn for turn, rows in enumerate(available) if 0 < counts[turn] < rows]
        if not able:
            break
        counts[min(able, key=counts.__getitem__)] += 1
        room -= 1
    if room:
        _fill_last_place(counts, available)
    return counts


def _fill_last_place(counts: list[int], available: list[int]) -> None:
    """Fill the last place when all classes in the batch are used up: a larger one replaces one."""
    present = [turn for turn, count in enumerate(counts) if count]
    absent = [turn for turn, count in enumerate(counts) if not count]
    leaves = min(present, key=counts.__getitem__)
    enters = max(absent, key=available.__getitem__)
    if available[enters] > counts[leaves]:
        counts[enters], counts[leaves] = counts[leaves] + 1, 0
    else:
        counts[enters] = 1
