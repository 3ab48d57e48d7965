"""Circle loss (Sun et al., 2020): the further a pair is from its optimum, the more it weighs."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from cptuning.losses.pairs import (
    masked_logsumexp,
    mean_over_anchors,
    pairwise,
    require_above_zero,
)


def relaxation_factors(similarity: Tensor, positive: Tensor, margin: float) -> Tensor:
    """α: max(0, 1 + m − s) for the positives and max(0, s + m) for all others.

    >>> relaxation_factors(torch.tensor([0.25, 0.25]), torch.tensor([True, False]), margin=0.5)
    tensor([1.2500, 0.7500])
    """
    return torch.relu(torch.where(positive, 1 + margin - similarity, similarity + margin))


def circle_per_anchor(z: Tensor, labels: Tensor, *, margin: float, gamma: float) -> Tensor:
    """log(1 + Σ_n exp(γ αn (sn − Δn)) · Σ_p exp(−γ αp (sp − Δp))), with Δp = 1 − m and Δn = m.

    ``z`` (n, d) has rows of unit norm. The factors α are constants in differentiation, as in the
    authors' definition. Zero where an anchor lacks positives or negatives.

    >>> z = torch.eye(2)[[0, 0, 1]]
    >>> circle_per_anchor(z, torch.tensor([0, 0, 1]), margin=0.25, gamma=1.0)  # log(1 + exp(−1/8))
    tensor([0.6326, 0.6326, 0.0000])
    """
    require_above_zero(gamma=gamma)
    similarity, positive, negative = pairwise(z, labels)
    weight = gamma * relaxation_factors(similarity.detach(), positive, margin)
    return softplus(
        masked_logsumexp(weight * (similarity - margin), negative)
        + masked_logsumexp(weight * (1 - margin - similarity), positive)
    )


def circle(z: Tensor, labels: Tensor, *, margin: float, gamma: float) -> Tensor:
    """The mean of :func:`circle_per_anchor` over the anchors that have a positive.

    >>> circle(torch.eye(2)[[0, 0, 1]], torch.tensor([0, 0, 1]), margin=0.25, gamma=1.0)
    tensor(0.6326)
    """
    return mean_over_anchors(circle_per_anchor(z, labels, margin=margin, gamma=gamma), labels)
