"""Steps that are recorded and replayed: the same training, with less for the host to do."""

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch import nn

from cptuning.training.replays import GraphRecorder
from cptuning.training.steps import ReplayedStepper, Stepper

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


def stepper(model, recorder=None, rate=0.01, clip_norm=0.5):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
    for group in optimizer.param_groups:
        group["peak"] = group["lr"]
    if recorder is None:
        return Stepper(model, optimizer, nullcontext, clip_norm)
    return ReplayedStepper(model, optimizer, nullcontext, clip_norm, recorder=recorder)


def trained(step, inputs, parts=1):
    """The losses of some steps, each at another rate, and the weights after them."""
    losses = []
    for number in range(len(inputs) // parts):
        torch.manual_seed(number)
        batches = [{"x": x} for x in inputs[number * parts : (number + 1) * parts]]
        losses.append(step(batches, 1 / (number + 1)))
    return losses, step.model.state_dict()


def assert_same(found, expected):
    for one, other in zip(found[0], expected[0], strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(found[1], expected[1])


@pytest.mark.parametrize("parts", [1, 3])
def test_replayed_steps_are_the_steps(parts):
    replayed = stepper(model(), Tape())
    found = trained(replayed, batches() * parts, parts)
    assert_same(found, trained(stepper(model()), batches() * parts, parts))
    assert replayed.replays.recorder.taped == len(replayed.replays.recordings) == 2


def test_losses_of_a_step_stay_when_the_next_is_replayed():
    replayed = stepper(model(), Tape())
    sizes = [float(losses["size"]) for losses in trained(replayed, batches())[0]]
    assert sizes == pytest.approx([float(x.abs().sum()) for x in batches()])


def test_the_first_of_a_shape_is_not_recorded():
    replayed = stepper(model(), Tape())
    trained(replayed, batches()[:2])
    assert replayed.replays.recorder.taped == 0


def test_weights_that_nothing_reaches_stay():
    replayed, before = stepper(model(), Tape()), model().state_dict()
    _, after = trained(replayed, batches())
    assert torch.equal(after["unread.weight"], before["unread.weight"])
    assert not torch.equal(after["second.weight"], before["second.weight"])


def test_closing_forgets_the_recordings():
    replayed = stepper(model(), Tape())
    trained(replayed, batches())
    assert replayed.replays.recordings
    replayed.close()
    assert replayed.replays.recordings == {}


def test_what_cannot_be_recorded_is_trained_step_by_step(caplog):
    caplog.set_level("INFO", "cptuning")
    replayed = stepper(model(), Tape(fails=True))
    found = trained(replayed, batches())
    assert_same(found, trained(stepper(model()), batches()))
    assert replayed.replays.recordings == {}
    assert "step by step" in caplog.text
    assert len(caplog.records) == 1


def moved(batches, clip_norm=0.0):
    """How a step of plain gradient descent changes the first layer."""
    one = model()
    before = one.first.weight.detach().clone()
    optimizer = torch.optim.SGD(one.parameters(), lr=1.0)
    optimizer.param_groups[0]["peak"] = 1.0
    Stepper(one, optimizer, nullcontext, clip_norm)([{"x": x} for x in batches], 1.0)
    assert all(p.grad is None for p in one.parameters())
    return one.first.weight.detach() - before


def test_the_batches_of_a_step_count_as_their_mean():
    first, second, _ = batches()[1::2]
    mean = (moved([first]) + moved([second])) / 2
    torch.testing.assert_close(moved([first, second]), mean)


def test_a_long_gradient_is_clipped_and_a_short_one_is_not():
    x = batches()[1]
    torch.testing.assert_close(moved([x], clip_norm=1e6), moved([x]))
    short = moved([x], clip_norm=1e-3)
    assert 0 < float(short.norm()) <= 1e-3
    cosine = torch.cosine_similarity(short.flatten(), moved([x]).flatten(), dim=0)
    assert float(cosine) == pytest.approx(1)


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
    monkeypatch.setattr("cptuning.training.replays._recording_stream", lambda device: None)
    replayed = stepper(model(), FullDevice())
    found = trained(replayed, batches())
    assert_same(found, trained(stepper(model()), batches()))
    assert (len(replayed.replays.recordings), len(given_back)) == (2, 1)


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
    return stepper(model, GraphRecorder(torch.device("cuda")))


def seeded_steps(step):
    return trained(step, batches("cuda") * 2)


@needs_gpu
def test_a_gpu_replays_the_same_steps_with_the_same_dropout():
    step = on_gpu(noisy())
    assert_same(seeded_steps(step), seeded_steps(stepper(noisy())))
    assert len(step.replays.recordings) == 2


@needs_gpu
def test_a_gpu_goes_on_after_a_recording_that_failed():
    step = on_gpu(noisy(looks=True))
    assert_same(seeded_steps(step), seeded_steps(stepper(noisy())))
    assert step.replays.recordings == {}
    # Recordings of other models are not disturbed by it.
    after = on_gpu(noisy())
    assert_same(seeded_steps(after), seeded_steps(stepper(noisy())))
    assert len(after.replays.recordings) == 2


CROWDED = """
import torch
from tests.training.test_steps import noisy, on_gpu

step = on_gpu(noisy())
x = torch.randn(1 << 24, 4, device="cuda")  # 256 MB, and as much for each result
step([{"x": x}], 1.0)
# A step's results would not fit beside what is kept from the first.
limit = torch.cuda.memory_reserved() + 600e6
total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(limit / total)
step([{"x": x}], 1.0)
assert len(step.replays.recordings) == 1
"""


@needs_gpu
def test_a_gpu_that_keeps_memory_from_earlier_steps_has_it_for_recordings():
    # In a process of its own: the limit must count its own memory only.
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", CROWDED], check=True, cwd=root)


@needs_gpu
def test_a_gpu_gives_memory_back_after_a_recording_that_failed():
    step = on_gpu(noisy(looks=True))
    seeded_steps(step)
    assert step.replays.recordings == {}
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
        step = on_gpu(noisy())
        seeded_steps(step)
        step.close()
        assert step.replays.recordings == {}
        reserved.append(torch.cuda.memory_reserved())
    assert reserved[-1] <= reserved[0]
