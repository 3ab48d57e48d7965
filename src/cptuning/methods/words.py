"""Words that stand for labels: finding their tokens, and scoring classes by them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, relu

from cptuning.backbone import PromptedEncoder, TextEncoder
from cptuning.errors import CPTuningError
from cptuning.losses.pairs import weighted_mean
from cptuning.methods.heads import Head
from cptuning.prompting import Batch, Encoding, Layout

Tokens = tuple[int, ...]


def words_for(
    classes: Sequence[str], given: Mapping[str, str] | None, layout: Layout, unknown: int | None
) -> dict[str, str]:
    """The words of each class, by its name: those given, or else the names themselves.

    A name will do if each of its words is one token of the vocabulary: the model can't be asked
    for what it has never seen. Words that are given may have several tokens.
    """
    if given is None:
        words = {name: " ".join(re.split(r"[\s_\-]+", name)) for name in classes}
        odd = [name for name, word in words.items() if not _is_usual(word, layout, unknown)]
        if odd:
            raise CPTuningError(
                f"The label {odd[0]!r} is not a word of the model's vocabulary: "
                f"give a word for each label, as in label_words={{{odd[0]!r}: 'great', ...}}."
            )
    else:
        words = {name: given[name] for name in classes}
    tokens_of(words, layout, unknown)  # refuses what can't be told apart
    return words


def _is_usual(word: str, layout: Layout, unknown: int | None) -> bool:
    pieces = [layout.token_ids(piece) for piece in word.split()]
    return bool(pieces) and all(len(ids) == 1 and unknown not in ids for ids in pieces)


def tokens_of(words: Mapping[str, str], layout: Layout, unknown: int | None) -> list[Tokens]:
    """The tokens of each class's words, in the order of the classes."""
    tokens = {name: tuple(layout.token_ids(word)) for name, word in words.items()}
    for name, ids in tokens.items():
        if not ids or unknown in ids:
            raise CPTuningError(
                f"The word {words[name]!r} of the label {name!r} is not in the model's "
                "vocabulary: choose another."
            )
        twin = next((n for n, other in tokens.items() if n != name and other == ids), None)
        if twin is not None:
            raise CPTuningError(
                f"The labels {name!r} and {twin!r} have the same word {words[name]!r}: "
                "choose different ones."
            )
    return list(tokens.values())


class WordHead(Head):
    """The model's own logits of the words at the mask: nothing new is learned.

    Words of one token are compared by their logits. If some have several, PET's authors have as
    many masks in a row as the longest needs: training compares the log-probabilities of the
    words' tokens, all masks at once, by a hinge loss; the answer is found with just as many masks
    as a word has tokens, filling in the surest token first and asking again.
    """

    kind = "words"
    tokens: Tensor
    """(classes, most tokens), filled up with -1."""

    def __init__(self, tokens: Sequence[Tokens]) -> None:
        super().__init__()
        self.masks = max(map(len, tokens))
        rows = [[*ids, *[-1] * (self.masks - len(ids))] for ids in tokens]
        self.register_buffer("tokens", torch.tensor(rows, dtype=torch.long))

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> Self:
        """The head whose tensors were saved."""
        return cls([tuple(t for t in row if t >= 0) for row in state["tokens"].tolist()])

    def forward(self, encoder: PromptedEncoder, features: Tensor, decoder_inputs: Tensor) -> Tensor:
        """The logits of the words, or the log-probabilities of words of several tokens."""
        logits = encoder.decode(decoder_inputs).float()
        if self.masks == 1:
            return logits[:, self.tokens[:, 0]]
        by_mask = log_softmax(logits, dim=-1).view(-1, self.masks, logits.shape[-1])
        places = torch.arange(self.masks, device=logits.device)
        found = by_mask[:, places, self.tokens.clamp_min(0)]  # (texts, classes, masks)
        return (found * (self.tokens >= 0)).sum(dim=-1)

    def loss(self, scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """Cross-entropy; a hinge loss on each wrong class if words have several tokens."""
        if self.masks == 1:
            return super().loss(scores, labels, weights)
        right = scores.gather(1, labels[:, None])
        hinges = relu(1 + scores - right).sum(dim=1) - 1  # the right class itself gives 1
        return hinges.mean() if weights is None else weighted_mean(hinges, weights)

    def scores(self, encoder: TextEncoder, encodings: Sequence[Encoding]) -> Tensor:
        """The scores of any number of texts, in their order."""
        if self.masks == 1:
            return super().scores(encoder, encodings)
        columns = []
        for row in self.tokens.tolist():
            word = [token for token in row if token >= 0]
            trimmed = [e.without(e.output + len(word), e.output + self.masks) for e in encodings]
            columns.append(surest_first(encoder, trimmed, word))
        return torch.stack(columns, dim=1)


def surest_first(
    encoder: TextEncoder, encodings: Sequence[Encoding], word: Sequence[int]
) -> Tensor:
    """The log-probability of a word in the masks of each text, the surest token filled in first."""
    encodings = list(encodings)
    n = len(word)
    total = torch.zeros(len(encodings), device=encoder.module.centre.device)
    left = torch.ones(len(encodings), n, dtype=torch.bool, device=total.device)
    wanted = torch.tensor(word, device=total.device)
    places = torch.arange(n, device=total.device)

    def of_tokens(batch: Batch) -> Tensor:
        _, decoder_inputs = encoder.module.at_outputs(batch, n)
        said = log_softmax(encoder.module.decode(decoder_inputs).float(), dim=-1)
        return said.view(-1, n, said.shape[-1])[:, places, wanted]

    for _ in word:
        best = encoder.in_batches(encodings, of_tokens).masked_fill(~left, -torch.inf).max(dim=1)
        total += best.values
        for row, place in enumerate(best.indices.tolist()):
            ids = encodings[row].ids.copy()
            ids[encodings[row].output + place] = word[place]
            encodings[row] = replace(encodings[row], ids=np.asarray(ids))
            left[row, place] = False
    return total
