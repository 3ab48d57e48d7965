"""The tagger's training: PCCL among the words of a batch, and the choice of how to answer."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from cptuning import losses
from cptuning.backbone import Backbone, PromptedEncoder, TextEncoder, layout_for
from cptuning.backbone.word_encoder import WordEncoder, mean_by_word, word_inputs
from cptuning.data import UniformBatches
from cptuning.data.sentences import TaggedSentences
from cptuning.data.tag_schemes import types_of
from cptuning.errors import CPTuningError
from cptuning.inference.support import IntArray
from cptuning.inference.tag_predictor import TagPredictor, labelled_words, transitions_of
from cptuning.inference.word_answers import (
    SHAPE_WEIGHTS,
    WORD_INFERENCES,
    Fold,
    HeldOutSpans,
    LabelledWords,
    WordAnswer,
    chosen_answer,
    left_out_folds,
)
from cptuning.methods.layers import freeze_lower_layers, keep_lower_layers
from cptuning.methods.tagging_settings import TaggerSettings
from cptuning.prompting import Template
from cptuning.training import Callback, Precision, Processes, Score, train

# So many words outside of spans are compared in a batch at least.
_LEAST_OUTSIDE = 8
DEPTHS = (0.5, 0.75, 1.0, 0.33)
"""What the share of the layers that is read is chosen from."""


class WordObjective(nn.Module):
    """PCCL among the words of a batch."""

    def __init__(self, encoder: PromptedEncoder, settings: TaggerSettings) -> None:
        super().__init__()
        self.encoder = encoder
        self.settings = settings

    def forward(
        self, owner: Tensor, chosen: Tensor, labels: Tensor, **inputs: Tensor
    ) -> dict[str, Tensor]:
        """The loss of the ``chosen`` words, whose types are ``labels``."""
        features, _ = self.encoder(**inputs)
        vectors = mean_by_word(features, owner)[chosen] - self.encoder.centre
        settings = self.settings
        loss = losses.pccl(
            normalize(vectors, dim=-1),
            labels,
            margin=settings.margin,
            tau_n=settings.tau_n,
            xi=settings.xi,
            reduction="mean",
        )
        return {"loss": loss, "contrastive": loss}


class TaggingTask:
    """Tagged sentences as the training loop takes them."""

    replayable = False

    def __init__(
        self, encoder: WordEncoder, examples: TaggedSentences, settings: TaggerSettings, seed: int
    ) -> None:
        self.seed = seed
        self._encoder, self._settings = encoder, settings
        types = types_of(examples.spans)
        self._labels = []
        for sentence, spans in zip(examples.sentences, examples.spans, strict=True):
            labels: IntArray = np.zeros(len(sentence), dtype=np.int64)
            for span in spans:
                labels[span.start : span.stop] = 1 + types.index(span.label)
            self._labels.append(labels)
        self._windows = encoder.windows(examples.sentences)
        self._batches = UniformBatches(len(self._windows), settings.batch_size, seed)
        self.objective = WordObjective(encoder.encoder.module, settings)
        encoder.encoder.module.prompts.requires_grad_(False)
        freeze_lower_layers(encoder.encoder.module, settings.frozen_share)

    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        """The backbone."""
        model = self._encoder.encoder.module.model
        return [{"params": [p for p in model.parameters() if p.requires_grad], "lr": learning_rate}]

    def inputs(self, batch: int) -> dict[str, Tensor]:
        """The windows of a batch, and which of their words are compared."""
        windows = [self._windows[row] for row in self._batches(batch)]
        module = self._encoder.encoder.module
        inputs = word_inputs(module, windows, self._encoder.layout.special.pad)
        labels = np.concatenate([self._labels[w.sentence][np.unique(w.words)] for w in windows])
        chosen = self._compared(labels, np.random.default_rng([self.seed, batch]))
        device = module.centre.device
        inputs["chosen"] = torch.as_tensor(chosen, device=device)
        inputs["labels"] = torch.as_tensor(labels[chosen], device=device)
        return inputs

    def evaluate(self, step: int) -> Score | None:
        """Nothing is held out: the last weights are kept."""
        return None

    def _compared(self, labels: IntArray, rng: np.random.Generator) -> IntArray:
        """All words of spans, and a sample of the others, which would drown them."""
        inside, outside = np.flatnonzero(labels), np.flatnonzero(labels == 0)
        wanted = max(_LEAST_OUTSIDE, round(self._settings.outside_ratio * len(inside)))
        sample = rng.permutation(outside)[:wanted]
        return np.sort(np.concatenate([inside, sample]))


@dataclass(frozen=True)
class TaggerTraining:
    """All that a tagger is fitted from."""

    backbone: Backbone
    settings: TaggerSettings
    examples: TaggedSentences
    processes: Processes
    folds: int = 2
    """How many parts of the sentences are left out in turn to judge the training; 0: none."""
    seed: int = 0
    precision: Precision = "auto"
    callbacks: Sequence[Callback] = ()


@dataclass(frozen=True)
class TaggerFit:
    """A fitted tagger, and what it found in training sentences that it had not seen."""

    predictor: TagPredictor
    settings: TaggerSettings
    """With the depth that was chosen."""
    held_out: HeldOutSpans | None
    facts: dict[str, Any] = field(default_factory=dict)


def word_encoder(backbone: Backbone, settings: TaggerSettings, depth: float = 1.0) -> WordEncoder:
    """The encoder of a backbone's words: the hidden state of their pieces in a layer.

    The layers above that are left out of a copy of the backbone.
    """
    if depth < 1:
        backbone = replace(backbone, model=deepcopy(backbone.model))
        keep_lower_layers(backbone.model, depth)
    template = Template.parse(settings.template, needs_output=False)
    layout = layout_for(backbone, template, settings.max_length)
    module = PromptedEncoder(backbone, layout.prompt_ids, "hidden", mask=True)
    return WordEncoder(TextEncoder(layout, module, backbone), settings.pieces)


def fit_tagger(training: TaggerTraining) -> TaggerFit:
    """Answer without training; then train, and keep what left-out sentences prefer.

    Both answer the same sentences, each without having seen them. What is not trained is kept if it
    is better by more than a standard error.
    """
    return _TaggerLearner(training).fit()


class _TaggerLearner:
    """The steps of a fit, on one encoder whose weights are put back in between."""

    def __init__(self, training: TaggerTraining) -> None:
        self.training = training
        self.examples, self.settings = training.examples, training.settings
        self.types = types_of(self.examples.spans)
        self.transitions = transitions_of(self.examples)
        self.encoder, instant, self.answer, self.held_out = self._read_best()
        self.instant = instant
        self.module = self.encoder.encoder.module
        self.initial = {n: t.detach().clone() for n, t in self.module.state_dict().items()}

    def _read_best(self) -> tuple[WordEncoder, LabelledWords, WordAnswer, HeldOutSpans | None]:
        """The depth that answers left-out sentences best without training, and its answers."""
        given, n = self.settings.depth, len(self.examples)
        best = None
        for depth in DEPTHS if given is None else (given,):
            encoder = word_encoder(self.training.backbone, self.settings, depth)
            encoder.encoder.module.to(self.training.processes.device).eval()
            encoder.centre_on(self.examples.sentences)
            words = self._words(encoder)
            answer, held_out = self._chosen(left_out_folds(words, n))
            f1 = held_out.f1 if held_out else 0.0
            if best is None or f1 > best[0]:
                best = f1, depth, (encoder, words, answer, held_out)
        assert best is not None
        self.settings = replace(self.settings, depth=best[1])
        return best[2]

    def fit(self) -> TaggerFit:
        """The tagger."""
        n, settings = len(self.examples), self.settings
        instant, answer, held_out = self.instant, self.answer, self.held_out
        facts: dict[str, Any] = {"instant_f1": held_out and held_out.f1, "kept": "instant"}
        if settings.steps == 0:
            return self._result(instant, answer, held_out, facts)
        parts = self._parts()
        if not parts:
            facts["kept"] = "trained"
            return self._result(self._trained(self.examples), answer, None, facts)
        trained_folds, instant_folds = [], []
        for number, away in enumerate(parts):
            rest = np.setdiff1d(np.arange(n), away)
            words = self._trained(self.examples.take(rest), f"fold {number + 1} of {len(parts)}")
            is_away = np.isin(words.sentences, away)
            trained_folds.append((words.take(~is_away), words.take(is_away)))
            instant_folds.append((instant.take(~is_away), instant.take(is_away)))
        trained_answer, trained_held_out = self._chosen(trained_folds)
        _, untrained = self._chosen(instant_folds)
        assert untrained is not None
        assert trained_held_out is not None
        facts |= {"instant_f1": untrained.f1, "trained_f1": trained_held_out.f1}
        if untrained.is_clearly_better_than(trained_held_out):
            self._reset()
            self.encoder.centre_on(self.examples.sentences)
            return self._result(instant, answer, held_out, facts)
        words = self._trained(self.examples)
        return self._result(words, trained_answer, trained_held_out, facts | {"kept": "trained"})

    def _chosen(self, folds: Sequence[Fold]) -> tuple[WordAnswer, HeldOutSpans | None]:
        settings = self.settings
        chosen = settings.inference
        inferences = WORD_INFERENCES if chosen == "auto" else (chosen,)
        given = settings.shape_weight
        weights = SHAPE_WEIGHTS if given is None else (given,)
        if not folds:  # One sentence can't be answered by others.
            default = WordAnswer(inferences[0], shape_weight=weights[0])
            return replace(default, temperature=settings.temperature), None
        return chosen_answer(
            folds, self.examples.spans, self.types, self.transitions, inferences, weights
        )

    def _parts(self) -> list[IntArray]:
        """The sentences that are left out of one training each."""
        folds, n = self.training.folds, len(self.examples)
        if folds < 2 or n < 2:
            return []
        order = np.random.default_rng(self.training.seed).permutation(n)
        return [np.sort(part) for part in np.array_split(order, min(folds, n))]

    def _trained(self, examples: TaggedSentences, stage: str = "training") -> LabelledWords:
        """The words of all examples as the model sees them after training on some."""
        self._reset()
        self.encoder.centre_on(examples.sentences)
        training, share = self.training, len(examples) / len(self.examples)
        size = max(2, round(self.settings.batch_size * share))
        settings = replace(self.settings, batch_size=size)
        task = TaggingTask(self.encoder, examples, settings, training.seed)
        train(
            task,
            settings,
            training.processes,
            precision=training.precision,
            stage=stage,
            callbacks=training.callbacks,
        )
        self.module.eval()
        return self._words(self.encoder)

    def _words(self, encoder: WordEncoder) -> LabelledWords:
        vectors = np.concatenate(encoder.embed(self.examples.sentences))
        return labelled_words(self.examples, vectors, self.types)

    def _reset(self) -> None:
        self.module.load_state_dict(self.initial)

    def _result(
        self,
        words: LabelledWords,
        answer: WordAnswer,
        held_out: HeldOutSpans | None,
        facts: dict[str, Any],
    ) -> TaggerFit:
        predictor = TagPredictor(
            self.encoder, self.examples, words.vectors, tuple(self.types), answer
        )
        return TaggerFit(predictor, self.settings, held_out, facts)


def check_examples(examples: TaggedSentences) -> None:
    """Refuse sentences from which nothing can be learnt."""
    if not len(examples):
        raise CPTuningError("There are no sentences to learn from: give some with marked spans.")
    if not any(examples.spans):
        raise CPTuningError(
            f"None of the {len(examples)} sentences has a marked span: mark some of what is to be "
            "found."
        )
