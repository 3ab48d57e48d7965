"""The one training loop: every method gives it a task, and gets the chosen weights back."""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass, field
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from cptuning.errors import CPTuningError
from cptuning.training.checkpoint import Checkpoint, Checkpointer
from cptuning.training.plan import Selection, TrainingPlan
from cptuning.training.processes import Processes
from cptuning.training.replays import GraphRecorder
from cptuning.training.sharding import Sharded
from cptuning.training.steps import ReplayedStepper, Stepper


@dataclass(frozen=True, order=True)
class Score:
    """How good the weights are on held-out examples; accuracy decides, then the log-loss."""

    accuracy: float
    negative_log_loss: float
    examples: int = field(default=0, compare=False)
    """How many were answered; 0: not known."""

    @property
    def error(self) -> float:
        """The standard error of the accuracy; a little more than none where all are right.

        >>> round(Score(0.75, -0.5, examples=32).error, 3)
        0.078
        """
        if self.examples == 0:
            return 0.0
        share = (self.accuracy * self.examples + 1) / (self.examples + 2)
        return math.sqrt(share * (1 - share) / self.examples)


def kept_step(scores: Mapping[int, Score], last: int, selection: Selection) -> int:
    """The step whose weights are kept: the best one, and of equally good ones the first.

    With "one-standard-error" it is the last one unless the best is better by more than a standard
    error.

    >>> scores = {0: Score(0.81, -0.5, 32), 20: Score(0.78, -0.4, 32)}
    >>> [kept_step(scores, 20, how) for how in ("best", "one-standard-error")]
    [0, 20]
    """
    best = max(scores, key=lambda step: (scores[step], -step))
    if selection == "one-standard-error" and last in scores:
        lost = scores[best].accuracy - scores[last].accuracy
        return last if lost <= scores[best].error else best
    return best


class TrainingTask(Protocol):
    """What a method gives the loop."""

    @property
    def objective(self) -> nn.Module:
        """The module whose forward pass gives the losses, and whose parameters are trained."""
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
        """The score of the weights after so many steps; None where nothing is held out."""
        ...


class Callback(Protocol):
    """Something that watches a run: a progress bar, a logger."""

    def on_start(self, stage: str, step: int, last: int) -> None:
        """Training begins, at step 0 or where an earlier run was cut off."""

    def on_step(self, step: int, losses: dict[str, Tensor]) -> None:
        """A step was made; the losses are tensors, reading one waits for the device."""

    def on_evaluate(self, step: int, score: Score) -> None:
        """The weights after so many steps were evaluated."""

    def on_end(self, step: int) -> None:
        """Training is over, or was interrupted."""


@runtime_checkable
class SearchCallback(Callback, Protocol):
    """One that also watches what is searched for before the training."""

    def on_search(self, what: str, done: int, last: int) -> None:
        """So much of the search is done, of at most ``last``; ``on_end`` follows."""


@dataclass
class History:
    """What happened: the scores by step, and the step whose weights were kept."""

    scores: dict[int, Score] = field(default_factory=dict)
    best_step: int = 0
    last_step: int = 0

    @property
    def best(self) -> Score | None:
        """The score of the weights that were kept."""
        return self.scores.get(self.best_step)


