"""PCCL: values against explicit loops, gradients against differences and the closed form."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.losses import slow
from tests.losses.slow import autograd, batches, close, finite_differences, unit

from cptuning.errors import CPTuningError
from cptuning.losses import pccl, pccl_per_anchor, sampled_pccl

LABELS = torch.tensor([0, 0, 1, 0, 1, 2])
PAPER = {"margin": 0.3, "tau_n": 1.0, "xi": 2.0}
SHARP = {"margin": 0.2, "tau_n": 1 / 16, "xi": 3.0}
VARIANTS = [
    {"form": form, "reduction": reduction, "relaxation": relaxation}
    for form, reduction in [("sum_log", "sum"), ("sum_log", "mean"), ("log_sum", "sum")]
    for relaxation in (True, False)
]


@pytest.mark.parametrize("variant", VARIANTS)
@given(
    batch=batches(),
    margin=st.floats(-0.5, 1),
    tau_n=st.floats(0.05, 5),
    xi=st.floats(0.5, 5),
)
@settings(max_examples=25)
def test_value_is_that_of_the_explicit_loops(variant, batch, margin, tau_n, xi):
    temperatures = {"margin": margin, "tau_n": tau_n, "xi": xi}
    close(
        pccl_per_anchor(*batch, **temperatures, **variant),
        slow.pccl(*batch, **temperatures, **variant),
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_values_below_the_margins_where_a_factor_is_zero(variant):
    z = torch.tensor([[1.0, 0.0], [0.8, 0.6], [-0.6, 0.8], [-1.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1])
    # s = 0.8 > 1 + m makes α_p zero, s < −m makes α_n zero.
    setting = {"margin": -0.3, "tau_n": 0.5, "xi": 2.0, **variant}
    close(pccl_per_anchor(z, labels, **setting), slow.pccl(z, labels, **setting))


def test_the_printed_loss_is_the_default():
    z = unit(6, 4)
    close(
        pccl_per_anchor(z, LABELS, **PAPER),
        slow.pccl(z, LABELS, **PAPER, reduction="sum", relaxation=True, form="sum_log"),
    )


def test_one_positive_and_one_negative_by_hand():
    z = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, -0.6]], dtype=torch.float64)
    loss = pccl_per_anchor(z, torch.tensor([0, 0, 1]), margin=0.3, tau_n=0.5, xi=2.0)[0]
    # α_p = 1.3 − 0.6, τ_p = 1, s_p = 0.6; α_n = 0.8 + 0.3, τ_n = 0.5, s_n = 0.8.
    assert loss.item() == pytest.approx(math.log(1 + math.exp(1.1 * 0.8 / 0.5 - 0.7 * 0.6)))


@given(batch=batches(min_size=2), xi=st.floats(1, 5))
def test_a_higher_temperature_of_the_positives_is_a_smaller_factor(batch, xi):
    """α/τp = α̃/τn with α̃ = max(0, (1 + m − s)/ξ), the paper's identity."""

    def one_anchor(s, P, N):
        smaller = {p: max(0, (1 + 0.3 - s[p]) / xi) for p in P}
        alpha = slow.alphas(s, P, N, margin=0.3) | smaller
        e = {a: math.exp(alpha[a] * s[a] / 0.5) for a in P + N}
        return sum(-math.log(e[p] / sum(e.values())) for p in P)

    close(
        pccl_per_anchor(*batch, margin=0.3, tau_n=0.5, xi=xi),
        slow.over_anchors(one_anchor, *batch),
    )


@given(batches())
def test_the_scalar_is_the_mean_over_anchors_that_have_a_positive(batch):
    z, labels = batch
    counted = [i for i in range(len(labels)) if slow.positive_set(labels.tolist(), i)]
    expected = pccl_per_anchor(z, labels, **PAPER)[counted].sum() / max(1, len(counted))
    close(pccl(z, labels, **PAPER), expected)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("temperatures", [PAPER, SHARP])
def test_gradient_with_alpha_differentiated(variant, temperatures):
    def loss(z):
        return pccl_per_anchor(z, LABELS, **temperatures, **variant, detach_relaxation=False)

    assert torch.autograd.gradcheck(loss, unit(6, 3).requires_grad_())


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("temperatures", [PAPER, SHARP])
def test_gradient_with_alpha_detached_is_that_of_alpha_frozen_at_the_base_point(
    variant, temperatures
):
    base = unit(6, 3)
    close(
        autograd(lambda z: pccl_per_anchor(z, LABELS, **temperatures, **variant).sum(), base),
        finite_differences(
            lambda z: slow.pccl(z, LABELS, **temperatures, **variant, frozen_at=base).sum(), base
        ),
        rtol=1e-6,
        atol=1e-6,
    )


