"""The softmax over an anchor's pairs that PCCL and the supervised contrastive loss share."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import softplus

from cptuning.errors import CPTuningError
from cptuning.losses.pairs import masked_logsumexp, masked_mean

Form = Literal["sum_log", "log_sum"]
Reduction = Literal["sum", "mean"]


def contrast(
    logits: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    form: Form,
    reduction: Reduction,
    weights: Tensor | None = None,
) -> Tensor:
    """How far each anchor's positives are from taking the whole softmax; 0 without positives.

    With Z(i) the sum of exp(logit) over the positives and negatives of anchor i:

    - ``form="sum_log"`` is Σ_p −log(exp(logit_p) / Z), or the mean over p instead of the sum
      with ``reduction="mean"``;
    - ``form="log_sum"`` is −log Σ_p (exp(logit_p) / Z), one term per anchor, for which
      ``reduction`` has no meaning.

    With ``weights`` w_p of the pairs, each term of the first is multiplied by w_p, the mean is
    Σ_p w_p (…) / Σ_p w_p, and the second is −log Σ_p w_p exp(logit_p) / (Σ_p w_p exp(logit_p) + N)
    with N the sum over the negatives.

    >>> positive = torch.tensor([[False, True, True, False]])
    >>> negative = torch.tensor([[False, False, False, True]])
    >>> logits = torch.zeros(1, 4)
    >>> contrast(logits, positive, negative, form="sum_log", reduction="sum")  # 2 log 3
    tensor([2.1972])
    >>> contrast(logits, positive, negative, form="log_sum", reduction="sum")  # log 3/2
    tensor([0.4055])
    """
    _require_one_of(get_args(Form), "form", form)
    _require_one_of(get_args(Reduction), "reduction", reduction)
    if form == "log_sum":
        # −log(P / (P + N)) = log(1 + N / P), which keeps the digits of a small loss.
        weighted = logits if weights is None else logits + weights.log()
        odds = masked_logsumexp(logits, negative) - masked_logsumexp(weighted, positive)
        return softplus(odds.masked_fill(~positive.any(dim=1), -torch.inf))
    surprise = masked_logsumexp(logits, positive | negative)[:, None] - logits
    if weights is not None:
        weights = weights.to(surprise.dtype) * positive
        total = (weights * surprise.masked_fill(~positive, 0.0)).sum(dim=1)
        tiny = torch.finfo(surprise.dtype).tiny
        return total / weights.sum(dim=1).clamp_min(tiny) if reduction == "mean" else total
    if reduction == "mean":
        return masked_mean(surprise, positive)
    return surprise.masked_fill(~positive, 0.0).sum(dim=1)


def _require_one_of(choices: tuple[str, ...], name: str, value: str) -> None:
    if value not in choices:
        raise CPTuningError(f"{name} is {value!r}: use one of {', '.join(choices)}.")
