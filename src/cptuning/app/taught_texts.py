"""Texts that are examples themselves are answered as they are labelled."""

from collections.abc import Hashable
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np

from cptuning.inference import EmbeddingPredictor
from cptuning.inference.predictor import Answered


class TaughtPredictor(EmbeddingPredictor):
    """A model that answers each text that it was taught as it was taught.

    A text that has several labels is answered as any other.
    """

    @classmethod
    def of(cls, predictor: EmbeddingPredictor) -> "TaughtPredictor":
        """The same model, but for these texts."""
        return cls(**{part.name: getattr(predictor, part.name) for part in fields(predictor)})

    @cached_property
    def taught(self) -> dict[Hashable, int]:
        """The number of the class of each text that has only one."""
        classes: dict[Hashable, set[int]] = {}
        for text, label in zip(self.support.examples, self.support.labels.tolist(), strict=True):
            classes.setdefault(text, set()).add(label)
        return {text: next(iter(of)) for text, of in classes.items() if len(of) == 1}

    def answer(self, X: Any) -> Answered:
        """Labels, calibrated probabilities and embeddings; a taught label has probability 1."""
        examples = self.examples(X)
        answered = super().answer(examples)
        found = [(row, self.taught.get(text)) for row, text in enumerate(examples)]
        known = {row: label for row, label in found if label is not None}
        if not known:
            return answered
        rows, labels = list(known), list(known.values())
        answers = answered.labels.astype(object)
        answers[rows] = self.label_space.decode(np.array(labels))
        probabilities = answered.probabilities.copy()
        probabilities[rows] = np.eye(len(self.label_space))[labels]
        return Answered(answers, probabilities, answered.embeddings)
