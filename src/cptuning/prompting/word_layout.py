"""Words to model inputs that say which piece belongs to which word; long sentences in windows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cptuning.data.sentences import Sentence
from cptuning.prompting.layout import Encoding, IntArray, Layout


@dataclass(frozen=True)
class Window:
    """Some words of a sentence in a row as the model reads them."""

    encoding: Encoding
    sentence: int
    """The number of the sentence among those that were laid out."""
    pieces: IntArray
    """The position of each piece that belongs to a word."""
    words: IntArray
    """The number, in the sentence, of the word that it belongs to."""

    @property
    def first_pieces(self) -> "Window":
        """The same without all pieces of a word but its first."""
        _, kept = np.unique(self.words, return_index=True)
        return Window(self.encoding, self.sentence, self.pieces[kept], self.words[kept])


def windows_for(layout: Layout, sentences: Sequence[Sentence], pieces: str) -> list[Window]:
    """The windows of sentences with the pieces that count: "mean" for all, or the "first" ones."""
    windows = windows_of(layout, sentences)
    return [window.first_pieces for window in windows] if pieces == "first" else windows


def mean_of_pieces(tokens: NDArray[np.float32], window: Window) -> NDArray[np.float32]:
    """The unit vectors of a window's words, from the vectors of its tokens.

    >>> encoding = Encoding(np.arange(3), np.zeros(3, int), np.ones(3, bool), 0, shortened=False)
    >>> window = Window(encoding, 0, pieces=np.array([1, 2]), words=np.array([0, 0]))
    >>> mean_of_pieces(np.array([[9, 9], [2, 0], [4, 0]], np.float32), window).tolist()
    [[1.0, 0.0]]
    """
    _, places = np.unique(window.words, return_inverse=True)
    sums = np.zeros((places.max(initial=-1) + 1, tokens.shape[1]), np.float32)
    np.add.at(sums, places, tokens[window.pieces])
    # The mean has the direction of the sum.
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return np.asarray(sums / lengths, dtype=np.float32)


def windows_of(layout: Layout, sentences: Sequence[Sentence]) -> list[Window]:
    """The sentences as the model reads them: each in as few windows of equal size as it fits into.

    A word that the tokenizer drops is read as the mask token, one that fills a window is cut.
    """
    special = layout.special
    room = layout.max_length - len(special.prefix) - len(special.suffix)
    pieces = layout.pieces_of([word for sentence in sentences for word in sentence.words])
    found, start = [], 0
    for number, sentence in enumerate(sentences):
        own = pieces[start : start + len(sentence)]
        start += len(sentence)
        kept = [ids[:room] or [special.mask] for ids in own]
        for first, last in _cuts([len(ids) for ids in kept], room):
            tokens = [token for ids in kept[first:last] for token in ids]
            lengths = [len(ids) for ids in kept[first:last]]
            found.append(
                Window(
                    layout.alone(tokens),
                    number,
                    len(special.prefix) + np.arange(len(tokens)),
                    np.repeat(np.arange(first, last), lengths),
                )
            )
    return found


def _cuts(lengths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Where to cut a sentence whose words have so many pieces: none, if it has no word."""
    windows = -(-sum(lengths) // room)
    target = sum(lengths) / max(windows, 1)
    first, used = 0, 0
    for place, length in enumerate(lengths):
        if used and (used + length > room or used >= target):
            yield first, place
            first, used = place, 0
        used += length
    if used:
        yield first, len(lengths)
