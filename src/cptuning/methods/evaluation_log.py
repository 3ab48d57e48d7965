"""The answers of models to examples that they did not train on, evaluation by evaluation."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from cptuning.data import strata, stratified_folds
from cptuning.inference import (
    ConformalSets,
    LabelCalibration,
    Rejection,
    fit_temperature,
    log_loss,
    medians,
    rejection,
    softmax,
)
from cptuning.inference.label_calibration import f1_per_row
from cptuning.inference.scoring import Scores
from cptuning.inference.support import IntArray
from cptuning.training import CheckpointFolder, Score

_log = logging.getLogger("cptuning")

# Of the answers, to choose the threshold of label sets by others.
_FOLDS = 5

_ARRAYS = ("scores", "familiarity", "labels", "weights")


@dataclass(frozen=True)
class HeldOut:
    """Class scores of held-out examples, their nearness to known ones, and their labels."""

    scores: Scores
    familiarity: NDArray[np.float32]
    labels: IntArray
    weights: NDArray[np.float64] | None = None
    """What each answer counts in calibration; None if each counts 1."""
    places: tuple[int, ...] | None = None
    """The classes from the least to the greatest, if the answers are medians."""

    @property
    def temperature(self) -> float:
        """The temperature that calibrates the probabilities of these answers."""
        if self.labels.ndim == 2:
            return self.calibration.temperature
        return fit_temperature(self.scores, self.labels, self.weights)

    @property
    def calibration(self) -> LabelCalibration:
        """What turns the scores of labels into probabilities and label sets."""
        return LabelCalibration.fit(self.scores, self.labels, self.weights)

    @property
    def probabilities(self) -> Scores:
        """The calibrated probability of each class."""
        return softmax(self.scores, self.temperature)

    @property
    def conformal(self) -> ConformalSets:
        """What label sets of a given coverage rest on."""
        return ConformalSets.of(self.probabilities, self.labels)

    def rejection(self, target: float) -> Rejection:
        """From which confidence on at most this share of the answers is wrong."""
        confidence = self.probabilities[np.arange(len(self.labels)), self.answers]
        return rejection(confidence, self.quality == 1, target)

    @property
    def answers(self) -> IntArray:
        """The number of the class that each example is answered with."""
        if self.places is None:
            return np.asarray(self.scores.argmax(axis=1))
        return medians(self.probabilities, self.places)

    @property
    def quality(self) -> NDArray[np.float64]:
        """How good each answer is: 1 if it is right, else 0; the F1 of a label set."""
        if self.labels.ndim == 1:
            return np.asarray(self.answers == self.labels, np.float64)
        return f1_per_row(self.cross_calibrated, self.labels)

    @property
    def cross_calibrated(self) -> IntArray:
        """Label sets by a calibration that did not see them: that of the other folds."""
        n = len(self.labels)
        folds = stratified_folds(strata(self.labels), min(_FOLDS, n), 0) if n > 1 else np.zeros(n)
        given = np.empty_like(self.labels)
        for fold in np.unique(folds):
            away, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            given[away] = self.take(rest).calibration.given(self.scores[away])
        return given

    def score(self) -> Score:
        """Accuracy (of label sets, the mean F1), in which each answer counts 1, and log-loss."""
        if self.labels.ndim == 2:
            losses = self.calibration.log_losses(self.scores, self.labels)
            loss = float(np.average(losses, weights=self.weights))
        else:
            loss = log_loss(self.scores, self.labels, self.temperature, self.weights)
        return Score(float(np.mean(self.quality)), -loss, len(self.labels))

    def is_clearly_better_than(self, other: "HeldOut") -> bool:
        """Whether more of these answers are right, by more than chance explains.

        Both answer the same examples. If g are right here alone and l are right there alone, it is
        g - l > sqrt(g + l + 1), a standard error with one imagined answer more. Of label sets, the
        differences d of their F1 count: Σ d > sqrt(Σ d² + 1).
        """
        gains = self.quality - other.quality
        return float(gains.sum()) > math.sqrt(float((gains**2).sum()) + 1)

    def take(self, rows: IntArray) -> "HeldOut":
        """Some of the answers, in the order asked for."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(
            self,
            scores=self.scores[rows],
            familiarity=self.familiarity[rows],
            labels=self.labels[rows],
            weights=weights,
        )

    @classmethod
    def joined(cls, parts: Sequence["HeldOut"]) -> "HeldOut":
        """The answers of several models, each to examples of its own."""
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.familiarity for part in parts]),
            np.concatenate([part.labels for part in parts]),
            np.concatenate(weights) if weights else None,
        )


@dataclass
class EvaluationLog:
    """The answers to one training's held-out examples by step; in a file too, to resume from."""

    folder: CheckpointFolder | None = None
    stage: str = ""
    fingerprint: str = ""
    writes: bool = True
    by_step: dict[int, HeldOut] = field(default_factory=dict)
    finished: bool = False

    def __post_init__(self) -> None:
        if self.folder is not None:
            self._read(self.folder.evaluations_file(self.stage))

    def add(self, step: int, answer: HeldOut) -> None:
        """Keep the answers after this many steps."""
        self.by_step[step] = answer
        self.write()

    def finish(self) -> None:
        """The training is over."""
        self.finished = True
        self.write()

    def write(self) -> None:
        """Write all of them in place of what was there."""
        if self.folder is None or not self.writes:
            return
        path = self.folder.evaluations_file(self.stage)
        arrays = {
            f"{step}/{name}": getattr(answer, name)
            for step, answer in self.by_step.items()
            for name in _ARRAYS
            if getattr(answer, name) is not None
        }
        facts = {"fingerprint": self.fingerprint, "finished": str(self.finished)}
        try:
            with self.folder.writing(path) as place:
                save_file(arrays, place, metadata=facts)
        except (OSError, SafetensorError) as error:
            _log.warning("%s could not be written: %s", path, error)

    def _read(self, path: Path) -> None:
        if not path.is_file():
            return
        try:
            with safe_open(path, framework="numpy") as file:
                facts = file.metadata() or {}
                if facts.get("fingerprint") != self.fingerprint:
                    return
                keys = set(file.keys())
                for step in sorted({int(key.split("/")[0]) for key in keys}):
                    names = {name: f"{step}/{name}" for name in _ARRAYS}
                    stored = {n: file.get_tensor(k) for n, k in names.items() if k in keys}
                    self.by_step[step] = HeldOut(**stored)
                self.finished = facts.get("finished") == "True"
        except (OSError, SafetensorError, ValueError, TypeError) as error:
            _log.warning("%s can't be read (%s): starting afresh.", path, error)
