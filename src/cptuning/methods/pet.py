"""PET: words at a mask, a masked-LM loss on unlabelled text, patterns that teach a classifier."""

import logging
from dataclasses import replace
from typing import Any, cast

import numpy as np
from torch import Tensor
from torch.nn.functional import cross_entropy

from cptuning.backbone import PromptedEncoder
from cptuning.errors import CPTuningError
from cptuning.inference import softmax
from cptuning.inference.scoring import Scores
from cptuning.inference.support import IntArray
from cptuning.methods.classification import Classification, ClassificationTask, snapshot
from cptuning.methods.evaluation_log import EvaluationLog
from cptuning.methods.fine_tuning import FineTuning
from cptuning.methods.fit_result import FitResult
from cptuning.methods.heads import Head
from cptuning.methods.rival_settings import PETSettings
from cptuning.methods.scorer import TextScorer
from cptuning.methods.training import LabelledExamples, Split, Training
from cptuning.methods.word_learner import WordLearner
from cptuning.settings import TrainingSettings

_log = logging.getLogger("cptuning")


class PET(WordLearner[PETSettings]):
    """One pattern with its words."""

    method = "pet"

    def __init__(self, training: Training[PETSettings]) -> None:
        self.mlm_weight = training.settings.mlm_weight
        self.mlm_rate = training.settings.mlm_rate
        super().__init__(training)

    @classmethod
    def fit_result(cls, training: Training[PETSettings]) -> FitResult[Any]:
        """Fit one pattern, or an ensemble of several."""
        return fit_patterns(training) if training.settings.patterns else cls(training).fit()

    @classmethod
    def fit_seconds(cls, training: Training[PETSettings]) -> float:
        """The steps of an ensemble's final classifier cost about as much as a pattern's."""
        settings, seconds = training.settings, cls(training).estimate_seconds()
        if not settings.patterns:
            return seconds
        final = settings.distillation_steps / max(1, settings.steps)
        return seconds * (1 + len(settings.patterns) + final)


def fit_patterns(training: Training[PETSettings]) -> FitResult[Any]:
    """A model for each pattern; their mean teaches a classifier on the unlabelled texts.

    A pattern counts by its accuracy on the training examples before training, as PET's authors
    weigh them; all count the same if none is ever right. The classifier is one of fine-tuning,
    from the untrained backbone.
    """
    split, settings = training.split, training.settings
    if split.unlabeled is None:
        raise CPTuningError(
            "An ensemble of patterns teaches a final classifier by texts without labels: "
            "give unlabeled texts, or a single pattern."
        )
    put_back = snapshot(training.backbone)
    templates = tuple(dict.fromkeys((settings.template, *settings.patterns)))
    # All are read before the first is trained: a mistake in the last one shows at once.
    weights: list[float] = []
    for template in templates:
        learner = PET(replace(training, settings=replace(settings, template=template)))
        untrained = TextScorer(learner.encoder, learner.head).score(split.train.examples)
        weights.append(float(np.mean(untrained.argmax(axis=1) == split.train.labels)))
    if sum(weights) == 0:
        if training.processes.is_main:
            _log.warning(
                "No pattern answers any training example correctly before training: "
                "all of them count the same."
            )
        weights = [1.0] * len(templates)
    total = np.zeros((len(split.unlabeled), len(training.label_space)))
    for number, (template, weight) in enumerate(zip(templates, weights, strict=True), start=1):
        own = replace(settings, template=template)
        learner = PET(replace(training, settings=own, title=f"pattern {number}"))
        total += weight * learner.fit().task.scorer.score(split.unlabeled)
        put_back()
        settings = replace(settings, label_words=learner.settings.label_words)
    fitted = Student(replace(training, settings=settings), total / sum(weights)).fit()
    facts: dict[str, Any] = {"pattern_weights": dict(zip(templates, weights, strict=True))}
    if split.dev is None:  # Cross-fitting was for the patterns; nothing was held out of its texts.
        facts["validation"] = "none"
    return replace(fitted, facts=facts)


class Student(FineTuning):
    """The final classifier: fine-tuning on soft labels for the unlabelled texts."""

    def __init__(self, training: Training[PETSettings], scores: Scores) -> None:
        split, settings = training.split, training.settings
        assert split.unlabeled is not None
        self.texts = split.unlabeled
        self.temperature = settings.distillation_temperature
        self.soft_labels = softmax(scores, self.temperature).astype(np.float32)
        pair = " [SEP] {b}" if self.texts.is_pair else ""
        own = replace(
            settings,
            template=f"[CLS] {{a}}{pair}",
            steps=settings.distillation_steps,
            evaluate_every=max(1, settings.distillation_steps // 10),
            mlm_weight=0.0,
        )
        labelled = replace(split, unlabeled=None)
        alone = replace(training, settings=own, split=labelled, folds=0, title="classifier")
        super().__init__(cast(Training[TrainingSettings], alone))

    def objective(self, module: PromptedEncoder, head: Head) -> Classification:
        """The loss of soft labels."""
        return Distillation(module, head, self.temperature)

    def task(self, split: Split, log: EvaluationLog) -> "DistillationTask":
        """The task of learning what the patterns say about the unlabelled texts."""
        said = LabelledExamples(self.texts, self.soft_labels.argmax(axis=1).astype(np.int64))
        return DistillationTask(self, replace(split, train=said), log)


class Distillation(Classification):
    """The cross-entropy with soft labels, both at a temperature (Hinton et al., 2015)."""

    def __init__(self, encoder: PromptedEncoder, head: Head, temperature: float) -> None:
        super().__init__(encoder, head)
        self.temperature = temperature

    def classification_loss(
        self, scores: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """T² times it, so that gradients are as large as at temperature 1."""
        return self.temperature**2 * cross_entropy(scores / self.temperature, labels)


class DistillationTask(ClassificationTask[TrainingSettings]):
    """Soft labels in the place of classes."""

    learner: Student

    def batch_labels(self, chosen: IntArray) -> np.ndarray:
        """The soft labels of this process's texts."""
        return self.learner.soft_labels[self.batch_rows(chosen)]
