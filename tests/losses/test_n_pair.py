"""The N-pair loss against explicit loops, value and gradient."""

import math

import pytest
import torch
from hypothesis import given
from tests.losses import slow
from tests.losses.slow import batches, close, unit

from cptuning.losses import n_pair, n_pair_per_anchor


@given(batches())
def test_value_is_that_of_the_explicit_loops(batch):
    close(n_pair_per_anchor(*batch), slow.n_pair(*batch))


def test_gradient_is_that_of_finite_differences():
    labels = torch.tensor([0, 0, 1, 0, 1, 2])
    assert torch.autograd.gradcheck(
        lambda z: n_pair_per_anchor(z, labels), unit(6, 3).requires_grad_()
    )


def test_two_negatives_by_hand():
    z = torch.eye(3, dtype=torch.float64)[[0, 0, 1, 2]]
    value = n_pair(z, torch.tensor([0, 0, 1, 2])).item()
    assert value == pytest.approx(math.log(1 + 2 * math.exp(-1)))
