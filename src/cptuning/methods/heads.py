"""What turns the language model's output into class scores: a head on [CLS], or class vectors.

A head may read the features at the output position, or what would go into the decoder there.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cptuning.backbone import PromptedEncoder, TextEncoder
from cptuning.backbone.adapter import Features
from cptuning.losses.pairs import weighted_mean
from cptuning.prompting import Encoding


class Head(nn.Module, ABC):
    """Class scores from what the model says at the output position."""

    kind: ClassVar[str]
    features: ClassVar[Features] = "head"
    masks: int = 1
    """How many output masks it reads for each text."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> Self:
        """The head whose tensors were saved."""

    @abstractmethod
    def forward(self, encoder: PromptedEncoder, features: Tensor, decoder_inputs: Tensor) -> Tensor:
        """The scores (texts, classes)."""

    def loss(self, scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """What training minimises; labels are class numbers, or probabilities of the classes."""
        if weights is None:
            return cross_entropy(scores, labels)
        return weighted_mean(cross_entropy(scores, labels, reduction="none"), weights)

    def scores(self, encoder: TextEncoder, encodings: Sequence[Encoding]) -> Tensor:
        """The scores of any number of texts, in their order."""
        self.eval()
        return encoder.in_batches(
            encodings,
            lambda batch: self(encoder.module, *encoder.module.at_outputs(batch, self.masks)),
        )


class ClsHead(Head):
    """A layer and a classifier on the last hidden state at [CLS], as in RoBERTa."""

    kind = "opening"
    features = "hidden"

    def __init__(
        self, width: int, n_classes: int, dropout: float = 0.1, spread: float = 0.02
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(width, width)
        self.classes = nn.Linear(width, n_classes)
        for layer in (self.dense, self.classes):
            nn.init.normal_(layer.weight, std=spread)
            nn.init.zeros_(layer.bias)

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> Self:
        """The head whose tensors were saved."""
        n_classes, width = state["classes.weight"].shape
        head = cls(width, n_classes)
        head.load_state_dict(dict(state))
        return head

    def forward(self, encoder: PromptedEncoder, features: Tensor, decoder_inputs: Tensor) -> Tensor:
        """Dropout, layer, tanh, dropout, classifier."""
        hidden = torch.tanh(self.dense(self.dropout(features)))
        return Tensor(self.classes(self.dropout(hidden))).float()


class VectorHead(Head):
    """WARP's head: the product of the decoder's input at the mask with one vector per class."""

    kind = "vectors"

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = nn.Parameter(vectors.detach().clone())

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> Self:
        """The head whose tensors were saved."""
        return cls(state["vectors"])

    def forward(self, encoder: PromptedEncoder, features: Tensor, decoder_inputs: Tensor) -> Tensor:
        """The products."""
        return (decoder_inputs @ self.vectors.T).float()
