"""Batches larger than the memory: chunks are read without a graph, then again to go backward.

Gradient caching (Gao et al., "Scaling Deep Contrastive Learning Batch Size under Memory Limited
Setup", 2021): of a chunk only the few vectors are kept that the loss is made of; when the loss's
gradient with respect to them is known, the chunk is read once more, with the same dropout, and the
gradient goes through it. The step is that of the whole batch, for one more forward pass.
"""

from collections.abc import Callable, Sequence
from math import ceil

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint


def chunk_count(rows: int, size: int) -> int:
    """The number of chunks of at most ``size`` rows that make a batch; size 0 means one chunk.

    >>> chunk_count(10, 4), chunk_count(10, 0), chunk_count(3, 4)
    (3, 1, 1)
    """
    return ceil(rows / size) if size else 1


def recomputed(compute: Callable[..., Tensor], chunks: int, *tensors: Tensor) -> Tensor:
    """The result for all rows, computed in chunks whose intermediate values are not kept."""
    if chunks == 1:
        return compute(*tensors)
    pieces = zip(*(tensor.tensor_split(chunks) for tensor in tensors), strict=True)
    return torch.cat([checkpoint(compute, *piece, use_reentrant=False) for piece in pieces])


def in_chunks(
    encoder: Callable[..., tuple[Tensor, Tensor]],
    size: int,
    inputs: Sequence[Tensor],
    rows: Tensor,
    columns: Tensor,
) -> tuple[Tensor, Tensor]:
    """The encoder's output at the positions (rows[i], columns[i]), in that order.

    With several chunks the host waits once for the device, to know how many positions are in each.
    """
    chunks = chunk_count(len(inputs[0]), size)
    if chunks == 1:
        return encoder(*inputs, rows, columns)
    order = torch.argsort(rows, stable=True)
    places = order.split(torch.bincount(rows // size, minlength=chunks).tolist())
    parts = zip(*(tensor.split(size) for tensor in inputs), strict=True)
    pieces = [
        checkpoint(encoder, *part, rows[place] % size, columns[place], use_reentrant=False)
        for part, place in zip(parts, places, strict=True)
    ]
    back = torch.argsort(order)
    features, decoder_inputs = (torch.cat(kept)[back] for kept in zip(*pieces, strict=True))
    return features, decoder_inputs
