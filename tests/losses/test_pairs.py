"""Masks, similarities, draws and masked sums."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.losses.slow import close, unit

from cptuning.errors import CPTuningError
from cptuning.losses.pairs import (
    masked_logsumexp,
    masked_mean,
    mean_over_anchors,
    negatives,
    one_drawn,
    pairwise,
    positives,
    require_above_zero,
)

labels_of_a_batch = st.lists(st.integers(-2, 2), min_size=1, max_size=8)


@given(labels_of_a_batch)
def test_each_pair_is_positive_or_negative_or_the_anchor_itself(y):
    positive, negative = positives(torch.tensor(y)), negatives(torch.tensor(y))
    for i in range(len(y)):
        for j in range(len(y)):
            assert positive[i, j] == (i != j and y[i] == y[j])
            assert negative[i, j] == (y[i] != y[j])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_similarities_are_float32_even_under_autocast(dtype):
    z = unit(6, 16, dtype=dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        similarity = pairwise(z, torch.arange(6)).similarity
    assert similarity.dtype == torch.float32
    close(similarity, z.double() @ z.double().T, rtol=0, atol=1e-6)


def test_similarities_of_float64_stay_float64():
    assert pairwise(unit(3, 2), torch.arange(3)).similarity.dtype == torch.float64


@pytest.mark.parametrize(
    ("z_shape", "labels_shape"), [((3,), (3,)), ((3, 2), (3, 1, 1)), ((3, 2), (2,)), ((3, 2), ())]
)
def test_shapes_that_do_not_fit_are_refused(z_shape, labels_shape):
    with pytest.raises(CPTuningError, match=r"give it \(n, d\) and \(n,\)"):
        pairwise(torch.zeros(z_shape), torch.zeros(labels_shape, dtype=torch.long))


@given(st.integers(1, 6), st.integers(0, 1000))
def test_masked_logsumexp_is_that_of_the_chosen_entries(n, seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(n, 5, generator=generator, dtype=torch.float64) * 10
    mask = torch.rand(n, 5, generator=generator) < 0.4
    got = masked_logsumexp(values, mask)
    for row, chosen, value in zip(values, mask, got, strict=True):
        terms = row[chosen].tolist()
        expected = math.log(sum(map(math.exp, terms))) if terms else -math.inf
        assert value.item() == pytest.approx(expected)


def test_masked_logsumexp_of_huge_values_does_not_overflow():
    values = torch.tensor([[1e30, -1e30, 1e30]], dtype=torch.float64)
    close(masked_logsumexp(values, torch.tensor([[True, True, False]])), values[:, 0])


def test_masked_logsumexp_has_the_softmax_as_gradient_and_none_on_an_empty_row():
    values = torch.tensor([[0.0, 1.0, 500.0], [1.0, 2.0, 3.0]], requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    with torch.autograd.set_detect_anomaly(True):
        masked_logsumexp(values, mask).sum().backward()
    share = 1 / (1 + math.e)
    close(values.grad, torch.tensor([[share, 1 - share, 0], [0, 0, 0]]), rtol=1e-6, atol=0)


def test_masked_mean_ignores_what_is_masked_even_if_it_is_not_finite():
    values = torch.tensor([[1.0, math.nan], [math.inf, -math.inf]], requires_grad=True)
    mean = masked_mean(values, torch.tensor([[True, False], [False, False]]))
    assert mean.tolist() == [1.0, 0.0]
    mean.sum().backward()
    assert values.grad.tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_only_anchors_with_a_positive_enter_the_mean():
    per_anchor = torch.tensor([1.0, 100.0, 2.0, 6.0])
    assert mean_over_anchors(per_anchor, torch.tensor([5, 4, 5, 5])).item() == 3.0


def test_one_is_drawn_from_each_row_that_has_any():
    mask = torch.tensor([[True, False, True], [False, True, False], [False, False, False]])
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        drawn = one_drawn(mask, generator)
        assert drawn.sum(dim=1).tolist() == [1, 1, 0]
        assert not (drawn & ~mask).any()


def test_draws_are_uniform_and_repeat_with_the_seed():
    mask = torch.tensor([[True, True, False, True]]).expand(3000, 4)
    drawn = one_drawn(mask, torch.Generator().manual_seed(1))
    # 1000 expected of each, with a standard deviation of 26.
    assert ((drawn.sum(dim=0) - torch.tensor([1000, 1000, 0, 1000])).abs() < 110).all()
    assert torch.equal(drawn, one_drawn(mask, torch.Generator().manual_seed(1)))
    assert not torch.equal(drawn, one_drawn(mask, torch.Generator().manual_seed(2)))


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_a_setting_that_is_not_above_zero_is_named(value):
    with pytest.raises(CPTuningError, match=r"xi is .*: set it above zero"):
        require_above_zero(tau_n=1.0, xi=value)


@given(labels_of_a_batch, st.integers(0, 1000))
def test_the_weighted_mean_over_anchors_is_that_of_a_loop(y, seed):
    generator = torch.Generator().manual_seed(seed)
    losses, weights = torch.rand(2, len(y), generator=generator, dtype=torch.float64)
    total, mass = 0.0, 0.0
    for i in range(len(y)):
        if any(y[j] == y[i] for j in range(len(y)) if j != i):
            total += float(weights[i] * losses[i])
            mass += float(weights[i])
    found = mean_over_anchors(losses, torch.tensor(y), weights)
    assert found.item() == pytest.approx(total / mass if mass else 0.0)
    ones = mean_over_anchors(losses, torch.tensor(y), torch.ones(len(y)))
    close(ones, mean_over_anchors(losses, torch.tensor(y)))


def test_the_gradient_of_the_weighted_mean_is_that_of_finite_differences():
    labels, weights = torch.tensor([0, 0, 1, 1, 2]), torch.tensor([1.0, 2.0, 0.5, 3.0, 4.0])

    def loss(values):
        return mean_over_anchors(values, labels, weights.double())

    assert torch.autograd.gradcheck(loss, torch.rand(5, dtype=torch.float64).requires_grad_())
