"""The small language in which prompts are written: ``{a} it is [MASK]``, ``{a} ? [MASK] {b}``."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as OneOf

from cptuning.errors import CPTuningError

# How a template may change a text that it uses: LM-BFF's templates need both.
CHANGES: dict[str, tuple[Callable[[str], str], str]] = {
    "chopped": (lambda text: text[:-1], "without its last character"),
    "lowered": (lambda text: text[:1].lower() + text[1:], "with its first letter in lower case"),
}


@dataclass(frozen=True)
class Text:
    """The place of the first (``a``) or the second (``b``) text of an example."""

    which: OneOf["a", "b"]
    spaced: bool
    """Whether white space stands before it: tokenizers of the GPT-2 family care."""
    change: str | None = None

    def of(self, text: str) -> str:
        """The text as the template uses it.

        >>> Text("a", spaced=False, change="chopped").of("Is it red?")
        'Is it red'
        """
        return text if self.change is None else CHANGES[self.change][0](text)


@dataclass(frozen=True)
class Words:
    """Words of the prompt itself; CP-Tuning makes each of their tokens a trainable [PRO]."""

    text: str


@dataclass(frozen=True)
class Prompts:
    """Trainable [PRO]s that do not stand for words."""

    count: int


@dataclass(frozen=True)
class Mask:
    """The output mask, [OMSK]."""


@dataclass(frozen=True)
class Separator:
    """What the tokenizer puts between two texts: [SEP], or ``</s></s>``."""


Part = Text | Words | Prompts | Mask | Separator

_MARKS = re.compile(r"(\{[^{}]*\}|\[MASK\]|\[SEP\]|\[JOIN\]|\[CLS\]|\[PRO(?:\*\d+)?\])")
# No prompt is longer, and the sentences about a template quote it.
_LONGEST = 1000
_PROMPTS = re.compile(r"\[PRO(?:\*(\d+))?\]")
# What looks like a mark; brackets with a space inside, as in PET's "[ Category: ... ]", are words.
_LIKE_A_MARK = re.compile(r"\[[^\W\d_][^\s\[\]]*\]")


@dataclass(frozen=True)
class Template:
    """A parsed prompt.

    - ``{a}`` and ``{b}`` are the texts; ``{a:chopped}`` is one without its last character,
      ``{b:lowered}`` one with its first letter in lower case.
    - ``[MASK]`` is the output mask. A template that begins with ``[CLS]`` has none: the answer is
      read at the token that opens the sequence.
    - ``[PRO]`` is a trainable prompt vector, ``[PRO*5]`` is five of them.
    - ``[SEP]`` marks the border between two texts; where a template of two texts has none, the
      border is just before the second one, as in the paper's examples. ``[JOIN]`` in its place
      says that there is no border.
    - Every other word is part of the prompt; one in brackets needs a space inside: ``[ news ]``.

    >>> template = Template.parse("{a} ? [MASK] {b}")
    >>> template.is_pair
    True
    >>> [type(part).__name__ for part in template.parts]
    ['Text', 'Words', 'Mask', 'Separator', 'Text']
    >>> [type(part).__name__ for part in Template.parse("{a}[MASK],[JOIN] {b:lowered}").parts]
    ['Text', 'Mask', 'Words', 'Text']
    >>> Template.parse("{a} it was great")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: The template '{a} it was great' has no [MASK]: ...
    """

    source: str
    parts: tuple[Part, ...]

    @classmethod
    def parse(cls, source: str, *, needs_output: bool = True) -> "Template":
        """The template that a string describes; an error names what is wrong with it.

        A template without a [MASK] or [CLS] is for encoders that pool all tokens.
        """
        if len(source) > _LONGEST:
            raise CPTuningError(
                f"The template has {len(source)} characters: give at most {_LONGEST}."
            )
        parts: list[Part] = []
        marks: list[str] = []
        spaced = False
        for piece in _MARKS.split(source):
            if piece == "[MASK]":
                parts.append(Mask())
            elif piece == "[SEP]":
                parts.append(Separator())
            elif piece in ("[CLS]", "[JOIN]"):
                marks.append(piece)
            elif prompts := _PROMPTS.fullmatch(piece):
                parts.append(_prompts(source, prompts[1]))
            elif piece.startswith("{") and piece.endswith("}"):
                parts.append(_text(source, piece, spaced))
            elif piece.strip():
                if "{" in piece or "}" in piece:
                    raise CPTuningError(
                        f"The template {source!r} has a lone brace: texts are written {{a}}, {{b}}."
                    )
                parts.append(Words(piece.rstrip()))
            spaced = piece[-1:].isspace()
        _check(source, parts, marks, needs_output)
        _check_words(source, parts)
        return cls(source, tuple(parts if "[JOIN]" in marks else _with_border(parts)))

    @property
    def has_output(self) -> bool:
        """Whether there is a place where the model answers: a [MASK], or [CLS] at the start."""
        return self.source.startswith("[CLS]") or any(isinstance(p, Mask) for p in self.parts)

    @property
    def is_pair(self) -> bool:
        """Whether the template holds two texts."""
        return any(isinstance(part, Text) and part.which == "b" for part in self.parts)


def _text(source: str, piece: str, spaced: bool) -> Text:
    name, colon, change = piece[1:-1].partition(":")
    if name not in ("a", "b"):
        raise CPTuningError(
            f"The template {source!r} names {piece}: the only places for texts are {{a}} and {{b}}."
        )
    if colon and change not in CHANGES:
        known = " and ".join(f"{{{name}:{c}}} ({meaning})" for c, (_, meaning) in CHANGES.items())
        raise CPTuningError(f"The template {source!r} names {piece}: there are only {known}.")
    return Text("a" if name == "a" else "b", spaced, change or None)


def _prompts(source: str, count: str | None) -> Prompts:
    if count is not None and not 0 < int(count) <= 1000:
        raise CPTuningError(f"The template {source!r} asks for {count} [PRO]s: ask for 1 to 1000.")
    return Prompts(int(count or 1))


def _check(source: str, parts: list[Part], marks: list[str], needs_output: bool) -> None:
    texts = [part.which for part in parts if isinstance(part, Text)]
    masks = sum(isinstance(part, Mask) for part in parts)
    if "a" not in texts:
        raise CPTuningError(f"The template {source!r} has no {{a}}: say where the text goes.")
    if len(set(texts)) < len(texts):
        raise CPTuningError(f"The template {source!r} names the same text twice.")
    if "[CLS]" in marks and (masks or not source.startswith("[CLS]") or marks.count("[CLS]") > 1):
        raise CPTuningError(
            f"The template {source!r} has a [CLS] that does not open it, or a [MASK] beside it: "
            "the answer is read at one place, a [CLS] at the very start or a [MASK]."
        )
    if needs_output and masks == 0 and "[CLS]" not in marks:
        raise CPTuningError(
            f"The template {source!r} has no [MASK]: say where the model gives its answer."
        )
    if masks > 1:
        raise CPTuningError(f"The template {source!r} has {masks} [MASK]s: one is needed.")
    borders = sum(isinstance(part, Separator) for part in parts)
    if borders > 1:
        raise CPTuningError(f"The template {source!r} has more than one [SEP].")
    if "[JOIN]" in marks and (borders or len(texts) < 2):
        raise CPTuningError(
            f"The template {source!r} has a [JOIN], which is for two texts without a [SEP]."
        )


def _check_words(source: str, parts: list[Part]) -> None:
    """Refuse what looks like a mark but is not one: taken as words, a typo would go unnoticed."""
    words = (part.text for part in parts if isinstance(part, Words))
    for mark in (_LIKE_A_MARK.search(text) for text in words):
        if mark is not None:
            raise CPTuningError(
                f"The template {source!r} has the mark {mark[0]}: "
                "there are only [MASK], [SEP], [JOIN], [CLS], [PRO] and [PRO*5] for five of those."
            )


def _with_border(parts: list[Part]) -> list[Part]:
    """The parts with the border of a pair in its place, if the template does not name one."""
    places = [i for i, part in enumerate(parts) if isinstance(part, Text)]
    if len(places) < 2 or any(isinstance(part, Separator) for part in parts):
        return parts
    return [*parts[: places[1]], Separator(), *parts[places[1] :]]
