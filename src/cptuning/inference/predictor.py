"""What a fitted model does with a new text: embed it, compare it, answer and give the reason."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cptuning.data import Examples, LabelSpace, as_examples, as_labels
from cptuning.errors import CPTuningError
from cptuning.inference.calibration import softmax
from cptuning.inference.familiarity import familiarity
from cptuning.inference.scoring import Inference, Scores, class_scores
from cptuning.inference.support import FloatArray, SupportSet
from cptuning.prompting import Layout

UNKNOWN = "unknown"


class Encoder(Protocol):
    """Anything that turns examples into unit-norm float32 vectors."""

    layout: Layout

    def embed(self, examples: Examples) -> FloatArray:
        """One row an example, in their order."""
        ...

    def save(self, folder: Path) -> None:
        """Write what is needed to have this encoder again."""
        ...


@dataclass(frozen=True)
class Evidence:
    """A labelled example that speaks for an answer."""

    text: str | tuple[str, str]
    label: Any
    similarity: float


@dataclass(frozen=True)
class Predictor:
    """An encoder with its support set: predicts, explains and takes new examples; trains nothing.

    This is what an exported folder loads to; the estimator answers through one as well.
    """

    encoder: Encoder
    support: SupportSet
    label_space: LabelSpace
    inference: Inference
    k: int
    temperature: float
    unknown_threshold: float | None = None

    @property
    def classes_(self) -> np.ndarray[Any, Any]:
        """The classes, in the order of the columns of :meth:`predict_proba`."""
        return self.label_space.decode(np.arange(len(self.label_space.classes)))

    def examples(self, X: Any) -> Examples:
        """The input as examples of the kind that the model was trained on."""
        return as_examples(X, pair=self.support.examples.is_pair)

    def transform(self, X: Any) -> FloatArray:
        """The L2-normalised [OMSK] embeddings."""
        return self.encoder.embed(self.examples(X))

    def scores(self, embeddings: FloatArray) -> Scores:
        """The class scores of embeddings."""
        n_classes = len(self.label_space.classes)
        return class_scores(embeddings, self.support, n_classes, self.inference, self.k)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The label of each text; "unknown" for one below ``unknown_threshold``."""
        return self.labels_of(self.transform(X))

    def labels_of(self, embeddings: FloatArray) -> np.ndarray[Any, Any]:
        """The label of each embedding."""
        labels = self.label_space.decode(self.scores(embeddings).argmax(axis=1))
        if self.unknown_threshold is None:
            return labels
        strange = familiarity(embeddings, self.support) < self.unknown_threshold
        labels = labels.astype(object)
        labels[strange] = UNKNOWN
        return labels

    def predict_proba(self, X: Any) -> Scores:
        """The probability of each class, one row a text, columns as in ``classes_``."""
        return softmax(self.scores(self.transform(X)), self.temperature)

    def explain(self, X: Any, k: int = 3) -> list[list[Evidence]]:
        """The k nearest labelled examples of each text, best first."""
        return self.evidence(self.transform(X), k)

    def evidence(self, embeddings: FloatArray, k: int = 3) -> list[list[Evidence]]:
        """The k nearest labelled examples of each embedding, best first."""
        if k < 1:
            raise CPTuningError(f"k is {k}: ask for at least one neighbour.")
        indices, similarities = self.support.nearest(embeddings, k)
        texts = list(self.support.examples)
        labels = self.label_space.decode(self.support.labels).tolist()
        return [
            [
                Evidence(texts[i], labels[i], float(similarity))
                for i, similarity in zip(row, row_similarities, strict=True)
            ]
            for row, row_similarities in zip(indices, similarities, strict=True)
        ]

    def with_examples(self, X: Any, y: Sequence[Any]) -> "Predictor":
        """The same model knowing more examples, of old classes or of new ones."""
        examples = self.examples(X)
        labels = as_labels(y, len(examples))
        label_space = self.label_space.extended(labels)
        if self.unknown_threshold is not None and UNKNOWN in label_space.classes:
            raise CPTuningError(
                f"A class may not be called {UNKNOWN!r} while unknown_threshold is set."
            )
        more = SupportSet(examples, self.encoder.embed(examples), label_space.encode(labels))
        return replace(self, support=self.support + more, label_space=label_space)
