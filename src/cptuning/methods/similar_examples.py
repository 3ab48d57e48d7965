"""What a task of CP-Tuning answers by similar training examples, with or without torch."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

from cptuning.backbone.joined_views import Views
from cptuning.data import LabelSpace, MultiLabelSpace, strata, stratified_sample
from cptuning.inference import (
    EmbeddingPredictor,
    Encoder,
    MultiLabelPredictor,
    SupportSet,
    class_scores,
    familiarity,
    familiarity_of_examples,
)
from cptuning.inference.choice import SENTENCE_WEIGHTS, LeaveOneOut, choice_of_weights
from cptuning.inference.support import FloatArray, IntArray
from cptuning.methods.cp_tuning_settings import CPTuningSettings
from cptuning.methods.evaluation_log import HeldOut
from cptuning.methods.training import LabelledExamples, Split
from cptuning.prompting import Encoding

MOST_REFERENCES = 2048
"""With more examples than this, evaluations compare with a sample of them."""


class SequenceEncoder(Encoder, Protocol):
    """An encoder that also takes examples that are laid out already."""

    def embed_encodings(self, encodings: Sequence[Encoding]) -> FloatArray:
        """Their embeddings."""
        ...

    def read_encodings(self, encodings: Sequence[Encoding]) -> FloatArray:
        """What is read for each example, before it is joined: (examples, sequences, features)."""
        ...


class SimilarExamples:
    """The training examples as an encoder sees them, and the answers that rest on them."""

    def __init__(
        self,
        encoder: SequenceEncoder,
        split: Split,
        encodings: Sequence[Encoding],
        settings: CPTuningSettings,
        seed: int,
    ) -> None:
        self.settings = settings
        self._encoder = encoder
        self._known = split.train
        self._encodings = encodings
        # An evaluation must not take longer the more examples there are: a sample stands for all.
        self._references = stratified_sample(strata(split.train.labels), MOST_REFERENCES, seed)
        self._choice: LeaveOneOut | None = None
        self._chosen_embeddings: FloatArray | None = None

    @property
    def references(self) -> list[Encoding]:
        """The examples that evaluations compare with."""
        return [self._encodings[row] for row in self._references]

    def sentence_weight(self, views: Views) -> float:
        """The weight of the sentence view: the one that was set, or what the examples choose."""
        if self.settings.sentence_weight is None:
            read, labels = self._encoder.read_encodings(self.references), self._known.labels
            weights = self._known.take(self._references).weights
            self._choice = choice_of_weights(read, views, labels[self._references], weights)
            chosen = SENTENCE_WEIGHTS[self._choice.candidate]
            self.settings = replace(self.settings, sentence_weight=chosen)
            if len(self._references) == len(self._encodings):
                self._chosen_embeddings = replace(views, sentence_weight=chosen).embeddings(read)
        return self.settings.sentence_weight or 0.0

    def held_out(
        self, dev: LabelledExamples, dev_encodings: Sequence[Encoding], n_classes: int
    ) -> HeldOut:
        """Scores of held-out examples by nearness to the training examples."""
        known = self._known.take(self._references)
        embeddings = self._encoder.embed_encodings([*self.references, *dev_encodings])
        own = embeddings[: len(known.labels)]
        support = SupportSet(known.examples, own, known.labels, weights=known.weights)
        asked = embeddings[len(known.labels) :]
        scores = class_scores(asked, support, n_classes, self.settings.inference, self.settings.k)
        return HeldOut(scores, familiarity(asked, support), dev.labels, dev.weights)

    def left_out(self) -> tuple[HeldOut, IntArray] | None:
        """Leave-one-out answers in closed form, if nothing is trained.

        An example that is alone in its class has none. The encoder is the same for all of them:
        if it is ``centred``, on all the examples.
        """
        if not self.settings.leaves_one_out:
            return None
        support = self.support()
        answers = self._choice
        if answers is None or len(self._references) < len(support):
            answers = LeaveOneOut([support.analysis])
        rows = answers.rows
        if len(rows) == 0:
            return None
        familiarities = familiarity_of_examples(support)[rows]
        weights = None if support.weights is None else support.weights[rows]
        return HeldOut(answers.scores(), familiarities, support.labels[rows], weights), rows

    def support(self) -> SupportSet:
        """The training examples as the model sees them now."""
        return self._untrained_support if self.settings.steps == 0 else self._embedded()

    @cached_property
    def _untrained_support(self) -> SupportSet:
        return self._embedded(self._chosen_embeddings)

    def _embedded(self, embeddings: FloatArray | None = None) -> SupportSet:
        if embeddings is None:
            embeddings = self._encoder.embed_encodings(self._encodings)
        known = self._known
        return SupportSet(known.examples, embeddings, known.labels, weights=known.weights)

    def predictor(
        self, label_space: LabelSpace, temperature: float, unknown_threshold: float | None
    ) -> EmbeddingPredictor:
        """The encoder with the training examples as its support set."""
        support = self.support().searched(self.settings.index)
        if isinstance(label_space, MultiLabelSpace):
            calibration = support.label_regression.calibration
            return MultiLabelPredictor(
                encoder=self._encoder,
                support=support,
                label_space=label_space,
                inference=self.settings.inference,
                k=self.settings.k,
                temperature=calibration.temperature,
                calibration=calibration,
            )
        return EmbeddingPredictor(
            self._encoder,
            support,
            label_space,
            inference=self.settings.inference,
            k=self.settings.k,
            temperature=temperature,
            unknown_threshold=unknown_threshold,
        )
