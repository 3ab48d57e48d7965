"""CP-Tuning on the embedded backbone without a step of training, and without torch."""

from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any

from cptuning.backbone.packed import PackedBackbone
from cptuning.data import LabelSpace
from cptuning.inference import EmbeddingPredictor
from cptuning.inference.embedded_encoder import EmbeddedEncoder
from cptuning.methods.cp_tuning_settings import CPTuningSettings
from cptuning.methods.fit_result import FitResult
from cptuning.methods.similar_examples import SimilarExamples
from cptuning.methods.training import Split
from cptuning.prompting import LaidOut, Template
from cptuning.training import History

# So many examples are read to estimate how long it takes for all of them.
_SAMPLES = 16


@dataclass(frozen=True)
class InstantTraining:
    """All that an instant fit is made of."""

    settings: CPTuningSettings
    label_space: LabelSpace
    split: Split
    seed: int = 0

    @property
    def backbone_facts(self) -> dict[str, Any]:
        """What records and model cards say about the backbone."""
        return PackedBackbone().facts

    @cached_property
    def encoder(self) -> EmbeddedEncoder:
        """The embedded backbone, reading what the settings say."""
        settings = self.settings
        weight = 0.0 if settings.pooling == "mask" else settings.sentence_weight
        return EmbeddedEncoder.untrained(
            Template.parse(settings.template, needs_output=True),
            settings.max_length,
            weight,
            settings.windows,
        )

    def fit(self) -> "FitResult[InstantTask]":
        """The examples, read once, and the answers to held-out ones."""
        task, dev = InstantTask(self), self.split.dev
        if dev is None:
            return FitResult(task, History(), *(task.similar.left_out() or (None, None)))
        encodings = task.layout.encode(dev.examples)
        held_out = task.similar.held_out(dev, encodings, len(self.label_space))
        return FitResult(task, History({0: held_out.score()}), held_out)

    def fit_seconds(self) -> float:
        """How many seconds that takes, from reading some of the examples."""
        examples = self.split.train.examples
        if self.split.descriptions is not None:
            examples = examples + self.split.descriptions.examples
        some = examples.take(range(min(len(examples), _SAMPLES)))
        encoder = self.encoder
        began = perf_counter()
        encoder.embed(some)
        return (perf_counter() - began) * len(examples) / len(some)


class InstantTask:
    """The training examples as the untrained encoder sees them."""

    def __init__(self, training: InstantTraining) -> None:
        encoder, split = training.encoder, training.split
        self.layout = encoder.layout
        self.encodings = LaidOut(self.layout, split.train.examples)
        self.similar = SimilarExamples(
            encoder, split, self.encodings, training.settings, training.seed
        )
        weight = self.similar.choose(encoder.views if self.layout.sentences else None)
        if self.layout.sentences:
            encoder.views = replace(encoder.views, sentence_weight=weight)

    @property
    def settings(self) -> CPTuningSettings:
        """The settings, with the weights that were chosen."""
        return self.similar.settings

    def predictor(
        self, label_space: LabelSpace, temperature: float, unknown_threshold: float | None
    ) -> EmbeddingPredictor:
        """The encoder with the training examples as its support set."""
        return self.similar.predictor(label_space, temperature, unknown_threshold)


def reads_instantly(settings: CPTuningSettings) -> bool:
    """Whether settings train nothing, and read what the embedded graph computes."""
    return (
        settings.leaves_one_out
        and not settings.centred
        and settings.features == "head"
        and settings.pooling in ("auto", "mask")
    )