def train(
    task: TrainingTask,
    plan: TrainingPlan,
    processes: Processes,
    *,
    stage: str = "training",
    callbacks: Sequence[Callback] = (),
    checkpointer: Checkpointer | None = None,
    stop_after: int | None = None,
) -> History:
    """Train, and leave the weights that :func:`kept_step` names in the objective.

    The untrained weights, step 0, are a candidate too. Without a score the last weights stay.
    Every random choice of a step is drawn from the seed and the step's number, so a run that
    continues from a checkpoint goes the same way as an unbroken one. ``stop_after`` ends the run
    early on the learning-rate schedule of the whole plan.
    """
    device = processes.device
    trained = {n: p for n, p in task.objective.named_parameters() if p.requires_grad}
    groups = task.parameter_groups(plan.learning_rate)
    model: nn.Module = task.objective
    sharded = None
    if processes.sharded:
        if checkpointer:
            raise CPTuningError(
                "A run in shards (FSDP) can't be resumed: leave checkpoint_dir out."
            )
        sharded = Sharded(task.objective, device)
        model, groups = sharded.module, sharded.groups(groups)
    elif processes.count > 1:
        model = DistributedDataParallel(task.objective, find_unused_parameters=True)
    optimizer = _optimizer(groups, plan)
    stepper = _stepper(model, optimizer, task, plan, processes)
    last = plan.steps if stop_after is None else min(stop_after, plan.steps)
    history, best, start = History(), None, 0
    if checkpointer and (found := checkpointer.load()):
        start, history, best = found.step, _history(found), found.best
        found.restore(trained, optimizer)
    for callback in callbacks:
        callback.on_start(stage, start, last)
    step = start
    # Seeding every step must not disturb what the caller draws.
    with (
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        checkpointer.holding_interrupts() if checkpointer else nullcontext(),
    ):
        try:
            for step in range(start, last + 1):
                if step not in history.scores and (step % plan.evaluate_every == 0 or step == last):
                    model.eval()
                    if sharded:
                        sharded.pull()
                    _require_finite(trained, plan)
                    score = task.evaluate(step)
                    if score is not None:
                        history.scores[step] = score
                        for callback in callbacks:
                            callback.on_evaluate(step, score)
                        if history.best is None or step == 0 or score > history.best:
                            history.best_step = step
                            # On the device: copying to the host takes longer than a step.
                            best = {name: p.detach().clone() for name, p in trained.items()}
                        elif _has_settled(history, step, plan):
                            break
                if checkpointer and processes.is_main and step > start and checkpointer.is_due():
                    checkpointer.save(
                        Checkpoint.of(step, trained, optimizer, best, _facts(history))
                    )
                if checkpointer and checkpointer.interrupted:
                    raise KeyboardInterrupt
                if step == last:
                    break
                losses = _one_step(stepper, task, plan, device, step)
                for callback in callbacks:
                    callback.on_step(step + 1, losses)
        finally:
            model.eval()
            stepper.close()
            for callback in callbacks:
                callback.on_end(step)
    history.last_step = step
    if best is None or kept_step(history.scores, plan.steps, plan.selection) == step:
        history.best_step = step  # These are the weights that are there.
    else:
        with torch.no_grad():
            for name, value in best.items():
                trained[name].copy_(value)
    _require_finite(trained, plan)
    return history


def _require_finite(trained: dict[str, nn.Parameter], plan: TrainingPlan) -> None:
    # The largest of all weights: one question to the device, not one a parameter.
    largest = torch.nn.utils.get_total_norm(trained.values(), norm_type=math.inf)
    if not torch.isfinite(largest):
        raise CPTuningError(
            f"Training ended in numbers that are not finite: lower learning_rate, "
            f"which is {plan.learning_rate:g}."
        )


def _one_step(
    stepper: Stepper, task: TrainingTask, plan: TrainingPlan, device: torch.device, step: int
) -> dict[str, Tensor]:
    # Dropout is drawn from the step's own seed: nothing of the generator needs to be saved.
    _draw_from(plan.seed * 1_000_003 + step, device)
    if not stepper.model.training:  # Telling every module of a large model takes a millisecond.
        stepper.model.train()
    first = step * plan.accumulate
    batches = [task.inputs(batch) for batch in range(first, first + plan.accumulate)]
    return stepper(batches, plan.rate(step))


def _draw_from(seed: int, device: torch.device) -> None:
    """Seed the generators that a step can draw from."""
    if device.type not in ("cpu", "cuda"):
        torch.manual_seed(seed)
        return
    # The above tells every kind of device that there is, which takes half a millisecond.
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


def _stepper(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    task: TrainingTask,
    plan: TrainingPlan,
    processes: Processes,
) -> Stepper:
    alone = processes.count == 1 and not processes.sharded
    device = processes.device

    def precision() -> AbstractContextManager[object]:
        return _precision(plan, device)

    if device.type == "cuda" and alone and task.replayable and plan.replay:
        recorder = GraphRecorder(device)
        return ReplayedStepper(model, optimizer, precision, plan.clip_norm, recorder=recorder)
    return Stepper(model, optimizer, precision, plan.clip_norm)


def _optimizer(groups: list[dict[str, object]], plan: TrainingPlan) -> torch.optim.Optimizer:
    for group in groups:
        group["peak"] = group["lr"]
    # One pass over each tensor instead of ten: a tenth of the time on a CPU.
    if plan.optimizer == "adam":
        return torch.optim.Adam(groups, fused=True)
    return torch.optim.AdamW(groups, weight_decay=plan.weight_decay, fused=True)


def _precision(plan: TrainingPlan, device: torch.device) -> AbstractContextManager[object]:
    wanted = plan.precision == "bfloat16" or (
        plan.precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
    )
    return torch.autocast(device.type, dtype=torch.bfloat16) if wanted else nullcontext()


def _has_settled(history: History, step: int, plan: TrainingPlan) -> bool:
    waited = step - history.best_step
    return plan.patience > 0 and waited >= plan.patience * plan.evaluate_every


def _facts(history: History) -> dict[str, object]:
    return {
        "best_step": history.best_step,
        "scores": {str(step): astuple(score) for step, score in history.scores.items()},
    }


def _history(found: Checkpoint) -> History:
    scores = {int(step): Score(*values) for step, values in found.facts["scores"].items()}
    return History(scores, best_step=found.facts["best_step"])
