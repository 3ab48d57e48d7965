"""What holds for all losses alike: order, lone anchors, one class, duplicates, number formats."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.losses import slow
from tests.losses.slow import autograd, batches, close, unit
from torch._subclasses.fake_tensor import FakeTensorMode

import cptuning.losses
from cptuning import losses

PCCL = {"margin": 0.3, "tau_n": 1 / 8, "xi": 2.0}
# What the loss is called in the package and in the explicit loops, and its settings.
LOSSES = {
    "pccl": ("pccl", PCCL),
    "pccl mean": ("pccl", {**PCCL, "reduction": "mean"}),
    "pccl log_sum": ("pccl", {**PCCL, "form": "log_sum"}),
    "pccl without alpha": ("pccl", {**PCCL, "relaxation": False}),
    "supcon": ("supcon", {"tau": 0.1}),
    "supcon log_sum": ("supcon", {"tau": 0.1, "form": "log_sum"}),
    "triplet": ("triplet", {"margin": 0.5}),
    "n_pair": ("n_pair", {}),
    "circle": ("circle", {"margin": 0.25, "gamma": 32.0}),
}
every_loss = pytest.mark.parametrize(
    ("per_anchor", "mean", "loops"),
    [
        pytest.param(
            partial(getattr(losses, f"{name}_per_anchor"), **setting),
            partial(getattr(losses, name), **setting),
            partial(getattr(slow, name), **setting),
            id=case,
        )
        for case, (name, setting) in LOSSES.items()
    ],
)


def drawn(z, labels, **setting):
    """The sampled loss with a fresh generator, as a function of one shape with the others."""
    return losses.sampled_pccl(z, labels, **setting, generator=torch.Generator().manual_seed(0))


every_mean = pytest.mark.parametrize(
    "mean",
    [
        pytest.param(partial(getattr(losses, name), **setting), id=case)
        for case, (name, setting) in LOSSES.items()
    ]
    + [pytest.param(partial(drawn, **PCCL), id="sampled pccl")],
)


def test_all_losses_are_exported_and_described():
    for name in losses.__all__:
        assert callable(getattr(cptuning.losses, name))
        assert f"``{name.removesuffix('_per_anchor')}``" in losses.__doc__


@every_loss
@given(data=st.data(), batch=batches(min_size=2))
@settings(max_examples=20)
def test_the_order_of_the_batch_does_not_matter(per_anchor, mean, loops, data, batch):
    z, labels = batch
    order = data.draw(st.permutations(range(len(labels))))
    close(per_anchor(z[order], labels[order]), per_anchor(z, labels)[order])
    close(mean(z[order], labels[order]), mean(z, labels))


@every_loss
@given(batches())
@settings(max_examples=20)
def test_the_names_of_the_classes_do_not_matter(per_anchor, mean, loops, batch):
    z, labels = batch
    assert torch.equal(per_anchor(z, labels), per_anchor(z, 1000 - 7 * labels))


@every_loss
@given(batches())
@settings(max_examples=20)
def test_the_mean_is_over_the_anchors_that_have_a_positive(per_anchor, mean, loops, batch):
    z, labels = batch
    counted = [i for i in range(len(labels)) if slow.positive_set(labels.tolist(), i)]
    close(mean(z, labels), loops(z, labels)[counted].sum() / max(1, len(counted)))


@every_mean
@pytest.mark.parametrize("labels", [[4], [0, 1], [0, 1, 2, 3]], ids=["one", "two", "four"])
def test_a_batch_without_positives_is_a_zero_that_can_be_differentiated(mean, labels):
    z = unit(len(labels), 3).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        loss = mean(z, torch.tensor(labels))
        loss.backward()
    assert loss.item() == 0
    assert torch.equal(z.grad, torch.zeros_like(z))


@every_mean
def test_a_lone_example_among_others_gives_no_nan(mean):
    z, labels = unit(4, 3).requires_grad_(), torch.tensor([0, 0, 1, 0])
    with torch.autograd.set_detect_anomaly(True):
        mean(z, labels).backward()
    assert z.grad.isfinite().all()
    assert z.grad.any()


@every_loss
def test_a_batch_of_one_class_is_the_definition_with_no_negatives(per_anchor, mean, loops):
    z, labels = unit(4, 3), torch.zeros(4, dtype=torch.long)
    close(per_anchor(z, labels), loops(z, labels))
    with torch.autograd.set_detect_anomaly(True):
        gradient = autograd(lambda z: mean(z, labels), z)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("case", ["pccl log_sum", "supcon log_sum", "triplet", "n_pair", "circle"])
def test_with_one_class_there_is_nothing_to_tell_apart(case):
    name, setting = LOSSES[case]
    z, labels = unit(4, 3), torch.zeros(4, dtype=torch.long)
    assert getattr(losses, name)(z, labels, **setting).item() == 0
    assert not autograd(lambda z: getattr(losses, name)(z, labels, **setting), z).any()


def test_with_one_class_the_sampled_loss_leaves_all_anchors_out():
    z, labels = unit(4, 3), torch.zeros(4, dtype=torch.long)
    assert drawn(z, labels, **PCCL).item() == 0
    assert not autograd(lambda z: drawn(z, labels, **PCCL), z).any()


@every_loss
def test_duplicates_within_and_across_classes(per_anchor, mean, loops):
    z = unit(2, 3)[[0, 0, 1, 0, 1, 1]]
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    close(per_anchor(z, labels), loops(z, labels))
    with torch.autograd.set_detect_anomaly(True):
        gradient = autograd(lambda z: mean(z, labels), z)
    assert gradient.isfinite().all()


@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_narrow_numbers_are_computed_and_answered_in_float32(
    per_anchor, mean, loops, dtype, autocast
):
    """The loops read the very numbers that the narrow format holds, so float32's error is left."""
    z, labels = unit(8, 16, seed=1, dtype=dtype), torch.tensor([0, 1, 2, 0, 1, 2, 0, 3])
    z.requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        values, loss = per_anchor(z, labels), mean(z, labels)
    loss.backward()
    assert values.dtype == loss.dtype == torch.float32
    assert z.grad.dtype == dtype
    wide = z.detach().double()
    # Rounded rows are no longer of unit norm, and then 2 − 2s is not quite the distance.
    slack = 16 * torch.finfo(dtype).eps if loops.func is slow.triplet else 1e-5
    close(values, loops(wide, labels), rtol=1e-5, atol=slack)
    gradient = autograd(lambda z: mean(z, labels), wide)
    close(z.grad, gradient, rtol=max(1e-4, torch.finfo(dtype).eps), atol=1e-5)


