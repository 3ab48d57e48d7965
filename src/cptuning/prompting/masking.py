"""[TMSK]: hiding text tokens for the auxiliary masked-LM loss, as BERT and PET do it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from cptuning.prompting.layout import Encoding, IntArray


@dataclass(frozen=True)
class Targets:
    """Which positions of a batch must be recovered, and the ids that stood there."""

    rows: IntArray
    columns: IntArray
    ids: IntArray


def mask_text(
    encoding: Encoding, rng: Generator, *, rate: float, mask: int, vocabulary: int
) -> tuple[Encoding, IntArray]:
    """The encoding with some text tokens hidden, and the positions that were chosen.

    Each text token is chosen with probability ``rate``; of the chosen ones 80 % become the mask
    token, 10 % a random token and 10 % stay. Prompts, [OMSK] and special tokens never change.

    >>> import numpy as np
    >>> encoding = Encoding(
    ...     ids=np.array([2, 7, 8, 4, 3]), types=np.zeros(5, int),
    ...     is_text=np.array([False, True, True, False, False]), output=3, shortened=False)
    >>> masked, chosen = mask_text(
    ...     encoding, np.random.default_rng(0), rate=1.0, mask=4, vocabulary=100)
    >>> chosen.tolist(), masked.ids[[0, 3, 4]].tolist()
    ([1, 2], [2, 4, 3])
    """
    chosen = np.flatnonzero(encoding.is_text & (rng.random(len(encoding)) < rate))
    fate = rng.random(len(chosen))
    random_ids = rng.integers(0, vocabulary, size=len(chosen))
    ids = encoding.ids.copy()
    ids[chosen] = np.select([fate < 0.8, fate < 0.9], [mask, random_ids], ids[chosen])
    return replace(encoding, ids=ids), chosen


def mask_batch(
    encodings: Sequence[Encoding],
    seeds: Sequence[Sequence[int]],
    *,
    rate: float,
    mask: int,
    vocabulary: int,
) -> tuple[list[Encoding], Targets]:
    """Mask several encodings, each from a seed of its own.

    One seed per example makes the masks independent of how a batch is divided among processes.
    """
    masked: list[Encoding] = []
    rows: list[IntArray] = []
    columns: list[IntArray] = []
    ids: list[IntArray] = []
    for row, (encoding, seed) in enumerate(zip(encodings, seeds, strict=True)):
        if rate == 0 or not encoding.is_text.any():  # Drawing nothing takes time as well.
            masked.append(encoding)
            continue
        hidden, chosen = mask_text(
            encoding, np.random.default_rng(seed), rate=rate, mask=mask, vocabulary=vocabulary
        )
        masked.append(hidden)
        rows.append(np.full(len(chosen), row, dtype=np.int64))
        columns.append(chosen)
        ids.append(encoding.ids[chosen])
    none = [np.zeros(0, dtype=np.int64)]
    return masked, Targets(*(np.concatenate(none + parts) for parts in (rows, columns, ids)))
