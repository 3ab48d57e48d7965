"""LM-BFF's Auto-T as its authors describe it: a T5 writes the text around the label words."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from cptuning.backbone.hub import hub_is_known
from cptuning.backbone.loading import quiet_transformers
from cptuning.errors import CPTuningError
from cptuning.methods.template_search import PLACES, Filling, taking_turns
from cptuning.methods.training import LabelledExamples
from cptuning.prompting import Template
from cptuning.prompting.template import Text

_BATCH = 32
_LONGEST = 512
"""The most tokens that a T5 was trained to read."""


@dataclass(frozen=True)
class T5:
    """A T5 and its tokenizer."""

    name: str
    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, name: str, device: torch.device) -> "T5":
        """From a folder or the hub; weights are read from safetensors and no code is run."""
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        here_only = Path(name).is_dir() or not hub_is_known()
        try:
            with quiet_transformers():
                safely = {"trust_remote_code": False, "local_files_only": here_only}
                tokenizer = AutoTokenizer.from_pretrained(name, **safely)
                model = AutoModelForSeq2SeqLM.from_pretrained(
                    name, dtype=torch.float32, use_safetensors=True, **safely
                )
        except Exception as error:  # safetensors and tokenizers raise bare ones of their own
            raise CPTuningError(
                f"The generator {name!r} is neither the folder of a T5 nor could it be fetched "
                "from the hub: check its name, or leave it out and the backbone fills masks itself."
            ) from error
        t5 = cls(name, model.to(device).eval(), tokenizer)
        if tokenizer.unk_token_id in t5.sentinels:
            raise CPTuningError(
                f"The generator {name!r} has no <extra_id_0>: it must be a T5, "
                "which was trained to fill such gaps."
            )
        return t5

    @property
    def sentinels(self) -> list[int]:
        """What stands for the first gap, for the second, and for the end of both."""
        names = [f"<extra_id_{i}>" for i in range(3)]
        return [int(self.tokenizer.convert_tokens_to_ids(name)) for name in names]

    def can_read(self, text: str) -> bool:
        """Whether nothing of a text would be cut off."""
        ids = self.tokenizer(text, truncation=True, max_length=_LONGEST + 1)["input_ids"]
        return len(ids) <= _LONGEST

    @torch.no_grad()
    def encoded(self, texts: Sequence[str]) -> list[tuple[Tensor, Tensor]]:
        """The encoder's output for batches of texts, with their attention masks."""
        batches = []
        for start in range(0, len(texts), _BATCH):
            inputs = self.tokenizer(
                list(texts[start : start + _BATCH]),
                return_tensors="pt",
                padding=True,
                truncation=True,
                max_length=_LONGEST,
            ).to(self.model.device)
            mask = inputs["attention_mask"]
            hidden = self.model.get_encoder()(inputs["input_ids"], attention_mask=mask)
            batches.append((hidden.last_hidden_state, mask))
        return batches

    @torch.no_grad()
    def said_next(self, encoded: Sequence[tuple[Tensor, Tensor]], ids: Sequence[int]) -> Tensor:
        """The log-probability of each next token, averaged over the texts."""
        total, count = torch.zeros(()), 0
        for hidden, mask in encoded:
            start = [self.model.config.decoder_start_token_id, *ids]
            prefix = torch.tensor([start], device=mask.device).expand(len(mask), -1)
            logits = self.model(
                encoder_outputs=(hidden,), attention_mask=mask, decoder_input_ids=prefix
            ).logits[:, -1]
            total = total + log_softmax(logits.float(), dim=-1).sum(dim=0).cpu()
            count += len(mask)
        return total / count


@dataclass(frozen=True)
class _State:
    """What is written so far: the words before and after the label word."""

    score: float
    ids: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...] = ((),)
    finished: bool = False


def write_templates(
    t5: T5,
    data: LabelledExamples,
    words: Sequence[str],
    *,
    beam: int,
    longest: int,
    count: int,
    has_read: Callable[[], None] = lambda: None,
) -> list[str]:
    """The ``count`` likeliest templates, by a beam over all training examples at once.

    ``words`` are those of the classes. The best of each place take turns. ``has_read`` is called
    whenever a next token was asked for.
    """
    ranked = [
        _written(t5, place, data, words, beam, longest, has_read)
        for place in PLACES[data.examples.is_pair]
    ]
    sources = dict.fromkeys(filling.source for filling in taking_turns(ranked))
    return list(sources)[:count]


