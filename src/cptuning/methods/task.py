"""What the tasks of all methods share: examples laid out once, batches, held-out answers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import torch
from torch import Tensor, nn

from cptuning.backbone import output_positions
from cptuning.data import BalancedBatches, LabelSpace, UniformBatches, strata
from cptuning.errors import CPTuningError
from cptuning.inference.support import IntArray
from cptuning.methods.evaluation_log import EvaluationLog, HeldOut
from cptuning.methods.training import LabelledExamples, Split
from cptuning.prompting import Encoding, LaidOut, Targets, collate, drawn_windows, mask_batch
from cptuning.settings import S
from cptuning.training import Score

if TYPE_CHECKING:
    from cptuning.inference import Predictor
    from cptuning.methods.learner import Learner


# Sizes that a GPU sees are rounded up to these, so that few shapes occur and each is recorded once.
_LENGTH_STEP, _LEAST_TARGETS = 64, 128

NO_TARGET = -100
"""The target of a position that is only there to fill up; torch's losses ignore it."""

# A batch of fewer would hold no two classes with a pair each.
_LEAST_BATCH = 4


class BatchedTask(ABC, Generic[S]):
    """Training examples and, if there are any, held-out ones, as the loop takes them."""

    objective: nn.Module
    replayable = True
    """Whether the objective does the same work for all inputs of the same shapes."""

    def __init__(self, learner: "Learner[S, Any]", split: Split, log: EvaluationLog) -> None:
        self.encoder = learner.encoder
        self.layout = learner.encoder.layout
        self.settings: S = learner.settings
        self.processes = learner.training.processes
        self.n_classes = len(learner.training.label_space)
        self.seed = learner.training.seed
        self.split = split
        self.log = log
        # Of few texts each is tokenised once; a batch only picks and masks.
        self.encodings: Sequence[Encoding] = LaidOut(self.layout, split.train.examples)
        self.dev_encodings = self.layout.encode(split.dev.examples) if split.dev else []
        self.unlabeled_encodings = LaidOut(self.layout, split.unlabeled) if split.unlabeled else []
        self.batch_size = self._batch_size()
        self.rounds_sizes = self.processes.device.type == "cuda"

    @abstractmethod
    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        """The trainable parameters as an optimiser takes them, each group with its rate."""

    @abstractmethod
    def mask_rate(self) -> float:
        """The share of the text's tokens that is hidden for the masked LM."""

    @abstractmethod
    def read(self, encodings: Sequence[Encoding]) -> object:
        """What an evaluation computes for each text, for some of them."""

    @abstractmethod
    def held_out(self, dev: LabelledExamples) -> HeldOut:
        """The present model's answers to the held-out examples."""

    def left_out(self) -> "tuple[HeldOut, IntArray] | None":
        """Answers to training examples by the model without each, and their rows, if possible."""
        return None

    @abstractmethod
    def predictor(
        self, label_space: LabelSpace, temperature: float, unknown_threshold: float | None
    ) -> "Predictor":
        """The trained model, ready to predict."""

    def evaluate(self, step: int) -> Score | None:
        """Accuracy and calibrated log-loss on the held-out examples."""
        if self.split.dev is None:
            return None
        answer = self.held_out(self.split.dev)
        self.log.add(step, answer)
        return answer.score()

    def inputs(self, batch: int) -> dict[str, Tensor]:
        """The part of a batch that is this process's, masked and padded, and the labels."""
        chosen = self._batches(batch)
        mine = range(self.processes.index, len(chosen), self.processes.count)
        encodings = self.labelled_encodings(chosen[mine.start :: mine.step], batch)
        seeds = [[self.seed, batch, i] for i in mine]
        if self.unlabeled_encodings:
            extra = self._unlabeled_batches(batch)
            mine_too = range(self.processes.index, len(extra), self.processes.count)
            # The masked LM reads an example in one piece only.
            more = [self.unlabeled_encodings[extra[i]] for i in mine_too]
            encodings += [replace(encoding, others=()) for encoding in more]
            seeds += [[self.seed, batch, self.batch_size + i] for i in mine_too]
        encodings = drawn_windows(encodings, seeds)
        inputs = {"labels": self._on_device(self.batch_labels(chosen))}
        weights = self.split.train.loss_weights
        if weights is not None:
            of_rows = weights[self.batch_rows(chosen)].astype(np.float32)
            inputs["weights"] = self._on_device(of_rows)
        return self._tensors(encodings, seeds, len(mine)) | inputs

    def labelled_encodings(self, rows: IntArray, batch: int) -> list[Encoding]:
        """The training examples of a batch as the model reads them."""
        return [self.encodings[row] for row in rows]

    def batch_rows(self, chosen: IntArray) -> IntArray:
        """Those of a batch whose labels and weights the objective needs: this process's."""
        return chosen[self.processes.index :: self.processes.count]

    def batch_labels(self, chosen: IntArray) -> IntArray:
        """Their labels."""
        return self.split.train.labels[self.batch_rows(chosen)]

    @cached_property
    def _batches(self) -> BalancedBatches | UniformBatches:
        if self.settings.batches == "balanced":
            return BalancedBatches(strata(self.split.train.labels), self.batch_size, self.seed)
        return UniformBatches(len(self.encodings), self.batch_size, self.seed)

    @cached_property
    def _unlabeled_batches(self) -> UniformBatches:
        return UniformBatches(len(self.unlabeled_encodings), self.batch_size, self.seed)

    def _tensors(
        self, encodings: Sequence[Encoding], seeds: Sequence[Sequence[int]], n: int
    ) -> dict[str, Tensor]:
        """The arguments of the objective; the first n encodings are the labelled ones."""
        masked, targets = mask_batch(
            encodings,
            seeds,
            rate=self.mask_rate(),
            mask=self.layout.special.mask,
            vocabulary=self.layout.vocabulary,
        )
        length = 0
        if self.rounds_sizes:
            length = rounded_length(max(map(len, masked)), self.layout.max_length)
            targets = rounded_targets(targets)
        batch = collate(masked, self.layout.special.pad, length)
        rows, columns = output_positions(batch, self.layout.masks)
        outputs = n * self.layout.masks
        others = np.arange(len(batch), len(batch.input_ids))
        arrays = {
            "rows": np.concatenate([rows[:outputs], others, targets.rows]),
            "columns": np.concatenate([columns[:outputs], 0 * others, targets.columns]),
            "targets": targets.ids,
        }
        return self.encoder.module.tensors(batch) | {
            name: self._on_device(array) for name, array in arrays.items()
        }

    def _on_device(self, array: np.ndarray) -> Tensor:
        return torch.as_tensor(array).to(self.processes.device, non_blocking=True)

    def _batch_size(self) -> int:
        whole, least = self.settings.batch_size, max(_LEAST_BATCH, self.processes.count)
        size = min(whole, max(least, round(whole * self.split.share)), len(self.encodings))
        size -= size % self.processes.count
        if size == 0 and len(self.encodings):  # Without any, nothing is trained.
            raise CPTuningError(
                f"A batch has fewer examples than there are processes ({self.processes.count}): "
                "raise batch_size, or start fewer processes."
            )
        return size


