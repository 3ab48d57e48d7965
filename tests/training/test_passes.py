"""Passes that are recorded and replayed: the same training, with less for the host to do."""

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch import nn

from cptuning.training.passes import GraphRecorder, Passes, ReplayedPasses

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")


class Model(nn.Module):
    """Two layers, of which the second is read by long batches only, and one that nobody reads."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.unread = (nn.Linear(4, 4) for _ in range(3))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = self.first(x)
        if len(x) > 2:
            y = self.second(y)
        return {"loss": (y**2).mean(), "size": x.abs().sum()}


class Tape:
    """Stands in for CUDA graphs on any device: a replay does the recorded work again."""

    def __init__(self, fails=False):
        self.fails = fails
        self.taped = 0

    def record(self, work):
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.taped += 1
        losses = {"loss": torch.zeros(()), "size": torch.zeros(())}

        def replay():
            for name, value in work().items():
                losses[name].copy_(value)

        return losses, replay


def model():
    torch.manual_seed(0)
    return Model()


def batches(device="cpu"):
    """Six batches of two shapes, in turns."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(2 + i % 2, 4, generator=generator).to(device) for i in range(6)]


def trained(passes, inputs):
    """The losses of some steps of gradient descent, the weights after them, and the gradients."""
    optimizer = torch.optim.SGD(passes.model.parameters(), lr=0.1)
    losses = []
    for x in inputs:
        losses.append(passes({"x": x}))
        optimizer.step()
        optimizer.zero_grad(set_to_none=not passes.keeps_gradients)
    return losses, passes.model.state_dict()


def assert_same(found, expected):
    for one, other in zip(found[0], expected[0], strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(found[1], expected[1])


def test_replayed_steps_are_the_steps():
    replayed = ReplayedPasses(model(), nullcontext, recorder=Tape())
    found = trained(replayed, batches())
    assert_same(found, trained(Passes(model(), nullcontext), batches()))
    assert replayed.recorder.taped == len(replayed.recordings) == 2


def test_losses_of_a_step_stay_when_the_next_is_replayed():
    passes = ReplayedPasses(model(), nullcontext, recorder=Tape())
    sizes = [float(losses["size"]) for losses in trained(passes, batches())[0]]
    assert sizes == pytest.approx([float(x.abs().sum()) for x in batches()])


def test_the_first_of_a_shape_is_not_recorded():
    passes = ReplayedPasses(model(), nullcontext, recorder=Tape())
    trained(passes, batches()[:2])
    assert passes.recorder.taped == 0


def test_parameters_that_nothing_reaches_have_no_gradient():
    passes = ReplayedPasses(model(), nullcontext, recorder=Tape())
    trained(passes, batches())
    assert passes.model.unread.weight.grad is None
    assert passes.model.second.weight.grad is not None


def test_closing_forgets_the_recordings():
    passes = ReplayedPasses(model(), nullcontext, recorder=Tape())
    trained(passes, batches())
    passes.close()
    assert passes.recordings == {}


def test_what_cannot_be_recorded_is_trained_step_by_step(caplog):
    caplog.set_level("INFO", "cptuning")
    passes = ReplayedPasses(model(), nullcontext, recorder=Tape(fails=True))
    found = trained(passes, batches())
    assert_same(found, trained(Passes(model(), nullcontext), batches()))
    assert passes.recordings == {}
    assert "step by step" in caplog.text
    assert len(caplog.records) == 1


def test_a_share_weighs_the_gradients_and_not_the_losses():
    whole, half = Passes(model(), nullcontext), Passes(model(), nullcontext, share=0.5)
    x = {"x": batches()[1]}
    assert float(whole(x)["loss"]) == float(half(x)["loss"])
    torch.testing.assert_close(half.model.first.weight.grad * 2, whole.model.first.weight.grad)


class FullDevice(GraphRecorder):
    """Has no memory for the first recording; stands in for a GPU."""

    def __init__(self):
        self.device, self.tape, self.tries = torch.device("cpu"), Tape(), 0

    def _record(self, work, stream):
        self.tries += 1
        if self.tries == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self.tape.record(work)


def test_a_recording_that_finds_no_memory_is_tried_again_when_all_is_given_back(monkeypatch):
    given_back = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: given_back.append(True))
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr("cptuning.training.passes._recording_stream", lambda device: None)
    passes = ReplayedPasses(model(), nullcontext, recorder=FullDevice())
    found = trained(passes, batches())
    assert_same(found, trained(Passes(model(), nullcontext), batches()))
    assert (len(passes.recordings), len(given_back)) == (2, 1)


