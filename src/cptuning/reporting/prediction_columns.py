"""The columns that `cptuning predict` adds to the rows of a table."""

from itertools import zip_longest
from typing import Any

import numpy as np

from cptuning.data import Table, as_cell, separator_for
from cptuning.data.formats import file_name
from cptuning.errors import CPTuningError
from cptuning.inference import Evidence, Hierarchy, MultiLabelPredictor, Predictor, Reasons


class PredictionColumns:
    """Adds the columns prediction and confidence, and others if they are asked for.

    They are the probabilities, a set of labels that has the right one with the probability
    ``coverage``, and neighbours. Label sets are lists or, with a ``separator``, texts.
    """

    def __init__(
        self,
        predictor: Predictor,
        probabilities: bool = False,
        neighbours: int = 0,
        coverage: float | None = None,
        separator: str | None = None,
        hierarchy: Hierarchy | None = None,
        min_confidence: float = 0.5,
    ) -> None:
        self.predictor = predictor
        self.coverage = coverage
        self.separator = separator
        if separator is not None:
            if not isinstance(predictor, MultiLabelPredictor):
                raise CPTuningError(
                    "The model gives one label per text: leave --label-separator out."
                )
            separator_for(predictor.label_space.classes, separator)
        self.neighbours = neighbours
        self.hierarchy, self.min_confidence = hierarchy, min_confidence
        classes = predictor.label_space.classes if hierarchy is None else hierarchy.nodes
        self.class_columns = [f"p_{label}" for label in classes] if probabilities else []
        if len(set(self.class_columns)) < len(self.class_columns):
            raise CPTuningError(
                "Two classes of the model have the same name, so their columns would too: "
                "omit --probabilities."
            )

    def rows(self, table: Table, path: str) -> list[dict[str, Any]]:
        """The rows of the table, followed by the added columns."""
        return [
            row | answer for row, answer in zip(table.rows, self.added(table, path), strict=True)
        ]

    def added(self, table: Table, path: str) -> list[dict[str, Any]]:
        """The added columns alone; raises an error if the table already has one of them."""
        answered = self.predictor.answer(table.examples)
        pairs = zip(answered.labels.tolist(), answered.probabilities, strict=True)
        added = [self._answer(*pair) for pair in pairs]
        if self.coverage is not None:
            sets = self.predictor.sets_of(answered.probabilities, self.coverage)
            for answer, labels in zip(added, sets, strict=True):
                answer["prediction_set"] = labels
        if self.neighbours:
            labels = answered.labels.tolist()
            found = self.predictor.reasons(answered.embeddings, labels, self.neighbours)
            for answer, reasons in zip(added, found, strict=True):
                answer.update(self._reasons(reasons))
        taken = set().union(*table.rows) & added[0].keys()
        if taken:
            raise CPTuningError(
                f"{file_name(path)} already has a column {min(taken)!r}: rename or remove it."
            )
        return added

    def counted(self, answer: dict[str, Any]) -> list[str]:
        """The label that a row was given, or each of its labels, to count them."""
        given = answer["prediction"]
        if not isinstance(self.predictor, MultiLabelPredictor):
            return [str(given)]
        if isinstance(given, str):
            return given.split(self.separator) if given else []
        return [str(label) for label in given]

    def _answer(self, label: Any, probabilities: np.ndarray) -> dict[str, Any]:
        confidence = self.predictor.confidence(label, probabilities)
        if self.hierarchy is not None:
            if not self.predictor.is_unknown(label):
                label, confidence = self.hierarchy.answer(probabilities, self.min_confidence)
            probabilities = self.hierarchy.probabilities(probabilities)
        answer = {
            "prediction": as_cell(label, self.separator),
            "confidence": None if confidence is None else round(confidence, 6),
        }
        for column, probability in zip(self.class_columns, probabilities, strict=False):
            answer[column] = round(float(probability), 6)
        return answer

    def _reasons(self, reasons: Reasons) -> dict[str, Any]:
        """The columns of the neighbours: the same for every row, however many neighbours it has."""
        support = self.predictor.support
        places = min(self.neighbours, len(support or ()))
        named = dict(zip_longest((f"neighbour_{n + 1}" for n in range(places)), reasons))
        columns: dict[str, Any] = {}
        for name, example in (named | {"against": reasons.against}).items():
            columns |= self._example(name, example)
        return columns

    def _example(self, name: str, example: Evidence | None) -> dict[str, Any]:
        columns = [f"{name}_a", f"{name}_b"] if self.predictor.is_pair else [name]
        columns += [f"{name}_label", f"{name}_similarity"]
        support = self.predictor.support
        can_be_description = support is not None and support.is_description is not None
        if can_be_description:
            columns.append(f"{name}_is_description")
        if example is None:
            return dict.fromkeys(columns)
        texts = [example.text] if isinstance(example.text, str) else example.text
        label = as_cell(example.label, self.separator)
        values: list[Any] = [*texts, label, round(example.similarity, 6)]
        if can_be_description:
            values.append(example.is_description)
        return dict(zip(columns, values, strict=True))
