"""The best valid sequence of tags, by transition scores that depend on no type."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cptuning.data.tag_schemes import WordSpan

Floats = NDArray[np.float64]
IntArray = NDArray[np.int64]

Before = Literal["start", "outside", "begin", "inside"]
Move = Literal["outside", "inside", "same", "other"]
"""What follows: no span; more of the span; a new span of the same type, or of another one."""

_MOVES: dict[Before, tuple[Move, ...]] = {
    "start": ("outside", "other"),
    "outside": ("outside", "other"),
    "begin": ("outside", "inside", "same", "other"),
    "inside": ("outside", "inside", "same", "other"),
}


@dataclass(frozen=True)
class Transitions:
    """How likely each move is, whatever the type: so a few sentences are enough to tell.

    As in StructShot, except that the parts of a span are told apart: the answer is in IOB2.
    """

    probabilities: dict[Before, dict[Move, float]]

    @classmethod
    def estimated(
        cls, sentences: Iterable[tuple[Sequence[WordSpan], int]], smoothing: float = 1.0
    ) -> "Transitions":
        """From the spans of sentences and their numbers of words; each move is seen once more.

        >>> sentences = [([WordSpan(1, 3, "city")], 4)]
        >>> Transitions.estimated(sentences).probabilities["start"]
        {'outside': 0.666..., 'other': 0.333...}
        """
        counts: Counter[tuple[Before, Move]] = Counter()
        for spans, n_words in sentences:
            before: Before = "start"
            label = ""
            opening = {span.start: span for span in spans}
            stop = 0
            for place in range(n_words):
                span = opening.get(place)
                if span is not None:
                    is_same = before in ("begin", "inside") and span.label == label
                    counts[before, "same" if is_same else "other"] += 1
                    before, label, stop = "begin", span.label, span.stop
                elif place < stop:
                    counts[before, "inside"] += 1
                    before = "inside"
                else:
                    counts[before, "outside"] += 1
                    before = "outside"
        found: dict[Before, dict[Move, float]] = {}
        for before, moves in _MOVES.items():
            total = sum(counts[before, move] + smoothing for move in moves)
            found[before] = {move: (counts[before, move] + smoothing) / total for move in moves}
        return cls(found)

    def scores(self, n_types: int) -> tuple[Floats, Floats]:
        """Log-probabilities of the first tag, and of each tag (column) after each (row).

        Tag 0 is O, then come B and I of the first type, B and I of the second, and so on. A move to
        a new type is shared equally by the types that there are. What is not valid is minus
        infinity.
        """
        size = 1 + 2 * n_types
        first, after = np.full(size, -np.inf), np.full((size, size), -np.inf)
        begins = np.arange(1, size, 2)
        first[0] = np.log(self.probabilities["start"]["outside"])
        first[begins] = _shared(self.probabilities["start"]["other"], n_types)
        after[0, 0] = np.log(self.probabilities["outside"]["outside"])
        after[0, begins] = _shared(self.probabilities["outside"]["other"], n_types)
        for offset, before in enumerate(get_args(Before)[2:]):
            moves = self.probabilities[before]
            for begin in begins:
                row = after[begin + offset]
                row[0] = np.log(moves["outside"])
                row[begins] = _shared(moves["other"], n_types - 1)
                row[begin] = np.log(moves["same"])
                row[begin + 1] = np.log(moves["inside"])
        return first, after


def _shared(probability: float, n: int) -> float:
    return float(np.log(probability / n)) if n else -np.inf


def viterbi(emissions: Sequence[Floats], first: Floats, after: Floats) -> list[IntArray]:
    """For each sentence the tags with the highest sum of scores.

    ``emissions`` are (words, tags), ``first`` is (tags,) and ``after`` (tags before, tags).

    >>> first, after = np.array([0.0, -np.inf]), np.zeros((2, 2))
    >>> [tags] = viterbi([np.array([[0.0, 9.0], [0.0, 1.0], [1.0, 0.0]])], first, after)
    >>> tags.tolist()
    [0, 1, 0]
    """
    lengths = np.array([len(rows) for rows in emissions], dtype=np.int64)
    longest, size = int(lengths.max(initial=0)), len(first)
    if longest == 0:
        return [np.empty(0, dtype=np.int64) for _ in emissions]
    padded = np.zeros((len(emissions), longest, size))
    for number, rows in enumerate(emissions):
        padded[number, : len(rows)] = rows
    best = first + padded[:, 0]
    came_from = np.zeros((longest, len(emissions), size), dtype=np.int64)
    for place in range(1, longest):
        paths = best[:, :, None] + after
        goes_on = (place < lengths)[:, None]
        # Behind its last word a sentence stays where it is.
        came_from[place] = np.where(goes_on, paths.argmax(axis=1), np.arange(size))
        best = np.where(goes_on, paths.max(axis=1) + padded[:, place], best)
    tags = np.empty((longest, len(emissions)), dtype=np.int64)
    tags[-1] = best.argmax(axis=1)
    for place in range(longest - 1, 0, -1):
        tags[place - 1] = came_from[place, np.arange(len(emissions)), tags[place]]
    return [tags[:length, number] for number, length in enumerate(lengths.tolist())]


def marginals(emissions: Floats, first: Floats, after: Floats) -> Floats:
    """The probability of each tag at each word, over all valid sequences.

    >>> first, after = np.log([0.5, 0.5]), np.log(np.full((2, 2), 0.5))
    >>> marginals(np.log([[0.8, 0.2], [0.5, 0.5]]), first, after).round(6).tolist()
    [[0.8, 0.2], [0.5, 0.5]]
    """
    n = len(emissions)
    if n == 0:
        return np.empty(emissions.shape)
    forward, backward = np.empty(emissions.shape), np.zeros(emissions.shape)
    forward[0] = first + emissions[0]
    for place in range(1, n):
        forward[place] = _log_sum(forward[place - 1][:, None] + after, 0) + emissions[place]
    for place in range(n - 2, -1, -1):
        backward[place] = _log_sum(after + emissions[place + 1] + backward[place + 1], 1)
    joint = forward + backward
    return np.asarray(np.exp(joint - _log_sum(joint, 1)[:, None]))


def _log_sum(values: Floats, axis: int) -> Floats:
    most = values.max(axis=axis, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(values - most).sum(axis=axis, keepdims=True)) + most
    return np.asarray(np.squeeze(total, axis=axis))


def spans_from(tags: NDArray[np.int64], types: Sequence[str]) -> list[WordSpan]:
    """The spans of a valid sequence of tags.

    >>> spans_from(np.array([1, 2, 0, 3]), ["city", "day"])
    [WordSpan(start=0, stop=2, label='city'), WordSpan(start=3, stop=4, label='day')]
    """
    spans: list[WordSpan] = []
    for place, tag in enumerate(tags.tolist()):
        if tag == 0:
            continue
        if tag % 2:
            spans.append(WordSpan(place, place + 1, types[tag // 2]))
        else:
            spans[-1] = WordSpan(spans[-1].start, place + 1, spans[-1].label)
    return spans
