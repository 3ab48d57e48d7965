"""Measure a learning curve: train on growing subsets of the data, and test each model."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from cptuning.data import (
    Examples,
    LabelledData,
    is_multi_label,
    label_parts,
    label_space_of,
    strata,
    stratified_folds,
)
from cptuning.errors import CPTuningError
from cptuning.inference.support import IntArray
from cptuning.reporting.label_metrics import LabelScores
from cptuning.reporting.learning_curve import LearningCurve
from cptuning.reporting.metrics import ConfusionMatrix

TrainAndPredict = Callable[[Examples, list[Hashable], Examples, int], Sequence[Hashable]]
"""Trains on examples and labels, and predicts the test examples; the last argument is a seed."""


def default_sizes(largest: int) -> list[int]:
    """2, 4, 8 and so on, and the largest size.

    >>> default_sizes(16), default_sizes(11), default_sizes(1)
    ([2, 4, 8, 16], [2, 4, 8, 11], [1])
    """
    sizes = [2**power for power in range(1, 31) if 2**power < largest]
    return [*sizes, largest]


def nested_subsets(labels: Sequence[Hashable], sizes: Sequence[int], seed: int) -> list[IntArray]:
    """The rows for each size: up to that many per class, every subset contained in the next.

    Texts with several labels are taken in random order, each if one of its labels has fewer texts
    so far: a label then has at least so many, or as many as there are. Texts without labels are a
    class of their own.

    >>> small, large = nested_subsets(["a", "b"] * 4, [1, 3], seed=0)
    >>> len(small), len(large), set(small) <= set(large)
    (2, 6, True)
    >>> [rows] = nested_subsets([("a", "b"), ("a",), ()] * 9, [2], seed=0)
    >>> 5 <= len(rows) <= 6
    True
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    place: dict[Hashable, int] = {}
    places = np.empty(len(labels), dtype=np.int64)
    for row in order:
        own = label_parts(labels[row]) or ((),)
        places[row] = min(place.get(label, 0) for label in own)
        for label in own:
            place[label] = place.get(label, 0) + 1
    return [np.flatnonzero(places < size) for size in sizes]


def largest_size(data: LabelledData, test: LabelledData | None, repeats: int) -> int:
    """The largest number of examples per class that every repeat can train on.

    >>> data = LabelledData(Examples(("t",) * 8), ["a", "b"] * 4)
    >>> largest_size(data, data, 3), largest_size(data, None, 3)
    (4, 3)
    """
    parts = [train.labels for train, _ in rounds(data, test, repeats)]
    return min(max(_counts(labels).values()) for labels in parts)


def rounds(
    data: LabelledData, test: LabelledData | None, repeats: int
) -> Iterator[tuple[LabelledData, LabelledData]]:
    """The training data and the test data of each repeat.

    With a test set, these are all the data and the test set. Without one, the data is split into
    as many folds as there are repeats (at least two), and each repeat tests on one of them.

    >>> data = LabelledData(Examples(tuple("uvwxyz")), ["a", "b"] * 3)
    >>> [(len(train.labels), len(held_out.labels)) for train, held_out in rounds(data, None, 3)]
    [(4, 2), (4, 2), (4, 2)]
    """
    if test is not None:
        yield from [(data, test)] * repeats
        return
    folds = max(2, repeats)
    if max(_counts(data.labels).values()) < folds:
        raise CPTuningError(
            f"Cross-fitting with {folds} folds needs a class with at least {folds} examples: "
            "name a test file with --test, or add examples."
        )
    fold_of = stratified_folds(_strata(data.labels), folds, seed=0)
    for repeat in range(repeats):
        yield (
            data.take(np.flatnonzero(fold_of != repeat)),
            data.take(np.flatnonzero(fold_of == repeat)),
        )


def measure(
    data: LabelledData,
    test: LabelledData | None,
    *,
    sizes: Sequence[int],
    repeats: int,
    seed: int,
    answer: TrainAndPredict,
) -> Iterator[LearningCurve]:
    """The curve after every training, so that the measurement can be stopped at any time.

    Each repeat covers all sizes before the next one begins, so that whenever it is stopped, all
    sizes have been measured about equally often.
    """
    tested = test.labels if test is not None else data.labels
    n_answers = len(tested)
    if test is None:
        n_answers = sum(len(held_out.labels) for _, held_out in rounds(data, None, repeats))
    label_sets = is_multi_label(data.labels)
    curve = LearningCurve(
        {size: [] for size in sizes},
        majority=LabelScores.of(tested, tested).constant_f1
        if label_sets
        else ConfusionMatrix.of(tested, tested).majority,
        answers=n_answers,
        label_sets=label_sets,
    )
    for repeat, (train, held_out) in enumerate(rounds(data, test, repeats)):
        subsets = nested_subsets(train.labels, sizes, seed + repeat)
        for size, rows in zip(sizes, subsets, strict=True):
            part = train.take(rows)
            answers = answer(part.examples, part.labels, held_out.examples, seed + repeat)
            curve.accuracies[size].append(_score(held_out.labels, answers, label_sets))
            yield curve


def _score(truth: Sequence[Any], answers: Sequence[Any], label_sets: bool) -> float:
    """The share of right answers; of label sets, their micro-F1."""
    if label_sets:
        return LabelScores.of(truth, answers).micro_f1
    return float(np.mean([answer == label for answer, label in zip(answers, truth, strict=True)]))


def _counts(labels: Sequence[Hashable]) -> Counter[Hashable]:
    """How many examples each class, or label, has."""
    return Counter(part for label in labels for part in label_parts(label))


def _strata(labels: Sequence[Hashable]) -> IntArray:
    """The classes; of label sets, the rarest label of each."""
    return strata(label_space_of(labels).encode(labels))
