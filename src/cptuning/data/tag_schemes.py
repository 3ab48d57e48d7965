"""Tags of words in any of the usual schemes, and the spans that they stand for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cptuning.errors import CPTuningError

OUTSIDE = "O"
_OPENS, _CLOSES = frozenset("BSU"), frozenset("ESLU")
_PREFIXES = _OPENS | _CLOSES | {"I"}


@dataclass(frozen=True, order=True)
class WordSpan:
    """The words ``start`` to ``stop``, without ``stop``, and what they are."""

    start: int
    stop: int
    label: str


def spans_of(tags: Sequence[str], where: str = "The tags") -> list[WordSpan]:
    """The spans of a sentence in IOB1, IOB2, BIOES or BILOU, which need not be named.

    A word with I or E continues the span before it if that has the same type and was not closed by
    E or S, and opens one otherwise, as in IOB1. ``where`` is for error messages.

    >>> spans_of(["I-PER", "I-PER", "B-PER", "O"])
    [WordSpan(start=0, stop=2, label='PER'), WordSpan(start=2, stop=3, label='PER')]
    >>> spans_of(["B-LOC", "E-LOC", "S-LOC"]) == spans_of(["B-LOC", "I-LOC", "B-LOC"])
    True
    >>> spans_of(["PER"])
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: The tags, word 1: the tag 'PER' is neither O nor a type behind
    B-, I-, E- or S-, such as B-PER.
    """
    spans: list[WordSpan] = []
    is_open = False
    for place, tag in enumerate(tags):
        if tag == OUTSIDE:
            is_open = False
            continue
        prefix, _, label = tag.partition("-") if isinstance(tag, str) else ("", "", "")
        if prefix not in _PREFIXES or not label.strip():
            raise CPTuningError(
                f"{where}, word {place + 1}: the tag {tag!r} is neither O nor a type behind B-, "
                "I-, E- or S-, such as B-PER."
            )
        if is_open and spans[-1].label == label and prefix not in _OPENS:
            spans[-1] = WordSpan(spans[-1].start, place + 1, label)
        else:
            spans.append(WordSpan(place, place + 1, label))
        is_open = prefix not in _CLOSES
    return spans


def iob2_of(spans: Iterable[WordSpan], n_words: int) -> list[str]:
    """The tags of spans that don't overlap, in IOB2.

    >>> iob2_of([WordSpan(0, 2, "PER"), WordSpan(2, 3, "PER")], 4)
    ['B-PER', 'I-PER', 'B-PER', 'O']
    """
    tags = [OUTSIDE] * n_words
    for span in spans:
        tags[span.start] = f"B-{span.label}"
        for place in range(span.start + 1, span.stop):
            tags[place] = f"I-{span.label}"
    return tags


def types_of(sentences: Iterable[Iterable[WordSpan]]) -> list[str]:
    """The types that occur in some sentences, sorted.

    >>> types_of([[WordSpan(0, 1, "PER")], [], [WordSpan(0, 1, "LOC"), WordSpan(1, 2, "PER")]])
    ['LOC', 'PER']
    """
    return sorted({span.label for spans in sentences for span in spans})
