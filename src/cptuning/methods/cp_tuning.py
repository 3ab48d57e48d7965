"""CP-Tuning itself: the paper's Algorithm 1 as a task for the training loop."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from cptuning import losses
from cptuning.backbone import PromptedEncoder, TextEncoder, layout_for
from cptuning.data import LabelSpace
from cptuning.inference import EmbeddingPredictor, SupportSet
from cptuning.inference.support import IntArray
from cptuning.methods.cp_tuning_settings import CPTuningSettings
from cptuning.methods.evaluation_log import EvaluationLog, HeldOut
from cptuning.methods.fit_result import FitResult
from cptuning.methods.layers import freeze_lower_layers
from cptuning.methods.learner import Learner
from cptuning.methods.similar_examples import SimilarExamples
from cptuning.methods.task import NO_TARGET, BatchedTask, mean_by_sample
from cptuning.methods.training import LabelledExamples, Split, Training
from cptuning.prompting import Encoding, LaidOut, Template
from cptuning.training import chunk_count, gather, in_chunks, recomputed

PerAnchor = Callable[[Tensor, Tensor], Tensor]


class Objective(nn.Module):
    """λ · contrastive loss at [OMSK] + (1 − λ) · masked-LM loss at [TMSK].

    λ is 1 for an encoder without a masked-LM head.
    """

    def __init__(
        self, encoder: PromptedEncoder, settings: CPTuningSettings, sequences: int = 1
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.sequences = sequences
        self.weight = settings.contrastive_weight if encoder.has_head else 1.0
        self.has_mlm = self.weight < 1
        self.sums = settings.reduction == "sum"
        self.chunk_size = settings.chunk_size
        self.per_anchor = contrastive_loss(settings)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        rows: Tensor,
        columns: Tensor,
        labels: Tensor,
        targets: Tensor,
        is_text: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The losses of a batch: its first rows are labelled, any others are for the masked LM.

        The first positions are the [OMSK]s of the labelled rows, then come the openings of their
        further sequences; the rest are [TMSK]s. ``labels`` and ``weights``, which the anchors'
        losses are multiplied by, are those of all processes' rows, in the order in which they are
        gathered.
        """
        read = len(rows) - len(targets)
        n = read // self.sequences
        inputs = [input_ids, attention_mask, token_type_ids]
        inputs += [] if is_text is None else [is_text]
        features, decoder_inputs = in_chunks(self._encode, self.chunk_size, inputs, rows, columns)
        sequences = features[:read].unflatten(0, (self.sequences, n)).transpose(0, 1)
        embeddings = gather(normalize(self.encoder.joined(sequences).float(), dim=-1))
        per_anchor = self.per_anchor(embeddings, labels)
        if self.sums:
            contrastive = (per_anchor if weights is None else weights * per_anchor).sum()
        else:
            contrastive = losses.mean_over_anchors(per_anchor, labels, weights)
        if not self.has_mlm:
            return {"loss": contrastive, "contrastive": contrastive}
        chunks = chunk_count(len(input_ids), self.chunk_size)
        token_losses = recomputed(self._token_losses, chunks, decoder_inputs[read:], targets)
        samples = len(input_ids) - (read - n)
        by_sample = mean_by_sample(token_losses, rows[read:], samples, targets != NO_TARGET)
        # The mean over the processes, which the gradients undergo, makes a sum of the sums.
        mlm = by_sample.sum() * (len(labels) / n) if self.sums else by_sample.mean()
        loss = self.weight * contrastive + (1 - self.weight) * mlm
        return {"loss": loss, "contrastive": contrastive, "mlm": mlm}

    def _encode(self, *arguments: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder with what belongs to the rows first, then the positions."""
        *inputs, rows, columns = arguments
        found: tuple[Tensor, Tensor] = self.encoder(*inputs[:3], rows, columns, *inputs[3:])
        return found

    def _token_losses(self, decoder_inputs: Tensor, targets: Tensor) -> Tensor:
        logits = self.encoder.decode(decoder_inputs).float()
        return cross_entropy(logits, targets, ignore_index=NO_TARGET, reduction="none")


def contrastive_loss(settings: CPTuningSettings) -> PerAnchor:
    """The contrastive loss that the settings name, as a function of embeddings and labels."""
    pair_costs: dict[str, Any] = {
        "margin": settings.margin,
        "tau_n": settings.tau_n,
        "xi": settings.xi,
        "relaxation": settings.relaxation,
        "detach_relaxation": settings.detach_relaxation,
    }
    choices: dict[str, Callable[..., Tensor]] = {
        "pccl": partial(
            losses.pccl_per_anchor,
            **pair_costs,
            reduction=settings.reduction,
            form=settings.form,
        ),
        "sampled-pccl": partial(losses.sampled_pccl_per_anchor, **pair_costs),
        "supcon": partial(losses.supcon_per_anchor, tau=settings.tau_n, form=settings.form),
        "triplet": partial(losses.triplet_per_anchor, margin=settings.margin),
        "n-pair": losses.n_pair_per_anchor,
        "circle": partial(
            losses.circle_per_anchor, margin=settings.margin, gamma=1 / settings.tau_n
        ),
    }
    return choices[settings.loss]


class CPTuningTask(BatchedTask[CPTuningSettings]):
    """CP-Tuning on some examples: the contrastive objective, and nearness as the answer."""

    objective: Objective

    def __init__(self, learner: "CPTuning", split: Split, log: EvaluationLog) -> None:
        super().__init__(learner, split, log)
        settings, module = self.settings, self.encoder.module
        # Lots are drawn on the host, and chunks are told apart there.
        self.replayable = settings.loss != "sampled-pccl" and settings.chunk_size == 0
        self.similar = SimilarExamples(self.encoder, split, self.encodings, settings, self.seed)
        if settings.centred:
            self.encoder.centre_on(self.similar.references)
        has_views = module.reads_mask and module.pooling is not None
        weight = self.similar.choose(module.views if has_views else None)
        if has_views:
            module.sentence_weight = weight
        self.settings = settings = self.similar.settings
        if (described := self.similar.descriptions) is not None:
            self._learn_from(split.train + described)
        self.objective = Objective(module, settings, self.layout.sequences)
        freeze_lower_layers(module, settings.frozen_share)

    def _learn_from(self, train: LabelledExamples) -> None:
        """Train on these, beside which the same texts are held out."""
        self.split = replace(self.split, train=train.without_ones())
        self.encodings = LaidOut(self.layout, train.examples)
        self.batch_size = self._batch_size()

    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        """The backbone and the prompt vectors, which may have a rate of their own."""
        module = self.encoder.module
        parts = [module.model] if module.pooling is None else [module.model, module.pooling]
        model = [p for part in parts for p in part.parameters() if p.requires_grad]
        prompt_rate = self.settings.prompt_learning_rate or learning_rate
        # Prompt vectors start from words' embeddings: nothing should pull them towards zero.
        return [
            {"params": model, "lr": learning_rate},
            {"params": [module.prompts], "lr": prompt_rate, "weight_decay": 0.0},
        ]

    def mask_rate(self) -> float:
        """Nothing is hidden if the masked-LM loss has no weight."""
        return self.settings.mlm_rate if self.objective.has_mlm else 0.0

    def batch_rows(self, chosen: IntArray) -> IntArray:
        """Those of all processes, in the order in which embeddings are gathered."""
        count = self.processes.count
        return np.concatenate([chosen[process::count] for process in range(count)])

    def read(self, encodings: Sequence[Encoding]) -> object:
        """Their embeddings."""
        return self.encoder.embed_encodings(encodings)

    def held_out(self, dev: LabelledExamples) -> HeldOut:
        """Scores by nearness to the training examples."""
        return self.similar.held_out(dev, self.dev_encodings, self.n_classes)

    def left_out(self) -> tuple[HeldOut, IntArray] | None:
        """Leave-one-out answers in closed form, if nothing is trained."""
        return self.similar.left_out()

    def support(self) -> SupportSet:
        """The training examples as the model sees them now."""
        return self.similar.support()

    def predictor(
        self, label_space: LabelSpace, temperature: float, unknown_threshold: float | None
    ) -> EmbeddingPredictor:
        """The encoder with the training examples as its support set."""
        return self.similar.predictor(label_space, temperature, unknown_threshold)


class CPTuning(Learner[CPTuningSettings, CPTuningTask]):
    """CP-Tuning on a backbone."""

    def __init__(self, training: Training[CPTuningSettings]) -> None:
        super().__init__(training)
        backbone, settings, prompts = training.backbone, training.settings, training.prompts
        mask, pooling = backbone.views(settings.pooling, settings.sentence_weight)
        layout = layout_for(
            backbone,
            Template.parse(settings.template, needs_output=mask),
            settings.max_length,
            text_prefix=pooling.text_prefix if pooling else "",
            sentences=pooling is not None,
            windows=settings.windows,
        )
        module = PromptedEncoder(backbone, layout.prompt_ids, settings.features, pooling, mask=mask)
        module.prompts.requires_grad_(len(module.prompts) > 0)
        if prompts is not None and prompts.shape == module.prompts.shape:
            module.prompts.data.copy_(prompts)
        self.encoder = TextEncoder(layout, module.to(training.processes.device), backbone)
        self.module = module

    def task(self, split: Split, log: EvaluationLog) -> CPTuningTask:
        """The task of learning some examples."""
        return CPTuningTask(self, split, log)

    @classmethod
    def fit_result(cls, training: Training[CPTuningSettings]) -> FitResult[CPTuningTask]:
        """Answer without training, if it is asked for; then train, and keep what answers better.

        Both answer the same held-out examples, and each without having seen them. The model that
        is not trained is kept if it is better by more than a standard error.
        """
        if training.instant is None:
            return cls(training).fit()
        instant = cls(replace(training, settings=training.instant, instant=None, title="instant"))
        first, answers = instant.fit_untrained()
        if first.held_out is not None:
            for callback in training.watchers:
                callback.on_instant(first.held_out.score())
        fitted = cls(training).fit()
        accuracy = first.held_out.score().accuracy if first.held_out else None
        facts = {"instant_accuracy": accuracy, "kept": "trained"}
        if answers is None or fitted.held_out is None:
            return replace(fitted, facts=facts)
        if not answers.is_clearly_better_than(fitted.held_out):
            return replace(fitted, facts=facts)
        instant._reset()
        return replace(first, facts=facts | {"kept": "instant"})

    def fit_untrained(self) -> tuple[FitResult[CPTuningTask], HeldOut | None]:
        """The model without a step of training, and its answers as ``fit`` would hold them out."""
        answers = self._cross_fitted()[0] if self._cross_fits else None
        fitted = CPTuning(replace(self.training, folds=0)).fit()
        return fitted, fitted.held_out if answers is None else answers
