"""The triplet loss: the counted sums against a loop over all triplets."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.losses import slow
from tests.losses.slow import autograd, batches, close, finite_differences, unit

from cptuning.losses import triplet, triplet_per_anchor


@given(batch=batches(), margin=st.floats(-1, 3))
def test_value_is_that_of_the_loop_over_all_triplets(batch, margin):
    close(triplet_per_anchor(*batch, margin=margin), slow.triplet(*batch, margin=margin))


def test_gradient_is_that_of_finite_differences():
    labels = torch.tensor([0, 0, 1, 0, 1, 2])
    for margin in (0.1, 0.5, 2.0):
        assert torch.autograd.gradcheck(
            lambda z, margin=margin: triplet_per_anchor(z, labels, margin=margin),
            unit(6, 3).requires_grad_(),
        )


@given(batches(min_size=3))
def test_along_the_sphere_the_gradient_is_that_of_the_squared_distances(batch):
    """2 − 2s is the squared distance on the sphere only, so the radial part is taken out."""
    z, labels = batch

    def tangent(gradient):
        return gradient - (gradient * z).sum(dim=1, keepdim=True) * z

    fast = autograd(lambda z: triplet_per_anchor(z, labels, margin=0.4).sum(), z)
    loops = finite_differences(lambda z: slow.triplet(z, labels, margin=0.4).sum(), z)
    close(tangent(fast), tangent(loops), rtol=1e-5, atol=1e-5)


def test_equal_distances_and_no_margin_give_zero():
    z = torch.eye(3, dtype=torch.float64)
    assert triplet(z, torch.tensor([0, 0, 1]), margin=0.0).item() == 0


def test_a_separated_batch_has_neither_loss_nor_gradient():
    z, labels = torch.eye(2, dtype=torch.float64)[[0, 0, 1, 1]], torch.tensor([0, 0, 1, 1])
    assert triplet(z, labels, margin=1.9).item() == 0
    assert not autograd(lambda z: triplet(z, labels, margin=1.9), z).any()
    assert triplet(z, labels, margin=2.5).item() == 0.5
