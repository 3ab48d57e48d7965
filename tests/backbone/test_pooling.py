"""Pooling against slow loops over the tokens of one text at a time."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from cptuning.backbone.pooling import POOLING_MODES, Dense, Normalize, SentencePooling, pool


def slow(vectors, mode, first):
    """One text's vector, from the list of its tokens' vectors."""
    width = len(vectors[0])
    if mode == "cls":
        return vectors[0]
    if mode == "lasttoken":
        return vectors[-1]
    if mode == "max":
        return [max(vector[i] for vector in vectors) for i in range(width)]
    weights = [
        first + place if mode == "weightedmean" else 1 for place in range(1, 1 + len(vectors))
    ]
    total = [sum(w * v[i] for w, v in zip(weights, vectors, strict=True)) for i in range(width)]
    count = sum(weights)
    return [t / (math.sqrt(count) if mode == "mean_sqrt_len_tokens" else count) for t in total]


@pytest.mark.parametrize("mode", POOLING_MODES)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    padding=st.integers(0, 3),
    first=st.integers(0, 3),
)
def test_a_mode_is_what_a_loop_over_a_texts_tokens_gives(mode, lengths, padding, first):
    torch.manual_seed(len(lengths))
    tokens = torch.randn(len(lengths), max(lengths) + padding, 3)
    mask = (torch.arange(tokens.shape[1]) < torch.tensor(lengths)[:, None]).long()
    expected = [slow(t[:n].tolist(), mode, first) for t, n in zip(tokens, lengths, strict=True)]
    assert_close(pool(tokens, mask, mode, first), torch.tensor(expected))


@pytest.mark.parametrize("mode", POOLING_MODES)
def test_what_stands_behind_a_text_has_no_influence_and_no_gradient(mode):
    tokens = torch.randn(2, 5, 3, requires_grad=True)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    pool(tokens, mask, mode).pow(2).sum().backward()
    assert (tokens.grad[0, 3:] == 0).all()
    assert torch.isfinite(tokens.grad).all()


def test_modes_stand_side_by_side_and_layers_follow_in_order():
    layer = Dense(6, 4, bias=True, activation="Tanh")
    pooling = SentencePooling(["max", "cls"], 3, [layer, Normalize()])
    tokens = torch.randn(2, 5, 3)
    joined = torch.cat([tokens.amax(dim=1), tokens[:, 0]], dim=1)
    expected = torch.tanh(joined @ layer.linear.weight.T + layer.linear.bias)
    expected = expected / expected.pow(2).sum(dim=1, keepdim=True).sqrt()
    assert_close(pooling(tokens, None), expected)
    assert pooling.width == 4


@pytest.mark.parametrize("mode", POOLING_MODES)
def test_a_prompt_that_is_not_counted_keeps_the_weights_of_the_places_behind_it(mode):
    pooling = SentencePooling([mode], 3, first=2)
    tokens, mask = torch.randn(1, 6, 3), torch.tensor([[1, 1, 1, 1, 1, 0]])
    expected = slow(tokens[0, 2:5].tolist(), mode, first=2)
    assert_close(pooling(tokens, mask)[0], torch.tensor(expected))


@pytest.mark.parametrize("mode", POOLING_MODES)
def test_half_precision_is_summed_in_single_precision(mode):
    tokens = torch.randn(1, 300, 3).bfloat16()
    mask = torch.ones(1, 300, dtype=torch.long)
    assert_close(pool(tokens, mask, mode), pool(tokens.float(), mask, mode))
