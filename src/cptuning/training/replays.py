"""Work that is recorded once and then replayed, so that the host need not launch it again.

A GPU finishes a small batch faster than Python can launch it: a step of a few-shot training is
about a thousand small kernels, and the GPU spends most of its time waiting for the next one. A CUDA
graph is a recording of all of them, which the host launches at once.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from threading import Lock
from typing import Protocol

import torch
from torch import Tensor

_log = logging.getLogger("cptuning")

Tensors = dict[str, Tensor]
# Recordings are made on one stream, so only one at a time.
_one_at_a_time = Lock()


@dataclass(frozen=True)
class Recording:
    """Work that can be repeated with the present values of its inputs."""

    inputs: Sequence[Tensors]
    results: Tensors
    replay: Callable[[], None]

    def __call__(self, inputs: Sequence[Tensors]) -> Tensors:
        """Repeat it on other inputs of the same shapes."""
        for own, other in zip(self.inputs, inputs, strict=True):
            for name, value in other.items():
                own[name].copy_(value)
        self.replay()
        return {name: value.clone() for name, value in self.results.items()}


class Recorder(Protocol):
    """Records what some work would launch on the device, without running it."""

    def record(self, work: Callable[[], Tensors]) -> tuple[Tensors, Callable[[], None]]:
        """The results of the work, and a function that repeats it."""
        ...


@dataclass
class Replays:
    """Work that is done again and again, the same for all inputs of the same shapes.

    The first time with inputs of such shapes it is done as usual, which also creates what it leaves
    behind, such as an optimiser's state; the second time it is recorded, and from then on the
    recording is replayed. What can't be recorded, because the host needs a result before it can
    continue, is done as usual.
    """

    work: Callable[[Sequence[Tensors]], Tensors]
    recorder: Recorder
    recordings: dict[object, Recording] = field(default_factory=dict)
    _seen: set[object] = field(default_factory=set)
    _is_recordable: bool = True

    def __call__(self, inputs: Sequence[Tensors]) -> Tensors:
        """The results of the work with these inputs."""
        shapes = tuple((name, t.shape, t.dtype) for part in inputs for name, t in part.items())
        if shapes in self._seen and shapes not in self.recordings and self._is_recordable:
            self._record(shapes, inputs)
        self._seen.add(shapes)
        again = self.recordings.get(shapes)
        return again(inputs) if again else self.work(inputs)

    def close(self) -> None:
        """Free the recordings' memory, which nothing else may use as long as torch keeps it."""
        if self.recordings:
            self.recordings.clear()
            torch.cuda.empty_cache()

    def _record(self, shapes: object, inputs: Sequence[Tensors]) -> None:
        own = [{name: value.clone() for name, value in part.items()} for part in inputs]
        try:
            results, replay = self.recorder.record(partial(self.work, own))
        except RuntimeError as error:
            # Not the error itself: a log record that is kept would keep the recording's memory.
            _log.info("Training continues step by step, as recording failed: %s", str(error))
            self._is_recordable = False
        else:
            self.recordings[shapes] = Recording(own, results, replay)


class GraphRecorder:
    """Records CUDA graphs, one after another in the same memory.

    They may overwrite each other's, as each one's results are copied before the next is replayed.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.pool = torch.cuda.graph_pool_handle()

    def record(self, work: Callable[[], Tensors]) -> tuple[Tensors, Callable[[], None]]:
        """The results of the work after a replay, and the replay."""
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
                # Other threads, such as a progress bar's, may continue.
                graph.capture_begin(self.pool, capture_error_mode="thread_local")
                try:
                    results = work()
                except BaseException:  # Ctrl-C too
                    self._give_up(graph)
                    raise
                graph.capture_end()
        except RuntimeError:
            # A recording that failed leaves the generator locked: this is a copy of it.
            draws.graphsafe_set_state(before)
            raise
        now.wait_stream(stream)
        return results, graph.replay

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
