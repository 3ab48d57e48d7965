"""The triplet loss (Schroff et al., 2015) on every valid triplet of the batch."""

import torch
from torch import Tensor

from cptuning.losses.pairs import mean_over_anchors, pairwise


def triplet_per_anchor(z: Tensor, labels: Tensor, *, margin: float) -> Tensor:
    """max(0, d_p − d_n + margin), averaged over the triplets of an anchor; 0 without any.

    ``z`` (n, d) has rows of unit norm, and d is the squared Euclidean distance, 2 − 2s.

    >>> z = torch.eye(2)[[0, 1, 1]]
    >>> triplet_per_anchor(z, torch.tensor([0, 0, 1]), margin=0.5)
    tensor([0.5000, 2.5000, 0.0000])
    """
    similarity, positive, negative = pairwise(z, labels)
    distance = 2 - 2 * similarity
    reach = distance + margin
    # A sum of hinges is linear in the distances once it is known how often each of them takes
    # part in a hinge above zero. Two sorted searches tell that in n² numbers instead of n³.
    with torch.no_grad():
        near = distance.masked_fill(~negative, torch.inf).sort(dim=1).values
        far = reach.masked_fill(~positive, torch.inf).sort(dim=1).values
        negatives_within = torch.searchsorted(near, reach) * positive
        out_of_reach = torch.searchsorted(far, distance, right=True)
        positives_beyond = (positive.sum(dim=1, keepdim=True) - out_of_reach) * negative
        triplets = positive.sum(dim=1) * negative.sum(dim=1)
    hinges = (negatives_within * reach - positives_beyond * distance).sum(dim=1)
    return hinges / triplets.clamp(min=1)


def triplet(z: Tensor, labels: Tensor, *, margin: float) -> Tensor:
    """The mean of :func:`triplet_per_anchor` over the anchors that have a positive.

    >>> triplet(torch.eye(2)[[0, 1, 1]], torch.tensor([0, 0, 1]), margin=0.5)
    tensor(1.5000)
    """
    return mean_over_anchors(triplet_per_anchor(z, labels, margin=margin), labels)
