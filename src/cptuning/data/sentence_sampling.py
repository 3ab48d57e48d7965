"""Few-shot samples of tagged sentences by Few-NERD's rule: N types, K to 2K sentences of each."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from cptuning.data.tag_schemes import WordSpan


def k_to_2k_sample(sentences: Sequence[Iterable[WordSpan]], k: int, seed: int) -> list[int]:
    """The rows of a greedy sample, in the order in which they were drawn.

    Sentences come in random order. One is taken if it has a type that is in fewer than k of those
    taken, and no type would be in more than 2k of them. So each type is in k to 2k sentences, or in
    as many as this allows. Few-NERD counts spans instead, and so never takes a list of many.

    >>> one = [[WordSpan(0, 1, "city")]]
    >>> len(k_to_2k_sample(one * 9, k=2, seed=0)), len(k_to_2k_sample(one, k=2, seed=0))
    (2, 1)
    """
    types = [{span.label for span in spans} for spans in sentences]
    wanted = set().union(*types)
    have: Counter[str] = Counter()
    rows = []
    for row in np.random.default_rng(seed).permutation(len(types)).tolist():
        new = types[row]
        adds = any(have[label] < k for label in new)
        if adds and all(have[label] < 2 * k for label in new):
            rows.append(row)
            have.update(new)
            if all(have[label] >= k for label in wanted):
                break
    return rows
