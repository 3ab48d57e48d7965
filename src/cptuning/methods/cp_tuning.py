"""CP-Tuning itself: the paper's Algorithm 1 as a task for the training loop."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from cptuning import losses
from cptuning.backbone import PromptedEncoder, TextEncoder, to_device
from cptuning.data import Examples, balanced_batch, uniform_batch
from cptuning.errors import CPTuningError
from cptuning.inference import SupportSet, class_scores, familiarity
from cptuning.inference.support import IntArray
from cptuning.methods.answers import Answers, HeldOut
from cptuning.methods.settings import Settings
from cptuning.prompting import Encoding, collate, mask_batch
from cptuning.training import Processes, Score, gather

PerAnchor = Callable[[Tensor, Tensor], Tensor]


class Objective(nn.Module):
    """λ · contrastive loss at [OMSK] + (1 − λ) · masked-LM loss at [TMSK]."""

    def __init__(self, encoder: PromptedEncoder, settings: Settings) -> None:
        super().__init__()
        self.encoder = encoder
        self.weight = settings.contrastive_weight if encoder.has_head else 1.0
        self.sums = settings.reduction == "sum"
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
    ) -> dict[str, Tensor]:
        """The losses of a batch: its first rows are labelled, any others are for the masked LM.

        The first positions are the [OMSK]s of the labelled rows, the rest are [TMSK]s.
        ``labels`` are those of all processes' rows, in the order in which they are gathered.
        """
        n = len(rows) - len(targets)
        features, decoder_inputs = self.encoder(
            input_ids, attention_mask, token_type_ids, rows, columns
        )
        embeddings = gather(normalize(features[:n].float(), dim=-1))
        per_anchor = self.per_anchor(embeddings, labels)
        if self.sums:
            contrastive = per_anchor.sum()
        else:
            contrastive = losses.mean_over_anchors(per_anchor, labels)
        if self.weight == 1.0:
            return {"loss": contrastive, "contrastive": contrastive}
        token_losses = cross_entropy(
            self.encoder.decode(decoder_inputs[n:]).float(), targets, reduction="none"
        )
        by_sample = mean_by_sample(token_losses, rows[n:], len(input_ids))
        # The mean over the processes, which the gradients undergo, makes a sum of the sums.
        mlm = by_sample.sum() * (len(labels) / n) if self.sums else by_sample.mean()
        loss = self.weight * contrastive + (1 - self.weight) * mlm
        return {"loss": loss, "contrastive": contrastive, "mlm": mlm}


def mean_by_sample(token_losses: Tensor, sample: Tensor, n: int) -> Tensor:
    """The mean of each sample's token losses; zero for a sample without any.

    >>> mean_by_sample(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 2]), n=3)
    tensor([2., 0., 5.])
    """
    sums = token_losses.new_zeros(n).index_add(0, sample, token_losses)
    counts = token_losses.new_zeros(n).index_add(0, sample, torch.ones_like(token_losses))
    return sums / counts.clamp_min(1)


def contrastive_loss(settings: Settings) -> PerAnchor:
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


class CPTuningTask:
    """Training examples and, if there are any, held-out ones, as the loop wants them."""

    def __init__(
        self,
        encoder: TextEncoder,
        settings: Settings,
        processes: Processes,
        train: Examples,
        labels: IntArray,
        *,
        n_classes: int,
        dev: Examples | None = None,
        dev_labels: IntArray | None = None,
        unlabeled: Examples | None = None,
        answers: Answers | None = None,
        seed: int = 0,
    ) -> None:
        self.encoder = encoder
        self.settings = settings
        self.processes = processes
        self.train = train
        self.labels = labels
        self.dev_labels = dev_labels
        self.n_classes = n_classes
        self.seed = seed
        # Texts are tokenised once; a batch only picks and masks.
        self.encodings = encoder.layout.encode(train)
        self.dev_encodings = encoder.layout.encode(dev) if dev is not None else None
        self.unlabeled_encodings = encoder.layout.encode(unlabeled) if unlabeled else []
        if settings.centred:
            encoder.centre_on(self.encodings)
        self.objective = Objective(encoder.module, settings)
        freeze_lower_layers(encoder.module, settings.frozen_layers)
        self.batch_size = self._divisible(min(settings.batch_size, len(train)))
        self.answers = answers or Answers()

    def _divisible(self, size: int) -> int:
        size -= size % self.processes.count
        if size == 0:
            raise CPTuningError(
                f"There are fewer examples in a batch than the {self.processes.count} processes."
            )
        return size

    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        """The backbone and the prompt vectors, which may have a rate of their own."""
        module = self.encoder.module
        model = [p for p in module.model.parameters() if p.requires_grad]
        prompt_rate = self.settings.prompt_learning_rate or learning_rate
        # Prompt vectors are few and stand where they should: nothing pulls them towards zero.
        return [
            {"params": model, "lr": learning_rate},
            {"params": [module.prompts], "lr": prompt_rate, "weight_decay": 0.0},
        ]

    def inputs(self, batch: int) -> dict[str, Tensor]:
        """What falls to this process of a batch, masked and padded, and everybody's labels."""
        chosen = self._chosen(batch)
        mine = range(self.processes.index, len(chosen), self.processes.count)
        encodings = [self.encodings[chosen[i]] for i in mine]
        seeds = [[self.seed, batch, i] for i in mine]
        if self.unlabeled_encodings:
            extra = uniform_batch(len(self.unlabeled_encodings), self.batch_size, self.seed, batch)
            mine_too = range(self.processes.index, len(extra), self.processes.count)
            encodings += [self.unlabeled_encodings[extra[i]] for i in mine_too]
            seeds += [[self.seed, batch, self.batch_size + i] for i in mine_too]
        order = np.concatenate(
            [np.arange(p, len(chosen), self.processes.count) for p in range(self.processes.count)]
        )
        return self._tensors(encodings, seeds, self.labels[chosen[order]])

    def _chosen(self, batch: int) -> IntArray:
        if self.settings.batches == "balanced":
            return balanced_batch(self.labels, self.batch_size, self.seed, batch)
        return uniform_batch(len(self.train), self.batch_size, self.seed, batch)

    def _tensors(
        self, encodings: Sequence[Encoding], seeds: Sequence[Sequence[int]], labels: IntArray
    ) -> dict[str, Tensor]:
        layout, device = self.encoder.layout, self.processes.device
        masked, targets = mask_batch(
            encodings,
            seeds,
            rate=self.settings.mlm_rate if self.objective.weight < 1 else 0.0,
            mask=layout.special.mask,
            vocabulary=layout.vocabulary,
        )
        batch = collate(masked, layout.special.pad)
        n = len(labels) // self.processes.count
        rows = np.concatenate([np.arange(n), targets.rows])
        columns = np.concatenate([batch.outputs[:n], targets.columns])
        arrays = {"rows": rows, "columns": columns, "labels": labels, "targets": targets.ids}
        tensors = {n: torch.as_tensor(a).to(device, non_blocking=True) for n, a in arrays.items()}
        return to_device(batch, device) | tensors

    def support(self) -> SupportSet:
        """The training examples as the model sees them now."""
        embeddings = self.encoder.embed_encodings(self.encodings)
        return SupportSet(self.train, embeddings, self.labels)

    def evaluate(self, step: int) -> Score | None:
        """Accuracy and calibrated log-loss on the held-out examples."""
        if self.dev_encodings is None or self.dev_labels is None:
            return None
        embeddings, support = self.encoder.embed_encodings(self.dev_encodings), self.support()
        scores = class_scores(
            embeddings, support, self.n_classes, self.settings.inference, self.settings.k
        )
        held_out = HeldOut(scores, familiarity(embeddings, support), self.dev_labels)
        self.answers.add(step, held_out)
        return held_out.score()


def freeze_lower_layers(module: PromptedEncoder, count: int) -> None:
    """Hold the embedding table and the lowest layers still; the prompt vectors go on learning."""
    if count == 0:
        return
    depth = module.model.config.num_hidden_layers
    stacks = [m for m in module.model.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    if not stacks or count > depth:
        raise CPTuningError(
            f"frozen_layers={count} is not possible: this backbone has "
            f"{len(stacks[0]) if stacks else 'no separate'} layers."
        )
    frozen = [module.model.get_input_embeddings(), *stacks[0][:count]]
    for parameter in (p for part in frozen for p in part.parameters()):
        parameter.requires_grad_(False)
