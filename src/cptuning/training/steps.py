"""One step of a training: forward and backward passes, then an update; on a GPU it is replayed."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn

from cptuning.training.replays import Recorder, Replays, Tensors


@dataclass
class Stepper:
    """A call reads a step's batches and changes the weights; it gives the last batch's losses."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    """Its groups have their highest learning rates as "peak"."""
    precision: Callable[[], AbstractContextManager[object]]
    clip_norm: float = 0.0
    """The longest gradient; 0: any."""

    def __call__(self, batches: Sequence[Tensors], rate: float) -> Tensors:
        """Follow the mean of the batches' gradients at this part of the highest rates."""
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * rate
        return self._step(batches)

    def close(self) -> None:
        """Training is over: give back what it took."""
        self.optimizer.zero_grad()

    def _step(self, batches: Sequence[Tensors]) -> Tensors:
        losses: Tensors = {}
        for batch in batches:
            with self.precision():
                losses = self.model(**batch)
            torch.autograd.backward(losses["loss"] * (1 / len(batches)))
        if self.clip_norm > 0:
            torch.nn.utils.clip_grad_norm_(self._parameters, self.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return {name: value.detach() for name, value in losses.items()}

    @cached_property
    def _parameters(self) -> list[Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]


@dataclass
class ReplayedStepper(Stepper):
    """The same, for a model that does the same work for all inputs of the same shapes."""

    _: KW_ONLY
    recorder: InitVar[Recorder]
    replays: Replays = field(init=False)

    def __post_init__(self, recorder: Recorder) -> None:
        self.replays = Replays(self._recordable_step, recorder)
        for group in self.optimizer.param_groups:  # A recording looks for its rate on the device.
            group["lr"] = torch.tensor(group["peak"], device=self._device)

    def __call__(self, batches: Sequence[Tensors], rate: float) -> Tensors:
        """The same, replayed where it can be."""
        for group in self.optimizer.param_groups:
            group["lr"].fill_(group["peak"] * rate)
        return self.replays(batches)

    def close(self) -> None:
        """Free what was recorded, too."""
        super().close()
        self.replays.close()

    def _recordable_step(self, batches: Sequence[Tensors]) -> Tensors:
        is_recording = self._device.type == "cuda" and torch.cuda.is_current_stream_capturing()
        for group in self.optimizer.param_groups:
            # Torch refuses to record without this, and warns of it without a recording.
            group["capturable"] = is_recording
        return self._step(batches)

    @property
    def _device(self) -> torch.device:
        return self._parameters[0].device
