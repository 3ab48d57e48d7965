"""A batch in chunks gives the losses and the gradients of the whole batch."""

import pytest
import torch

from cptuning.backbone import load_backbone
from cptuning.data import Examples
from tests.methods.test_cp_tuning import make_task
from tests.tiny import save_tiny

MORE = Examples(("the red train", "yes or no ?", "how would i start", "a few years later"))


def losses_and_gradients(task, **changed):
    """Of the first batch, with dropout drawn from one seed."""
    for name, value in changed.items():
        setattr(task.objective, name, value)
    torch.manual_seed(5)
    task.objective.zero_grad(set_to_none=True)
    losses = task.objective.train()(**task.inputs(0))
    losses["loss"].backward()
    trained = task.objective.named_parameters()
    return losses, {n: p.grad.clone() for n, p in trained if p.grad is not None}


def assert_same(found, wanted):
    for values, others in zip(found, wanted, strict=True):
        assert values.keys() == others.keys()
        # Float error is that of the largest numbers on the way, and sums are larger than means.
        error = 1e-5 * max(1.0, *(float(value.detach().abs().max()) for value in others.values()))
        for name, value in values.items():
            torch.testing.assert_close(value, others[name], rtol=1e-4, atol=error, msg=name)


@pytest.mark.parametrize("chunk_size", [1, 3, 4, 8, 99])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_chunks_give_the_step_of_the_whole_batch(backbone, data, chunk_size, reduction):
    task = make_task(backbone, data, unlabeled=MORE, reduction=reduction)
    whole = losses_and_gradients(task)
    assert {"loss", "contrastive", "mlm"} == whole[0].keys()
    assert len(whole[1]) > 20
    assert_same(losses_and_gradients(task, chunk_size=chunk_size), whole)


def test_the_setting_reaches_the_objective(backbone, data):
    assert make_task(backbone, data, chunk_size=2).objective.chunk_size == 2
    assert make_task(backbone, data).objective.chunk_size == 0


def test_dropout_is_the_same_when_a_chunk_is_read_again(tmp_path, data, monkeypatch):
    """With dropout a chunk's second reading must draw what the first one drew."""
    folder = save_tiny("bert", tmp_path / "bert", hidden_dropout_prob=0.3)
    task = make_task(load_backbone(folder), data)
    cached = losses_and_gradients(task, chunk_size=3)
    # The same chunks, read once: everything stays in memory and nothing is drawn anew.
    monkeypatch.setattr(
        "cptuning.training.chunks.checkpoint",
        lambda compute, *given, use_reentrant: compute(*given),
    )
    assert_same(cached, losses_and_gradients(task, chunk_size=3))
