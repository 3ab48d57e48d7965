"""PCCL of label sets: positives count by the overlap of their sets."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.losses import slow
from tests.losses.slow import autograd, close, dot, finite_differences, unit
from tests.losses.test_pccl import PAPER, SHARP, VARIANTS

from cptuning.losses import mean_over_anchors, pccl, pccl_per_anchor
from cptuning.losses.pairs import negatives, overlap, positives

SETS = torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1], [0, 0, 0]])


def slow_pccl(z, labels, *, margin, tau_n, xi, reduction, relaxation, form, frozen_at=None):
    """The equations of ``pccl_per_anchor`` for label sets, one number at a time."""
    sets = [{c for c, has in enumerate(row) if has} for row in labels.tolist()]
    rows, base = z.double().tolist(), (z if frozen_at is None else frozen_at).double().tolist()
    values = []
    for i in range(len(rows)):
        P = [p for p in range(len(rows)) if p != i and sets[i] & sets[p]]
        N = [n for n in range(len(rows)) if n != i and not sets[i] & sets[n]]
        w = {p: len(sets[i] & sets[p]) / len(sets[i] | sets[p]) for p in P}
        s = [dot(rows[i], b) for b in rows]
        alpha = slow.alphas([dot(base[i], b) for b in base], P, N, margin)
        if not relaxation:
            alpha = dict.fromkeys(alpha, 1.0)
        e = {p: math.exp(alpha[p] * s[p] / (xi * tau_n)) for p in P}
        e |= {n: math.exp(alpha[n] * s[n] / tau_n) for n in N}
        if not P:
            values.append(0.0)
        elif form == "log_sum":
            near = sum(w[p] * e[p] for p in P)
            values.append(-math.log(near / (near + sum(e[n] for n in N))))
        else:
            total = sum(-w[p] * math.log(e[p] / sum(e.values())) for p in P)
            values.append(total / sum(w.values()) if reduction == "mean" else total)
    return torch.tensor(values, dtype=torch.float64)


@st.composite
def batches(draw):
    n, n_labels = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    row = st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels)
    sets = torch.tensor(draw(st.lists(row, min_size=n, max_size=n)))
    return unit(n, draw(st.integers(2, 5)), seed=draw(st.integers(0, 10_000))), sets


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
        slow_pccl(*batch, **temperatures, **variant),
    )


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("temperatures", [PAPER, SHARP])
def test_gradient_is_that_of_differences(variant, temperatures):
    base = unit(6, 3)
    close(
        autograd(lambda z: pccl_per_anchor(z, SETS, **temperatures, **variant).sum(), base),
        finite_differences(
            lambda z: slow_pccl(z, SETS, **temperatures, **variant, frozen_at=base).sum(), base
        ),
        rtol=1e-6,
        atol=1e-6,
    )


@pytest.mark.parametrize("variant", VARIANTS)
@given(
    classes=st.lists(st.integers(0, 2), min_size=1, max_size=7),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=25)
def test_sets_of_one_label_are_classes(variant, classes, seed):
    z, labels = unit(len(classes), 4, seed=seed), torch.tensor(classes)
    sets = torch.nn.functional.one_hot(labels, 3)
    for temperatures in (PAPER, SHARP):
        close(
            pccl_per_anchor(z, sets, **temperatures, **variant),
            pccl_per_anchor(z, labels, **temperatures, **variant),
        )
    close(pccl(z, sets, **PAPER), pccl(z, labels, **PAPER))


def test_an_empty_set_is_nobodys_positive_and_everybodys_negative():
    empty = torch.tensor([2, 5])
    assert not positives(SETS)[empty].any()
    assert not positives(SETS)[:, empty].any()
    others = ~torch.eye(6, dtype=torch.bool)
    assert torch.equal(negatives(SETS)[empty], others[empty])
    per_anchor = pccl_per_anchor(unit(6, 3), SETS, **PAPER)
    assert per_anchor[empty].tolist() == [0, 0]
    # The mean is over the four texts that have a positive.
    close(mean_over_anchors(per_anchor, SETS), per_anchor.sum() / 4)


def test_the_more_two_sets_overlap_the_more_the_pair_counts():
    assert overlap(SETS)[0].tolist() == pytest.approx([1, 1 / 2, 0, 2 / 3, 0, 0])


def test_a_batch_of_empty_sets_has_no_loss_and_no_gradient():
    z = unit(3, 2).requires_grad_()
    loss = pccl(z, torch.zeros(3, 2, dtype=torch.int64), **PAPER)
    loss.backward()
    assert loss.item() == 0
    assert not z.grad.any()
