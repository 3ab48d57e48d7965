"""From the vectors of a text's tokens to one vector: what sentence encoders do behind the model."""

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

PoolingMode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
POOLING_MODES: tuple[PoolingMode, ...] = get_args(PoolingMode)
"""As sentence-transformers calls them, in the order in which it joins them."""

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    kind.__name__: kind
    for kind in (
        *(nn.Identity, nn.Tanh, nn.ReLU, nn.GELU, nn.SiLU, nn.Sigmoid),
        *(nn.ELU, nn.LeakyReLU, nn.Mish, nn.Softplus),
    )
}


def pool(tokens: Tensor, mask: Tensor, mode: PoolingMode, first: int = 0) -> Tensor:
    """One vector per text of its token vectors (texts, length, width).

    ``mask`` (texts, length) is one at the tokens of a text and zero behind them. ``first`` is the
    place of the first token in its text, from which weights count.

    >>> tokens = torch.tensor([[[1.0], [3.0], [8.0]]])
    >>> mask = torch.tensor([[1, 1, 0]])
    >>> {mode: round(float(pool(tokens, mask, mode)), 3) for mode in ("cls", "max", "mean")}
    {'cls': 1.0, 'max': 3.0, 'mean': 2.0}
    >>> {mode: round(float(pool(tokens, mask, mode)), 3) for mode in POOLING_MODES[3:]}
    {'mean_sqrt_len_tokens': 2.828, 'weightedmean': 2.333, 'lasttoken': 3.0}
    """
    tokens = tokens.float()
    if mode == "cls":
        return tokens[:, 0]
    if mode == "lasttoken":
        last = (mask.sum(dim=1) - 1).clamp_min(0)
        return tokens.gather(1, last[:, None, None].expand(-1, 1, tokens.shape[2]))[:, 0]
    if mode == "max":
        return tokens.masked_fill(mask[:, :, None] == 0, -torch.inf).amax(dim=1)
    weights = mask.to(tokens.dtype)
    if mode == "weightedmean":
        weights = weights * torch.arange(first + 1, first + 1 + mask.shape[1], device=mask.device)
    total = (tokens * weights[:, :, None]).sum(dim=1)
    count = weights.sum(dim=1, keepdim=True).clamp_min(1e-9)
    return total / (count.sqrt() if mode == "mean_sqrt_len_tokens" else count)


class Dense(nn.Module):
    """A linear layer with an activation, under the names of sentence-transformers."""

    def __init__(self, in_features: int, out_features: int, bias: bool, activation: str) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias)
        self.activation_function = ACTIVATIONS[activation]()

    def forward(self, vectors: Tensor) -> Tensor:
        """The layer's output, one row per text."""
        activated: Tensor = self.activation_function(self.linear(vectors))
        return activated


class Normalize(nn.Module):
    """Vectors of unit length."""

    def forward(self, vectors: Tensor) -> Tensor:
        """The same directions."""
        return normalize(vectors, dim=-1)


class SentencePooling(nn.Module):
    """Token vectors to one vector per text: pooling modes side by side, then layers.

    ``text_prefix`` stands before every text (a sentence encoder's default prompt). Of the tokens,
    ``first`` is the first that is pooled: a prompt may be read without being counted. With
    ``text_only`` only tokens of the text itself are pooled, and words may stand around it: so one
    pass serves a masked language model, too.
    """

    def __init__(
        self,
        modes: Sequence[PoolingMode],
        width: int,
        layers: Sequence[Dense | Normalize] = (),
        *,
        text_prefix: str = "",
        first: int = 0,
        text_only: bool = False,
    ) -> None:
        super().__init__()
        self.modes = tuple(modes)
        self.layers = nn.Sequential(*layers)
        self.text_prefix = text_prefix
        self.first = first
        self.text_only = text_only
        self.token_width = width
        self.width = len(self.modes) * width
        for layer in layers:
            if isinstance(layer, Dense):
                self.width = layer.linear.out_features

    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """One vector per text; texts of equal length need no mask."""
        if mask is None:
            mask = torch.ones(tokens.shape[:2], dtype=torch.long, device=tokens.device)
        tokens, mask = tokens[:, self.first :], mask[:, self.first :]
        parts = [pool(tokens, mask, mode, self.first) for mode in self.modes]
        vectors: Tensor = self.layers(torch.cat(parts, dim=-1))
        return vectors

    def extra_repr(self) -> str:
        """All that makes the vector, besides the layers."""
        return (
            f"modes={self.modes}, width={self.token_width}, text_prefix={self.text_prefix!r}, "
            f"first={self.first}, text_only={self.text_only}"
        )
