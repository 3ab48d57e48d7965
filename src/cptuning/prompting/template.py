"""The small language in which prompts are written: ``{a} it is [MASK]``, ``{a} ? [MASK] {b}``."""

import re
from dataclasses import dataclass
from typing import Literal as OneOf

from cptuning.errors import CPTuningError


@dataclass(frozen=True)
class Text:
    """The place of the first (``a``) or the second (``b``) text of an example."""

    which: OneOf["a", "b"]
    spaced: bool
    """Whether white space stands before it: tokenizers of the GPT-2 family care."""


@dataclass(frozen=True)
class Words:
    """Words of the prompt itself; each of their tokens becomes one trainable [PRO]."""

    text: str


@dataclass(frozen=True)
class Mask:
    """The output mask, [OMSK]."""


@dataclass(frozen=True)
class Separator:
    """What the tokenizer puts between two texts: [SEP], or ``</s></s>``."""


Part = Text | Words | Mask | Separator

_MARKS = re.compile(r"(\{[^{}]*\}|\[MASK\]|\[SEP\])")


@dataclass(frozen=True)
class Template:
    """A parsed prompt.

    ``{a}`` and ``{b}`` are the texts, ``[MASK]`` is the output mask, and every other word is part
    of the prompt. ``[SEP]`` marks the border between two texts; where a template of two texts
    has none, the border is just before the second one, as in the paper's examples.

    >>> template = Template.parse("{a} ? [MASK] {b}")
    >>> template.is_pair
    True
    >>> [type(part).__name__ for part in template.parts]
    ['Text', 'Words', 'Mask', 'Separator', 'Text']
    >>> Template.parse("{a} it was great")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: The template '{a} it was great' has no [MASK]: ...
    """

    source: str
    parts: tuple[Part, ...]

    @classmethod
    def parse(cls, source: str) -> "Template":
        """The template that a string describes; a mistake in it is named."""
        parts: list[Part] = []
        spaced = False
        for piece in _MARKS.split(source):
            if piece == "[MASK]":
                parts.append(Mask())
            elif piece == "[SEP]":
                parts.append(Separator())
            elif piece in ("{a}", "{b}"):
                parts.append(Text("a" if piece == "{a}" else "b", spaced))
            elif piece.startswith("{") and piece.endswith("}"):
                raise CPTuningError(
                    f"The template {source!r} names {piece}: "
                    "the only places for texts are {a} and {b}."
                )
            elif piece.strip():
                if "{" in piece or "}" in piece:
                    raise CPTuningError(
                        f"The template {source!r} has a lone brace: texts are written {{a}}, {{b}}."
                    )
                parts.append(Words(piece.rstrip()))
            spaced = piece[-1:].isspace()
        _check(source, parts)
        return cls(source, tuple(_with_border(parts)))

    @property
    def is_pair(self) -> bool:
        """Whether the template holds two texts."""
        return any(isinstance(part, Text) and part.which == "b" for part in self.parts)


def _check(source: str, parts: list[Part]) -> None:
    texts = [part.which for part in parts if isinstance(part, Text)]
    masks = sum(isinstance(part, Mask) for part in parts)
    if "a" not in texts:
        raise CPTuningError(f"The template {source!r} has no {{a}}: say where the text goes.")
    if len(set(texts)) < len(texts):
        raise CPTuningError(f"The template {source!r} names the same text twice.")
    if masks == 0:
        raise CPTuningError(
            f"The template {source!r} has no [MASK]: say where the model gives its answer."
        )
    if masks > 1:
        raise CPTuningError(f"The template {source!r} has {masks} [MASK]s: one is needed.")
    if sum(isinstance(part, Separator) for part in parts) > 1:
        raise CPTuningError(f"The template {source!r} has more than one [SEP].")


def _with_border(parts: list[Part]) -> list[Part]:
    """The parts with the border of a pair in its place, if the template does not name one."""
    places = [i for i, part in enumerate(parts) if isinstance(part, Text)]
    if len(places) < 2 or any(isinstance(part, Separator) for part in parts):
        return parts
    return [*parts[: places[1]], Separator(), *parts[places[1] :]]