EXTREME = [
    *(
        ("pccl", {**PCCL, "tau_n": tau, "form": form})
        for tau in (1e-3, 1e3)
        for form in ("sum_log", "log_sum")
    ),
    *(
        ("supcon", {"tau": tau, "form": form})
        for tau in (1e-3, 1e3)
        for form in ("sum_log", "log_sum")
    ),
    ("circle", {"margin": 0.25, "gamma": 1e3}),
    ("circle", {"margin": 0.25, "gamma": 1e-3}),
    ("triplet", {"margin": 1e3}),
]


@pytest.mark.parametrize(("name", "setting"), EXTREME)
@pytest.mark.parametrize("detach", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_extreme_temperatures_are_finite_and_right(name, setting, detach, dtype):
    if name == "pccl":
        setting = {**setting, "detach_relaxation": detach}
    z = unit(6, 4, seed=2, dtype=dtype).requires_grad_()
    labels = torch.tensor([0, 0, 0, 1, 1, 2])
    value = getattr(losses, name)(z, labels, **setting)
    value.backward()
    assert z.grad.isfinite().all()
    exact = getattr(losses, name)(z.detach().double(), labels, **setting)
    close(value.detach(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", ["sum_log", "log_sum"])
def test_values_at_the_two_ends_of_the_temperature(form):
    """Cold: the softmax is a maximum. Hot: all pairs count alike."""
    z, labels = unit(5, 4, seed=3), torch.tensor([0, 0, 1, 1, 2])
    s = z @ z.T
    plain = {"margin": 0.3, "xi": 1.0, "relaxation": False, "form": form}
    cold = losses.pccl_per_anchor(z, labels, tau_n=1e-3, **plain)[0]
    close(1e-3 * cold, s[0, 1:].max() - s[0, 1], rtol=0, atol=1e-6)
    hot = losses.pccl_per_anchor(z, labels, tau_n=1e9, **plain)[0]
    close(hot, torch.log(torch.tensor(4.0, dtype=torch.float64)), rtol=0, atol=1e-8)


@every_mean
def test_no_value_is_fetched_from_the_device(mean):
    """Fake tensors hold no numbers: reading one, as ``if mask.any()`` does, raises."""
    with FakeTensorMode():
        z, labels = torch.empty(6, 4, requires_grad=True), torch.zeros(6, dtype=torch.long)
        mean(z, labels).backward()
    assert z.grad.shape == z.shape
