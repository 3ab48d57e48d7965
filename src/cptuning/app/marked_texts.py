"""Texts in which spans are marked, as visitors write them: "fly to [Oslo](city)"."""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from cptuning.data.sentences import TaggedSentences, as_tagged
from cptuning.errors import CPTuningError

_MARK = re.compile(r"\[([^\[\]]+)\]\(([^()]+)\)")
_SAMPLE = "demo/marked_requests.txt"


class Span(NamedTuple):
    """The characters of a text from ``start`` to before ``end``, and what they are."""

    start: int
    end: int
    label: str


class MarkedText(NamedTuple):
    """A text with the spans that are marked in it."""

    text: str
    spans: tuple[Span, ...]

    @classmethod
    def parse(cls, line: str) -> "MarkedText":
        """The text of a line with marks.

        >>> MarkedText.parse("fly to [Oslo](city)")
        MarkedText(text='fly to Oslo', spans=(Span(start=7, end=11, label='city'),))
        """
        text, spans, at = "", [], 0
        for mark in _MARK.finditer(line):
            text += line[at : mark.start()]
            inside, label = mark.groups()
            spans.append(Span(len(text), len(text) + len(inside), label.strip()))
            text += inside
            at = mark.end()
        return cls(text + line[at:], tuple(spans))

    @classmethod
    def of(cls, text: str, found: Sequence[Mapping[str, Any]]) -> "MarkedText":
        """A text with the spans that a tagger found in it."""
        return cls(text, tuple(Span(one["start"], one["end"], one["label"]) for one in found))

    @property
    def written(self) -> str:
        """The line that a visitor would write.

        >>> MarkedText.parse("[Oslo](city), please").written
        '[Oslo](city), please'
        """
        parts, at = [], 0
        for span in self.spans:
            inside = self.text[span.start : span.end]
            parts.append(f"{self.text[at : span.start]}[{inside}]({span.label})")
            at = span.end
        return "".join(parts) + self.text[at:]


def parse_marked(content: str) -> list[MarkedText]:
    """The marked texts in pasted lines, one per line; they may have no marks.

    >>> parse_marked("hello there")
    [MarkedText(text='hello there', spans=())]
    """
    found = [MarkedText.parse(line.strip()) for line in content.splitlines() if line.strip()]
    if not found:
        raise CPTuningError("There is nothing to add: write one text per line.")
    tagged(found)  # Refuses marks in which there is no word.
    return found


def tagged(texts: Sequence[MarkedText]) -> TaggedSentences:
    """Marked texts as a tagger takes them."""
    places = [f"the text {one.text[:40]!r}" for one in texts]
    return as_tagged([one.text for one in texts], [one.spans for one in texts], places)


def sample_texts() -> list[MarkedText]:
    """The marked texts in the package.

    >>> len(sample_texts()) > 20
    True
    """
    return parse_marked((files("cptuning.data") / _SAMPLE).read_text("utf-8"))
