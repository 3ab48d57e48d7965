"""Encodings to padded arrays, and long lists to batches of about equal cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cptuning.prompting.layout import Encoding, IntArray


@dataclass(frozen=True)
class Batch:
    """Model inputs of several examples, padded on the right.

    The first sequences of all examples come first; then, of examples with more, the second ones,
    and so on.
    """

    input_ids: IntArray
    attention_mask: IntArray
    token_type_ids: IntArray
    outputs: IntArray
    """The position of [OMSK] in the first sequence of each example."""
    is_text: IntArray
    """One at the tokens of the texts themselves."""

    def __len__(self) -> int:
        """How many examples there are."""
        return len(self.outputs)


def collate(encodings: Sequence[Encoding], pad: int, length: int = 0) -> Batch:
    """Pad to the longest of the batch, or to a greater length."""
    rows = [*encodings]
    for place in range(max((len(encoding.others) for encoding in encodings), default=0)):
        rows += [encoding.others[place] for encoding in encodings if encoding.others]
    shape = (len(rows), max(length, *map(len, rows)))
    ids = np.full(shape, pad, dtype=np.int64)
    mask, types, is_text = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    for row, encoding in enumerate(rows):
        ids[row, : len(encoding)] = encoding.ids
        mask[row, : len(encoding)] = 1
        types[row, : len(encoding)] = encoding.types
        is_text[row, : len(encoding)] = encoding.is_text
    outputs = np.array([encoding.output for encoding in encodings], dtype=np.int64)
    return Batch(ids, mask, types, outputs, is_text)


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
