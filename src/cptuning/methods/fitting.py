"""From examples to a fitted model: which weights to keep, and what held-out answers taught."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Literal

import numpy as np
from torch import Tensor

from cptuning.backbone import Backbone, PromptedEncoder, TextEncoder, layout_for
from cptuning.data import Examples, stratified_folds
from cptuning.errors import CPTuningError
from cptuning.inference import SupportSet
from cptuning.inference.support import IntArray
from cptuning.methods.answers import Answers, HeldOut
from cptuning.methods.cp_tuning import CPTuningTask
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
    n_classes: int = field(init=False, default=0)

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
        self.n_classes = int(data.labels.max()) + 1
        if dev is None and folds > 1:
            return self._cross_fit(data, unlabeled, folds)
        stage = self._stage("training", data, dev, unlabeled)
        history = stage.run()
        held_out = stage.task.answers.by_step.get(history.best_step)
        return Fitted(self.encoder, stage.task.support(), history, held_out)

    def _cross_fit(self, data: Labelled, unlabeled: Examples | None, folds: int) -> Fitted:
        fold_of = stratified_folds(data.labels, folds, self.seed)
        # An example that is alone in its class can't be answered by a model without it.
        alone = np.bincount(data.labels)[data.labels] < 2
        by_fold: list[dict[int, HeldOut]] = []
        for fold in range(folds):
            left_out = (fold_of == fold) & ~alone
            if left_out.any():
                rest, away = np.flatnonzero(~left_out), np.flatnonzero(left_out)
                name = f"fold {fold + 1} of {folds}"
                stage = self._stage(name, data.take(rest), data.take(away), unlabeled)
                if not stage.task.answers.finished:
                    stage.run()
                    stage.task.answers.finish()
                by_fold.append(stage.task.answers.by_step)
        if not by_fold:
            raise CPTuningError(
                "Every class has a single example, so none can be left out for cross-fitting: "
                'add examples, give a dev set, or use validation="none".'
            )
        steps = set.intersection(*(set(answers) for answers in by_fold))
        answers = {step: HeldOut.joined([fold[step] for fold in by_fold]) for step in steps}
        scores = {step: answers[step].score() for step in sorted(steps)}
        best = max(scores, key=lambda step: (scores[step], -step))
        stage = self._stage("training", data, None, unlabeled, stop_after=best)
        history = replace(stage.run(), scores=scores, best_step=best)
        return Fitted(self.encoder, stage.task.support(), history, answers[best])

    def _stage(
        self,
        name: str,
        data: Labelled,
        dev: Labelled | None,
        unlabeled: Examples | None,
        stop_after: int | None = None,
    ) -> "_Stage":
        """A training from the initial weights, and what an earlier, killed run left of it."""
        self.encoder.module.load_state_dict(self._initial)
        checkpointer, answers = None, Answers()
        if self.checkpoint_folder is not None:
            mark = self._fingerprint(name, data, dev, unlabeled, stop_after)
            place = self.checkpoint_folder / name.replace(" ", "-")
            checkpointer = Checkpointer(
                place.with_suffix(".safetensors"), mark, self.checkpoint_seconds
            )
            answers = Answers(
                place.with_suffix(".answers.safetensors"), mark, writes=self.processes.is_main
            )
        task = self._task(data, dev, unlabeled, answers)
        callbacks = self.callbacks if self.processes.is_main else ()
        return _Stage(name, task, self.plan, self.processes, callbacks, checkpointer, stop_after)

    def _task(
        self, data: Labelled, dev: Labelled | None, unlabeled: Examples | None, answers: Answers
    ) -> CPTuningTask:
        return CPTuningTask(
            self.encoder,
            self.settings,
            self.processes,
            data.examples,
            data.labels,
            n_classes=self.n_classes,
            dev=dev.examples if dev else None,
            dev_labels=dev.labels if dev else None,
            unlabeled=unlabeled,
            answers=answers,
            seed=self.seed,
        )

    def estimate_seconds(
        self,
        data: Labelled,
        *,
        dev: Labelled | None = None,
        unlabeled: Examples | None = None,
        folds: int = 0,
    ) -> float:
        """How long ``fit`` would take at most, from one real step and the embedding of one batch.

        A first step, which is slower, warms up. The weights are then put back as they were.
        """
        self.n_classes = int(data.labels.max()) + 1
        self.encoder.module.load_state_dict(self._initial)
        task = self._task(data, None, unlabeled, Answers())
        watch = _StopWatch()
        try:
            train(task, replace(self.plan, steps=2), self.processes, callbacks=[watch])
            batch = task.encodings[: task.batch_size]
            started = perf_counter()
            self.encoder.embed_encodings(batch)
            an_embedding = (perf_counter() - started) / len(batch)
        finally:
            self.encoder.module.load_state_dict(self._initial)
        folds = 0 if dev is not None else folds
        trainings = folds + 1 if folds > 1 else 1
        # Each evaluation embeds what is trained on and what is held out: in cross-fitting, all.
        evaluated = len(data.examples) + (len(dev.examples) if dev else 0)
        evaluations = (self.plan.steps // self.plan.evaluate_every + 1) * (
            trainings - 1 or bool(dev)
        )
        steps = self.plan.steps * trainings
        return watch.seconds * steps + an_embedding * evaluated * evaluations

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

    def _fingerprint(self, *parts: object) -> str:
        """What makes a run this one: settings, data, seed, and the weights that it starts from."""
        digest = sha256(repr((asdict(self.settings), self.seed, self.precision)).encode())
        digest.update(repr([float(t.double().sum()) for t in self._initial.values()]).encode())
        for part in parts:
            if isinstance(part, Labelled):
                digest.update(part.labels.tobytes())
                part = part.examples
            digest.update(repr(part).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class _Stage:
    """One run of the loop."""

    name: str
    task: CPTuningTask
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
