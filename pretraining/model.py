"""BERT for pre-training: the sums of ``BertForMaskedLM``, arranged to be fast on a GPU.

One matrix makes queries, keys and values, attention is fused, and the decoder reads only the
masked positions. ``to_transformers`` and ``from_transformers`` rename the weights both ways.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig

LAYER_NORM_EPSILON = 1e-12


@dataclass(frozen=True)
class Shape:
    """How large the model is."""

    vocabulary: int = 16_384
    width: int = 384
    layers: int = 12
    heads: int = 6
    inner: int = 1536
    positions: int = 512

    def config(self) -> BertConfig:
        """The same for transformers."""
        return BertConfig(
            vocab_size=self.vocabulary,
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=self.inner,
            max_position_embeddings=self.positions,
            layer_norm_eps=LAYER_NORM_EPSILON,
            # It was trained without: dropout would show it, when it is tuned, what it never met.
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            classifier_dropout=0.1,
        )


class Layer(nn.Module):
    """Attention, then two linear maps, each added to what came in and normalised."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.output = nn.Linear(shape.width, shape.width)
        self.attention_norm = nn.LayerNorm(shape.width, eps=LAYER_NORM_EPSILON)
        self.up = nn.Linear(shape.width, shape.inner)
        self.down = nn.Linear(shape.inner, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=LAYER_NORM_EPSILON)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Mix the tokens of a row, then change each."""
        rows, length, width = x.shape
        qkv = self.qkv(x).view(rows, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(rows, length, width)
        x = self.attention_norm(x + self.output(mixed))
        out: Tensor = self.norm(x + self.down(functional.gelu(self.up(x))))
        return out


class SentenceHead(nn.Module):
    """Token vectors to one vector per text: W · mean(h) + b."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.dense = nn.Linear(shape.width, shape.width)

    def forward(self, hidden: Tensor, is_text: Tensor) -> Tensor:
        """The vectors of the rows; only positions where ``is_text`` is true are read."""
        weights = is_text.float() / is_text.sum(1, keepdim=True).clamp(min=1)
        vectors: Tensor = self.dense((hidden.float() * weights[..., None]).sum(1))
        return vectors


class MaskedLM(nn.Module):
    """The language model, whose input table is its decoder too, with a head for sentences."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.segments = nn.Embedding(2, shape.width)
        self.embedding_norm = nn.LayerNorm(shape.width, eps=LAYER_NORM_EPSILON)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.transform = nn.Linear(shape.width, shape.width)
        self.transform_norm = nn.LayerNorm(shape.width, eps=LAYER_NORM_EPSILON)
        self.bias = nn.Parameter(torch.zeros(shape.vocabulary))
        self.sentence = SentenceHead(shape)
        self.apply(_initialise)

    def forward(
        self, ids: Tensor, types: Tensor, attended: Tensor | None, columns: Tensor
    ) -> Tensor:
        """The logits at the wanted columns, (rows, columns, vocabulary)."""
        return self.decoded(self.hidden(ids, types, attended, columns))

    def hidden(
        self, ids: Tensor, types: Tensor, attended: Tensor | None, columns: Tensor
    ) -> Tensor:
        """The last layer's vectors at the wanted columns."""
        x = self.encoded(ids, types, attended)
        return x.gather(1, columns[:, :, None].expand(-1, -1, x.shape[2]))

    def encoded(self, ids: Tensor, types: Tensor, attended: Tensor | None) -> Tensor:
        """The last layer's vectors, (rows, columns, width)."""
        x: Tensor = self.words(ids) + self.segments(types) + self.positions.weight[: ids.shape[1]]
        x = self.embedding_norm(x)
        mask = None if attended is None else attended[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return x

    def encoder_state(self) -> dict[str, Tensor]:
        """The weights of the language model alone."""
        return {n: w for n, w in self.state_dict().items() if not n.startswith("sentence.")}

    def decoded(self, x: Tensor) -> Tensor:
        """The head: vectors to logits."""
        x = self.transform_norm(functional.gelu(self.transform(x)))
        return functional.linear(x, self.words.weight, self.bias)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


# Our name and transformers' name of each part; a layer's stand behind its number.
_PARTS = {
    "words": "bert.embeddings.word_embeddings",
    "positions": "bert.embeddings.position_embeddings",
    "segments": "bert.embeddings.token_type_embeddings",
    "embedding_norm": "bert.embeddings.LayerNorm",
    "transform": "cls.predictions.transform.dense",
    "transform_norm": "cls.predictions.transform.LayerNorm",
}
_LAYER_PARTS = {
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm": "output.LayerNorm",
}
_QKV = tuple(f"attention.self.{name}" for name in ("query", "key", "value"))


def _renamed(name: str) -> str:
    part, _, kind = name.rpartition(".")
    if not part:
        return "cls.predictions.bias"
    if not part.startswith("layers."):
        return f"{_PARTS[part]}.{kind}"
    _, number, inner = part.split(".")
    return f"bert.encoder.layer.{number}.{_LAYER_PARTS[inner]}.{kind}"


def to_transformers(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights under the names of ``BertForMaskedLM``."""
    renamed = {}
    for name, value in weights.items():
        if ".qkv." in name:
            _, number, _, kind = name.split(".")
            for part, third in zip(_QKV, value.chunk(3), strict=True):
                renamed[f"bert.encoder.layer.{number}.{part}.{kind}"] = third.contiguous()
        else:
            renamed[_renamed(name)] = value
    return renamed


def from_transformers(weights: dict[str, Tensor], model: MaskedLM) -> dict[str, Tensor]:
    """The inverse, for a model of the right shape; a sentence head keeps its names."""
    named = {name: value for name, value in weights.items() if name.startswith("sentence.")}
    for name in model.encoder_state():
        if ".qkv." in name:
            _, number, _, kind = name.split(".")
            thirds = [weights[f"bert.encoder.layer.{number}.{part}.{kind}"] for part in _QKV]
            named[name] = torch.cat(thirds)
        else:
            named[name] = weights[_renamed(name)]
    return named
