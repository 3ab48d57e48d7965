"""PCCL, the pair-wise cost-sensitive contrastive loss that CP-Tuning trains with."""

import torch
from torch import Tensor

from cptuning.losses.circle import relaxation_factors
from cptuning.losses.contrast import Form, Reduction, contrast
from cptuning.losses.pairs import (
    mean_over_anchors,
    one_drawn,
    overlap,
    pairwise,
    require_above_zero,
)


def pccl_per_anchor(
    z: Tensor,
    labels: Tensor,
    *,
    margin: float,
    tau_n: float,
    xi: float,
    reduction: Reduction = "sum",
    relaxation: bool = True,
    detach_relaxation: bool = True,
    form: Form = "sum_log",
) -> Tensor:
    """The paper's L_PCCL(i) of each anchor, 0 where P(i) is empty.

    - ``z``: embeddings (n, d) whose rows have unit norm: this function does not normalise them.
      Half precision is computed, and answered, in float32.
    - ``labels``: integer classes (n,), or a 0/1 matrix (n, C) of label sets.
    - ``margin``: m of the relaxation factors, which ask for s_p > 1 − m and s_n < m.
    - ``tau_n``: the temperature of the negatives; that of the positives is τp = ξ·τn.
    - ``xi``: ξ, above 1 to relax the positives.
    - ``reduction``: "sum" over the positives of an anchor as printed, or their "mean", whose
      weight does not grow with the batch. It has no meaning for ``form="log_sum"``.
    - ``relaxation``: False sets every α to 1, the ablation "w/o α".
    - ``detach_relaxation``: hold α constant in differentiation, as Circle loss does. If it is not,
      the positive logit (1 + m − s)·s peaks at s = (1 + m)/2 and then drives positives apart.
    - ``form``: "sum_log" is Σ_p −log(…), PCCL as printed; "log_sum" is −log Σ_p (…), the form of
      L_CL, with one term per anchor.

    Of label sets Y the positives P(i) share a label with i, the negatives N(i) share none, and
    positives count by how far the sets overlap:

        L(i) = Σ_{p ∈ P(i)} w_ip −log(exp(α_p s_p / τp) / Z(i)),  w_ip = |Yᵢ ∩ Y_p| / |Yᵢ ∪ Y_p|

    with Z(i) the sum over P(i) and N(i) as ever; "mean" divides by Σ_p w_ip, and "log_sum" has w_ip
    before each exp of a positive. So it is the loss of classes if every set has one label. A text
    without labels is a negative of all others, and has no positive itself.

    >>> z, labels = torch.eye(2)[[0, 0, 1]], torch.tensor([0, 0, 1])
    >>> pccl_per_anchor(z, labels, margin=0.5, tau_n=1.0, xi=2.0)  # log(1 + exp(0 − 0.5·1/2))
    tensor([0.5759, 0.5759, 0.0000])
    """
    similarity, positive, negative = pairwise(z, labels)
    logits = _logits(
        similarity, positive, margin, tau_n, xi, relaxation=relaxation, detach=detach_relaxation
    )
    weights = overlap(labels, logits.dtype) if labels.ndim == 2 else None
    return contrast(logits, positive, negative, form=form, reduction=reduction, weights=weights)


def pccl(
    z: Tensor,
    labels: Tensor,
    *,
    margin: float,
    tau_n: float,
    xi: float,
    reduction: Reduction = "sum",
    relaxation: bool = True,
    detach_relaxation: bool = True,
    form: Form = "sum_log",
) -> Tensor:
    """The mean of :func:`pccl_per_anchor` over the anchors that have a positive.

    A batch without such an anchor gives a zero that can still be differentiated.

    >>> z, labels = torch.eye(2)[[0, 0, 1]], torch.tensor([0, 0, 1])
    >>> pccl(z, labels, margin=0.5, tau_n=1.0, xi=2.0)
    tensor(0.5759)
    """
    per_anchor = pccl_per_anchor(
        z,
        labels,
        margin=margin,
        tau_n=tau_n,
        xi=xi,
        reduction=reduction,
        relaxation=relaxation,
        detach_relaxation=detach_relaxation,
        form=form,
    )
    return mean_over_anchors(per_anchor, labels)


def sampled_pccl_per_anchor(
    z: Tensor,
    labels: Tensor,
    *,
    margin: float,
    tau_n: float,
    xi: float,
    generator: torch.Generator | None = None,
    relaxation: bool = True,
    detach_relaxation: bool = True,
) -> Tensor:
    """:func:`pccl_per_anchor` on one positive and one negative, drawn uniformly at each call.

    This is the ablation "w/o similarity averaging". Zero where an anchor lacks either. Without a
    ``generator`` torch's own draws.

    >>> z, labels = torch.eye(2)[[0, 0, 1]], torch.tensor([0, 0, 1])
    >>> sampled_pccl_per_anchor(z, labels, margin=0.5, tau_n=1.0, xi=2.0)
    tensor([0.5759, 0.5759, 0.0000])
    """
    generator = generator or torch.default_generator
    similarity, positive, negative = pairwise(z, labels)
    logits = _logits(
        similarity, positive, margin, tau_n, xi, relaxation=relaxation, detach=detach_relaxation
    )
    drawn_positive, drawn_negative = one_drawn(positive, generator), one_drawn(negative, generator)
    # Without negatives, a lone positive takes the whole softmax: the loss is zero by itself.
    return contrast(logits, drawn_positive, drawn_negative, form="sum_log", reduction="sum")


def sampled_pccl(
    z: Tensor,
    labels: Tensor,
    *,
    margin: float,
    tau_n: float,
    xi: float,
    generator: torch.Generator | None = None,
    relaxation: bool = True,
    detach_relaxation: bool = True,
) -> Tensor:
    """The mean of :func:`sampled_pccl_per_anchor` over the anchors that have a positive.

    >>> z, labels = torch.eye(2)[[0, 0, 1]], torch.tensor([0, 0, 1])
    >>> sampled_pccl(z, labels, margin=0.5, tau_n=1.0, xi=2.0)
    tensor(0.5759)
    """
    per_anchor = sampled_pccl_per_anchor(
        z,
        labels,
        margin=margin,
        tau_n=tau_n,
        xi=xi,
        generator=generator,
        relaxation=relaxation,
        detach_relaxation=detach_relaxation,
    )
    return mean_over_anchors(per_anchor, labels)


def _logits(
    similarity: Tensor,
    positive: Tensor,
    margin: float,
    tau_n: float,
    xi: float,
    *,
    relaxation: bool,
    detach: bool,
) -> Tensor:
    """α·s/τ of every pair."""
    require_above_zero(tau_n=tau_n, xi=xi)
    if relaxation:
        seen = similarity.detach() if detach else similarity
        similarity = relaxation_factors(seen, positive, margin) * similarity
    logits = similarity / tau_n
    return torch.where(positive, logits / xi, logits)
