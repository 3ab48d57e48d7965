"""A fitted multi-label model: which labels each text has, and why each of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cptuning.data import Examples, MultiLabelSpace
from cptuning.errors import CPTuningError
from cptuning.inference.explanations import LabelExplanations
from cptuning.inference.label_calibration import LabelCalibration
from cptuning.inference.predictor import Answered, EmbeddingPredictor, check_neighbours
from cptuning.inference.reasons import NO_CLASS, Reasons, reasons_for_label
from cptuning.inference.scoring import Scores
from cptuning.inference.support import FloatArray, IntArray, SupportSet


@dataclass(frozen=True, kw_only=True)
class MultiLabelPredictor(EmbeddingPredictor):
    """An encoder with a support set of label sets: each label is answered by itself.

    Answers are tuples of labels in the order of the classes, which ``predict`` gives in the format
    that the training labels had.
    """

    label_space: MultiLabelSpace
    calibration: LabelCalibration

    def calibrated(self, calibration: LabelCalibration) -> "MultiLabelPredictor":
        """The same model with another calibration."""
        return replace(self, calibration=calibration, temperature=calibration.temperature)

    def predict(self, X: Any) -> Any:
        """The labels of each text: lists of labels, a 0/1 matrix or a sparse one, as in ``fit``."""
        return self.label_space.formatted(self.calibration.given(self.decision_scores(X)))

    def probabilities_of(self, scores: Scores) -> Scores:
        """The probability of each label by itself."""
        return self.calibration.probabilities(scores)

    def labels_of(
        self, embeddings: FloatArray, scores: Scores | None = None
    ) -> np.ndarray[Any, Any]:
        """The tuple of labels of each embedding."""
        scores = self.scores(embeddings) if scores is None else scores
        return self.label_space.decode(self.calibration.given(scores))

    def close_calls(self, embeddings: FloatArray, scores: Scores) -> IntArray:
        """The rows with a label that rounding may have decided, if there is a second look."""
        if self.second_look is None:
            return np.empty(0, np.int64)
        leads = np.abs(self.calibration.margins(scores)).min(axis=1)
        return np.flatnonzero(leads < self.second_look.clear_lead)

    def confidence(self, label: Any, probabilities: Scores) -> float:
        """The least probability of a label that is given; without any, that there is none."""
        given = [self.label_space.classes.index(one) for one in label]
        return float(probabilities[given].min()) if given else float(1 - probabilities.max())

    def uncertainty(self, probabilities: Scores) -> Scores:
        """The probability that some label of a set is wrong, if labels are independent."""
        given = probabilities >= self.calibration.threshold
        return np.asarray(1 - np.where(given, probabilities, 1 - probabilities).prod(axis=1))

    def explain(self, X: Any, k: int = 3) -> LabelExplanations:
        """For each text, a dictionary with the reasons for each label that it is given."""
        check_neighbours(k)
        examples = self.examples(X)
        return self.explained_by_label(examples, self.answer(examples), k)

    def explained_by_label(
        self, examples: Examples, answered: Answered, k: int = 3
    ) -> LabelExplanations:
        """The reasons for the labels that this model has given to these examples."""
        labels, classes = answered.labels.tolist(), self.label_space.classes
        found = self.label_reasons(answered.embeddings, labels, k)
        for label in classes:
            rows = [row for row, given in enumerate(labels) if label in given]
            passages = self.passages(examples.take(rows), [(label,)] * len(rows)) if rows else []
            for row, passage in zip(rows, passages, strict=True):
                found[row][label].passage = passage
        sure = [
            {c: float(p) for c, p in zip(classes, shares, strict=True) if c in given}
            for given, shares in zip(labels, answered.probabilities, strict=True)
        ]
        return LabelExplanations(found, examples, sure)

    def label_reasons(
        self, embeddings: FloatArray | None, labels: Sequence[Any], k: int = 3
    ) -> list[dict[Any, Reasons]]:
        """The k nearest examples with each label that an embedding was given, by label."""
        assert embeddings is not None  # this model's own answers have them
        found: list[dict[Any, Reasons]] = [{} for _ in labels]
        for number, label in enumerate(self.label_space.classes):
            rows = [row for row, given in enumerate(labels) if label in given]
            if rows:
                reasons = reasons_for_label(
                    embeddings[rows], number, self.support, self.label_space, k
                )
                for row, because in zip(rows, reasons, strict=True):
                    found[row][label] = because
        return found

    def reasons(
        self, embeddings: FloatArray | None, labels: Sequence[Any], k: int = 3
    ) -> list[Reasons]:
        """The k nearest examples that share a label that was given; if there is none, of all."""
        assert embeddings is not None
        found = []
        for row, by_label in enumerate(self.label_reasons(embeddings, labels, k)):
            if by_label:
                shared = {e.text: e for reasons in by_label.values() for e in reasons}
                ordered = sorted(shared.values(), key=lambda e: -e.similarity)
                found.append(Reasons(ordered[:k]))
            else:
                one = embeddings[row : row + 1]
                found += reasons_for_label(one, NO_CLASS, self.support, self.label_space, k)
        return found

    def _leads(self, scores: Scores, label: Any) -> Scores:
        """The sum of the scores of the labels that were given, each answered by itself."""
        given = [self.label_space.classes.index(one) for one in label]
        return np.asarray(scores[:, given].sum(axis=1))

    def with_examples(self, X: Any, y: Any) -> "MultiLabelPredictor":
        """The same model knowing more examples, also of new labels.

        The bias of a new label comes from leave-one-out answers at the temperature of the others.
        """
        examples = self.examples(X)
        label_space = self.label_space.extended(y)
        labels = label_space.encode(label_space.as_labels(y, len(examples)))
        exact = (self.second_look or self).encoder  # All later answers rest on these.
        more = SupportSet(examples, exact.embed(examples), labels)
        support = self.support.with_columns(len(label_space)) + more
        calibration = self.calibration
        if len(label_space) > len(calibration.biases):
            regression = support.label_regression
            scores = regression.leave_one_out(regression.shrinkage)
            fitted = LabelCalibration.fit(
                scores, support.labels, support.weights, calibration.temperature
            )
            calibration = calibration.extended(fitted)
        return replace(self, support=support, label_space=label_space, calibration=calibration)

    def without_examples(self, rows: Sequence[int]) -> "MultiLabelPredictor":
        """The same model without the examples in these rows of its support set.

        A label that loses its last example is forgotten, unless it is a column of a matrix.
        """
        gone = set(rows)
        support = self.support.take([row for row in range(len(self.support)) if row not in gone])
        if not support.labels.any():
            raise CPTuningError(
                "These are all examples with a label: leave the model at least one."
            )
        if self.label_space.format != "lists":
            return replace(self, support=support)
        left = np.flatnonzero(support.labels.any(axis=0))
        classes = tuple(self.label_space.classes[number] for number in left)
        return replace(
            self,
            support=replace(support, labels=support.labels[:, left]),
            label_space=MultiLabelSpace(classes),
            calibration=self.calibration.take(left),
        )

    def sets_of(self, probabilities: Scores, coverage: float) -> list[list[Any]]:
        """Refused: a text has all its labels, not one of a set."""
        raise CPTuningError(
            "Sets that hold the one right label mean nothing for a multi-label model: use predict."
        )

    def with_class_prior(self, class_prior: Any) -> "MultiLabelPredictor":
        """The same model: shares of classes that add up to 1 mean nothing for label sets."""
        if class_prior is not None:
            raise CPTuningError("class_prior is for one label per text: leave it out.")
        return self
