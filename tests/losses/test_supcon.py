"""The supervised contrastive loss: explicit loops, and the gradient that the paper prints."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.losses import slow
from tests.losses.slow import autograd, batches, close, unit

from cptuning.errors import CPTuningError
from cptuning.losses import supcon, supcon_per_anchor

FORMS = ["sum_log", "log_sum"]


@pytest.mark.parametrize("form", FORMS)
@given(batch=batches(), tau=st.floats(0.05, 5))
@settings(max_examples=40)
def test_value_is_that_of_the_explicit_loops(form, batch, tau):
    close(supcon_per_anchor(*batch, tau=tau, form=form), slow.supcon(*batch, tau=tau, form=form))


@pytest.mark.parametrize("form", FORMS)
def test_gradient_is_that_of_finite_differences(form):
    labels = torch.tensor([0, 0, 1, 0, 1, 2])
    z = unit(6, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: supcon_per_anchor(z, labels, tau=0.2, form=form), z)


@given(batch=batches(min_size=2), tau=st.floats(0.1, 2))
@settings(max_examples=40)
def test_gradient_of_the_log_sum_form_in_the_anchor_is_the_one_that_the_paper_prints(batch, tau):
    z, labels = batch
    y = labels.tolist()
    for i in range(len(y)):
        P, A = slow.positive_set(y, i), [j for j in range(len(y)) if j != i]
        expected = torch.zeros_like(z[i])
        if P:
            e = {a: math.exp(float(z[i] @ z[a]) / tau) for a in A}
            expected += sum(e[a] * z[a] for a in A) / (tau * sum(e[a] for a in A))
            expected -= sum(e[p] * z[p] for p in P) / (tau * sum(e[p] for p in P))
        gradient = autograd(
            lambda z, i=i: supcon_per_anchor(z, labels, tau=tau, form="log_sum")[i], z
        )
        close(gradient[i], expected)


def test_the_mean_of_the_logs_is_the_default_form():
    z, labels = unit(4, 3), torch.tensor([0, 0, 0, 1])
    close(supcon(z, labels, tau=0.5), slow.supcon(z, labels, tau=0.5, form="sum_log")[:3].mean())


def test_the_temperature_must_be_above_zero():
    with pytest.raises(CPTuningError, match="tau is 0: set it above zero"):
        supcon(unit(2, 2), torch.tensor([0, 0]), tau=0)
