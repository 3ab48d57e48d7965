"""The paper's theory section as properties, with the signs of its simplified losses put right."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.losses.slow import autograd, batches, close, unit

from cptuning.losses import n_pair_per_anchor, pccl_per_anchor, supcon_per_anchor
from cptuning.losses.pairs import positives

cosines = st.floats(-0.95, 0.95)


def around_an_anchor(*similarities):
    """An anchor in row 0 and one unit vector for each similarity to it, each with its own axis.

    Moving vector j along the anchor is moving s_j, so the first column of a gradient of the
    anchor's loss is its derivative in the similarities.
    """
    z = torch.eye(1 + len(similarities), dtype=torch.float64)
    for row, s in enumerate(similarities, start=1):
        z[row, 0], z[row, row] = s, math.sqrt(1 - s * s)
    return z


@given(batch=batches(), tau=st.floats(0.05, 5))
def test_supervised_contrastive_loss_is_pccl_without_factors_at_one_temperature(batch, tau):
    z, labels = batch
    plain = {"margin": 0.3, "tau_n": tau, "xi": 1.0, "relaxation": False}
    size = positives(labels).sum(dim=1)
    close(pccl_per_anchor(z, labels, **plain), size * supcon_per_anchor(z, labels, tau=tau))
    close(
        pccl_per_anchor(z, labels, **plain, form="log_sum"),
        supcon_per_anchor(z, labels, tau=tau, form="log_sum"),
    )


@given(seed=st.integers(0, 10_000), pairs=st.integers(2, 4))
def test_n_pair_loss_is_pccl_with_one_positive_and_unit_rates(seed, pairs):
    z, labels = unit(2 * pairs, 4, seed=seed), torch.arange(2 * pairs) // 2
    plain = {"margin": 0.3, "tau_n": 1.0, "xi": 1.0, "relaxation": False}
    close(pccl_per_anchor(z, labels, **plain), n_pair_per_anchor(z, labels))


@given(
    s_p=cosines,
    s_n=cosines,
    margin=st.floats(0, 0.5),
    tau_n=st.floats(1e-4, 10),
    xi=st.floats(1, 5),
)
def test_one_positive_and_one_negative_is_a_smooth_weighted_triplet_hinge(
    s_p, s_n, margin, tau_n, xi
):
    """τn·L → max(0, αn·sn − αp·sp/ξ), never further from it than τn·log 2."""
    loss = pccl_per_anchor(
        around_an_anchor(s_p, s_n), torch.tensor([0, 0, 1]), margin=margin, tau_n=tau_n, xi=xi
    )[0].item()
    gap = max(0, s_n + margin) * s_n - max(0, 1 + margin - s_p) * s_p / xi
    excess = tau_n * loss - max(0, gap)
    assert -1e-9 <= excess <= tau_n * math.log(2) + 1e-9
    assert excess == pytest.approx(tau_n * math.log1p(math.exp(-abs(gap) / tau_n)), abs=1e-7)


@given(low=cosines, high=cosines, negatives=st.lists(cosines, min_size=1, max_size=4))
def test_with_factors_held_the_loss_falls_as_the_only_positive_comes_closer(low, high, negatives):
    assume(high - low > 1e-3)
    labels = torch.tensor([0, 0] + [1] * len(negatives))

    def loss(s, **setting):
        z = around_an_anchor(s, *negatives)
        return pccl_per_anchor(z, labels, margin=0.3, tau_n=1.0, xi=2.0, **setting)[0]

    assert loss(high, relaxation=False) < loss(low, relaxation=False)
    z = around_an_anchor(low, *negatives)
    slope = autograd(lambda z: pccl_per_anchor(z, labels, margin=0.3, tau_n=1.0, xi=2.0)[0], z)[
        :, 0
    ]
    assert slope[1] < 0


@given(
    pulled=st.lists(cosines, min_size=1, max_size=4),
    pushed=st.lists(cosines, min_size=0, max_size=3),
)
def test_slope_in_a_similarity_of_several_positives(pulled, pushed):
    """dL/ds_p = (αp/τp)(|P|·e_p/Z − 1) and dL/ds_n = (αn/τn)·|P|·e_n/Z."""
    margin, tau_n, xi = 0.3, 0.5, 2.0
    labels = torch.tensor([0] + [0] * len(pulled) + [1] * len(pushed))
    slope = autograd(
        lambda z: pccl_per_anchor(z, labels, margin=margin, tau_n=tau_n, xi=xi)[0],
        around_an_anchor(*pulled, *pushed),
    )[1:, 0]
    rate_p = [(1 + margin - s) / (xi * tau_n) for s in pulled]
    rate_n = [max(0, s + margin) / tau_n for s in pushed]
    e_p = [math.exp(r * s) for r, s in zip(rate_p, pulled, strict=True)]
    e_n = [math.exp(r * s) for r, s in zip(rate_n, pushed, strict=True)]
    Z, size = sum(e_p) + sum(e_n), len(pulled)
    expected = [r * (size * e / Z - 1) for r, e in zip(rate_p, e_p, strict=True)]
    expected += [r * size * e / Z for r, e in zip(rate_n, e_n, strict=True)]
    close(slope, torch.tensor(expected, dtype=torch.float64))


def test_the_strongest_of_several_positives_may_be_pushed_away():
    """As in the supervised contrastive loss: it has more than its share 1/|P| of the softmax."""
    z, labels = around_an_anchor(0.6, -0.9, -0.9, -0.9), torch.tensor([0, 0, 0, 0, 1])
    slope = autograd(lambda z: pccl_per_anchor(z, labels, margin=0.3, tau_n=0.1, xi=2.0)[0], z)[
        1:4, 0
    ]
    assert slope[0] > 0
    assert (slope[1:] < 0).all()
