"""The forward and backward pass of a step; on a GPU, recorded once and then replayed.

A GPU is done with a small batch sooner than Python has told it what to do: a step of a few-shot
training is some thousand small kernels, and most of its time the GPU waits for the next. A CUDA
graph is a recording of all of them, which the host starts at once.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cache, partial
from threading import Lock
from typing import Protocol

import torch
from torch import Tensor, nn

_log = logging.getLogger("cptuning")

Tensors = dict[str, Tensor]
# Recordings are made on one stream, so only one at a time.
_one_at_a_time = Lock()


@dataclass
class Passes:
    """A call reads a batch, adds to the gradients and gives the losses."""

    model: nn.Module
    precision: Callable[[], AbstractContextManager[object]]
    share: float = 1.0
    """What the batch counts in the step."""
    keeps_gradients = False
    """Whether the gradients' memory must stay theirs from step to step."""

    def close(self) -> None:
        """Training is over: give back what it took."""

    def __call__(self, inputs: Tensors) -> Tensors:
        """Forward and backward."""
        with self.precision():
            losses: Tensors = self.model(**inputs)
        torch.autograd.backward(losses["loss"] * self.share)
        return {name: value.detach() for name, value in losses.items()}


@dataclass(frozen=True)
class Recording:
    """A pass that can be repeated with whatever its inputs hold by then."""

    inputs: Tensors
    losses: Tensors
    replay: Callable[[], None]

    def __call__(self, inputs: Tensors) -> Tensors:
        """Forward and backward on other inputs of the same shapes."""
        for name, value in inputs.items():
            self.inputs[name].copy_(value)
        self.replay()
        return {name: value.clone() for name, value in self.losses.items()}


class Recorder(Protocol):
    """Records what some work would have the device do, and does nothing of it."""

    def record(self, work: Callable[[], Tensors]) -> tuple[Tensors, Callable[[], None]]:
        """What the work gives, and a way to do it again."""
        ...


@dataclass
class ReplayedPasses(Passes):
    """The same, for a model that does the same work for all inputs of the same shapes.

    The first batch of a shape is read as ever, which also makes the gradients; the second is
    recorded, and from then on the recording is replayed. What can't be recorded, because the host
    has to know a result before it can go on, is read as ever.
    """

    keeps_gradients = True
    _: KW_ONLY
    recorder: Recorder
    recordings: dict[object, Recording] = field(default_factory=dict)
    _seen: set[object] = field(default_factory=set)
    _is_recordable: bool = True

    def __call__(self, inputs: Tensors) -> Tensors:
        """Forward and backward, replayed where they can be."""
        shape = tuple((name, value.shape, value.dtype) for name, value in inputs.items())
        if shape in self._seen and shape not in self.recordings and self._is_recordable:
            self._record(shape, inputs)
        self._seen.add(shape)
        again = self.recordings.get(shape)
        return again(inputs) if again else super().__call__(inputs)

    def close(self) -> None:
        """Free the recordings' memory, which nothing else may use as long as torch keeps it."""
        if self.recordings:
            self.recordings.clear()
            torch.cuda.empty_cache()

    def _record(self, shape: object, inputs: Tensors) -> None:
        own = {name: value.clone() for name, value in inputs.items()}
        try:
            losses, replay = self.recorder.record(partial(super().__call__, own))
        except RuntimeError as error:
            # Not the error itself: who keeps log records would keep the recording's memory.
            _log.info("Training goes on step by step, as recording failed: %s", str(error))
            self._is_recordable = False
        else:
            self.recordings[shape] = Recording(own, losses, replay)


class GraphRecorder:
    """Records CUDA graphs, one after another in the same memory.

    They may overwrite each other's, as each one's losses are copied before the next is replayed.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.pool = torch.cuda.graph_pool_handle()

    def record(self, work: Callable[[], Tensors]) -> tuple[Tensors, Callable[[], None]]:
        """What the work will have given after a replay, and the replay."""
        # The device need not be the first of several GPUs.
        with _one_at_a_time, torch.cuda.device(self.device):
            stream = _recording_stream(self.device)
            with suppress(torch.OutOfMemoryError):
                return self._record(work, stream)
            # Recordings can't use the memory that torch keeps from the steps before: give it back.
            # What the failed one had of its own went with it.
            torch.cuda.empty_cache()
            self.pool = torch.cuda.graph_pool_handle()
            return self._record(work, stream)

    def _record(
        self, work: Callable[[], Tensors], stream: torch.cuda.Stream
    ) -> tuple[Tensors, Callable[[], None]]:
        graph = torch.cuda.CUDAGraph()
        draws = torch.cuda.default_generators[torch.cuda.current_device()]
        before = draws.clone_state()
        now = torch.cuda.current_stream()
        stream.wait_stream(now)
        try:
            with torch.cuda.stream(stream):
                # Other threads, such as a progress bar's, may go on with what they do.
                graph.capture_begin(self.pool, capture_error_mode="thread_local")
                try:
                    losses = work()
                except BaseException:  # Ctrl-C too
                    self._give_up(graph)
                    raise
                graph.capture_end()
        except RuntimeError:
            # A generator stays locked by a recording that failed: this is its like.
            draws.graphsafe_set_state(before)
            raise
        now.wait_stream(stream)
        return losses, graph.replay

    def _give_up(self, graph: torch.cuda.CUDAGraph) -> None:
        """End a recording that failed; its own errors would only say that there was one."""
        with suppress(RuntimeError):
            graph.capture_end()
        # That stops at its first error, and torch would go on as if it were recording: it gives
        # no memory back in the meantime. Where it has come to an end, this is refused.
        with suppress(RuntimeError, AttributeError):
            torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), self.pool)


@cache
def _recording_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all trainings: cuBLAS keeps some 70 MB for every stream that it has ever seen."""
    return torch.cuda.Stream()
