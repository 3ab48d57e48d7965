"""Muon for the matrices inside the model, AdamW for tables, vectors and the rest.

Muon (K. Jordan and others, 2024) moves a matrix along the nearest orthogonal matrix to its
averaged gradient, so that no few directions take all of the step. Its steps are scaled to the
length of AdamW's, so one learning rate serves both.
"""

from collections.abc import Iterable
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

# Five steps of Newton and Schulz with these factors bring singular values to between 0.7 and 1.2.
_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
_ADAMW_LENGTH = 0.2


def orthogonalised(matrices: Tensor) -> Tensor:
    """Matrices (n, rows, columns) with the same singular vectors and singular values near one.

    >>> values = torch.linalg.svdvals(orthogonalised(torch.randn(1, 8, 4)).float())
    >>> bool((values > 0.5).all() and (values < 1.3).all())
    True
    """
    x: Tensor = matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = _NEWTON_SCHULZ
    for _ in range(5):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x


class Muon(Optimizer):
    """One group per kind of matrix; ``pieces`` says how many are stacked in one."""

    def __init__(self, groups: Iterable[dict[str, Any]], *, momentum: float, decay: float) -> None:
        super().__init__(groups, {"lr": 0.0, "pieces": 1, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix; those of one kind together, which is faster on a GPU."""
        for group in self.param_groups:
            parameters: list[Tensor] = group["params"]
            gradients = [p.grad for p in parameters if p.grad is not None]
            averages = [
                self.state[p].setdefault("average", torch.zeros_like(p)) for p in parameters
            ]
            torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
            ahead = torch._foreach_lerp(gradients, averages, group["momentum"])
            rows, columns = parameters[0].shape
            rows //= group["pieces"]
            moves = orthogonalised(torch.stack(ahead).view(-1, rows, columns))
            length = group["lr"] * _ADAMW_LENGTH * sqrt(max(rows, columns))
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["decay"])
            moves = moves.to(parameters[0].dtype).view(len(parameters), *parameters[0].shape)
            torch._foreach_add_(parameters, list(moves.unbind()), alpha=-length)


def optimizers_for(
    model: nn.Module, kind: str, *, decay: float, fused: bool
) -> dict[str, Optimizer]:
    """The optimisers of the model: "muon" (with AdamW for the rest) or "adamw" alone."""
    inner = {n: p for n, p in model.named_parameters() if n.startswith("layers.") and p.ndim == 2}
    if kind == "adamw":
        inner = {}
    rest = {n: p for n, p in model.named_parameters() if n not in inner}
    groups = [
        {"params": [p for p in rest.values() if p.ndim == 2], "weight_decay": decay},
        {"params": [p for p in rest.values() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizers: dict[str, Optimizer] = {
        "adamw": AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-8, fused=fused)
    }
    if inner:
        kinds: dict[str, list[Tensor]] = {}
        for name, parameter in inner.items():
            kinds.setdefault(name.split(".")[2], []).append(parameter)
        named = [{"params": ps, "pieces": 3 if n == "qkv" else 1} for n, ps in kinds.items()]
        optimizers["muon"] = Muon(named, momentum=0.95, decay=decay)
    return optimizers