class Noisy(Model):
    """The same with dropout, and with a look at a result on the host where asked for."""

    def __init__(self, looks=False):
        super().__init__()
        self.looks = looks

    def forward(self, x):
        y = nn.functional.dropout(self.first(x), 0.5)
        if self.looks and float(y.detach().sum()) > 1e9:
            y = y * 2
        return {"loss": (y**2).mean(), "size": x.abs().sum()}


def noisy(looks=False):
    torch.manual_seed(0)
    return Noisy(looks).cuda()


def on_gpu(model):
    return ReplayedPasses(model, nullcontext, recorder=GraphRecorder(torch.device("cuda")))


def seeded_steps(passes):
    optimizer = torch.optim.AdamW(passes.model.parameters(), lr=0.01, fused=True)
    losses = []
    for step, x in enumerate(batches("cuda") * 2):
        torch.manual_seed(step)
        losses.append(passes({"x": x}))
        optimizer.step()
        optimizer.zero_grad(set_to_none=not passes.keeps_gradients)
    return losses, passes.model.state_dict()


@needs_gpu
def test_a_gpu_replays_the_same_steps_with_the_same_dropout():
    passes = on_gpu(noisy())
    assert_same(seeded_steps(passes), seeded_steps(Passes(noisy(), nullcontext)))
    assert len(passes.recordings) == 2


@needs_gpu
def test_a_gpu_goes_on_after_a_recording_that_failed():
    passes = on_gpu(noisy(looks=True))
    assert_same(seeded_steps(passes), seeded_steps(Passes(noisy(), nullcontext)))
    assert passes.recordings == {}
    # Recordings of other models are not disturbed by it.
    after = on_gpu(noisy())
    assert_same(seeded_steps(after), seeded_steps(Passes(noisy(), nullcontext)))
    assert len(after.recordings) == 2


CROWDED = """
import torch
from tests.training.test_passes import noisy, on_gpu

passes = on_gpu(noisy())
x = torch.randn(1 << 24, 4, device="cuda")  # 256 MB, and as much for each result
passes({"x": x})
# A step's results would not fit beside what is kept from the first.
limit = torch.cuda.memory_reserved() + 600e6
total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(limit / total)
passes({"x": x})
assert len(passes.recordings) == 1
"""


@needs_gpu
def test_a_gpu_that_keeps_memory_from_earlier_steps_has_it_for_recordings():
    # In a process of its own: the limit must count its own memory only.
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", CROWDED], check=True, cwd=root)


@needs_gpu
def test_a_gpu_gives_memory_back_after_a_recording_that_failed():
    passes = on_gpu(noisy(looks=True))
    seeded_steps(passes)
    assert passes.recordings == {}
    kept = torch.cuda.memory_reserved()
    torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_reserved() > kept
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= kept


@needs_gpu
def test_a_gpu_tells_why_a_recording_failed(caplog):
    caplog.set_level("INFO", "cptuning")
    seeded_steps(on_gpu(noisy(looks=True)))
    assert "not permitted when stream is capturing" in caplog.text


@needs_gpu
def test_a_gpu_gets_the_memory_of_recordings_back():
    reserved = []
    for _ in range(4):
        passes = on_gpu(noisy())
        seeded_steps(passes)
        passes.close()
        assert passes.recordings == {}
        reserved.append(torch.cuda.memory_reserved())
    assert reserved[-1] <= reserved[0]
