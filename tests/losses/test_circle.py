"""Circle loss against explicit loops, and its gradient with the weights held."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.losses import slow
from tests.losses.slow import autograd, batches, close, finite_differences, unit

from cptuning.errors import CPTuningError
from cptuning.losses import circle, circle_per_anchor

LABELS = torch.tensor([0, 0, 1, 0, 1, 2])


@given(batch=batches(), margin=st.floats(-0.3, 0.6), gamma=st.floats(0.1, 64))
def test_value_is_that_of_the_explicit_loops(batch, margin, gamma):
    setting = {"margin": margin, "gamma": gamma}
    close(circle_per_anchor(*batch, **setting), slow.circle(*batch, **setting))


@pytest.mark.parametrize("gamma", [1.0, 32.0])
def test_gradient_is_that_of_weights_frozen_at_the_base_point(gamma):
    base, setting = unit(6, 3), {"margin": 0.25, "gamma": gamma}
    close(
        autograd(lambda z: circle_per_anchor(z, LABELS, **setting).sum(), base),
        finite_differences(lambda z: slow.circle(z, LABELS, **setting, frozen_at=base).sum(), base),
        rtol=1e-5,
        atol=1e-5,
    )


def test_the_pull_ends_where_a_positive_reaches_its_optimum():
    """α_p = 0 at s = 1 + m, which a negative margin brings within reach."""
    z = torch.eye(2, dtype=torch.float64)[[0, 0, 1]]
    gradient = autograd(
        lambda z: circle_per_anchor(z, torch.tensor([0, 0, 1]), margin=-0.2, gamma=8.0)[0], z
    )
    assert not gradient[1].any()


def test_the_scale_must_be_above_zero():
    with pytest.raises(CPTuningError, match="gamma is -1: set it above zero"):
        circle(unit(2, 2), torch.tensor([0, 0]), margin=0.25, gamma=-1)
