"""The state of a run, in files that a crash at any moment leaves whole, and their folder."""

import json
import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from cptuning.training.checkpoint_folder import CheckpointFolder

_log = logging.getLogger("cptuning")
_MOMENTS = ("exp_avg", "exp_avg_sq")
# The signals that are held back during a step, where their handlers are Python's own.
_USUAL_HANDLERS = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


class Terminated(SystemExit):
    """The process was told to end, with SIGTERM, and has written its checkpoint.

    >>> Terminated().code
    143
    """

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


@dataclass(frozen=True)
class Checkpoint:
    """Weights, optimiser moments, the best weights so far, and other facts of the run."""

    step: int
    weights: dict[str, Tensor]
    moments: dict[str, dict[str, Tensor]]
    best: dict[str, Tensor] | None
    facts: dict[str, Any]

    @classmethod
    def of(
        cls,
        step: int,
        trained: dict[str, torch.nn.Parameter],
        optimizer: torch.optim.Optimizer,
        best: dict[str, Tensor] | None,
        facts: dict[str, Any],
    ) -> "Checkpoint":
        """The state before a step."""
        weights = {name: p.detach() for name, p in trained.items()}
        moments = {
            moment: {
                n: optimizer.state[p][moment] for n, p in trained.items() if p in optimizer.state
            }
            for moment in _MOMENTS
        }
        return cls(step, weights, moments, best, facts)

    def restore(
        self, trained: dict[str, torch.nn.Parameter], optimizer: torch.optim.Optimizer
    ) -> None:
        """Put weights and moments back."""
        with torch.no_grad():
            for name, parameter in trained.items():
                parameter.copy_(self.weights[name])
                if name in self.moments[_MOMENTS[0]]:
                    optimizer.state[parameter] = {
                        # A fused optimiser counts on the device.
                        "step": torch.tensor(float(self.step), device=parameter.device),
                        **{
                            m: self.moments[m][name].to(parameter.device, copy=True)
                            for m in _MOMENTS
                        },
                    }


@dataclass
class Checkpointer:
    """Saves a run now and then, and finds it again if it is the same run."""

    folder: CheckpointFolder
    stage: str
    """The name of the training, of which a run has several."""
    fingerprint: str
    """Settings and data of the run: a checkpoint of another one is not used."""
    seconds: float = 30.0
    """The least time between two saves; writing costs about as much as a few steps."""
    stopped_by: int | None = None
    """The signal, of Ctrl-C or SIGTERM, that says to save the state and to end."""
    _last: float = 0.0

    def __post_init__(self) -> None:
        self._last = time.monotonic()

    @property
    def path(self) -> Path:
        """The file that it writes."""
        return self.folder.state_file(self.stage)

    def is_due(self) -> bool:
        """Whether enough time has passed since the last save, or the run is to end."""
        return self.stopped_by is not None or time.monotonic() - self._last >= self.seconds

    @contextmanager
    def holding_signals(self) -> Iterator[None]:
        """Inside, a first Ctrl-C or SIGTERM is only noted: a step can be finished and saved.

        A second one acts at once. Where somebody else handles a signal already, or this is not
        the main thread, nothing is changed.
        """
        is_main = threading.current_thread() is threading.main_thread()
        held = {
            number: usual
            for number, usual in _USUAL_HANDLERS.items()
            if is_main and signal.getsignal(number) is usual
        }

        def note(number: int, _frame: object) -> None:
            self.stopped_by = number
            signal.signal(number, held[signal.Signals(number)])

        for number in held:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, usual in held.items():
                signal.signal(number, usual)
        self.stop_if_told()  # in a run that was ending anyway

    def stop_if_told(self) -> None:
        """Do what a signal that was held back asks for."""
        if self.stopped_by == signal.SIGTERM:
            raise Terminated
        if self.stopped_by is not None:
            raise KeyboardInterrupt

    def save(self, checkpoint: Checkpoint) -> None:
        """Write all of it, durably, in place of what was there."""
        tensors = {f"weights/{n}": t for n, t in checkpoint.weights.items()}
        tensors |= {f"{m}/{n}": t for m, ts in checkpoint.moments.items() for n, t in ts.items()}
        tensors |= {f"best/{n}": t for n, t in (checkpoint.best or {}).items()}
        facts = {"step": checkpoint.step, "fingerprint": self.fingerprint, **checkpoint.facts}
        try:
            contiguous = {name: t.cpu().contiguous() for name, t in tensors.items()}
            with self.folder.writing(self.path) as place:
                save_file(contiguous, place, metadata={"facts": json.dumps(facts)})
        except (OSError, SafetensorError) as error:
            # A full disk must not end hours of training that could still finish.
            _log.warning("The checkpoint %s could not be written: %s", self.path, error)
        finally:
            self._last = time.monotonic()

    def load(self) -> Checkpoint | None:
        """The saved state of this run; None if there is none, or it is of another run."""
        if not self.path.is_file():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                facts = json.loads((file.metadata() or {})["facts"])
                if facts.get("fingerprint") != self.fingerprint:
                    _log.warning("%s belongs to another run: starting afresh.", self.path)
                    return None
                groups: dict[str, dict[str, Tensor]] = {}
                for key in file.keys():  # noqa: SIM118 - it is not a dict
                    group, name = key.split("/", 1)
                    groups.setdefault(group, {})[name] = file.get_tensor(key)
        except (SafetensorError, KeyError, ValueError) as error:
            _log.warning("%s can't be read (%s): starting afresh.", self.path, error)
            return None
        moments = {moment: groups.get(moment, {}) for moment in _MOMENTS}
        return Checkpoint(facts["step"], groups["weights"], moments, groups.get("best"), facts)
