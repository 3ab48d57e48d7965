"""The supervised contrastive loss (Khosla et al., 2020), in both of its forms."""

from torch import Tensor

from cptuning.losses.contrast import Form, contrast
from cptuning.losses.pairs import mean_over_anchors, pairwise, require_above_zero


def supcon_per_anchor(z: Tensor, labels: Tensor, *, tau: float, form: Form = "sum_log") -> Tensor:
    """The supervised contrastive loss of each anchor, 0 where it has no positive.

    ``z`` (n, d) has rows of unit norm. ``form="sum_log"`` is L_out, the mean of −log over the
    positives; ``form="log_sum"`` is −log of the positives' share, the paper's L_CL.

    >>> import torch
    >>> z, labels = torch.eye(2)[[0, 0, 0, 1]], torch.tensor([0, 0, 0, 1])
    >>> supcon_per_anchor(z, labels, tau=1.0)
    tensor([0.8620, 0.8620, 0.8620, 0.0000])
    >>> supcon_per_anchor(z, labels, tau=1.0, form="log_sum")
    tensor([0.1688, 0.1688, 0.1688, 0.0000])
    """
    require_above_zero(tau=tau)
    similarity, positive, negative = pairwise(z, labels)
    return contrast(similarity / tau, positive, negative, form=form, reduction="mean")


def supcon(z: Tensor, labels: Tensor, *, tau: float, form: Form = "sum_log") -> Tensor:
    """The mean of :func:`supcon_per_anchor` over the anchors that have a positive.

    >>> import torch
    >>> supcon(torch.eye(2)[[0, 0, 0, 1]], torch.tensor([0, 0, 0, 1]), tau=1.0)
    tensor(0.8620)
    """
    return mean_over_anchors(supcon_per_anchor(z, labels, tau=tau, form=form), labels)
