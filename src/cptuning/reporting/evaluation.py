"""The evaluation of a fitted model on labelled texts: everything that a report needs."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cptuning.data import Examples
from cptuning.inference import (
    UNKNOWN,
    Predictor,
    Reasons,
    expected_calibration_error,
    mean_distance,
)
from cptuning.inference.predictor import Answered
from cptuning.inference.support import FloatArray, IntArray
from cptuning.reporting.metrics import ConfusionMatrix, wilson_interval


@dataclass(frozen=True)
class ConfidentError:
    """A wrong answer with the labelled examples that explain it."""

    text: str | tuple[str, str]
    truth: Hashable
    answer: Hashable
    confidence: float
    reasons: Reasons
    """Empty if the model does not compare texts with examples."""


@dataclass(frozen=True)
class Evaluation:
    """Texts with their true labels, the model's answers, and the confidence of each answer."""

    predictor: Predictor
    examples: Examples
    truth: list[Hashable]
    answers: list[Hashable]
    confidence: NDArray[np.float64]
    embeddings: FloatArray | None
    """None if the model does not compare texts with examples."""

    @classmethod
    def of(
        cls, predictor: Predictor, examples: Examples, labels: Sequence[Hashable]
    ) -> "Evaluation":
        """The evaluation of a predictor on these examples."""
        answered = predictor.answer(examples)
        return cls(
            predictor,
            examples,
            truth=list(labels),
            answers=answered.labels.tolist(),
            confidence=_confidence(predictor, answered),
            embeddings=answered.embeddings,
        )

    @property
    def mean_distance(self) -> float | None:
        """The mean absolute error of labels that have an order; None for others."""
        order = self.predictor.order
        return None if order is None else mean_distance(self.truth, self.answers, order)

    @cached_property
    def confusion(self) -> ConfusionMatrix:
        """Correct and wrong answers by class; the model's classes come first, in its order."""
        return ConfusionMatrix.of(self.truth, self.answers, self.predictor.label_space.classes)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy."""
        return wilson_interval(self.confusion.right, self.confusion.n)

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which answers are correct."""
        return np.array([a == t for a, t in zip(self.answers, self.truth, strict=True)])

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which texts were not answered "unknown": only these have a confidence."""
        if not self.predictor.answers_unknown:
            return np.ones(len(self.answers), dtype=bool)
        return np.array([answer != UNKNOWN for answer in self.answers])

    @property
    def calibration_error(self) -> float | None:
        """The expected calibration error on the texts that were answered; None if none was."""
        answered = self.answered
        if not answered.any():
            return None
        return expected_calibration_error(self.confidence[answered], self.right[answered])

    @property
    def foreign_labels(self) -> dict[Hashable, int]:
        """True labels that the model does not know, and how often they occur."""
        known = {*self.predictor.label_space.classes}
        if self.predictor.answers_unknown:
            known.add(UNKNOWN)
        return dict(Counter(label for label in self.truth if label not in known))

    @property
    def overlap(self) -> int:
        """How many of the texts are among the model's own labelled examples, if it has any."""
        support = self.predictor.support
        return 0 if support is None else overlap(self.examples, support.examples)

    def cautions(self) -> list[str]:
        """Caveats about the metrics."""
        return cautions(self.foreign_labels, self.overlap, len(self.truth))

    @cached_property
    def errors(self) -> IntArray:
        """The rows of the wrong answers, the most confident first; without "unknown"."""
        wrong = np.flatnonzero(~self.right & self.answered)
        return wrong[np.argsort(-self.confidence[wrong], kind="stable")]

    def most_confident_errors(self, limit: int = 100, k: int = 3) -> list[ConfidentError]:
        """The wrong answers with the highest confidence, with their explanations."""
        chosen = self.errors[:limit]
        texts = list(self.examples)
        found = [Reasons() for _ in chosen]
        if self.embeddings is not None:
            answers = [self.answers[i] for i in chosen]
            found = self.predictor.reasons(self.embeddings[chosen], answers, k)
        return [
            ConfidentError(
                texts[i], self.truth[i], self.answers[i], float(self.confidence[i]), reasons
            )
            for i, reasons in zip(chosen, found, strict=True)
        ]

    def summary(self) -> dict[str, Any]:
        """The metrics as a JSON object."""
        confusion = self.confusion
        return {
            "accuracy": confusion.accuracy,
            "accuracy_interval": list(self.interval),
            "macro_f1": confusion.macro_f1,
            "majority": confusion.majority,
            "n": confusion.n,
            "calibration_error": self.calibration_error,
            **({} if self.predictor.order is None else {"mean_distance": self.mean_distance}),
            "unknown_answers": int((~self.answered).sum()),
            "classes": {
                str(score.label): {
                    "precision": score.precision,
                    "recall": score.recall,
                    "f1": score.f1,
                    "n": score.support,
                }
                for score in confusion.by_class()
            },
            "foreign_labels": {str(label): n for label, n in self.foreign_labels.items()},
        }


def _confidence(predictor: Predictor, answered: Answered) -> NDArray[np.float64]:
    """The probability of each answer; of "unknown", that of the likeliest class."""
    highest = answered.probabilities.max(axis=1)
    if predictor.order is None:
        return np.asarray(highest)
    found = map(predictor.confidence, answered.labels.tolist(), answered.probabilities)
    return np.array([top if p is None else p for p, top in zip(found, highest, strict=True)])


def cautions(foreign_labels: Mapping[Hashable, int], overlap: int, n: int) -> list[str]:
    """Caveats about metrics: unknown labels, and texts that the model knows.

    >>> cautions({"odd": 2}, 0, 10)
    ["The model does not know the label 'odd' (2): its texts count as wrong."]
    """
    lines = []
    if foreign_labels:
        named = ", ".join(f"{label!r} ({n})" for label, n in foreign_labels.items())
        lines.append(f"The model does not know the label {named}: its texts count as wrong.")
    if overlap:
        lines.append(
            f"{overlap} of the {n} texts are among the model's own "
            "examples: the accuracy is too optimistic."
        )
    return lines


def overlap(examples: Examples, known: Examples) -> int:
    """How many of the examples are among the known ones.

    >>> overlap(Examples(("a", "b")), Examples(("b", "c")))
    1
    """
    own = set(known)
    return sum(example in own for example in examples)
