"""How good the model is by its cross-fitted answers, and which labels they cast doubt on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cptuning.app.user_examples import Example, Label
from cptuning.cleaning import LIKELY, ErrorEstimate
from cptuning.cleaning.label_errors import label_set_errors
from cptuning.inference import softmax
from cptuning.reporting.label_metrics import LabelScores
from cptuning.reporting.metrics import ConfusionMatrix, wilson_interval

MOST_DOUBTFUL = 12


@dataclass(frozen=True)
class HeldOutAnswer:
    """The prediction for an example by a model that was not trained on it."""

    example: Example
    answer: Label
    probability: float
    """The probability of the answer."""
    own_probability: float
    """The probability of the example's own label."""
    error_probability: float
    """The probability that the example's label is wrong."""


@dataclass(frozen=True)
class Review:
    """The cross-fitted answers to the examples that could be held out."""

    answers: tuple[HeldOutAnswer, ...]

    @classmethod
    def of(cls, examples: Sequence[Example], classifier: Any) -> "Review":
        """The review of a classifier that was just fitted to these examples."""
        held_out = classifier.held_out_
        shares = softmax(held_out.scores, held_out.temperature)
        classes = [str(label) for label in classifier.classes_]
        seen = [examples[row] for row in classifier.held_out_rows_]
        errors = ErrorEstimate.of(held_out.scores, held_out.labels).probabilities
        return cls(
            tuple(
                HeldOutAnswer(
                    example,
                    answer=classes[int(row.argmax())],
                    probability=float(row.max()),
                    own_probability=float(row[classes.index(example.label)]),
                    error_probability=float(error),
                )
                for example, row, error in zip(seen, shares, errors, strict=True)
            )
        )

    @property
    def confusion(self) -> ConfusionMatrix:
        """Correct and wrong answers by class."""
        truth = [a.example.label for a in self.answers]
        return ConfusionMatrix.of(truth, [a.answer for a in self.answers], order=sorted(set(truth)))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy."""
        return wilson_interval(self.confusion.right, self.confusion.n)

    def doubtful(self, among: Sequence[Example]) -> list[HeldOutAnswer]:
        """Examples whose label is probably wrong, the most probable error first.

        Only examples of ``among`` are listed: one that was relabelled is no longer doubtful.
        """
        there = set(among)
        likely = [a for a in self.answers if a.error_probability >= LIKELY]
        wrong = [a for a in likely if a.answer != a.example.label and a.example in there]
        return sorted(wrong, key=_error_probability, reverse=True)[:MOST_DOUBTFUL]


@dataclass(frozen=True)
class LabelSetReview:
    """The same where a text may have several labels."""

    answers: tuple[HeldOutAnswer, ...]
    doubts: tuple[HeldOutAnswer, ...]
    """Labels that are probably missing or wrong; the answer is what they should be."""

    @classmethod
    def of(cls, examples: Sequence[Example], classifier: Any) -> "LabelSetReview":
        """The review of a classifier that was just fitted to these examples."""
        held_out, classes = classifier.held_out_, [str(label) for label in classifier.classes_]
        seen = [examples[row] for row in classifier.held_out_rows_]
        shares = held_out.calibration.probabilities(held_out.scores)
        given = held_out.cross_calibrated
        answers = tuple(
            HeldOutAnswer(
                example,
                answer=tuple(classes[label] for label in np.flatnonzero(row)),
                probability=float(np.where(row, p, 1 - p).prod()),
                own_probability=float(np.where(own, p, 1 - p).prod()),
                error_probability=0.0,
            )
            for example, row, own, p in zip(seen, given, held_out.labels, shares, strict=True)
        )
        wrong: dict[int, list[Any]] = {}
        for error in label_set_errors(held_out, classes):
            wrong.setdefault(error.row, []).append(error)
        doubts = []
        for row, errors in wrong.items():
            right = set(seen[row].labels) ^ {str(error.label) for error in errors}
            sure = errors[0].probability  # The most probable one comes first.
            doubts.append(HeldOutAnswer(seen[row], tuple(sorted(right)), sure, 1 - sure, sure))
        return cls(answers, tuple(doubts))

    @cached_property
    def scores(self) -> LabelScores:
        """True and given labels, and what follows from them."""
        truth = [a.example.labels for a in self.answers]
        names = sorted({label for labels in truth for label in labels})
        return LabelScores.of(truth, [tuple(a.answer) for a in self.answers], names)

    def doubtful(self, among: Sequence[Example]) -> list[HeldOutAnswer]:
        """Examples of ``among`` whose labels are probably wrong, the most probable error first."""
        there = set(among)
        return [doubt for doubt in self.doubts if doubt.example in there][:MOST_DOUBTFUL]


AnyReview = Review | LabelSetReview


def review_of(examples: Sequence[Example], classifier: Any) -> AnyReview:
    """The review of a classifier that was just fitted to these examples."""
    several = classifier.held_out_.labels.ndim == 2
    return (LabelSetReview if several else Review).of(examples, classifier)


def _error_probability(answer: HeldOutAnswer) -> float:
    return answer.error_probability


@dataclass(frozen=True)
class EmbeddingMap:
    """One point in the plane per example."""

    points: NDArray[np.float64]
    """Between 0 and 1 in both directions."""
    method: str

    @classmethod
    def of(cls, embeddings: NDArray[np.float32]) -> "EmbeddingMap":
        """The embeddings projected by t-SNE, or by PCA if there are only a few.

        >>> EmbeddingMap.of(np.eye(3, dtype=np.float32)).method
        'PCA'
        """
        from cptuning.reporting.projection import project

        points, method = project(embeddings)
        low, high = points.min(axis=0), points.max(axis=0)
        return cls((points - low) / np.maximum(high - low, 1e-9), method)
