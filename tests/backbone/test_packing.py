"""Weights in 8 bits: how far they move, and how little they weigh."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from cptuning.backbone import pack, unpack

SMALLEST_STEP = 2.0**-14
"""The smallest normal number of float16, below which no scale goes."""


def numbers(size):
    return st.lists(st.floats(-1e4, 1e4, width=32), min_size=size, max_size=size)


@st.composite
def matrices(draw):
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    values = torch.tensor(draw(numbers(rows * columns))).reshape(rows, columns)
    # Rows of all magnitudes: a scale of its own is what each of them needs.
    exponents = draw(st.lists(st.integers(-8, 0), min_size=rows, max_size=rows))
    return values * 10.0 ** torch.tensor(exponents)[:, None]


@given(matrices())
def test_no_weight_moves_by_more_than_half_a_step_of_its_row(matrix):
    back = unpack(pack({"w": matrix}))["w"]
    assert back.dtype == torch.float32
    step = matrix.abs().amax(dim=1, keepdim=True) / 127
    # The step itself is stored with 11 bits.
    assert ((back - matrix).abs() <= 0.501 * step.clamp_min(SMALLEST_STEP)).all()


@given(numbers(12))
def test_vectors_keep_eleven_bits(values):
    vector = torch.tensor(values)
    back = unpack(pack({"b": vector}))["b"]
    assert back.dtype == torch.float32
    assert ((back - vector).abs() <= vector.abs() * 2.0**-11 + 2.0**-25).all()


def test_rows_of_zeros_stay_zero():
    matrix = torch.zeros(3, 4)
    matrix[1] = 2.0
    packed = pack({"w": matrix})
    assert torch.equal(unpack(packed)["w"][[0, 2]], torch.zeros(2, 4))
    assert (unpack(packed)["w"][1] - 2.0).abs().max() < 1e-2


def test_a_large_row_does_not_blur_a_small_one():
    matrix = torch.tensor([[1000.0, -1000.0], [0.5, 0.25]])
    assert (unpack(pack({"w": matrix}))["w"][1] - matrix[1]).abs().max() < 0.002


def test_half_precision_weights_are_packed_too():
    matrix = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    halves = unpack(pack({"w": matrix.half()}))["w"]
    assert (halves - matrix).abs().max() < 0.05


def test_names_and_shapes_come_back():
    weights = {"a": torch.ones(2, 3), "a.bias": torch.ones(3), "b": torch.ones(2, 3, 4)}
    back = unpack(pack(weights))
    assert {name: tensor.shape for name, tensor in back.items()} == {
        name: tensor.shape for name, tensor in weights.items()
    }


def test_packed_weights_take_a_quarter():
    packed = pack({"w": torch.randn(100, 256)})
    size = sum(tensor.numel() * tensor.element_size() for tensor in packed.values())
    assert size == 100 * (256 + 2)
