"""The rows of a table with a model's answers to them."""

from typing import Any

import numpy as np

from cptuning.data import Table
from cptuning.data.formats import file_name
from cptuning.errors import CPTuningError
from cptuning.inference import AnyPredictor


class AnsweredRows:
    """Adds the columns prediction and confidence, and more where they are asked for."""

    def __init__(
        self, predictor: AnyPredictor, probabilities: bool = False, neighbours: int = 0
    ) -> None:
        self.predictor = predictor
        self.neighbours = neighbours
        classes = predictor.label_space.classes
        self.class_columns = [f"p_{label}" for label in classes] if probabilities else []
        if len(set(self.class_columns)) < len(self.class_columns):
            raise CPTuningError(
                "Two classes of the model have the same name, so their columns would too: "
                "leave --probabilities out."
            )

    def rows(self, table: Table, path: str) -> list[dict[str, Any]]:
        """The rows of the table with the answers' columns behind their own."""
        return [
            row | answer for row, answer in zip(table.rows, self.added(table, path), strict=True)
        ]

    def added(self, table: Table, path: str) -> list[dict[str, Any]]:
        """The answers' columns alone, none of which the table has already."""
        answered = self.predictor.answer(table.examples)
        pairs = zip(answered.labels.tolist(), answered.probabilities, strict=True)
        added = [self._answer(*pair) for pair in pairs]
        if self.neighbours:
            nearest = self.predictor.evidence(answered.embeddings, self.neighbours)
            for answer, evidence in zip(added, nearest, strict=True):
                for number, example in enumerate(evidence, start=1):
                    answer.update(_neighbour(f"neighbour_{number}", example))
        taken = set().union(*table.rows) & added[0].keys()
        if taken:
            raise CPTuningError(
                f"{file_name(path)} has a column {min(taken)!r} already: rename or remove it."
            )
        return added

    def _answer(self, label: Any, probabilities: np.ndarray) -> dict[str, Any]:
        confidence = self.predictor.confidence(label, probabilities)
        answer = {
            "prediction": label,
            "confidence": None if confidence is None else round(confidence, 6),
        }
        for column, probability in zip(self.class_columns, probabilities, strict=False):
            answer[column] = round(float(probability), 6)
        return answer


def _neighbour(name: str, example: Any) -> dict[str, Any]:
    if isinstance(example.text, str):
        texts = {name: example.text}
    else:
        texts = {f"{name}_a": example.text[0], f"{name}_b": example.text[1]}
    similarity = round(example.similarity, 6)
    return {**texts, f"{name}_label": example.label, f"{name}_similarity": similarity}
