"""From torch to an ONNX graph: token ids in, the unit vector at [OMSK] out."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from functools import partial
from io import BytesIO, StringIO
from typing import Any

import onnx
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, normalize
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, eager_mask

from cptuning.backbone import PromptedEncoder
from cptuning.backbone.loading import quiet_transformers

OUTPUTS = "outputs"
INPUTS = ("input_ids", "token_type_ids", OUTPUTS)
FUSED, EAGER = "cptuning-fused", "eager"
"""How attention comes into the graph: as one operator of ONNX Runtime, or as its parts."""
OPSET = 17


class _Attention(torch.autograd.Function):
    """Attention that is traced as one operator; its inputs still have heads as an axis."""

    @staticmethod
    def forward(
        _context: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        scale: float,
        _heads: int,
    ) -> Tensor:
        similarities = query @ key.transpose(2, 3) * scale
        weights = (similarities if bias is None else similarities + bias).softmax(dim=-1)
        return (weights @ value).transpose(1, 2)

    @staticmethod
    def symbolic(
        graph: Any, query: Any, key: Any, value: Any, bias: Any, scale: float, heads: int
    ) -> Any:
        inputs = [query, key, value]
        if bias is not None:
            nothing = graph.op("prim::Constant")
            nothing.setType(torch._C.OptionalType.ofTensor())
            inputs += [nothing, nothing, bias]
        attended = graph.op(
            "com.microsoft::MultiHeadAttention", *inputs, num_heads_i=heads, scale_f=scale
        )
        return attended.setType(query.type())


class _Row(torch.autograd.Function):
    """The row of [OMSK] alone, traced as the one node that reads ``outputs``."""

    @staticmethod
    def forward(_context: Any, hidden: Tensor, outputs: Tensor) -> Tensor:
        return hidden.take_along_dim(outputs, dim=1)

    @staticmethod
    def symbolic(graph: Any, hidden: Any, outputs: Any) -> Any:
        row = graph.op("GatherND", hidden, outputs, batch_dims_i=1)
        return row.setType(hidden.type())


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    scaling: float | None = None,
    **_more: Any,
) -> tuple[Tensor, None]:
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    heads = int(query.shape[1])
    attended: Tensor = _Attention.apply(query, key, value, bias, float(scale), heads)  # type: ignore[no-untyped-call]
    return attended, None


class _Embedder(nn.Module):
    """The whole way from ids to the unit vector."""

    def __init__(self, encoder: PromptedEncoder, attention: str) -> None:
        super().__init__()
        self.encoder = deepcopy(encoder).to("cpu").eval()  # the original stays as it is
        self.encoder.model.set_attn_implementation(attention)
        table = self.encoder.model.get_input_embeddings().weight
        assert isinstance(table, Tensor)
        # Prompt vectors are the rows past the vocabulary's end, as their ids say.
        rows = torch.cat([table, self.encoder.prompts]).detach()
        self.encoder.embed = partial(embedding, weight=rows)  # type: ignore[method-assign]

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, outputs: Tensor) -> Tensor:
        def take(_module: nn.Module, _inputs: Any, output: Any) -> Any:
            hidden = output.last_hidden_state
            output.last_hidden_state = _Row.apply(hidden, outputs)  # type: ignore[no-untyped-call]
            return output

        # Without padding there is nothing to mask; and with one row left, it is the wanted one.
        every = torch.arange(input_ids.shape[0])
        # In front of the adapter's own hook, which then finds one row.
        hook = self.encoder.model.base_model.register_forward_hook(take, prepend=True)
        try:
            features, _ = self.encoder(input_ids, None, token_type_ids, every, 0 * every)
        finally:
            hook.remove()
        return normalize(features.float(), dim=-1)


def traced(encoder: PromptedEncoder, attention: str) -> onnx.ModelProto:
    """The encoder's graph for texts of one length: ``input_ids``, ``token_type_ids``, ``outputs``.

    ``outputs`` is the place of [OMSK] in each text, with two more axes of length one.
    """
    AttentionInterface.register(FUSED, _attend)
    AttentionMaskInterface.register(FUSED, eager_mask)
    ids = torch.zeros(2, 7, dtype=torch.long)
    sample = (ids, torch.zeros_like(ids), torch.tensor([[[3]], [[5]]]))
    file = BytesIO()
    with torch.no_grad(), _quiet():
        torch.onnx.export(
            _Embedder(encoder, attention),
            sample,
            file,  # type: ignore[arg-type]  # The old exporter takes open files as well.
            input_names=list(INPUTS),
            output_names=["embeddings"],
            dynamic_axes={
                **{name: {0: "batch", 1: "length"} for name in INPUTS[:2]},
                **{name: {0: "batch"} for name in (OUTPUTS, "embeddings")},
            },
            opset_version=OPSET,
            dynamo=False,
        )
    return onnx.load_from_string(file.getvalue())


@contextmanager
def _quiet() -> Iterator[None]:
    """Tracing warns of sizes that might be constants, and of attention; the result is compared."""
    with redirect_stdout(StringIO()), warnings.catch_warnings(), quiet_transformers():
        warnings.simplefilter("ignore")
        yield
