"""LM-BFF's Auto-T without a T5: the masked LM itself fills masks around the label words.

A beam walks over the log-probabilities of the next token, averaged over all training examples,
each of which shows the word of its own label.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from cptuning.backbone import TextEncoder
from cptuning.inference.support import IntArray
from cptuning.methods.training import LabelledExamples
from cptuning.methods.words import Tokens
from cptuning.prompting import Batch, Encoding

# Where the words may stand, for single texts and for pairs: behind or before the text; between the
# two, of which the first loses its last character and the second its first capital.
PLACES = {
    False: ("{{a}}{before} [MASK]{after}", "{before} [MASK]{after} {{a}}"),
    True: ("{{a:chopped}}{before} [MASK]{after}[JOIN] {{b:lowered}}",),
}
# How many masks stand before and behind the label word: one to four in all.
_SHAPES = [(before, total - before) for total in range(1, 5) for before in range(total + 1)]
_MARKS = frozenset("{}[]")

EncoderFor = Callable[[str, int], TextEncoder]
"""Gives an encoder for a template whose mask stands for so many tokens."""


def search_templates(
    encoder_for: EncoderFor,
    data: LabelledExamples,
    words: Sequence[Tokens],
    *,
    beam: int,
    count: int,
    has_read: Callable[[], None] = lambda: None,
) -> list[str]:
    """Auto-T (MLM): the ``count`` best fillings of one to four masks around the label words.

    The best of each place take turns. Fillings of different lengths are compared by their mean
    log-probability per token. ``has_read`` is called whenever all examples were read.
    """
    ranked: list[list[Filling]] = []
    penalties: dict[bool, Tensor] = {}
    for place in PLACES[data.examples.is_pair]:
        found: list[Filling] = []
        for before, after in _SHAPES:
            search = _Search(encoder_for, place, before, after, data, words, has_read)
            penalties = penalties or _unusable(search.encoder)
            found += search.best(beam, penalties)
        ranked.append(sorted(found, key=lambda filling: -filling.score))
    # Tokens that would not be read back as they were scored make another template.
    same = (f for f in taking_turns(ranked) if encoder_for(f.source, 1).layout.word_ids == f.ids)
    return list(dict.fromkeys(filling.source for filling in islice(same, count)))


def readings(*, pair: bool, beam: int) -> int:
    """How often a search reads all examples, at most: once per mask and state of the beam.

    >>> readings(pair=True, beam=3)
    92
    """
    per_place = sum(1 + (before + after - 1) * beam for before, after in _SHAPES)
    return per_place * len(PLACES[pair])


@dataclass(frozen=True)
class Filling:
    """Tokens around the label word, as a template and with their score."""

    score: float
    ids: list[int]
    source: str


class _Search:
    """The beam for so many masks before and after the label word."""

    def __init__(
        self,
        encoder_for: EncoderFor,
        place: str,
        before: int,
        after: int,
        data: LabelledExamples,
        words: Sequence[Tokens],
        has_read: Callable[[], None] = lambda: None,
    ) -> None:
        self.place, self.before, self.has_read = place, before, has_read
        longest = max(map(len, words))
        bare = place.format(before="", after="").strip()
        self.encoder = encoder_for(bare, before + longest + after)
        own = [words[label] for label in data.labels]
        encodings = self.encoder.layout.encode(data.examples)
        self.shown = [
            _with_word(encoding, word, before, longest)
            for encoding, word in zip(encodings, own, strict=True)
        ]
        first = np.array([encoding.output for encoding in self.shown])
        behind = first + before + np.array([len(word) for word in own])
        self.columns = [first + i for i in range(before)] + [behind + i for i in range(after)]

    def best(self, beam: int, penalties: dict[bool, Tensor]) -> Iterator[Filling]:
        """The fillings that the beam ends with."""
        states: list[tuple[float, Tokens]] = [(0.0, ())]
        for step in range(len(self.columns)):
            grown = []
            opens = step == 0 and self.before > 0 and self.place.startswith("{before}")
            for score, ids in states:
                said = self._said_next(ids, self.columns[step]) + penalties[opens]
                said[list(ids[-1:])] = -torch.inf  # nothing twice in a row: no "...."
                best = said.topk(min(beam, int(torch.isfinite(said).sum())))
                pairs = zip(best.values.tolist(), best.indices.tolist(), strict=True)
                grown += [(score + more, (*ids, token)) for more, token in pairs]
            states = sorted(grown, key=lambda state: -state[0])[:beam]
        for score, ids in states:
            before, after = (self._text(part) for part in (ids[: self.before], ids[self.before :]))
            source = self.place.format(before=before, after=after).strip()
            yield Filling(score / len(ids), list(ids), source)

    def _said_next(self, ids: Tokens, columns: IntArray) -> Tensor:
        """The log-probability of each token at the next mask, averaged over the examples."""

        def said(batch: Batch) -> Tensor:
            decoder_inputs = self.encoder.module.at_outputs(batch)[1]
            return log_softmax(self.encoder.module.decode(decoder_inputs).float(), dim=-1)

        filled = []
        for row, encoding in enumerate(self.shown):
            new = encoding.ids.copy()
            new[[column[row] for column in self.columns[: len(ids)]]] = ids
            filled.append(replace(encoding, ids=new, output=int(columns[row])))
        found = self.encoder.in_batches(filled, said).mean(dim=0).cpu()
        self.has_read()
        return found

    def _text(self, ids: Tokens) -> str:
        """What the tokens spell, with a space before it unless it begins with punctuation."""
        text = str(self.encoder.backbone.tokenizer.decode(list(ids))).strip()
        return f" {text}" if text[:1].isalnum() else text


def _with_word(encoding: Encoding, word: Tokens, before: int, longest: int) -> Encoding:
    """The word in the middle of the masks, without the masks that it does not need."""
    first = encoding.output + before
    ids = encoding.ids.copy()
    ids[first : first + len(word)] = word
    return replace(encoding, ids=ids).without(first + len(word), first + longest)


def _unusable(encoder: TextEncoder) -> dict[bool, Tensor]:
    """Minus infinity for tokens that a template can't hold, zero for the others.

    A template can hold what is read back from its spelling: behind a space or, if it is
    punctuation, without one; where a token opens the whole sequence (True), as its first word.
    """
    tokenizer, layout = encoder.backbone.tokenizer, encoder.layout
    penalties = {opening: torch.full((layout.vocabulary,), -torch.inf) for opening in (False, True)}
    special = set(tokenizer.all_special_ids)
    for token in set(range(len(tokenizer))) - special:
        text = str(tokenizer.decode([token])).strip()
        if not text or not text.isprintable() or _MARKS & set(text):
            continue
        opens = layout.token_ids(text, opening=True) == [token]
        if opens:
            penalties[True][token] = 0
        if layout.token_ids(text) == [token] or (opens and not text[0].isalnum()):
            penalties[False][token] = 0
    return penalties


def taking_turns(ranked: Sequence[Sequence[Filling]]) -> Iterator[Filling]:
    """The best of each list, then the second best of each, and so on."""
    for turn in zip_longest(*ranked):
        yield from (one for one in turn if one is not None)
