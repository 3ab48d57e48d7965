"""Where a run happens: the device, and which of several processes this one is."""

import os
from dataclasses import dataclass

import torch
import torch.distributed.nn.functional
from torch import Tensor

from cptuning.errors import CPTuningError


@dataclass(frozen=True)
class Processes:
    """The device of this process, its number and how many there are."""

    device: torch.device
    index: int = 0
    count: int = 1
    sharded: bool = False
    """Whether a model's weights are spread over the processes (FSDP) and not in each (DDP)."""

    @classmethod
    def find(cls, device: str = "auto") -> "Processes":
        """What the machine and the launcher (``torchrun``, ``accelerate launch``) offer.

        ``accelerate launch --use_fsdp`` asks for shards, as does its ACCELERATE_USE_FSDP=true.

        >>> Processes.find("cpu").device
        device(type='cpu')
        """
        wanted = _device(device)
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:  # no launcher started us
            return cls(wanted)
        from accelerate import PartialState

        state = PartialState(cpu=wanted.type == "cpu")
        sharded = os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true"
        return cls(state.device, state.process_index, state.num_processes, sharded)

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.index == 0


def _device(name: str) -> torch.device:
    if name == "auto":
        found = (
            torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        )
        return found or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()  # The device "meta" holds no numbers.
    except (RuntimeError, AssertionError, TypeError, ValueError, OverflowError) as error:
        raise CPTuningError(
            f"The device {name!r} is not available: use 'auto' or 'cpu'."
        ) from error
    return device


def gather(local: Tensor) -> Tensor:
    """The rows of all processes, in the order of the processes; gradients flow back to each.

    The losses of all processes are then the same number, and the mean that
    ``DistributedDataParallel`` takes of their gradients is the gradient of that number.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return local
    rows: tuple[Tensor, ...] = torch.distributed.nn.functional.all_gather(local)
    return torch.cat(rows)
