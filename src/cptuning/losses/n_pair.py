"""The N-pair loss (Sohn, 2016): one positive against all negatives at once."""

from torch import Tensor
from torch.nn.functional import softplus

from cptuning.losses.pairs import masked_logsumexp, masked_mean, mean_over_anchors, pairwise


def n_pair_per_anchor(z: Tensor, labels: Tensor) -> Tensor:
    """log(1 + Σ_n exp(s_n − s_p)), averaged over the positives p of an anchor; 0 without any.

    ``z`` (n, d) has rows of unit norm.

    >>> import torch
    >>> n_pair_per_anchor(torch.eye(2)[[0, 0, 1]], torch.tensor([0, 0, 1]))  # log(1 + 1/e)
    tensor([0.3133, 0.3133, 0.0000])
    """
    similarity, positive, negative = pairwise(z, labels)
    against = masked_logsumexp(similarity, negative)[:, None]
    return masked_mean(softplus(against - similarity), positive)


def n_pair(z: Tensor, labels: Tensor) -> Tensor:
    """The mean of :func:`n_pair_per_anchor` over the anchors that have a positive.

    >>> import torch
    >>> n_pair(torch.eye(2)[[0, 0, 1]], torch.tensor([0, 0, 1]))
    tensor(0.3133)
    """
    return mean_over_anchors(n_pair_per_anchor(z, labels), labels)
