"""The one training loop: every method gives it a task, and gets the chosen weights back."""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import astuple
from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from cptuning.errors import CPTuningError
from cptuning.settings import TrainingSettings
from cptuning.training.callbacks import Callback
from cptuning.training.checkpoint import Checkpoint, Checkpointer
from cptuning.training.history import History, Score, kept_step
from cptuning.training.processes import Processes
from cptuning.training.replays import GraphRecorder
from cptuning.training.sharding import Sharded
from cptuning.training.steps import ReplayedStepper, Stepper

Precision = Literal["auto", "float32", "bfloat16"]


class TrainingTask(Protocol):
    """What a method gives the loop."""

    @property
    def objective(self) -> nn.Module:
        """The module whose forward pass gives the losses, and whose parameters are trained."""
        ...

    @property
    def seed(self) -> int:
        """Where every random choice of a step comes from, together with the step's number."""
        ...

    @property
    def replayable(self) -> bool:
        """Whether the objective does the same work for all inputs of the same shapes.

        Then nothing in it is decided, drawn or looked up on the host.
        """
        ...

    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        """The trainable parameters as an optimiser takes them, each group with its rate."""
        ...

    def inputs(self, batch: int) -> dict[str, Tensor]:
        """The arguments of the objective for a batch: a pure function of its number."""
        ...

    def evaluate(self, step: int) -> Score | None:
        """The score of the weights after this many steps; None if nothing is held out."""
        ...


def train(
    task: TrainingTask,
    settings: TrainingSettings,
    processes: Processes,
    *,
    precision: Precision = "auto",
    stage: str = "training",
    callbacks: Sequence[Callback] = (),
    checkpointer: Checkpointer | None = None,
    stop_after: int | None = None,
) -> History:
    """Train, and leave the weights that :func:`kept_step` names in the objective.

    The untrained weights, step 0, are a candidate too. Without a score the last weights stay.
    Every random choice of a step is drawn from the task's seed and the step's number, so a run
    that continues from a checkpoint ends like an unbroken one. ``stop_after`` ends the run early
    on the learning-rate schedule of all the settings' steps.
    """
    run = _Run(task, settings, processes, precision, callbacks, checkpointer)
    last = settings.steps if stop_after is None else min(stop_after, settings.steps)
    step = run.resume()
    with run.watched(stage, last):
        for step in range(run.start, last + 1):
            if run.is_to_be_evaluated(step, last):
                run.evaluate(step)
                if run.has_settled(step):
                    break
            run.save_if_due(step)
            if step < last:
                run.make_step(step)
    return run.end(step)


