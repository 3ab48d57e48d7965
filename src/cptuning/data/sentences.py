"""Sentences as words that know their places in the text, and spans that are marked in them."""

import logging
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any
from unicodedata import category

from cptuning.data.tag_schemes import WordSpan, spans_of
from cptuning.errors import CPTuningError

# Letters and digits together; of everything else each character is a word.
_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")
# ZERO WIDTH NON-JOINER and JOINER, of words in Persian or Hindi and of emoji.
_JOINERS = "\u200c\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)

_log = logging.getLogger("cptuning")


@dataclass(frozen=True)
class Sentence:
    """A text and the places of its words in it."""

    text: str
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of_text(cls, text: str) -> "Sentence":
        """A text, split into words.

        >>> Sentence.of_text("Zoë flies to St. Gallen.").words
        ('Zoë', 'flies', 'to', 'St', '.', 'Gallen', '.')
        """
        places = [match.span() for match in _WORD.finditer(text)]
        return cls(text, tuple(places if text.isascii() else _marks_joined(text, places)))

    @classmethod
    def of_words(cls, words: Sequence[str]) -> "Sentence":
        """Words that were told apart already; their text has a space between each two.

        >>> sentence = Sentence.of_words(["New York", "'s", "mayor"])
        >>> sentence.text, sentence.words[0]
        ("New York 's mayor", 'New York')
        """
        places, start = [], 0
        for word in words:
            places.append((start, start + len(word)))
            start += len(word) + 1
        return cls(" ".join(words), tuple(places))

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words themselves."""
        return tuple(self.text[start:end] for start, end in self.places)

    def marked(self, span: WordSpan) -> dict[str, Any]:
        """A span of words with its text and the characters it covers.

        >>> Sentence.of_text("in St. Gallen").marked(WordSpan(1, 4, "city"))
        {'text': 'St. Gallen', 'label': 'city', 'start': 3, 'end': 13}
        """
        start, end = self.places[span.start][0], self.places[span.stop - 1][1]
        return {"text": self.text[start:end], "label": span.label, "start": start, "end": end}

    def word_spans(self, spans: Iterable[Any], where: str) -> tuple[list[WordSpan], int]:
        """Spans of characters as spans of words, and how many were widened to whole words.

        A span is a dictionary with start, end and label, or those three in this order.
        """
        first = [start for start, _ in self.places]
        last = [end for _, end in self.places]
        found, widened = [], 0
        for start, end, label in (self._checked(span, where) for span in spans):
            begin, stop = bisect_right(last, start), bisect_left(first, end)
            if begin == stop:
                raise CPTuningError(
                    f"{where}: the span from {start} to {end} has no word in it: mark some letters."
                )
            # White space at the ends is cut off without a word about it.
            inside = self.text[start:end]
            lead = len(inside) - len(inside.lstrip())
            trail = len(inside) - len(inside.rstrip())
            widened += (first[begin], last[stop - 1]) != (start + lead, end - trail)
            found.append(WordSpan(begin, stop, label))
        found.sort()
        for one, other in pairwise(found):
            if one.stop > other.start:
                words = " ".join(self.words[other.start : min(one.stop, other.stop)])
                raise CPTuningError(
                    f"{where}: the spans {one.label!r} and {other.label!r} overlap at {words!r}: "
                    "a word can be in one span only."
                )
        return found, widened

    def _checked(self, span: Any, where: str) -> tuple[int, int, str]:
        try:
            if isinstance(span, Mapping):
                start, end, label = span["start"], span["end"], span["label"]
            else:
                start, end, label = span
        except (KeyError, TypeError, ValueError):
            raise CPTuningError(
                f'{where}: {span!r} is not a span like {{"start": 0, "end": 5, "label": "city"}}.'
            ) from None
        if not isinstance(label, str) or not label.strip():
            raise CPTuningError(f"{where}: the label {label!r} of a span is not a text.")
        if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(self.text):
            raise CPTuningError(
                f"{where}: the span from {start!r} to {end!r} is not inside the text, which has "
                f"{len(self.text)} characters."
            )
        return start, end, label


@dataclass(frozen=True)
class TaggedSentences:
    """Sentences with the spans that are marked in each."""

    sentences: tuple[Sentence, ...]
    spans: tuple[tuple[WordSpan, ...], ...]

    def __len__(self) -> int:
        return len(self.sentences)

    def take(self, rows: Iterable[int]) -> "TaggedSentences":
        """Some of them, in this order."""
        kept = list(rows)
        return TaggedSentences(
            tuple(self.sentences[row] for row in kept), tuple(self.spans[row] for row in kept)
        )

    def __add__(self, more: "TaggedSentences") -> "TaggedSentences":
        return TaggedSentences(self.sentences + more.sentences, self.spans + more.spans)


def as_sentences(X: Any, where: str = "sentence") -> tuple[Sentence, ...]:
    """Texts, or lists of words, as sentences.

    >>> [sentence.words for sentence in as_sentences(["by train", ["by", "train"]])]
    [('by', 'train'), ('by', 'train')]
    """
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise CPTuningError(f"Give a list of texts, or of lists of words, not {X!r:.60}.")
    return tuple(_sentence(one, f"{where} {n}") for n, one in enumerate(X, start=1))


def as_tagged(X: Any, y: Any, places: Sequence[str] | None = None) -> TaggedSentences:
    """Lists of words with a tag each, or texts with the spans that are marked in each.

    ``places`` name the sentences in error messages.

    >>> tagged = as_tagged(["flights to Rome"], [[{"start": 11, "end": 15, "label": "city"}]])
    >>> tagged.spans
    ((WordSpan(start=2, stop=3, label='city'),),)
    >>> as_tagged([["to", "Rome"]], [["O", "B-city"]]).spans
    ((WordSpan(start=1, stop=2, label='city'),),)
    """
    sentences = as_sentences(X)
    answers = list(y)
    if len(answers) != len(sentences):
        raise CPTuningError(
            f"There are {len(sentences)} sentences and {len(answers)} lists of tags or spans: "
            "give one list for each sentence."
        )
    found, widened = [], 0
    for row, (sentence, answer) in enumerate(zip(sentences, answers, strict=True)):
        where = places[row] if places else f"sentence {row + 1}"
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise CPTuningError(f"{where}: {answer!r} is not a list of tags or of spans.")
        given = list(answer)
        if given and all(isinstance(one, str) for one in given):
            if len(given) != len(sentence):
                raise CPTuningError(
                    f"{where} has {len(sentence)} words and {len(given)} tags: give one tag for "
                    "each word, and the words as a list."
                )
            spans = spans_of(given, where)
        else:
            spans, wider = sentence.word_spans(given, where)
            widened += wider
        found.append(tuple(spans))
    if widened:
        _log.warning(
            "%d of the spans begin or end inside a word: they were widened to whole words.", widened
        )
    return TaggedSentences(sentences, tuple(found))


def _marks_joined(text: str, places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    r"""The places of words without those of marks alone, which belong to the letter before them.

    Vowel signs and accents are no letters to a regular expression, so they cut words in two.

    >>> [len(word) for word in Sentence.of_text("हिन्दी, E\u0301cole").words]
    [6, 1, 6]
    """
    joined: list[tuple[int, int]] = []
    for start, end in places:
        if joined and joined[-1][1] == start and _is_inside(text, joined[-1][0], start):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _is_inside(text: str, first: int, place: int) -> bool:
    """Whether the word that begins at one place goes on at another."""
    here, before = text[place], text[place - 1]
    if here in _JOINERS or ord(here) in _SKIN_TONES or category(here).startswith("M"):
        return True
    # Behind a joiner everything belongs to it; behind an accent the rest of the word does.
    return before in _JOINERS or (
        category(before).startswith("M") and here.isalnum() and text[first].isalnum()
    )


def _sentence(one: Any, where: str) -> Sentence:
    if isinstance(one, Sentence):
        return one
    if isinstance(one, str):
        return Sentence.of_text(one)
    words: list[Any] = list(one) if isinstance(one, Iterable) else [None]
    for place, word in enumerate(words, start=1):
        if not isinstance(word, str) or not word.strip():
            raise CPTuningError(
                f"{where}, word {place}: {word!r} is not a word: give a text, or a list of words "
                "that are not empty."
            )
    return Sentence.of_words(words)
