"""The evaluation of a model of label sets on labelled texts: everything that a report needs."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cptuning.data import Examples
from cptuning.inference import MultiLabelPredictor, Reasons, expected_calibration_error
from cptuning.inference.support import FloatArray, IntArray
from cptuning.reporting.evaluation import cautions, overlap
from cptuning.reporting.label_metrics import LabelScores
from cptuning.reporting.metrics import wilson_interval

Labels = tuple[Hashable, ...]


@dataclass(frozen=True)
class LabelSetError:
    """A text that was not given exactly its labels, and why it was given each wrong one."""

    text: str | tuple[str, str]
    truth: Labels
    answer: Labels
    confidence: float
    reasons: dict[Any, Reasons]
    """By the labels that are given though they are not true."""

    @property
    def missing(self) -> Labels:
        """The true labels that are not given."""
        return tuple(label for label in self.truth if label not in self.answer)

    @property
    def extra(self) -> Labels:
        """The given labels that are not true."""
        return tuple(label for label in self.answer if label not in self.truth)


@dataclass(frozen=True)
class LabelSetEvaluation:
    """Texts with their true label sets, and what a model says about each label."""

    predictor: MultiLabelPredictor
    examples: Examples
    truth: list[Labels]
    answers: list[Labels]
    probabilities: NDArray[np.float64]
    """Of each label of the model, one row per text."""
    embeddings: FloatArray

    @classmethod
    def of(
        cls, predictor: MultiLabelPredictor, examples: Examples, labels: Sequence[Any]
    ) -> "LabelSetEvaluation":
        """The evaluation of a predictor on these examples."""
        answered = predictor.answer(examples)
        assert answered.embeddings is not None
        truth: Any = predictor.label_space.as_labels(labels, len(examples))
        return cls(
            predictor,
            examples,
            truth,
            answered.labels.tolist(),
            answered.probabilities,
            answered.embeddings,
        )

    @cached_property
    def scores(self) -> LabelScores:
        """True and given labels; the model's labels come first, in its order."""
        return LabelScores.of(self.truth, self.answers, self.predictor.label_space.classes)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the subset accuracy."""
        return wilson_interval(int(self.scores.right.sum()), self.scores.n)

    @property
    def has_label(self) -> IntArray:
        """Which texts truly have each label of the model."""
        known = self.predictor.label_space.classes
        return np.array([[int(c in own) for c in known] for own in self.truth])

    @property
    def calibration_error(self) -> float:
        """The expected calibration error of the probabilities of all labels of all texts."""
        return expected_calibration_error(self.probabilities.ravel(), self.has_label.ravel())

    @property
    def foreign_labels(self) -> dict[Hashable, int]:
        """True labels that the model does not know, and how often they occur."""
        known = {*self.predictor.label_space.classes}
        return dict(Counter(label for own in self.truth for label in own if label not in known))

    def cautions(self) -> list[str]:
        """Caveats about the metrics."""
        own = overlap(self.examples, self.predictor.support.examples)
        return cautions(self.foreign_labels, own, len(self.truth))

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """The probability that all labels of a text are right, if labels are independent."""
        return np.asarray(1 - self.predictor.uncertainty(self.probabilities))

    @cached_property
    def errors(self) -> IntArray:
        """The rows that were not given exactly their labels, the most confident first."""
        wrong = np.flatnonzero(~self.scores.right)
        return wrong[np.argsort(-self.confidence[wrong], kind="stable")]

    def most_confident_errors(self, limit: int = 100, k: int = 3) -> list[LabelSetError]:
        """The wrong label sets with the highest confidence, with reasons for each extra label."""
        chosen = self.errors[:limit]
        texts = list(self.examples)
        extra = [tuple(c for c in self.answers[i] if c not in self.truth[i]) for i in chosen]
        found = self.predictor.label_reasons(self.embeddings[chosen], extra, k)
        return [
            LabelSetError(
                texts[i], self.truth[i], self.answers[i], float(self.confidence[i]), reasons
            )
            for i, reasons in zip(chosen, found, strict=True)
        ]

    def summary(self) -> dict[str, Any]:
        """The metrics as a JSON object."""
        scores = self.scores
        return {
            "accuracy": scores.subset_accuracy,
            "accuracy_interval": list(self.interval),
            "micro_f1": scores.micro_f1,
            "micro_f1_interval": list(scores.micro_f1_interval),
            "micro_precision": scores.micro_precision,
            "micro_recall": scores.micro_recall,
            "macro_f1": scores.macro_f1,
            "sample_f1": scores.sample_f1,
            "constant_f1": scores.constant_f1,
            "majority": scores.majority,
            "n": scores.n,
            "calibration_error": self.calibration_error,
            "classes": {
                str(score.label): {
                    "precision": score.precision,
                    "recall": score.recall,
                    "f1": score.f1,
                    "n": score.support,
                }
                for score in scores.by_label()
            },
            "foreign_labels": {str(label): n for label, n in self.foreign_labels.items()},
        }


def f1_verdict(scores: LabelScores) -> str:
    """Whether the model is better than giving every text the same labels."""
    low, high = scores.micro_f1_interval
    constant = scores.constant_f1
    if low > constant:
        return "It is clearly better than giving every text the same labels."
    if high < constant:
        return "It is clearly worse than giving every text the same labels."
    return (
        f"On {scores.n} texts it is not clearly different from giving every text the same labels: "
        "the interval contains that baseline."
    )