def test_detaching_changes_the_gradient_and_not_the_value():
    z = unit(6, 3)
    held, differentiated = (
        lambda z, detach=detach: pccl(z, LABELS, **PAPER, detach_relaxation=detach)
        for detach in (True, False)
    )
    close(held(z), differentiated(z))
    assert (autograd(held, z) - autograd(differentiated, z)).abs().max() > 0.01


def test_only_the_differentiated_form_drives_close_positives_apart():
    """(1 + m − s)·s peaks at s = (1 + m)/2: beyond it, a differentiated α pushes."""
    labels = torch.tensor([0, 0, 1])
    for s, apart in ((0.5, False), (0.8, True)):
        z = torch.tensor(
            [[1.0, 0.0, 0.0], [s, math.sqrt(1 - s * s), 0.0], [0.0, 0.0, 1.0]],
            dtype=torch.float64,
        )

        def slope(detach, z=z):
            """The derivative of the first anchor's loss in s, since z_1 moves along the anchor."""
            setting = {**PAPER, "detach_relaxation": detach}
            return autograd(lambda z: pccl_per_anchor(z, labels, **setting)[0], z)[1, 0]

        assert slope(detach=True) < 0
        assert (slope(detach=False) > 0) == apart


@given(batch=batches(min_size=2), tau_n=st.floats(0.05, 2), xi=st.floats(1, 5))
@settings(max_examples=40)
def test_gradient_in_the_anchor_has_the_corrected_closed_form(batch, tau_n, xi):
    """|P|·[Σp (αp/τp) ep zp + Σn (αn/τn) en zn]/Z − Σp (αp/τp) zp, with the others held fixed."""
    z, labels = batch
    y, margin, tau_p = labels.tolist(), 0.3, xi * tau_n
    for i in range(len(y)):
        P, N = slow.positive_set(y, i), slow.negative_set(y, i)
        expected = torch.zeros_like(z[i])
        if P:
            s = (z @ z[i]).tolist()
            alpha = slow.alphas(s, P, N, margin)
            rate = {p: alpha[p] / tau_p for p in P} | {n: alpha[n] / tau_n for n in N}
            e = {a: math.exp(rate[a] * s[a]) for a in P + N}
            expected += len(P) * sum(rate[a] * e[a] * z[a] for a in P + N) / sum(e.values())
            expected -= sum(rate[p] * z[p] for p in P)
        gradient = autograd(
            lambda z, i=i: pccl_per_anchor(z, labels, margin=margin, tau_n=tau_n, xi=xi)[i], z
        )
        close(gradient[i], expected)


SETTING = {"margin": 0.3, "tau_n": 0.5, "xi": 2.0}


def outcomes(z, labels, i, **setting):
    """The losses of anchor i that its choices of a positive and a negative can give."""
    y = labels.tolist()
    return [
        slow.pccl(z[[i, p, n]], labels[[i, p, n]], **setting)[0].item()
        for p in slow.positive_set(y, i)
        for n in slow.negative_set(y, i)
    ]


def test_the_sampled_loss_takes_one_positive_and_one_negative_and_all_of_them_in_time():
    z, labels = unit(5, 3), torch.tensor([0, 0, 0, 1, 2])
    a, b, c = (outcomes(z, labels, i, **SETTING) for i in (0, 1, 2))
    possible = torch.tensor([(x + y + w) / 3 for x in a for y in b for w in c]).double()
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack(
        [sampled_pccl(z, labels, **SETTING, generator=generator) for _ in range(400)]
    )
    gap, which = (drawn[:, None] - possible).abs().min(dim=1)
    assert gap.max() < 1e-6
    assert len(which.unique()) == len(possible) == 64
    # The draws are uniform: their mean is the mean of the possible values.
    assert abs(drawn.mean() - possible.mean()) < 4 * possible.std() / math.sqrt(400)


@pytest.mark.parametrize("relaxation", [True, False])
@pytest.mark.parametrize("detach_relaxation", [True, False])
def test_with_one_positive_and_one_negative_nothing_is_left_to_draw(relaxation, detach_relaxation):
    z, labels = unit(3, 4), torch.tensor([1, 1, 0])
    flags = {"relaxation": relaxation, "detach_relaxation": detach_relaxation}

    def sampled(z):
        return sampled_pccl(z, labels, **SETTING, **flags, generator=torch.Generator())

    def whole(z):
        return pccl(z, labels, **SETTING, **flags)

    close(sampled(z), whole(z))
    close(autograd(sampled, z), autograd(whole, z))


def test_the_sampled_loss_repeats_with_the_seed_of_its_generator():
    z = unit(6, 3)
    runs = [
        sampled_pccl(z, LABELS, **SETTING, generator=torch.Generator().manual_seed(seed)).item()
        for seed in (3, 3, 4)
    ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("wrong", [{"tau_n": 0.0}, {"xi": -1.0}])
def test_temperatures_must_be_above_zero(wrong):
    with pytest.raises(CPTuningError, match="set it above zero"):
        pccl(unit(2, 2), torch.tensor([0, 0]), **{**PAPER, **wrong})
