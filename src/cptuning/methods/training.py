"""Everything that a training needs: a backbone, settings, data, and where and how it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from numpy.typing import NDArray

from cptuning.data import Examples, LabelSpace
from cptuning.inference.support import IntArray
from cptuning.settings import S

if TYPE_CHECKING:
    from torch import Tensor

    from cptuning.backbone import Backbone
    from cptuning.training import Callback, CheckpointFolder, Precision, Processes


Weights = NDArray[np.float64]


@dataclass(frozen=True)
class LabelledExamples:
    """Examples and their class numbers, or the 0/1 matrix of their label sets."""

    examples: Examples
    labels: IntArray
    weights: Weights | None = None
    """The weight of each example; None if all are 1."""
    loss_weights: Weights | None = None
    """The same in the training loss, where balanced batches may balance the classes already."""

    def __add__(self, more: "LabelledExamples") -> "LabelledExamples":
        def joined(one: Weights | None, other: Weights | None) -> Weights | None:
            if one is None and other is None:
                return None
            ones = (np.ones(len(part.labels)) for part in (self, more))
            return np.concatenate(
                [o if w is None else w for w, o in zip((one, other), ones, strict=True)]
            )

        return LabelledExamples(
            self.examples + more.examples,
            np.concatenate([self.labels, more.labels]),
            joined(self.weights, more.weights),
            joined(self.loss_weights, more.loss_weights),
        )

    def take(self, rows: IntArray) -> "LabelledExamples":
        """Some of them."""
        weights, loss_weights = (
            None if given is None else given[rows] for given in (self.weights, self.loss_weights)
        )
        return LabelledExamples(self.examples.take(rows), self.labels[rows], weights, loss_weights)

    def without_ones(self) -> "LabelledExamples":
        """The same, whose weights are None where all of them are 1."""
        weights, loss_weights = (
            None if given is None or (given == 1).all() else given
            for given in (self.weights, self.loss_weights)
        )
        return replace(self, weights=weights, loss_weights=loss_weights)


@dataclass(frozen=True)
class Split:
    """What one training may see: labelled examples, held-out ones, texts without labels.

    ``descriptions`` of labels count as examples, with the weight that is chosen for them, times
    their own. They are never held out.
    """

    train: LabelledExamples
    dev: LabelledExamples | None = None
    unlabeled: Examples | None = None
    descriptions: LabelledExamples | None = None
    share: float = 1.0
    """Which share of the examples this is: batches are smaller by the same factor."""


@dataclass(frozen=True)
class Training(Generic[S]):
    """All that a method's learner is made of."""

    backbone: "Backbone"
    settings: S
    label_space: LabelSpace
    split: Split
    processes: "Processes"
    folds: int = 0
    """How many parts cross-fitting makes of the examples; 0 means that there is none."""
    prompts: "Tensor | None" = None
    """Where the prompt vectors start, if not from the embeddings of the prompt's words."""
    seed: int = 0
    precision: "Precision" = "auto"
    callbacks: "Sequence[Callback]" = ()
    checkpoints: "CheckpointFolder | None" = None
    checkpoint_seconds: float = 30.0
    instant: S | None = None
    """The settings of a model that is not trained, if one is to be compared with."""
    title: str = ""
    """What distinguishes it, if a fit has several of its kind."""

    @property
    def classes(self) -> list[str]:
        """The names of the labels."""
        return [str(label) for label in self.label_space.classes]

    @property
    def backbone_facts(self) -> dict[str, Any]:
        """What records and model cards say about the backbone."""
        from cptuning.backbone import describe

        return describe(self.backbone)

    @property
    def watchers(self) -> "Sequence[Callback]":
        """The callbacks of the one process that reports."""
        return self.callbacks if self.processes.is_main else ()