def readings(*, pair: bool, beam: int, longest: int) -> int:
    """How often a next token is asked for, at most.

    >>> readings(pair=True, beam=10, longest=20)
    191
    """
    return (1 + (longest - 1) * beam) * len(PLACES[pair])


def seconds_to_read(t5: T5, data: LabelledExamples, words: Sequence[str], longest: int) -> float:
    """How long it takes to ask for a next token behind half of the longest template."""
    encoded = t5.encoded(_questions(t5, PLACES[data.examples.is_pair][0], data, words))
    began = perf_counter()
    t5.said_next(encoded, t5.sentinels[:1] * (longest // 2))
    return perf_counter() - began


def _written(
    t5: T5,
    place: str,
    data: LabelledExamples,
    words: Sequence[str],
    beam: int,
    longest: int,
    has_read: Callable[[], None] = lambda: None,
) -> list[Filling]:
    gap, border, end = t5.sentinels
    encoded = t5.encoded(_questions(t5, place, data, words))
    eos = t5.tokenizer.eos_token_id
    special = list({*t5.tokenizer.all_special_ids, gap} - {eos, border, end})
    states = [_State(0.0, (gap,))]
    for left in range(longest, 0, -1):
        grown: list[_State] = [state for state in states if state.finished]
        for state in (s for s in states if not s.finished):
            said = t5.said_next(encoded, state.ids)
            has_read()
            said[[*special, state.ids[-1]]] = -torch.inf  # nothing twice in a row: no "...."
            tokens = said.topk(min(beam + 1, len(said))).indices.tolist()
            if left <= 3 - len(state.parts):  # time to close what is open
                tokens = [(border, end)[len(state.parts) - 1]]
            for token in tokens:
                grown += _next(state, float(said[token]), token, border, {end, eos})
        states = sorted(grown, key=lambda state: -state.score)[:beam]
    fillings = [_filling(t5, place, state) for state in states if state.finished]
    return [filling for filling in fillings if filling is not None]


def _next(state: _State, more: float, token: int, border: int, ends: set[int]) -> list[_State]:
    """The state after one more token; None if it can't stand here."""
    grown = replace(state, score=state.score + more, ids=(*state.ids, token))
    if token == border:
        return [replace(grown, parts=(*state.parts, ()))] if len(state.parts) == 1 else []
    if token in ends:
        return [replace(grown, finished=True)] if len(state.parts) == 2 else []
    return [replace(grown, parts=(*state.parts[:-1], (*state.parts[-1], token)))]


def _questions(t5: T5, place: str, data: LabelledExamples, words: Sequence[str]) -> list[str]:
    """What the T5 reads: the text with a gap on both sides of its label's word.

    Of a text that is too long the end is left out, so that the gaps are never cut off.
    """
    parts = Template.parse(place.format(before="", after="").strip()).parts
    asked = []
    for example, label in zip(data.examples, data.labels, strict=True):
        first, second = example if isinstance(example, tuple) else (example, "")
        texts = {"a": first, "b": second}
        gaps = f"<extra_id_0> {words[label]} <extra_id_1>"
        pieces = [p.of(texts[p.which]) if isinstance(p, Text) else None for p in parts]
        asked.append(_readable(t5, pieces, gaps))
    return asked


def _readable(t5: T5, pieces: Sequence[str | None], gaps: str) -> str:
    """Texts with the gaps between them; of each as many characters as the T5 can read."""

    def question(most: int) -> str:
        return " ".join(gaps if piece is None else piece[:most] for piece in pieces)

    most = max(len(piece) for piece in pieces if piece is not None)
    if not t5.can_read(question(most)):
        lengths = range(1, most + 1)
        most = bisect_left(lengths, True, key=lambda length: not t5.can_read(question(length)))
    return question(most)


def _filling(t5: T5, place: str, state: _State) -> Filling | None:
    """A finished state as a template; None if its words can't be written in one."""
    before, after = (
        "".join(t5.tokenizer.convert_ids_to_tokens(list(part))).replace("▁", " ")
        for part in state.parts
    )
    if set("{}[]") & set(before + after) or not (before + after).strip():
        return None
    source = place.format(before=before.rstrip(), after=after.rstrip()).strip()
    try:
        Template.parse(source)
    except CPTuningError:
        return None
    return Filling(state.score, list(state.ids), source)
