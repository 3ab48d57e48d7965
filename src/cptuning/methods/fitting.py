"""From examples to a fitted model: which weights to keep, and what held-out answers taught."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from time import perf_counter
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from torch import Tensor, nn

from cptuning.data import stratified_folds, stratified_sample
from cptuning.errors import CPTuningError
from cptuning.inference.support import IntArray
from cptuning.methods.evaluation_log import EvaluationLog, HeldOut
from cptuning.methods.task import BatchedTask, Split
from cptuning.methods.training_settings import TrainingSettings
from cptuning.training import (
    Callback,
    Checkpointer,
    CheckpointFolder,
    History,
    Processes,
    Score,
    TrainingPlan,
    kept_step,
    train,
)

# Of the examples that a fold leaves out: more would make the choice of the step hardly better.
_MOST_HELD_OUT = 2048

T_co = TypeVar("T_co", bound=BatchedTask[Any], covariant=True)
T = TypeVar("T", bound=BatchedTask[Any])


@dataclass(frozen=True)
class Run:
    """The circumstances of a training: where, from which seed, who watches, what is kept."""

    processes: Processes
    seed: int = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    callbacks: Sequence[Callback] = ()
    checkpoints: CheckpointFolder | None = None
    checkpoint_seconds: float = 30.0


class Learner(Protocol[T_co]):
    """A method on one backbone: what the fitter trains."""

    @property
    def settings(self) -> TrainingSettings:
        """The method's settings."""
        ...

    @property
    def module(self) -> nn.Module:
        """All that training may change: it is put back as it was before each training."""
        ...

    def task(self, split: Split, answers: EvaluationLog) -> T_co:
        """The task of learning some examples."""
        ...


@dataclass(frozen=True)
class FitResult(Generic[T]):
    """What training leaves behind."""

    task: T
    """With the weights that were kept."""
    history: History
    held_out: HeldOut | None
    """Answers to dev examples, or to each training example by a model that had not seen it."""
    held_out_rows: IntArray | None = None
    """Which training examples they are answers to, if they are."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else a result must state: how much was searched, and what for."""