def rounded_length(length: int, most: int) -> int:
    """The length to which a batch is padded, one of few, so that few shapes occur.

    >>> [rounded_length(length, most=100) for length in (20, 65, 97, 130)]
    [64, 100, 100, 130]
    """
    steps = -(-length // _LENGTH_STEP)
    return max(length, min(steps * _LENGTH_STEP, most))


def rounded_targets(targets: Targets) -> Targets:
    """The targets, filled up to a power of two with ones that no loss counts; none stay none.

    >>> three = np.array([4, 5, 6])
    >>> filled = rounded_targets(Targets(three, three, three))
    >>> len(filled.ids), filled.ids[2:5].tolist()
    (128, [6, -100, -100])
    """
    found = len(targets.ids)
    if found == 0:
        return targets
    more = max(_LEAST_TARGETS, 1 << (found - 1).bit_length()) - found
    rows, columns = (np.pad(a, (0, more)) for a in (targets.rows, targets.columns))
    ids = np.pad(targets.ids, (0, more), constant_values=NO_TARGET)
    return Targets(rows, columns, ids)


def mean_by_sample(token_losses: Tensor, sample: Tensor, n: int, counted: Tensor) -> Tensor:
    """The mean of each sample's token losses that are counted; zero for a sample without any.

    >>> losses, sample = torch.tensor([1.0, 3.0, 5.0, 0.0]), torch.tensor([0, 0, 2, 0])
    >>> mean_by_sample(losses, sample, 3, counted=torch.tensor([True, True, True, False]))
    tensor([2., 0., 5.])
    """
    weights = counted.to(token_losses.dtype)
    sums = token_losses.new_zeros(n).index_add(0, sample, token_losses * weights)
    return sums / token_losses.new_zeros(n).index_add(0, sample, weights).clamp_min(1)
