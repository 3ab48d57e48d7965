"""Texts that are examples themselves are answered as they are labelled."""

from collections.abc import Hashable
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np

from cptuning.inference import EmbeddingPredictor, MultiLabelPredictor
from cptuning.inference.predictor import Answered


class TaughtPredictor(EmbeddingPredictor):
    """A model that answers each text that it was taught as it was taught.

    A text that is labelled differently in several places is answered as any other.
    """

    @cached_property
    def taught(self) -> dict[Hashable, Any]:
        """The number of the class of each text that has only one; its row of a label matrix."""
        known: dict[Hashable, list[Any]] = {}
        for text, label in zip(self.support.examples, self.support.labels.tolist(), strict=True):
            known.setdefault(text, []).append(label)
        return {text: of[0] for text, of in known.items() if all(one == of[0] for one in of)}

    def answer(self, X: Any) -> Answered:
        """Labels, calibrated probabilities and embeddings; a taught label has probability 1."""
        examples = self.examples(X)
        answered = super().answer(examples)
        found = [(row, self.taught.get(text)) for row, text in enumerate(examples)]
        known = {row: label for row, label in found if label is not None}
        if not known:
            return answered
        rows, labels = list(known), np.array(list(known.values()))
        answers = answered.labels.astype(object)
        answers[rows] = self.label_space.decode(labels)
        probabilities = answered.probabilities.copy()
        probabilities[rows] = labels if labels.ndim == 2 else np.eye(len(self.label_space))[labels]
        return Answered(answers, probabilities, answered.embeddings)


class TaughtLabelsPredictor(TaughtPredictor, MultiLabelPredictor):
    """The same for texts that may have several labels."""


def taught(predictor: EmbeddingPredictor) -> TaughtPredictor:
    """The same model, but for the texts that it was taught."""
    several = isinstance(predictor, MultiLabelPredictor)
    kind = TaughtLabelsPredictor if several else TaughtPredictor
    return kind(**{part.name: getattr(predictor, part.name) for part in fields(predictor)})