@dataclass
class Fitter(Generic[T]):
    """Fits a method to examples with one backbone; can be used again and again."""

    learner: Learner[T]
    run: Run
    title: str = ""
    """What to call the trainings, where a fit has several of one kind."""
    _initial: dict[str, Tensor] = field(init=False)

    def __post_init__(self) -> None:
        # Cross-fitting and repeated fits put the weights back in place instead of loading again.
        state = self.learner.module.state_dict()
        self._initial = {name: value.detach().clone() for name, value in state.items()}

    def fit(self, split: Split, folds: int = 0) -> FitResult[T]:
        """Train on the data; keep the weights that ``dev`` or cross-fitting chose.

        With neither, the plan's last weights are kept. Cross-fitting trains ``folds`` times on
        all folds but one, lets the answers to the left-out examples choose the step, and trains
        on everything up to that step.
        """
        if split.dev is None and folds > 1:
            answers = self._cross_fitted(split, folds)
            scores = {step: answer.score() for step, answer in answers.items()}
            kept = self._kept_step(scores)
            stage = self._stage("training", split, stop_after=kept)
            history = replace(stage.run(), scores=scores, best_step=kept)
            rows = [away for _, away in self._folds(split.train.labels, folds).values()]
            return FitResult(stage.task, history, answers[kept], np.sort(np.concatenate(rows)))
        stage = self._stage("training", split)
        history = stage.run()
        return FitResult(stage.task, history, stage.task.answers.by_step.get(history.best_step))

    def best_score(self, split: Split, folds: int = 0) -> Score:
        """How well held-out examples are answered at best; what was trained for it is lost.

        With a checkpoint folder a killed search finds the scores of its finished trainings again.
        """
        if split.dev is None:
            answers = self._cross_fitted(split, folds)
        else:
            answers = self._finished_answers(self._stage("tuning", split))
        scores = {step: answer.score() for step, answer in answers.items()}
        return scores[self._kept_step(scores)]

    def _kept_step(self, scores: dict[int, Score]) -> int:
        return kept_step(scores, self.plan.steps, self.plan.selection)

    def _cross_fitted(self, split: Split, folds: int) -> dict[int, HeldOut]:
        """By step, what models answered to the examples that each had not seen.

        They are in the order of the data; examples that are alone in their class are missing,
        and of very many all but a sample.
        The batches are smaller by the share of the examples that is left out, so that after so
        many steps a model has met its examples as often as one of all the examples will have.
        """
        data = split.train
        by_fold: list[dict[int, HeldOut]] = []
        rows: list[IntArray] = []
        for fold, (rest, away) in self._folds(data.labels, folds).items():
            part = replace(
                split,
                train=data.take(rest),
                dev=data.take(away),
                share=len(rest) / len(data.labels),
            )
            stage = self._stage(f"fold {fold + 1} of {folds}", part)
            by_fold.append(self._finished_answers(stage))
            rows.append(away)
        steps = sorted(set.intersection(*(set(answers) for answers in by_fold)))
        order = np.argsort(np.concatenate(rows))
        return {
            step: HeldOut.joined([fold[step] for fold in by_fold]).take(order) for step in steps
        }

    def _folds(self, labels: IntArray, folds: int) -> dict[int, tuple[IntArray, IntArray]]:
        """By fold, the rows that it trains on, and those that it leaves out and answers."""
        fold_of = stratified_folds(labels, folds, self.run.seed)
        # An example that is alone in its class can't be answered by a model without it.
        alone = np.bincount(labels)[labels] < 2
        rows = {}
        for fold in range(folds):
            left_out = (fold_of == fold) & ~alone
            if left_out.any():
                rest, away = np.flatnonzero(~left_out), np.flatnonzero(left_out)
                answered = stratified_sample(labels[away], _MOST_HELD_OUT, self.run.seed)
                rows[fold] = rest, away[answered]
        if not rows:
            raise CPTuningError(
                "Every class has a single example, so none can be left out for cross-fitting: "
                'add examples, give a dev set, or use validation="none".'
            )
        return rows

    def _finished_answers(self, stage: "_Stage[T]") -> dict[int, HeldOut]:
        if not stage.task.answers.finished:
            stage.run()
            stage.task.answers.finish()
            if stage.checkpointer and self.run.processes.is_main:
                stage.checkpointer.remove()  # The answers are all that is needed of it.
        return stage.task.answers.by_step

    def _stage(self, name: str, split: Split, stop_after: int | None = None) -> "_Stage[T]":
        """A training from the initial weights, and what an earlier, killed run left of it."""
        self.learner.module.load_state_dict(self._initial)
        name = f"{self.title} {name}".strip()
        checkpointer, answers = None, EvaluationLog()
        if self.run.checkpoints is not None:
            mark = self._fingerprint(name, split, stop_after)
            checkpointer = Checkpointer(
                self.run.checkpoints, name, mark, self.run.checkpoint_seconds
            )
            answers = EvaluationLog(
                self.run.checkpoints, name, mark, writes=self.run.processes.is_main
            )
        task = self.learner.task(split, answers)
        callbacks = self.run.callbacks if self.run.processes.is_main else ()
        return _Stage(
            name, task, self.plan, self.run.processes, callbacks, checkpointer, stop_after
        )

    def estimate_seconds(self, split: Split, folds: int = 0) -> float:
        """How long ``fit`` would take at most, from one real step and the reading of one batch.

        A first step, which is slower, warms up; on a GPU also a second, which is recorded. The
        weights are then put back as they were.
        """
        self.learner.module.load_state_dict(self._initial)
        task = self.learner.task(replace(split, dev=None), EvaluationLog())
        watch = _StopWatch()
        steps = 3 if self.run.processes.device.type == "cuda" else 2
        try:
            train(task, replace(self.plan, steps=steps), self.run.processes, callbacks=[watch])
            batch = task.encodings[: task.batch_size]
            started = perf_counter()
            task.read(batch)
            a_reading = (perf_counter() - started) / len(batch)
        finally:
            self.learner.module.load_state_dict(self._initial)
        cross_fits = split.dev is None and folds > 1
        # Each fold's batches lack a fold's share: together the folds cost folds - 1 trainings.
        all_steps = self.plan.steps * (folds if cross_fits else 1)
        # Each evaluation reads what is trained on and what is held out: in cross-fitting, all.
        evaluated = len(split.train.examples) + (len(split.dev.examples) if split.dev else 0)
        evaluations = (self.plan.steps // self.plan.evaluate_every + 1) * (
            folds if cross_fits else bool(split.dev)
        )
        return watch.seconds * all_steps + a_reading * evaluated * evaluations

    @property
    def plan(self) -> TrainingPlan:
        """The loop's part of the settings."""
        s = self.learner.settings
        return TrainingPlan(
            steps=s.steps,
            learning_rate=s.learning_rate,
            optimizer=s.optimizer,
            weight_decay=s.weight_decay,
            warmup=s.warmup,
            clip_norm=s.clip_norm,
            accumulate=s.accumulate,
            evaluate_every=s.evaluate_every,
            patience=s.patience,
            precision=self.run.precision,
            seed=self.run.seed,
            selection=s.selection,
        )

    def _fingerprint(self, name: str, split: Split, stop_after: int | None) -> str:
        """What makes a run this one: settings, data, seed, and the weights that it starts from."""
        settings = asdict(self.learner.settings)
        digest = sha256(repr((settings, self.run.seed, self.run.precision)).encode())
        digest.update(repr([float(t.double().sum()) for t in self._initial.values()]).encode())
        digest.update(repr((name, stop_after, split.unlabeled)).encode())
        for part in (split.train, split.dev):
            if part is not None:
                digest.update(part.labels.tobytes())
                digest.update(repr(part.examples).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class _Stage(Generic[T]):
    """One run of the loop."""

    name: str
    task: T
    plan: TrainingPlan
    processes: Processes
    callbacks: Sequence[Callback]
    checkpointer: Checkpointer | None
    stop_after: int | None

    def run(self) -> History:
        return train(
            self.task,
            self.plan,
            self.processes,
            stage=self.name,
            callbacks=self.callbacks,
            checkpointer=self.checkpointer,
            stop_after=self.stop_after,
        )


class _StopWatch:
    """Takes the time of the last step of a run."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before = 0.0

    def on_start(self, stage: str, step: int, last: int) -> None: ...

    def on_step(self, step: int, losses: dict[str, Tensor]) -> None:
        float(losses["loss"])  # waits for the device
        now = perf_counter()
        self.seconds, self._before = now - self._before, now

    def on_evaluate(self, step: int, score: Score) -> None: ...

    def on_end(self, step: int) -> None: ...
