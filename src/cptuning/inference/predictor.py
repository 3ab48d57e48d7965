"""What a fitted model does with a new text: embed it, compare it, answer and give the reason."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol, Self, cast

import numpy as np

from cptuning.data import (
    AddedExamples,
    Examples,
    LabelSpace,
    MultiLabelSpace,
    as_descriptions,
    as_examples,
    as_labels,
    is_multi_label,
)
from cptuning.data.weights import Weights, as_class_prior
from cptuning.errors import CPTuningError
from cptuning.inference.calibration import prior_correction, softmax, uncertainty
from cptuning.inference.conformal import ConformalSets, check_coverage
from cptuning.inference.explanations import Explanations, LabelExplanations
from cptuning.inference.familiarity import familiarity
from cptuning.inference.hierarchy import Hierarchy, check_min_confidence
from cptuning.inference.ordinal import Order, extended, medians
from cptuning.inference.reasons import NO_CLASS, Reasons, reasons_for
from cptuning.inference.scoring import Inference, Scores, class_scores, close_calls
from cptuning.inference.support import FloatArray, IntArray, SupportSet
from cptuning.prompting import Layout

UNKNOWN = "unknown"
PRIOR_AND_TARGET = (
    "A target for unknown_threshold is met on texts like the examples, and class_prior says that "
    "the texts are others: leave one of them out."
)
HEAD_FILE = "head.safetensors"
"""In the folder of a model that scores the classes itself."""


class Encoder(Protocol):
    """Anything that turns examples into unit-norm float32 vectors."""

    layout: Layout

    def embed(self, examples: Examples) -> FloatArray:
        """One row per example, in their order."""
        ...

    def save(self, folder: Path) -> None:
        """Write what is needed to have this encoder again."""
        ...


@dataclass(frozen=True)
class SecondLook:
    """An exact encoder beside a quantized one, for texts that rounding may have decided."""

    encoder: Encoder
    clear_lead: float
    """Re-encode a text if its class would change were all other classes nearer by this much."""


class Scorer(Protocol):
    """Anything that turns examples into class scores."""

    @property
    def encoder(self) -> Encoder:
        """What encodes the examples."""
        ...

    @property
    def demonstrations(self) -> object | None:
        """The training examples that it reads along with a text, if it does."""
        ...

    def score(self, examples: Examples) -> Scores:
        """One row per example, in their order, and one column per class."""
        ...

    def save(self, folder: Path) -> None:
        """Write what is needed to have this scorer again."""
        ...


@dataclass(frozen=True)
class Answered:
    """What a model says about some texts, all from encoding them once."""

    labels: np.ndarray[Any, Any]
    probabilities: Scores
    embeddings: FloatArray | None
    """None if the model does not compare texts."""


class Predictor(ABC):
    """A fitted model that answers; what only some models can do is refused in one sentence."""

    encoder: Encoder
    """What encodes texts."""
    label_space: LabelSpace
    temperature: float
    unknown_threshold: float | None
    """The similarity to the nearest example below which a text is "unknown"."""
    least_confidence: float | None
    """The confidence up to which a text is "unknown"."""
    conformal: ConformalSets | None
    """What label sets of a given coverage rest on, if there were held-out answers."""
    order: Order | None
    """The labels from the least to the greatest, if they have an order."""
    support: SupportSet | None
    """The labelled examples that answers rest on, if they do."""
    second_look: SecondLook | None
    """What re-encodes close calls, if the model is quantized."""
    class_prior: Weights | None
    """The share of each class that the probabilities are corrected for."""

    @abstractmethod
    def answer(self, X: Any) -> Answered:
        """Labels and probabilities, and the embeddings of a model that has them."""

    @abstractmethod
    def decision_scores(self, X: Any) -> Scores:
        """The class scores of each text before calibration."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the model's weights."""

    @property
    @abstractmethod
    def is_pair(self) -> bool:
        """Whether the model answers pairs of texts."""

    @property
    def classes_(self) -> np.ndarray[Any, Any]:
        """The classes, in the order of the columns of :meth:`predict_proba`."""
        return self.label_space.decode(np.arange(len(self.label_space.classes)))

    def examples(self, X: Any) -> Examples:
        """The input as examples of the kind that the model was trained on."""
        return as_examples(X, pair=self.is_pair)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The label of each text; "unknown" for one that ``unknown_threshold`` refuses."""
        return self.answer(X).labels

    def predict_set(self, X: Any, coverage: float = 0.9) -> list[list[Any]]:
        """For each text, labels of which one is right with this probability, likeliest first."""
        return self.sets_of(self.answer(X).probabilities, coverage)

    def sets_of(self, probabilities: Scores, coverage: float) -> list[list[Any]]:
        """The same from the probabilities of the texts."""
        check_coverage(coverage)
        if self.class_prior is not None:
            raise CPTuningError(
                "Label sets cover the right label of texts like the examples, and class_prior says "
                "that the texts are others: leave it out for label sets."
            )
        if self.conformal is None:
            raise CPTuningError(
                "This model has no held-out answers, which label sets rest on: fit it with a dev "
                'set or with validation="cross-fit".'
            )
        members, classes = self.conformal.members(probabilities, coverage), self.label_space.classes
        order = np.argsort(-probabilities, axis=1, kind="stable")
        return [
            [classes[number] for number in row if member[number]]
            for row, member in zip(order, members, strict=True)
        ]

    def with_conformal(self, conformal: ConformalSets) -> Self:
        """The same model with what label sets rest on."""
        changed: Self = replace(cast(Any, self), conformal=conformal)
        return changed

    def predict_proba(self, X: Any) -> Scores:
        """The probability of each class, one row per text, columns as in ``classes_``."""
        return self.answer(X).probabilities

    def hierarchy(self, separator: str = " > ") -> Hierarchy:
        """The tree of the classes, whose names are ways to them."""
        if isinstance(self.label_space, MultiLabelSpace):
            raise CPTuningError(
                "A hierarchy is for one label per text, and this model gives label sets."
            )
        return Hierarchy.of(self.label_space.classes, separator)

    def predict_levels(
        self, X: Any, min_confidence: float = 0.5, separator: str = " > "
    ) -> np.ndarray[Any, Any]:
        """For classes such as "billing > refund", the deepest node that is certain enough.

        The array holds the name of the node, None where not even the first level is certain
        enough, or "unknown".
        """
        check_min_confidence(min_confidence)
        tree = self.hierarchy(separator)
        answered = self.answer(X)
        found = np.empty(len(answered.labels), dtype=object)
        found[:] = [
            label if self.is_unknown(label) else tree.answer(shares, min_confidence)[0]
            for label, shares in zip(answered.labels.tolist(), answered.probabilities, strict=True)
        ]
        return found

    def transform(self, X: Any) -> FloatArray:
        """The L2-normalised [OMSK] embeddings."""
        raise CPTuningError(f"{_NEEDS_NEARNESS} its embeddings mean nothing: use method cp-tuning.")

    def reasons(
        self, embeddings: FloatArray | None, labels: Sequence[Any], k: int = 3
    ) -> list[Reasons]:
        """Why the model gave these labels to these embeddings, which come from :meth:`answer`."""
        raise CPTuningError(f"{_NEEDS_NEARNESS} it has no examples to show: use method cp-tuning.")

    def with_examples(self, X: Any, y: Sequence[Any]) -> "Predictor":
        """The same model knowing more examples, of old classes or of new ones."""
        raise CPTuningError(_NEEDS_TRAINING)

    def with_descriptions(self, label_descriptions: Any, weight: float) -> "Predictor":
        """The same model with more descriptions of labels, old or new, of this weight each."""
        raise CPTuningError(_NEEDS_TRAINING)

    def new_rows(self, examples: Examples, labels: Sequence[Hashable]) -> list[int]:
        """Which of some labelled examples the model does not know yet, each of them once."""
        raise CPTuningError(_NEEDS_TRAINING)

    def with_class_prior(self, class_prior: Any) -> "Predictor":
        """The same model for texts among which the classes have these shares, or None."""
        raise CPTuningError(
            f"{_NEEDS_NEARNESS} class_prior can't correct its probabilities: use method cp-tuning."
        )

    def without_texts(self) -> "Predictor":
        """The same model without its training texts; the reasons say that they were left out."""
        return self

    def explain(self, X: Any, k: int = 3) -> Explanations | LabelExplanations:
        """The k nearest labelled examples of each text that are of the class it is given."""
        check_neighbours(k)
        examples = self.examples(X)
        return self.explained(examples, self.answer(examples), k)

    def explained(self, examples: Examples, answered: Answered, k: int = 3) -> Explanations:
        """The reasons for answers that this model has given to these examples."""
        labels = answered.labels.tolist()
        found = self.reasons(answered.embeddings, labels, k)
        for reasons, passage in zip(found, self.passages(examples, labels), strict=True):
            reasons.passage = passage
        confidences = map(self.confidence, labels, answered.probabilities)
        return Explanations(found, examples, labels, list(confidences))

    def passages(self, examples: Examples, labels: Sequence[Any]) -> list[str | None]:
        """Of each long text that is read in windows, the one that speaks most for its answer."""
        return [None] * len(labels)

    def uncertainty(self, probabilities: Scores) -> Scores:
        """How unsure the model is of each of its answers, from 0 to 1."""
        return uncertainty(probabilities)

    @property
    def answers_unknown(self) -> bool:
        """Whether "unknown" is among the answers."""
        return self.unknown_threshold is not None or self.least_confidence is not None

    def is_unknown(self, label: Any) -> bool:
        """Whether an answer says that a text is far from everything, or hard to tell."""
        return self.answers_unknown and bool(label == UNKNOWN)

    def confidence(self, label: Any, probabilities: Scores) -> float | None:
        """The probability of the label that was given to a text; None if that is "unknown"."""
        return None if self.is_unknown(label) else float(probabilities.max())


def check_neighbours(k: Any) -> None:
    """Refuse a number of examples that can't be shown.

    >>> check_neighbours(0)
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: k is 0: give a whole number of examples, at least 1.
    """
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise CPTuningError(f"k is {k!r}: give a whole number of examples, at least 1.")


_NEEDS_NEARNESS = "This model does not answer by nearness to examples, so"
_NEEDS_TRAINING = (
    f"{_NEEDS_NEARNESS} it learns only by training: fit it again, or use method cp-tuning."
)


@dataclass(frozen=True)
class HeadPredictor(Predictor):
    """A model that scores the classes itself: what the rivals of CP-Tuning train."""

    scorer: Scorer
    label_space: LabelSpace
    temperature: float
    conformal: ConformalSets | None = None
    unknown_threshold = None
    least_confidence = None
    order = None
    support = None
    second_look = None
    class_prior = None

    @property
    def encoder(self) -> Encoder:  # type: ignore[override]
        """What encodes texts for the scorer."""
        return self.scorer.encoder

    @property
    def is_pair(self) -> bool:
        """Whether the template has places for two."""
        return self.encoder.layout.template.is_pair

    def decision_scores(self, X: Any) -> Scores:
        """The class logits."""
        return self.scorer.score(self.examples(X))

    def answer(self, X: Any) -> Answered:
        """Labels and calibrated probabilities."""
        scores = self.decision_scores(X)
        labels = self.label_space.decode(scores.argmax(axis=1))
        return Answered(labels, softmax(scores, self.temperature), embeddings=None)

    def without_texts(self) -> "HeadPredictor":
        """The same model, unless it needs its training texts to answer."""
        if self.scorer.demonstrations is not None:
            raise CPTuningError(
                "This model reads training texts along with every text, as demonstrations, so it "
                "can't be shared without them: keep include_texts, or train without demonstrations."
            )
        return self

    def save(self, folder: Path) -> None:
        """Write the scorer."""
        self.scorer.save(folder)


@dataclass(frozen=True)
class EmbeddingPredictor(Predictor):
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
    least_confidence: float | None = None
    conformal: ConformalSets | None = None
    second_look: SecondLook | None = None
    class_prior: Weights | None = None
    """The share of each class among the texts to answer; None: as the inference assumes."""
    order: Order | None = None

    @property
    def is_pair(self) -> bool:
        """Whether the examples are pairs."""
        return self.support.examples.is_pair

    def save(self, folder: Path) -> None:
        """Write the encoder, or both."""
        self.encoder.save(folder)
        if self.second_look is not None:
            self.second_look.encoder.save(folder)

    def without_texts(self) -> "EmbeddingPredictor":
        """The same model without the texts of its examples."""
        return replace(self, support=self.support.without_texts())

    def transform(self, X: Any) -> FloatArray:
        """The L2-normalised [OMSK] embeddings."""
        return self.encoder.embed(self.examples(X))

    def scores(self, embeddings: FloatArray) -> Scores:
        """The class scores of embeddings."""
        n_classes = len(self.label_space.classes)
        scores = class_scores(embeddings, self.support, n_classes, self.inference, self.k)
        correction = self._prior_correction
        return scores if correction is None else scores + correction

    @property
    def _prior_correction(self) -> Scores | None:
        """What ``class_prior`` adds to the scores.

        Neighbours vote in proportion to their number and weight; by class means and discriminants
        all classes are equally likely. A class that was added later is as likely as it was.
        """
        if self.class_prior is None:
            return None
        n = len(self.label_space)
        assumed = np.full(n, 1 / n)
        if self.inference == "knn":
            counts = np.bincount(self.support.labels, self.support.weights, minlength=n)
            assumed = counts / counts.sum()
        prior = assumed.copy()
        named = len(self.class_prior)
        prior[:named] = self.class_prior * assumed[:named].sum()
        return prior_correction(prior, assumed, self.temperature)

    def with_class_prior(self, class_prior: Any) -> "EmbeddingPredictor":
        """The same model for texts among which the classes have these shares, or None.

        They are given by label in a dictionary, or in the order of the classes.
        """
        prior = as_class_prior(class_prior, self.label_space)
        if prior is not None and self.least_confidence is not None:
            raise CPTuningError(PRIOR_AND_TARGET)
        return replace(self, class_prior=prior)

    def decision_scores(self, X: Any) -> Scores:
        """Votes or similarities."""
        return self._read(self.examples(X))[1]

    def _read(self, examples: Examples) -> tuple[FloatArray, Scores]:
        """Embeddings and class scores; those of close calls are exact."""
        embeddings = self.encoder.embed(examples)
        scores = self.scores(embeddings)
        close = self.close_calls(embeddings, scores)
        if len(close):
            assert self.second_look is not None
            embeddings[close] = self.second_look.encoder.embed(examples.take(close))
            scores[close] = self.scores(embeddings[close])
        return embeddings, scores

    def close_calls(self, embeddings: FloatArray, scores: Scores) -> IntArray:
        """The rows that rounding may have decided, if there is a second look at them."""
        if self.second_look is None:
            return np.empty(0, np.int64)
        if self.order is not None:
            best = self.best(scores)[:, None]
            is_other = np.arange(scores.shape[1]) != best
            nearer = self.best(scores + self.second_look.clear_lead * is_other)
            return np.flatnonzero(nearer != best[:, 0])
        return close_calls(
            embeddings,
            scores,
            self.support,
            self.inference,
            self.k,
            self.second_look.clear_lead,
            self._prior_correction,
        )

    def answer(self, X: Any) -> Answered:
        """Labels, calibrated probabilities and embeddings."""
        embeddings, scores = self._read(self.examples(X))
        labels = self.labels_of(embeddings, scores)
        return Answered(labels, self.probabilities_of(scores), embeddings)

    def probabilities_of(self, scores: Scores) -> Scores:
        """The calibrated probability of each class."""
        return softmax(scores, self.temperature)

    def best(self, scores: Scores) -> IntArray:
        """The number of the class that each row is answered with: the likeliest, or the median."""
        if self.order is None:
            return np.asarray(scores.argmax(axis=1))
        places = [self.label_space.classes.index(label) for label in self.order]
        return medians(self.probabilities_of(scores), places)

    def confidence(self, label: Any, probabilities: Scores) -> float | None:
        """The probability of the label that was given to a text; None if that is "unknown"."""
        if self.order is None or self.is_unknown(label):
            return super().confidence(label, probabilities)
        return float(probabilities[self.label_space.classes.index(label)])

    def labels_of(
        self, embeddings: FloatArray, scores: Scores | None = None
    ) -> np.ndarray[Any, Any]:
        """The label of each embedding; its class scores are computed unless they are given."""
        scores = self.scores(embeddings) if scores is None else scores
        best = self.best(scores)
        labels = self.label_space.decode(best)
        if not self.answers_unknown:
            return labels
        labels = labels.astype(object)
        if self.unknown_threshold is not None:
            labels[familiarity(embeddings, self.support) < self.unknown_threshold] = UNKNOWN
        if self.least_confidence is not None:
            sure = self.probabilities_of(scores)[np.arange(len(best)), best]
            labels[sure <= self.least_confidence] = UNKNOWN
        return labels

    def reasons(
        self, embeddings: FloatArray | None, labels: Sequence[Any], k: int = 3
    ) -> list[Reasons]:
        """The k nearest labelled examples of the class that each embedding was given."""
        assert embeddings is not None  # this model's own answers have them
        numbers = {label: number for number, label in enumerate(self.label_space.classes)}
        answers = [NO_CLASS if self.is_unknown(label) else numbers[label] for label in labels]
        return reasons_for(embeddings, np.array(answers, int), self.support, self.label_space, k)

    def passages(self, examples: Examples, labels: Sequence[Any]) -> list[str | None]:
        """Of each long text that is read in windows, the one that speaks most for its answer.

        It is the window in which the score of the answer is the farthest above those of the other
        classes. An answer "unknown", or a set of no labels, has none.
        """
        found: list[str | None] = [None] * len(labels)
        if self.encoder.layout.windows == 1 or self.is_pair:
            return found
        for row, (text, label) in enumerate(zip(examples.first, labels, strict=True)):
            windows = self.encoder.layout.passages(text)
            if len(windows) > 1 and label != () and not self.is_unknown(label):
                scores = self.scores(self.encoder.embed(Examples(tuple(windows))))
                found[row] = windows[int(self._leads(scores, label).argmax())]
        return found

    def _leads(self, scores: Scores, label: Any) -> Scores:
        """How far the score of a label is above all others, row by row."""
        own = self.label_space.classes.index(label)
        return np.asarray(scores[:, own] - np.delete(scores, own, axis=1).max(axis=1, initial=0.0))

    def with_examples(self, X: Any, y: Sequence[Any]) -> "EmbeddingPredictor":
        """The same model knowing more examples, of old classes or of new ones."""
        examples = self.examples(X)
        if is_multi_label(y):
            raise CPTuningError(
                "The model gives one label per text, but label sets were given: "
                "give one label for each, or fit a model of label sets."
            )
        labels = as_labels(y, len(examples))
        label_space = self.label_space.extended(labels)
        if self.answers_unknown and UNKNOWN in label_space.classes:
            raise CPTuningError(
                f"A class may not be called {UNKNOWN!r} while unknown_threshold is set."
            )
        exact = (self.second_look or self).encoder  # All later answers rest on these.
        more = SupportSet(examples, exact.embed(examples), label_space.encode(labels))
        order = None if self.order is None else extended(self.order, label_space)
        return replace(self, support=self.support + more, label_space=label_space, order=order)

    def with_descriptions(self, label_descriptions: Any, weight: float) -> "EmbeddingPredictor":
        """The same model with more descriptions of labels, old or new, of this weight each."""
        if self.is_pair or self.support.labels.ndim == 2:
            raise CPTuningError("label_descriptions are for single texts with one label each.")
        described = as_descriptions(label_descriptions, self.label_space.classes)
        rows = [] if described is None else self.new_rows(described.examples, described.labels)
        if described is None or not rows:
            return self
        labels = [described.labels[row] for row in rows]
        found = self.with_examples(described.examples.take(rows), labels)
        n, all_weights = len(self.support), found.support.weights
        weights = np.ones(len(found.support)) if all_weights is None else all_weights.copy()
        flags = np.zeros(len(found.support), bool)
        if self.support.is_description is not None:
            flags[:n] = self.support.is_description
        weights[n:], flags[n:] = weight, True
        support = replace(
            found.support,
            weights=None if (weights == 1).all() else weights,
            is_description=flags,
        )
        return replace(found, support=support)

    def new_rows(self, examples: Examples, labels: Sequence[Hashable]) -> list[int]:
        """Which of some labelled examples the model does not know yet, each of them once."""
        own = self.label_space.decode(self.support.labels).tolist()
        known = set(zip(self.support.examples, own, strict=True))
        rows = []
        asked = self.label_space.as_labels(labels, len(examples))
        for row, example in enumerate(zip(examples, asked, strict=True)):
            if example not in known:
                known.add(example)
                rows.append(row)
        return rows

    def with_added(self, batches: Sequence[AddedExamples]) -> "EmbeddingPredictor":
        """The same model as if it had been given the batches one by one, but encoded together.

        What it knows already is left out: several sources may add the same examples.
        """
        if not batches:
            return self
        label_space = self.label_space
        for batch in batches:
            label_space = label_space.extended(batch.labels)
        examples = self.examples([text for batch in batches for text in batch.examples])
        labels = [label for batch in batches for label in batch.labels]
        rows = self.new_rows(examples, labels)
        if not rows:
            return self
        extended = replace(self, label_space=label_space)
        return extended.with_examples(examples.take(rows), [labels[row] for row in rows])

    def without_examples(self, rows: Sequence[int]) -> "EmbeddingPredictor":
        """The same model without the labelled examples in these rows of its support set.

        A class that loses its last example is forgotten.
        """
        gone = set(rows)
        kept = [row for row in range(len(self.support)) if row not in gone]
        if not kept:
            raise CPTuningError("These are all the examples of the model: leave it at least one.")
        support = self.support.take(kept)
        left = np.unique(support.labels)  # in the classes' own order
        support = replace(support, labels=np.searchsorted(left, support.labels))
        classes = tuple(self.label_space.classes[number] for number in left)
        prior = self.class_prior
        if prior is not None:
            prior = prior[left[left < len(prior)]]
            prior = prior / prior.sum() if len(prior) else None
        order = self.order and tuple(label for label in self.order if label in classes)
        return replace(
            self,
            support=support,
            label_space=LabelSpace(classes),
            class_prior=prior,
            order=order,
        )