class _Run:
    """A model in training: its optimiser, its scores and its best weights so far."""

    def __init__(
        self,
        task: TrainingTask,
        settings: TrainingSettings,
        processes: Processes,
        precision: Precision,
        callbacks: Sequence[Callback],
        checkpointer: Checkpointer | None,
    ) -> None:
        self.task, self.settings, self.processes = task, settings, processes
        self.callbacks, self.checkpointer = callbacks, checkpointer
        self.history = History()
        self.start = self.step = 0
        self.best: dict[str, Tensor] | None = None
        self.trained = {n: p for n, p in task.objective.named_parameters() if p.requires_grad}
        groups = task.parameter_groups(settings.learning_rate)
        self.model: nn.Module = task.objective
        self.sharded: Sharded | None = None
        if processes.sharded:
            if checkpointer:
                raise CPTuningError(
                    "A run in shards (FSDP) can't be resumed: leave checkpoint_dir out."
                )
            self.sharded = Sharded(task.objective, processes.device)
            self.model, groups = self.sharded.module, self.sharded.groups(groups)
        elif processes.count > 1:
            self.model = DistributedDataParallel(task.objective, find_unused_parameters=True)
        self.optimizer = _optimizer(groups, settings)
        self.stepper = self._stepper(precision)

    def resume(self) -> int:
        """Go back to where the same run was cut off earlier, if it was; the step it is at."""
        found = self.checkpointer.load() if self.checkpointer else None
        if found is None:
            return 0
        scores = {int(step): Score(*values) for step, values in found.facts["scores"].items()}
        self.history = History(scores, best_step=found.facts["best_step"])
        self.best = found.best
        found.restore(self.trained, self.optimizer)
        self.start = self.step = found.step
        return found.step

    @contextmanager
    def watched(self, stage: str, last: int) -> Iterator[None]:
        """Notify callbacks, let signals wait for a checkpoint, and make draws repeatable."""
        device, keeper = self.processes.device, self.checkpointer
        for callback in self.callbacks:
            callback.on_start(stage, self.start, last)
        with (
            # Seeding every step must not disturb what the caller draws.
            torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
            keeper.holding_signals() if keeper else nullcontext(),
        ):
            try:
                yield
            finally:
                self.model.eval()
                self.stepper.close()
                for callback in self.callbacks:
                    callback.on_end(self.step)

    def is_to_be_evaluated(self, step: int, last: int) -> bool:
        """Every so many steps, and in the end; a run that resumed knows some scores already."""
        is_due = step % self.settings.evaluate_every == 0 or step == last
        return is_due and step not in self.history.scores

    def evaluate(self, step: int) -> None:
        """Score the weights as they are, and keep a copy of the best."""
        self.model.eval()
        if self.sharded:
            self.sharded.pull()
        self._require_finite()
        score = self.task.evaluate(step)
        if score is None:
            return
        history = self.history
        history.scores[step] = score
        for callback in self.callbacks:
            callback.on_evaluate(step, score)
        if history.best is None or step == 0 or score > history.best:
            history.best_step = step
            # On the device: copying to the host takes longer than a step.
            self.best = {name: p.detach().clone() for name, p in self.trained.items()}

    def has_settled(self, step: int) -> bool:
        """Whether the last evaluations, as many as ``patience`` says, were no better."""
        patience = self.settings.patience * self.settings.evaluate_every
        return 0 < patience <= step - self.history.best_step and bool(self.history.scores)

    def save_if_due(self, step: int) -> None:
        """Write a checkpoint now and then, and before a signal that was held back acts."""
        keeper = self.checkpointer
        if keeper is None:
            return
        if self.processes.is_main and step > self.start and keeper.is_due():
            facts = {
                "best_step": self.history.best_step,
                "scores": {str(at): astuple(score) for at, score in self.history.scores.items()},
            }
            keeper.save(Checkpoint.of(step, self.trained, self.optimizer, self.best, facts))
        keeper.stop_if_told()

    def make_step(self, step: int) -> None:
        """Read the step's batches, and follow their gradient."""
        # Dropout is drawn from the step's own seed: nothing of the generator needs to be saved.
        _draw_from(self.task.seed * 1_000_003 + step, self.processes.device)
        if not self.model.training:  # Telling every module of a large model takes a millisecond.
            self.model.train()
        first = step * self.settings.accumulate
        batches = [self.task.inputs(first + i) for i in range(self.settings.accumulate)]
        losses = self.stepper(batches, self.settings.rate(step))
        self.step = step + 1
        for callback in self.callbacks:
            callback.on_step(self.step, losses)

    def end(self, step: int) -> History:
        """Put the weights in place that are kept."""
        history = self.history
        history.last_step = step
        kept = step
        if self.best is not None:
            kept = kept_step(history.scores, self.settings.steps, self.settings.selection)
        if self.best is None or kept == step:
            history.best_step = step  # These are the weights that are there.
        else:
            with torch.no_grad():
                for name, value in self.best.items():
                    self.trained[name].copy_(value)
        self._require_finite()
        return history

    def _require_finite(self) -> None:
        # The largest of all weights: one question to the device, not one per parameter.
        largest = torch.nn.utils.get_total_norm(self.trained.values(), norm_type=math.inf)
        if not torch.isfinite(largest):
            raise CPTuningError(
                "Training ended in numbers that are not finite: lower learning_rate, "
                f"which is {self.settings.learning_rate:g}."
            )

    def _stepper(self, precision: Precision) -> Stepper:
        device, clip_norm = self.processes.device, self.settings.clip_norm

        def autocast() -> AbstractContextManager[object]:
            return _autocast(precision, device)

        alone = self.processes.count == 1 and not self.processes.sharded
        if device.type == "cuda" and alone and self.task.replayable:
            recorder = GraphRecorder(device)
            return ReplayedStepper(
                self.model, self.optimizer, autocast, clip_norm, recorder=recorder
            )
        return Stepper(self.model, self.optimizer, autocast, clip_norm)


def _optimizer(
    groups: list[dict[str, object]], settings: TrainingSettings
) -> torch.optim.Optimizer:
    for group in groups:
        group["peak"] = group["lr"]
    # One pass over each tensor instead of ten: a tenth of the time on a CPU.
    if settings.optimizer == "adam":
        return torch.optim.Adam(groups, fused=True)
    return torch.optim.AdamW(groups, weight_decay=settings.weight_decay, fused=True)


def _autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    wanted = precision == "bfloat16" or (precision == "auto" and _has_bfloat16(device))
    return torch.autocast(device.type, dtype=torch.bfloat16) if wanted else nullcontext()


def _has_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies in bfloat16 by itself; to emulate it takes longer."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    if device.type != "cpu" or not hasattr(torch.cpu, "get_capabilities"):
        return False
    found = torch.cpu.get_capabilities()
    return bool(found.get("avx512_bf16") or found.get("amx_bf16"))


def _draw_from(seed: int, device: torch.device) -> None:
    """Seed the generators that a step can draw from."""
    if device.type not in ("cpu", "cuda"):
        torch.manual_seed(seed)
        return
    # The above tells every kind of device that there is, which takes half a millisecond.
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
