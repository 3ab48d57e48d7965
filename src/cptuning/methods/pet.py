"""PET: words at a mask, a masked-LM loss on unlabelled text, patterns that teach a classifier."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn.functional import cross_entropy

from cptuning.backbone import Backbone, PromptedEncoder
from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.inference import softmax
from cptuning.inference.scoring import Scores
from cptuning.inference.support import IntArray
from cptuning.methods.classification import Classification, ClassificationTask, snapshot
from cptuning.methods.evaluation_log import EvaluationLog
from cptuning.methods.fine_tuning import FineTuning
from cptuning.methods.fitting import FitResult, Fitter, Run
from cptuning.methods.heads import Head
from cptuning.methods.rival_settings import PETSettings
from cptuning.methods.scorer import TextScorer
from cptuning.methods.task import LabelledExamples, Split
from cptuning.methods.training_settings import TrainingSettings
from cptuning.methods.word_learner import WordLearner

_log = logging.getLogger("cptuning")


class PET(WordLearner[PETSettings]):
    """One pattern with its words."""

    method = "pet"

    def __init__(
        self, backbone: Backbone, settings: PETSettings, run: Run, classes: Sequence[str]
    ) -> None:
        self.mlm_weight, self.mlm_rate = settings.mlm_weight, settings.mlm_rate
        super().__init__(backbone, settings, run, classes)


def fit_patterns(
    split: Split,
    folds: int,
    backbone: Backbone,
    settings: PETSettings,
    run: Run,
    classes: Sequence[str],
) -> FitResult["DistillationTask"]:
    """A model for each pattern; their mean teaches a classifier on the unlabelled texts.

    A pattern counts by its accuracy on the training examples before training, as PET's authors
    weigh them; all count the same where none is ever right. The classifier is one of fine-tuning,
    from the untrained backbone.
    """
    if split.unlabeled is None:
        raise CPTuningError(
            "An ensemble of patterns teaches a final classifier by texts without labels: "
            "give unlabeled texts, or a single pattern."
        )
    put_back = snapshot(backbone)
    templates = tuple(dict.fromkeys((settings.template, *settings.patterns)))
    # All are read before the first is trained: a mistake in the last one shows at once.
    weights: list[float] = []
    for template in templates:
        learner = PET(backbone, replace(settings, template=template), run, classes)
        untrained = TextScorer(learner.encoder, learner.head).score(split.train.examples)
        weights.append(float(np.mean(untrained.argmax(axis=1) == split.train.labels)))
    if sum(weights) == 0:
        if run.processes.is_main:
            _log.warning(
                "No pattern answers any training example rightly before training: "
                "all of them count the same."
            )
        weights = [1.0] * len(templates)
    total = np.zeros((len(split.unlabeled), len(classes)))
    for number, (template, weight) in enumerate(zip(templates, weights, strict=True), start=1):
        learner = PET(backbone, replace(settings, template=template), run, classes)
        taught = Fitter(learner, run, f"pattern {number}").fit(split, folds)
        total += weight * taught.task.scorer.score(split.unlabeled)
        put_back()
        settings = replace(settings, label_words=learner.settings.label_words)
    mean = total / sum(weights)
    student = Student(backbone, settings, run, classes, split.unlabeled, mean)
    fitted = Fitter(student, run, "classifier").fit(replace(split, unlabeled=None))
    facts: dict[str, Any] = {"pattern_weights": dict(zip(templates, weights, strict=True))}
    if split.dev is None:  # Cross-fitting was for the patterns; nothing was held out of its texts.
        facts["validation"] = "none"
    return replace(fitted, facts=facts)


class Student(FineTuning):
    """The final classifier: fine-tuning on soft labels."""

    def __init__(
        self,
        backbone: Backbone,
        settings: PETSettings,
        run: Run,
        classes: Sequence[str],
        texts: Examples,
        scores: Scores,
    ) -> None:
        self.texts = texts
        self.temperature = settings.distillation_temperature
        self.soft_labels = softmax(scores, self.temperature).astype(np.float32)
        pair = " [SEP] {b}" if texts.is_pair else ""
        own = replace(
            settings,
            template=f"[CLS] {{a}}{pair}",
            steps=settings.distillation_steps,
            evaluate_every=max(1, settings.distillation_steps // 10),
            mlm_weight=0.0,
        )
        super().__init__(backbone, own, run, classes)

    def objective(self, module: PromptedEncoder, head: Head) -> Classification:
        """The loss of soft labels."""
        return Distillation(module, head, self.temperature)

    def task(self, split: Split, answers: EvaluationLog) -> "DistillationTask":
        """The task of learning what the patterns say of the unlabelled texts."""
        said = LabelledExamples(self.texts, self.soft_labels.argmax(axis=1).astype(np.int64))
        return DistillationTask(self, replace(split, train=said), answers)


class Distillation(Classification):
    """The cross-entropy with soft labels, both at a temperature, as Hinton et al. have it."""

    def __init__(self, encoder: PromptedEncoder, head: Head, temperature: float) -> None:
        super().__init__(encoder, head)
        self.temperature = temperature

    def classification_loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """T² times it, so that gradients are as large as at temperature 1."""
        return self.temperature**2 * cross_entropy(scores / self.temperature, labels)


class DistillationTask(ClassificationTask[TrainingSettings]):
    """Soft labels in the place of classes."""

    learner: Student

    def batch_labels(self, chosen: IntArray) -> np.ndarray:
        """The soft labels of this process's texts."""
        mine = slice(self.processes.index, None, self.processes.count)
        return self.learner.soft_labels[chosen[mine]]
