"""Splits into training and held-out rows: K-shot, unbalanced and for cross-fitting."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from cptuning.data.labels import IntArray, as_labels
from cptuning.data.value_checks import shortlist
from cptuning.errors import CPTuningError


def k_shot_split(labels: Any, k: int, seed: int) -> tuple[IntArray, IntArray]:
    """Row indices of ``k`` training and up to ``k`` dev examples per class, as LM-BFF draws them.

    From the same training file, this gives the same rows in the same order as LM-BFF's
    ``generate_k_shot_data.py``: numpy's legacy generator shuffles all rows, and classes are in the
    order of their first appearance in the shuffled rows. If a class has fewer than ``2 * k`` rows,
    the dev examples are what training leaves.

    >>> train, dev = k_shot_split(["a", "b"] * 4, k=2, seed=13)
    >>> train.tolist(), dev.tolist()
    ([1, 3, 4, 6], [5, 7, 0, 2])
    """
    labels = as_labels(labels)
    return unbalanced_split(labels, dict.fromkeys(labels, k), seed)


def unbalanced_split(
    labels: Any, counts: Mapping[Hashable, int], seed: int
) -> tuple[IntArray, IntArray]:
    """The same draw with a separate count for each class; zero omits a class.

    >>> train, dev = unbalanced_split(["a", "b"] * 4, {"a": 1, "b": 3}, seed=13)
    >>> train.tolist(), dev.tolist()
    ([1, 3, 5, 4], [7, 6])
    """
    labels = as_labels(labels)
    order = list(range(len(labels)))
    np.random.RandomState(seed).shuffle(order)
    rows = _rows_by_class(labels, order)
    _check_counts(rows, counts)
    train = [row for label in rows for row in rows[label][: counts[label]]]
    dev = [row for label in rows for row in rows[label][counts[label] : 2 * counts[label]]]
    return np.array(train, dtype=np.int64), np.array(dev, dtype=np.int64)


def stratified_folds(labels: Any, n_folds: int, seed: int) -> IntArray:
    """The fold of each row, such that every class, and the whole, is split as evenly as possible.

    >>> folds = stratified_folds(["a", "a", "a", "b", "b", "b"], n_folds=3, seed=0)
    >>> sorted(folds[:3].tolist()), sorted(folds[3:].tolist())
    ([0, 1, 2], [0, 1, 2])
    """
    labels = as_labels(labels)
    if not 2 <= n_folds <= len(labels):
        raise CPTuningError(
            f"{len(labels)} rows can't be split into {n_folds} folds: use 2 to {len(labels)}."
        )
    order = np.random.default_rng(seed).permutation(len(labels))
    dealt = [row for rows in _rows_by_class(labels, order).values() for row in rows]
    folds = np.empty(len(labels), dtype=np.int64)
    folds[dealt] = np.arange(len(labels)) % n_folds
    return folds


def stratified_sample(labels: Any, most: int, seed: int) -> IntArray:
    """All rows, or a sorted sample of about ``most`` of them that has rows of every class.

    >>> stratified_sample(["a"] * 6 + ["b"], most=4, seed=0).tolist()
    [2, 3, 4, 5, 6]
    """
    labels = as_labels(labels)
    if len(labels) <= most:
        return np.arange(len(labels))
    order = np.random.default_rng(seed).permutation(len(labels)).tolist()
    by_class = _rows_by_class(labels, order).values()
    return np.sort(
        [row for rows in by_class for row in rows[: -(-len(rows) * most // len(labels))]]
    )


def _rows_by_class(labels: list[Hashable], order: Iterable[int]) -> dict[Hashable, list[int]]:
    rows: dict[Hashable, list[int]] = {}
    for row in order:
        rows.setdefault(labels[row], []).append(row)
    return rows


def _check_counts(rows: Mapping[Hashable, list[int]], counts: Mapping[Hashable, int]) -> None:
    if set(counts) != set(rows):
        raise CPTuningError(
            f"Counts are given for {shortlist(counts) or 'no class'}, but the classes are "
            f"{shortlist(rows)}: give each class a count."
        )
    if not any(counts.values()):
        raise CPTuningError("All counts are zero: ask for at least one training example.")
    for label, count in counts.items():
        if count < 0:
            raise CPTuningError(f"The count of class {label!r} is {count}: it cannot be negative.")
        if count > len(rows[label]):
            raise CPTuningError(
                f"Class {label!r} has {len(rows[label])} rows, too few for {count} training "
                "examples: ask for fewer or add some."
            )
