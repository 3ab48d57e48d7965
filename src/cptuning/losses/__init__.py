"""Losses on a batch of embeddings and labels, one per file, all pure functions of one shape.

``<loss>_per_anchor(z, labels, *, settings)`` gives a tensor (n,), zero where an anchor has no
positive; ``<loss>(z, labels, *, settings)`` is its mean over the anchors that have one.
The rows of ``z`` (n, d) have unit norm (no loss normalises them), ``labels`` (n,) are integers.
Half precision is computed, and answered, in float32.

- ``pccl``: pair-wise cost-sensitive contrastive loss, the paper's own, and its ablations.
- ``sampled_pccl``: the same on one drawn positive and negative an anchor.
- ``supcon``: supervised contrastive loss, the log inside or outside the sum over positives.
- ``triplet``: triplet loss on all triplets of the batch.
- ``n_pair``: N-pair loss.
- ``circle``: Circle loss.
- ``mean_over_anchors``: what makes the scalar form of any of them.
"""

from cptuning.losses.circle import circle, circle_per_anchor
from cptuning.losses.n_pair import n_pair, n_pair_per_anchor
from cptuning.losses.pairs import mean_over_anchors
from cptuning.losses.pccl import pccl, pccl_per_anchor, sampled_pccl, sampled_pccl_per_anchor
from cptuning.losses.supcon import supcon, supcon_per_anchor
from cptuning.losses.triplet import triplet, triplet_per_anchor

__all__ = [
    "circle",
    "circle_per_anchor",
    "mean_over_anchors",
    "n_pair",
    "n_pair_per_anchor",
    "pccl",
    "pccl_per_anchor",
    "sampled_pccl",
    "sampled_pccl_per_anchor",
    "supcon",
    "supcon_per_anchor",
    "triplet",
    "triplet_per_anchor",
]
