"""Which examples of a batch are pairs, how alike they are, and safe sums over only some of them."""

from typing import NamedTuple

import torch
from torch import Tensor

from cptuning.errors import CPTuningError


class Pairs(NamedTuple):
    """A batch as pairs: row i relates anchor i to every example j."""

    similarity: Tensor
    positive: Tensor
    negative: Tensor


def positives(labels: Tensor) -> Tensor:
    """P(i) as a boolean mask: j has the class of i, or shares a label with i, and is not i itself.

    >>> positives(torch.tensor([7, 7, 3])).int()
    tensor([[0, 1, 0],
            [1, 0, 0],
            [0, 0, 0]], dtype=torch.int32)
    """
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    return _alike(labels) & ~itself


def negatives(labels: Tensor) -> Tensor:
    """N(i) as a boolean mask: j has another class than i, or no label of i's, and is not i itself.

    >>> negatives(torch.tensor([7, 7, 3])).int()
    tensor([[0, 0, 1],
            [0, 0, 1],
            [1, 1, 0]], dtype=torch.int32)
    """
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    return ~(_alike(labels) | itself)


def overlap(labels: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """How far the label sets of i and j overlap: |Yᵢ ∩ Yⱼ| / |Yᵢ ∪ Yⱼ|, 0 if both are empty.

    >>> overlap(torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 0]]))
    tensor([[1.0000, 0.5000, 0.0000],
            [0.5000, 1.0000, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    shared, sizes = _shared(labels).to(dtype), labels.sum(dim=1).to(dtype)
    return shared / (sizes[:, None] + sizes - shared).clamp_min(1)


def _alike(labels: Tensor) -> Tensor:
    return labels[:, None] == labels if labels.ndim == 1 else _shared(labels) > 0


def _shared(labels: Tensor) -> Tensor:
    """How many labels the sets of i and j have in common."""
    with torch.autocast(labels.device.type, enabled=False):
        return labels.float() @ labels.float().T


def pairwise(z: Tensor, labels: Tensor) -> Pairs:
    """The inner products of all examples, in float32 at least, with both masks.

    The rows of ``z`` have unit norm, so that these are cosines: the caller sees to it.

    >>> pairwise(torch.eye(2, dtype=torch.bfloat16), torch.tensor([0, 1])).similarity
    tensor([[1., 0.],
            [0., 1.]])
    """
    if z.ndim != 2 or labels.ndim not in (1, 2) or labels.shape[:1] != z.shape[:1]:
        raise CPTuningError(
            f"A loss got embeddings of shape {tuple(z.shape)} and labels of shape "
            f"{tuple(labels.shape)}: give it (n, d) and (n,), or (n, C) for label sets."
        )
    wide = z.to(torch.promote_types(z.dtype, torch.float32))
    # Autocast would take the product back to half precision, whatever is fed to it.
    with torch.autocast(z.device.type, enabled=False):
        similarity = wide @ wide.T
    return Pairs(similarity, positives(labels), negatives(labels))


def one_drawn(mask: Tensor, generator: torch.Generator) -> Tensor:
    """The mask with one entry per row left, drawn uniformly; an empty row stays empty.

    The numbers come from the generator's own device, so a seed means the same on every device.

    >>> one_drawn(torch.tensor([[True, True], [False, False]]), torch.Generator()).sum(dim=1)
    tensor([1, 0])
    """
    lots = torch.rand(mask.shape, generator=generator, device=generator.device).to(mask.device)
    winner = torch.where(mask, lots, -1.0).argmax(dim=1, keepdim=True)
    return torch.zeros_like(mask).scatter(1, winner, True) & mask


def masked_logsumexp(values: Tensor, mask: Tensor) -> Tensor:
    """The log Σ exp of the chosen entries of each row; an empty row gives −inf and no gradient.

    >>> masked_logsumexp(torch.zeros(2, 2), torch.tensor([[True, True], [False, False]]))
    tensor([0.6931,   -inf])
    """
    empty = ~mask.any(dim=1)
    chosen = values.masked_fill(~mask, -torch.inf)
    # A row of nothing but −inf has a NaN gradient even if it is discarded afterwards.
    safe = chosen.masked_fill(empty[:, None], 0.0)
    return torch.logsumexp(safe, dim=1).masked_fill(empty, -torch.inf)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean of the chosen entries along the last dimension; zero if there are none.

    >>> chosen = torch.tensor([[True, True], [False, False]])
    >>> masked_mean(torch.tensor([[1.0, 3.0], [5.0, 7.0]]), chosen)
    tensor([2., 0.])
    """
    return values.masked_fill(~mask, 0.0).sum(dim=-1) / mask.sum(dim=-1).clamp(min=1)


def mean_over_anchors(per_anchor: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """The mean over the anchors that have a positive: the scalar form of every loss.

    With ``weights`` wᵢ of the anchors it is Σ wᵢ Lᵢ / Σ wᵢ over them. Without such an anchor it is
    a zero that is still part of the graph. Anchors that lack a negative need no rule: then the
    batch is of one class, and all anchors lack one alike.

    >>> mean_over_anchors(torch.tensor([1.0, 3.0, 0.0]), torch.tensor([7, 7, 3]))
    tensor(2.)
    >>> weights = torch.tensor([3.0, 1.0, 1.0])
    >>> mean_over_anchors(torch.tensor([1.0, 3.0, 0.0]), torch.tensor([7, 7, 3]), weights)
    tensor(1.5000)
    """
    counted = positives(labels).any(dim=1)
    if weights is None:
        return masked_mean(per_anchor, counted)
    return weighted_mean(per_anchor, weights * counted)


def weighted_mean(values: Tensor, weights: Tensor) -> Tensor:
    """Σ w x / Σ w, or zero if no weight is above zero.

    >>> weighted_mean(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 1.0]))
    tensor(2.)
    """
    weights = weights.to(values.dtype)
    return (weights * values).sum() / weights.sum().clamp_min(torch.finfo(values.dtype).tiny)


def require_above_zero(**settings: float) -> None:
    """Refuse temperatures and scales for which a loss means nothing.

    >>> require_above_zero(tau=0.0)
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: tau is 0.0: set it above zero.
    """
    for name, value in settings.items():
        if not value > 0:
            raise CPTuningError(f"{name} is {value}: set it above zero.")
