"""Encodings to padded arrays, and long lists to batches of about equal cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cptuning.prompting.layout import Encoding, IntArray


@dataclass(frozen=True)
class Batch:
    """Model inputs of several examples, padded on the right."""

    input_ids: IntArray
    attention_mask: IntArray
    token_type_ids: IntArray
    outputs: IntArray
    """The position of [OMSK] in each row."""

    def __len__(self) -> int:
        return len(self.input_ids)


def collate(encodings: Sequence[Encoding], pad: int, length: int = 0) -> Batch:
    """Pad to the longest of the batch, or to a greater length."""
    shape = (len(encodings), max(length, *map(len, encodings)))
    ids = np.full(shape, pad, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.int64)
    types = np.zeros(shape, dtype=np.int64)
    for row, encoding in enumerate(encodings):
        ids[row, : len(encoding)] = encoding.ids
        mask[row, : len(encoding)] = 1
        types[row, : len(encoding)] = encoding.types
    outputs = np.array([encoding.output for encoding in encodings], dtype=np.int64)
    return Batch(ids, mask, types, outputs)


def token_budget_batches(
    lengths: Sequence[int], budget: int, *, padding: bool = True
) -> list[NDArray[np.int64]]:
    """Indices of the examples, sorted by length and cut so that a padded batch fits the budget.

    An example longer than the budget gets a batch of its own. Without ``padding`` only examples
    of one length are batched together.

    >>> [batch.tolist() for batch in token_budget_batches([5, 2, 4, 2], budget=10)]
    [[1, 3], [2, 0]]
    >>> [batch.tolist() for batch in token_budget_batches([5, 2, 4, 2], budget=10, padding=False)]
    [[1, 3], [2], [0]]
    """
    order = np.argsort(np.asarray(lengths, dtype=np.int64), kind="stable")
    batches: list[NDArray[np.int64]] = []
    start = 0
    for end in range(1, len(order) + 1):
        # Sorted: the example at `end` would be the longest of the batch that it joins.
        if (
            end == len(order)
            or lengths[order[end]] * (end + 1 - start) > budget
            or (lengths[order[end]] != lengths[order[start]] and not padding)
        ):
            batches.append(order[start:end])
            start = end
    return batches
