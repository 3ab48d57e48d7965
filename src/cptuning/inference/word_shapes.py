"""How words are written: capitals, digits and punctuation, which uncased models don't see."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cptuning.data.sentences import Sentence

_HANDLE = re.compile(r"[@#]\w|https?:|www\.")


def word_shapes(sentences: Sequence[Sentence]) -> NDArray[np.float32]:
    """One row per word of all sentences: how it is written, and how its neighbours are.

    >>> word_shapes([Sentence.of_words(["in", "Rome", "1960"])])[:, :4].tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """
    rows = [np.empty((0, 3 * _WIDTH), np.float32)]
    for sentence in sentences:
        if not len(sentence):
            continue
        own = np.array([_shape(word) for word in sentence.words], np.float32)
        # A capital says little where every word has one, or in the first word.
        letters = [word for word in sentence.words if word[:1].isalpha()]
        capital = sum(word[0].isupper() for word in letters) / max(len(letters), 1)
        own[:, 0] *= 1 - capital if len(letters) > 1 else 1.0
        own[0, -1] = 1
        around = np.pad(own, ((1, 1), (0, 0)))
        rows.append(np.concatenate([own, 0.5 * around[:-2], 0.5 * around[2:]], axis=1))
    return np.concatenate(rows)


def _shape(word: str) -> list[float]:
    has_letters, is_long = any(map(str.isalpha, word)), len(word) > 1
    return [
        float(word[:1].isupper()),
        float(has_letters and is_long and word.isupper()),
        float(word[1:] != word[1:].lower() and not word.isupper()),
        float(any(map(str.isdigit, word))),
        float(any(map(str.isdigit, word)) and not has_letters),
        float(not any(map(str.isalnum, word))),
        float("-" in word and is_long),
        float(_HANDLE.match(word) is not None),
        0.0,  # Whether it is the first of its sentence.
    ]


_WIDTH = len(_shape("a"))
