"""What a task of CP-Tuning answers by similar training examples, with or without torch."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np

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
from cptuning.inference.choice import (
    DESCRIPTION_WEIGHTS,
    PREFERRED_WEIGHTS,
    SENTENCE_WEIGHTS,
    LeaveOneOut,
    choice_of_weights,
)
from cptuning.inference.closed_form import Flags
from cptuning.inference.support import FloatArray, IntArray
from cptuning.methods.cp_tuning_settings import CPTuningSettings
from cptuning.methods.evaluation_log import HeldOut
from cptuning.methods.training import LabelledExamples, Split, Weights
from cptuning.prompting import Encoding

MOST_REFERENCES = 2048
"""With more examples than this, evaluations compare with a sample of them."""


SENTENCE_ALONE = 100.0
"""The weight of the sentence view where labels are only described: the mask view is left out."""


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
        classes = strata(split.train.labels)
        self._references: IntArray = np.empty(0, np.int64)
        if len(classes):
            self._references = stratified_sample(classes, MOST_REFERENCES, seed)
        self._descriptions = split.descriptions
        self._described: list[Encoding] = []
        if split.descriptions is not None:
            self._described = encoder.layout.encode(split.descriptions.examples)
        self._choice: LeaveOneOut | None = None
        self._chosen_embeddings: FloatArray | None = None

    @property
    def references(self) -> list[Encoding]:
        """The examples that evaluations compare with."""
        return [self._encodings[row] for row in self._references]

    def choose(self, views: Views | None) -> float:
        """Choose the weights that the settings leave open, by leave-one-out; the sentence view's.

        They are those of the sentence view, if ``views`` are joined, and of descriptions.
        """
        settings = self.settings
        has_descriptions = self._descriptions is not None
        sentence_weights = [settings.sentence_weight or 0.0]
        if views is not None and settings.sentence_weight is None:
            sentence_weights = list(SENTENCE_WEIGHTS if len(self._encodings) else [SENTENCE_ALONE])
        description_weights, preferred = [settings.description_weight or 0.0], 0
        if has_descriptions and settings.description_weight is None:
            description_weights, preferred = list(DESCRIPTION_WEIGHTS), PREFERRED_WEIGHTS
        if not len(self._encodings):  # Then descriptions are all that there is.
            description_weights, preferred = [1.0], 0
        chosen = sentence_weights[0], description_weights[0]
        if len(sentence_weights) * len(description_weights) > 1:
            chosen = self._chosen(views, sentence_weights, description_weights, preferred)
        if views is not None:
            settings = replace(settings, sentence_weight=chosen[0])
        if has_descriptions:
            settings = replace(settings, description_weight=chosen[1])
        self.settings = settings
        return chosen[0]

    def _chosen(
        self,
        views: Views | None,
        sentence_weights: list[float],
        description_weights: list[float],
        preferred: int,
    ) -> tuple[float, float]:
        """The best of these weights."""
        encodings = [*self.references, *self._described]
        if views is None:
            embeddings = [self._encoder.embed_encodings(encodings)]
        else:
            read = self._encoder.read_encodings(encodings)
            each = [replace(views, sentence_weight=weight) for weight in sentence_weights]
            embeddings = [one.embeddings(read) for one in each]
        known = self._known.take(self._references)
        weights = [self._with_descriptions(known, weight).weights for weight in description_weights]
        all_rows = self._with_descriptions(known, 1.0)
        flags = self._flags(len(known.labels))
        self._choice = choice_of_weights(embeddings, all_rows.labels, weights, flags, preferred)
        number, view = divmod(self._choice.candidate, len(embeddings))
        if len(self._references) == len(self._encodings):
            self._chosen_embeddings = embeddings[view]
        return sentence_weights[view], description_weights[number]

    @property
    def descriptions(self) -> LabelledExamples | None:
        """The descriptions that count, with their weights; None if there are none."""
        if self._descriptions is None:
            return None
        weights = self._description_weights(self.settings.description_weight or 0.0)
        counted = np.flatnonzero(weights)
        if len(counted) == 0:
            return None
        weighted = replace(self._descriptions, weights=weights, loss_weights=weights)
        return weighted.take(counted)

    def _description_weights(self, weight: float) -> Weights:
        """What each description counts: this, or 1 if its class has no examples, times its own."""
        assert self._descriptions is not None
        labels, own = self._descriptions.labels, self._descriptions.weights
        weights = np.where(np.isin(labels, self._known.labels), weight, 1.0)
        return weights if own is None else weights * own

    def _with_descriptions(self, known: LabelledExamples, weight: float) -> LabelledExamples:
        """Some examples, followed by all descriptions with this weight."""
        if self._descriptions is None:
            return known
        weights = self._description_weights(weight)
        return known + replace(self._descriptions, weights=weights, loss_weights=weights)

    def _flags(self, n_examples: int) -> Flags | None:
        """Which of so many examples, followed by all descriptions, are descriptions."""
        if self._descriptions is None:
            return None
        return np.arange(n_examples + len(self._described)) >= n_examples

    def held_out(
        self, dev: LabelledExamples, dev_encodings: Sequence[Encoding], n_classes: int
    ) -> HeldOut:
        """Scores of held-out examples by nearness to the training examples."""
        known = self._known.take(self._references)
        read = [*self.references, *self._described]
        embeddings = self._encoder.embed_encodings([*read, *dev_encodings])
        support = self._support(known, embeddings[: len(read)])
        asked = embeddings[len(read) :]
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
            parts = [part for part in (self._encodings, self._described) if len(part)]
            embeddings = np.concatenate([self._encoder.embed_encodings(part) for part in parts])
        return self._support(self._known, embeddings)

    def _support(self, known: LabelledExamples, embeddings: FloatArray) -> SupportSet:
        """Some examples and all descriptions, embedded in this order; what weighs 0 is left out."""
        weight = self.settings.description_weight or 0.0
        data, flags = self._with_descriptions(known, weight), self._flags(len(known.labels))
        if flags is not None and data.weights is not None:
            counted = np.flatnonzero(data.weights)
            data, flags = data.take(counted).without_ones(), flags[counted]
            embeddings = embeddings[counted]
        return SupportSet(
            data.examples,
            embeddings,
            data.labels,
            weights=data.weights,
            is_description=flags if flags is not None and flags.any() else None,
        )

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
