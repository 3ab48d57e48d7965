"""Weights in a quarter of their size: rows of 8-bit integers, each with a float16 scale."""

import torch
from torch import Tensor

from cptuning.backbone.packed import unpacked

_SCALE = ".scale"


def pack(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices to int8 rows with a scale each; vectors, which weigh little, to float16.

    >>> packed = pack({"w": torch.tensor([[1.0, -0.5], [0.0, 0.25]]), "b": torch.ones(2)})
    >>> packed["w"]
    tensor([[127, -64],
            [  0, 127]], dtype=torch.int8)
    >>> unpack(packed)["w"][1]
    tensor([0.0000, 0.2500])
    """
    packed: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.ndim < 2:
            packed[name] = value.to(torch.float16)
            continue
        # The rounded scale is the one that unpacking will use, so divide by that one.
        scale = (value.float().abs().amax(dim=-1, keepdim=True) / 127).to(torch.float16)
        scale = scale.clamp_min(torch.finfo(torch.float16).tiny)
        packed[name] = (value.float() / scale.float()).round().clamp(-127, 127).to(torch.int8)
        packed[name + _SCALE] = scale
    return packed


def unpack(packed: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of :func:`pack`, in float32, up to half a step of each row's scale."""
    arrays = unpacked({name: value.numpy() for name, value in packed.items()})
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
