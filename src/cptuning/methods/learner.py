"""From a training to a fitted model: which weights to keep, and what held-out answers taught."""

from abc import ABC, abstractmethod
from dataclasses import asdict, replace
from functools import cached_property
from hashlib import sha256
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np
from torch import Tensor, nn

from cptuning.backbone import TextEncoder
from cptuning.data import strata, stratified_folds, stratified_sample
from cptuning.errors import CPTuningError
from cptuning.inference.support import IntArray
from cptuning.methods.evaluation_log import EvaluationLog, HeldOut
from cptuning.methods.fit_result import FitResult
from cptuning.methods.task import BatchedTask
from cptuning.methods.training import Split, Training
from cptuning.settings import S
from cptuning.training import Callback, Checkpointer, History, Score, kept_step, train

# Of the examples that a fold leaves out: more would hardly improve the choice of the step.
_MOST_HELD_OUT = 2048

T = TypeVar("T", bound=BatchedTask[Any])


class Learner(ABC, Generic[S, T]):
    """A method on one backbone, which can be fitted again and again.

    A subclass makes the encoder and the module, and the task of learning some examples.
    """

    encoder: TextEncoder
    module: nn.Module
    """All that training may change: it is put back as it was before each training."""

    def __init__(self, training: Training[S]) -> None:
        self.training = training
        self.settings: S = training.settings
        # Whatever another method that had this backbone before has frozen.
        training.backbone.model.requires_grad_(True)

    @classmethod
    def fit_result(cls, training: Training[S]) -> FitResult[Any]:
        """Fit; a method that searches, or trains several models, does so here."""
        return cls(training).fit()

    @classmethod
    def fit_seconds(cls, training: Training[S]) -> float:
        """How many seconds that takes at most."""
        return cls(training).estimate_seconds()

    @abstractmethod
    def task(self, split: Split, log: EvaluationLog) -> T:
        """The task of learning some examples."""

    def fit(self) -> FitResult[T]:
        """Train on the data; keep the weights that ``dev`` or cross-fitting chose.

        With neither, the last weights are kept; held-out answers are there only if the task can
        leave out examples by itself. Cross-fitting trains ``folds`` times on all folds
        but one, lets the answers to the left-out examples choose the step, and trains on
        everything up to that step.
        """
        split = self.training.split
        if not self._cross_fits:
            log = self._log("training", split)
            task, history = self._train(split, log)
            if left_out := task.left_out() if split.dev is None else None:
                return FitResult(task, history, *left_out)
            return FitResult(task, history, log.by_step.get(history.best_step))
        answers = self._cross_fitted()
        scores = {step: answer.score() for step, answer in answers.items()}
        kept = self._kept_step(scores)
        task, history = self._train(split, self._log("training", split, kept), kept)
        rows = np.sort(np.concatenate([away for _, away in self._folds().values()]))
        history = replace(history, scores=scores, best_step=kept)
        return FitResult(task, history, answers[kept], rows)

    def best_score(self) -> Score:
        """How well held-out examples are answered at best; what was trained for it is lost.

        With a checkpoint folder a killed search finds the scores of its finished trainings again.
        """
        if self.training.split.dev is None:
            answers = self._cross_fitted()
        else:
            answers = self._held_out_answers("tuning", self.training.split)
        scores = {step: answer.score() for step, answer in answers.items()}
        return scores[self._kept_step(scores)]

    def estimate_seconds(self) -> float:
        """How long ``fit`` would take at most, from one real step and the reading of one batch.

        A first step, which is slower, warms up; on a GPU also a second, which is recorded. The
        weights are then put back as they were.
        """
        split, folds, settings = self.training.split, self.training.folds, self.settings
        self._reset()
        task = self.task(replace(split, dev=None), EvaluationLog())
        watch = _StopWatch()
        steps = 3 if self.training.processes.device.type == "cuda" else 2
        try:
            short = replace(settings, steps=steps)
            precision = self.training.precision
            train(task, short, self.training.processes, precision=precision, callbacks=[watch])
            batch = task.encodings[: task.batch_size]
            started = perf_counter()
            task.read(batch)
            per_text = (perf_counter() - started) / len(batch)
        finally:
            self._reset()
        # Each fold's batches lack a fold's share: together the folds cost folds - 1 trainings.
        all_steps = settings.steps * (folds if self._cross_fits else 1)
        # Each evaluation reads what is trained on and what is held out: in cross-fitting, all.
        evaluated = len(split.train.examples) + (len(split.dev.examples) if split.dev else 0)
        evaluations = (settings.steps // settings.evaluate_every + 1) * (
            folds if self._cross_fits else bool(split.dev)
        )
        return watch.seconds * all_steps + per_text * evaluated * evaluations

    @property
    def _cross_fits(self) -> bool:
        return self.training.split.dev is None and self.training.folds > 1

    def _kept_step(self, scores: dict[int, Score]) -> int:
        return kept_step(scores, self.settings.steps, self.settings.selection)

    def _cross_fitted(self) -> dict[int, HeldOut]:
        """By step, what models answered to the examples that each had not seen.

        They are in the order of the data, without examples that are alone in their class; of very
        many examples, a sample is answered. The batches are smaller by the share of the examples
        that is left out. So after the same number of steps a model has seen each of its examples
        as often as the final model will have.
        """
        split, folds = self.training.split, self.training.folds
        data = split.train
        by_fold: list[dict[int, HeldOut]] = []
        rows: list[IntArray] = []
        for fold, (rest, away) in self._folds().items():
            share = len(rest) / len(data.labels)
            part = replace(split, train=data.take(rest), dev=data.take(away), share=share)
            by_fold.append(self._held_out_answers(f"fold {fold + 1} of {folds}", part))
            rows.append(away)
        steps = sorted(set.intersection(*(set(answers) for answers in by_fold)))
        order = np.argsort(np.concatenate(rows))
        return {
            step: HeldOut.joined([fold[step] for fold in by_fold]).take(order) for step in steps
        }

    def _folds(self) -> dict[int, tuple[IntArray, IntArray]]:
        """By fold, the rows that it trains on, and those that it leaves out and answers."""
        labels = strata(self.training.split.train.labels)
        folds, seed = self.training.folds, self.training.seed
        fold_of = stratified_folds(labels, folds, seed)
        # An example that is alone in its class can't be answered by a model without it, unless the
        # class is described.
        counts = np.bincount(labels)
        if (described := self.training.split.descriptions) is not None:
            counts = counts + np.bincount(described.labels, minlength=len(counts))[: len(counts)]
        alone = counts[labels] < 2
        rows = {}
        for fold in range(folds):
            left_out = (fold_of == fold) & ~alone
            if left_out.any():
                rest, away = np.flatnonzero(~left_out), np.flatnonzero(left_out)
                answered = stratified_sample(labels[away], _MOST_HELD_OUT, seed)
                rows[fold] = rest, away[answered]
        if not rows:
            raise CPTuningError(
                "Every class has a single example, so none can be left out for cross-fitting: "
                'add examples, give a dev set, or use validation="none".'
            )
        return rows

    def _held_out_answers(self, stage: str, split: Split) -> dict[int, HeldOut]:
        """By step, the answers to the split's dev examples; a finished training is not repeated."""
        log = self._log(stage, split)
        if not log.finished:
            self._train(split, log)
            log.finish()
            if log.folder is not None and log.writes:
                log.folder.discard_state(log.stage)  # The answers are all that is needed of it.
        return log.by_step

    def _train(
        self, split: Split, log: EvaluationLog, stop_after: int | None = None
    ) -> tuple[T, History]:
        """Train from the initial weights, or go on where an earlier, killed run was."""
        self._reset()
        task = self.task(split, log)
        checkpointer = None
        if log.folder is not None:
            seconds = self.training.checkpoint_seconds
            checkpointer = Checkpointer(log.folder, log.stage, log.fingerprint, seconds)
        history = train(
            task,
            self.settings,
            self.training.processes,
            precision=self.training.precision,
            stage=log.stage,
            callbacks=self.training.watchers,
            checkpointer=checkpointer,
            stop_after=stop_after,
        )
        return task, history

    def _reset(self) -> None:
        """Put the initial weights back in place, which is faster than loading them again."""
        self.module.load_state_dict(self._initial)

    @cached_property
    def _initial(self) -> dict[str, Tensor]:
        state = self.module.state_dict()
        return {name: value.detach().clone() for name, value in state.items()}

    def _log(self, stage: str, split: Split, stop_after: int | None = None) -> EvaluationLog:
        """The evaluations of a training, with those that an earlier, killed run left."""
        stage = f"{self.training.title} {stage}".strip()
        folder = self.training.checkpoints
        if folder is None:
            return EvaluationLog(stage=stage)
        mark = self._fingerprint(stage, split, stop_after)
        return EvaluationLog(folder, stage, mark, writes=self.training.processes.is_main)

    def _fingerprint(self, stage: str, split: Split, stop_after: int | None) -> str:
        """What makes a run this one: settings, data, seed, and the weights that it starts from."""
        run = (asdict(self.settings), self.training.seed, self.training.precision)
        digest = sha256(repr(run).encode())
        digest.update(repr([float(t.double().sum()) for t in self._initial.values()]).encode())
        digest.update(repr((stage, stop_after, split.unlabeled)).encode())
        for part in (split.train, split.dev, split.descriptions):
            if part is not None:
                digest.update(part.labels.tobytes())
                for weights in (part.weights, part.loss_weights):
                    digest.update(b"" if weights is None else weights.tobytes())
                digest.update(repr(part.examples).encode())
        return digest.hexdigest()


class _StopWatch(Callback):
    """Takes the time of the last step of a run."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before = 0.0

    def on_step(self, step: int, losses: dict[str, Tensor]) -> None:
        float(losses["loss"])  # waits for the device
        now = perf_counter()
        self.seconds, self._before = now - self._before, now
