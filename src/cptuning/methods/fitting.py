"""From examples to a fitted model: which weights to keep, and what held-out answers taught."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from cptuning.backbone import Backbone, PromptedEncoder, TextEncoder, layout_for
from cptuning.data import Examples, stratified_folds
from cptuning.inference import SupportSet
from cptuning.inference.support import IntArray
from cptuning.methods.cp_tuning import CPTuningTask, HeldOut
from cptuning.methods.settings import Settings
from cptuning.prompting import Template
from cptuning.training import (
    Callback,
    Checkpointer,
    History,
    Processes,
    Score,
    TrainingPlan,
    train,
)

Validation = Literal["dev", "cross-fit", "none"]


@dataclass(frozen=True)
class Labelled:
    """Examples and their class numbers."""

    examples: Examples
    labels: IntArray

    def take(self, rows: IntArray) -> "Labelled":
        """Some of them."""
        return Labelled(self.examples.take(rows), self.labels[rows])


@dataclass(frozen=True)
class Fitted:
    """What training leaves behind."""

    encoder: TextEncoder
    support: SupportSet
    history: History
    held_out: HeldOut | None
    """Answers to dev examples, or to each training example by a model that had not seen it."""


@dataclass
class Fitter:
    """Fits CP-Tuning to examples with one backbone; can be used again and again."""

    backbone: Backbone
    settings: Settings
    processes: Processes
    seed: int = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    callbacks: Sequence[Callback] = ()
    checkpoint_folder: Path | None = None
    checkpoint_seconds: float = 30.0
    prompts: Tensor | None = None
    """Where the prompt vectors start, if not from the rows of the prompt's words."""
    encoder: TextEncoder = field(init=False)

    def __post_init__(self) -> None:
        template = Template.parse(self.settings.template)
        layout = layout_for(self.backbone, template, self.settings.max_length)
        module = PromptedEncoder(self.backbone, layout.prompt_ids, self.settings.features)
        if self.prompts is not None and self.prompts.shape == module.prompts.shape:
            module.prompts.data.copy_(self.prompts)
        self.encoder = TextEncoder(layout, module.to(self.processes.device), self.backbone)
        # Cross-fitting and repeated fits put the weights back in place instead of loading again.
        self._initial = {n: t.detach().clone() for n, t in module.state_dict().items()}

    def fit(
        self,
        data: Labelled,
        *,
        dev: Labelled | None = None,
        unlabeled: Examples | None = None,
        folds: int = 0,
    ) -> Fitted:
        """Train on the data; keep the weights that did best on ``dev`` or in cross-fitting.

        With neither, the plan's last weights are kept. Cross-fitting trains ``folds`` times on
        all folds but one, finds the step at which the left-out examples were answered best, and
        trains on everything up to that step.
        """
        if dev is None and folds > 1:
            return self._cross_fit(data, unlabeled, folds)
        task, history = self._train("final", data, dev, unlabeled)
        if dev is not None:
            task.evaluate()
        return Fitted(self.encoder, task.support(), history, task.held_out)

    def _cross_fit(self, data: Labelled, unlabeled: Examples | None, folds: int) -> Fitted:
        fold_of = stratified_folds(data.labels, folds, self.seed)
        # An example that is alone in its class can't be answered by a model without it.
        alone = np.bincount(data.labels)[data.labels] < 2
        recorders = []
        for fold in range(folds):
            inside = (fold_of != fold) | alone
            recorder = _Recorder()
            if (~inside).any():
                rest, left_out = data.take(np.flatnonzero(inside)), np.flatnonzero(~inside)
                self._train(f"fold-{fold}", rest, data.take(left_out), unlabeled, recorder)
                recorders.append(recorder)
        answers = {
            step: _joined([recorder.held_out[step] for recorder in recorders])
            for step in recorders[0].held_out
            if all(step in recorder.held_out for recorder in recorders)
        }
        scores = {step: answer.score() for step, answer in answers.items()}
        best = max(scores, key=lambda step: (scores[step], -step))
        task, history = self._train("final", data, None, unlabeled, stop_after=best)
        history = replace(history, scores=scores, best_step=best)
        return Fitted(self.encoder, task.support(), history, answers[best])

    def _train(
        self,
        stage: str,
        data: Labelled,
        dev: Labelled | None,
        unlabeled: Examples | None,
        recorder: "_Recorder | None" = None,
        stop_after: int | None = None,
    ) -> tuple[CPTuningTask, History]:
        self.encoder.module.load_state_dict(self._initial)
        task = CPTuningTask(
            self.encoder,
            self.settings,
            self.processes,
            data.examples,
            data.labels,
            dev=dev.examples if dev else None,
            dev_labels=dev.labels if dev else None,
            unlabeled=unlabeled,
            seed=self.seed,
        )
        callbacks = list(self.callbacks) if self.processes.is_main else []
        if recorder is not None:
            recorder.task = task
            callbacks.append(recorder)
        checkpointer = self._checkpointer(stage, data, dev, unlabeled, stop_after)
        history = train(
            task,
            self.plan,
            self.processes,
            callbacks=callbacks,
            checkpointer=checkpointer,
            stop_after=stop_after,
        )
        return task, history

    @property
    def plan(self) -> TrainingPlan:
        """The loop's part of the settings."""
        s = self.settings
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
            precision=self.precision,
            seed=self.seed,
        )

    def _checkpointer(self, stage: str, *parts: object) -> Checkpointer | None:
        if self.checkpoint_folder is None:
            return None
        facts = (stage, asdict(self.settings), self.seed, self.precision, self.backbone.name, parts)
        fingerprint = sha256(repr(facts).encode()).hexdigest()
        path = self.checkpoint_folder / f"{stage}.safetensors"
        return Checkpointer(path, fingerprint, self.checkpoint_seconds)


class _Recorder:
    """Keeps what was answered at each evaluation of a fold."""

    def __init__(self) -> None:
        self.task: CPTuningTask | None = None
        self.held_out: dict[int, HeldOut] = {}

    def on_start(self, plan: TrainingPlan, step: int) -> None: ...

    def on_step(self, step: int, losses: dict[str, Tensor]) -> None: ...

    def on_evaluate(self, step: int, score: Score) -> None:
        assert self.task is not None
        assert self.task.held_out is not None
        self.held_out[step] = self.task.held_out

    def on_end(self, step: int) -> None: ...


def _joined(answers: Sequence[HeldOut]) -> HeldOut:
    return HeldOut(
        np.concatenate([a.scores for a in answers]),
        np.concatenate([a.familiarity for a in answers]),
        np.concatenate([a.labels for a in answers]),
    )
