"""From torch to an ONNX graph: token ids in, the features of each sequence out."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.functional import embedding
from torch.onnx.ops import symbolic
from transformers import AttentionInterface
from transformers.masking_utils import (
    AttentionMaskInterface,
    bidirectional_mask_function,
    eager_mask,
)

from cptuning.backbone import PromptedEncoder
from cptuning.backbone.loading import quiet_transformers
from cptuning.export.graph import ATTENTION, MICROSOFT
from cptuning.inference.onnx_encoder import FEATURES
from cptuning.inference.onnx_words import WORDS

OUTPUTS = "outputs"
"""The input with the position whose row is read in each text."""
FUSED, EAGER = "cptuning-fused", "eager"
"""How attention enters the graph: as one operator of ONNX Runtime, or as its parts."""
OPSET = 18


def traced(encoder: PromptedEncoder, attention: str) -> onnx.ModelProto:
    """The encoder's graph for sequences of one length: ids in, their raw features out.

    It takes what the model needs of ``input_ids``, ``token_type_ids``, ``outputs`` (the position
    of [OMSK], with two more axes of length one) and ``is_text``.
    """
    reader = _Reader(encoder, attention).eval()
    ids = torch.arange(14).reshape(2, 7)
    examples = {
        "input_ids": ids,
        "token_type_ids": 0 * ids,
        OUTPUTS: torch.tensor([[[3]], [[5]]]),
        "is_text": ids % 2,
    }
    return _exported(reader, {name: examples[name] for name in reader.inputs}, FEATURES)


def traced_words(encoder: PromptedEncoder, attention: str) -> onnx.ModelProto:
    """The encoder's graph for sequences of one length: ids in, a centred vector per token out."""
    reader = _TokenReader(encoder, attention).eval()
    ids = torch.arange(14).reshape(2, 7)
    examples = {"input_ids": ids}
    if encoder.takes_types:
        examples["token_type_ids"] = 0 * ids
    return _exported(reader, examples, WORDS)


def _exported(reader: nn.Module, examples: dict[str, Tensor], output: str) -> onnx.ModelProto:
    AttentionInterface.register(FUSED, _attend)
    AttentionMaskInterface.register(FUSED, _bias)
    tokens, texts = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}, {0: Dim.DYNAMIC}
    with torch.no_grad(), _quiet():
        program = torch.onnx.export(
            reader,
            kwargs=examples,
            input_names=list(examples),
            output_names=[output],
            dynamic_shapes={n: texts if n == OUTPUTS else tokens for n in examples},
            opset_version=OPSET,
            external_data=False,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    model: onnx.ModelProto = program.model_proto
    return model


def _for_tracing(encoder: PromptedEncoder, attention: str) -> PromptedEncoder:
    """A copy of an encoder whose prompt vectors are rows of its embedding table."""
    copy = deepcopy(encoder).to("cpu")  # the original stays as it is
    copy.model.set_attn_implementation(attention)
    table = copy.model.get_input_embeddings().weight
    assert isinstance(table, Tensor)
    # Prompt vectors are the rows past the vocabulary's end, as their ids say.
    rows = torch.cat([table, copy.prompts]).detach()
    copy.embed = partial(embedding, weight=rows)  # type: ignore[method-assign]
    return copy


class _TokenReader(nn.Module):
    """From ids to the last hidden state of every token, centred."""

    def __init__(self, encoder: PromptedEncoder, attention: str) -> None:
        super().__init__()
        self.encoder = _for_tracing(encoder, attention)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        inputs = {"inputs_embeds": self.encoder.embed(input_ids)}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        tokens: Tensor = self.encoder.model.base_model(**inputs)[0]
        return tokens.float() - self.encoder.centre


class _Reader(nn.Module):
    """The whole way from ids to the features of each sequence, the mask view's first."""

    def __init__(self, encoder: PromptedEncoder, attention: str) -> None:
        super().__init__()
        self.encoder = _for_tracing(encoder, attention)
        self.pooling, self.encoder.pooling = self.encoder.pooling, None
        # What is read without a mask is read at the opening token.
        self.pools_one_row = self.pooling is not None and not (
            self.encoder.reads_mask or self.pooling.first or set(self.pooling.modes) != {"cls"}
        )
        takes = {
            "input_ids": True,
            "token_type_ids": self.encoder.takes_types,
            OUTPUTS: self.encoder.reads_mask or self.pools_one_row,
            "is_text": self.pooling is not None
            and self.pooling.text_only
            and not self.pools_one_row,
        }
        self.inputs = [name for name, taken in takes.items() if taken]

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        outputs: Tensor | None = None,
        is_text: Tensor | None = None,
    ) -> Tensor:
        tokens: list[Tensor] = []

        def take_row(_module: nn.Module, _inputs: Any, output: Any) -> Any:
            hidden = output.last_hidden_state
            if outputs is not None:
                shape = (hidden.shape[0], 1, hidden.shape[2])
                # One node, the only one that reads ``outputs``: gather_early looks for it.
                output.last_hidden_state = symbolic(
                    "GatherND",
                    [hidden, outputs],
                    {"batch_dims": 1},
                    dtype=hidden.dtype,
                    shape=shape,
                )
            tokens.append(output.last_hidden_state if self.pools_one_row else hidden)
            return output

        # Texts of one length need no mask; and of the one row that is left, the first is wanted.
        texts = torch.arange(input_ids.shape[0])
        # In front of the adapter's own hook, which then finds one row.
        hook = self.encoder.model.base_model.register_forward_hook(take_row, prepend=True)
        try:
            mask, _ = self.encoder(input_ids, None, token_type_ids, texts, 0 * texts)
        finally:
            hook.remove()
        if self.pooling is None:
            return Tensor(mask.float())
        sentence = self.pooling(tokens[0], is_text)
        features = torch.cat([mask, sentence], dim=-1) if self.encoder.reads_mask else sentence
        return Tensor(features.float())


def _attend(
    _module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    scaling: float | None = None,
    **_more: Any,
) -> tuple[Tensor, None]:
    """Attention as one operator, which splits and joins the heads itself."""
    texts, heads, length, width = query.shape
    inputs = [array.transpose(1, 2).flatten(2) for array in (query, key, value)]
    attended = symbolic(
        f"{MICROSOFT}::{ATTENTION}",
        inputs if bias is None else [*inputs, None, None, bias],
        {"num_heads": heads, "scale": float(width**-0.5 if scaling is None else scaling)},
        dtype=query.dtype,
        shape=(texts, length, heads * width),
        version=1,
    )
    return attended.unflatten(2, (heads, width)), None


def _bias(mask_function: Callable[..., Any], **more: Any) -> Tensor | None:
    """What is added to similarities: nothing, where every token may attend to every other.

    transformers itself leaves the mask out only where it is not traced.
    """
    if mask_function is bidirectional_mask_function and more.get("attention_mask") is None:
        return None
    return eager_mask(mask_function=mask_function, **more)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's remarks: what it makes is compared with torch."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    with warnings.catch_warnings(), quiet_transformers():
        warnings.simplefilter("ignore")
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)
