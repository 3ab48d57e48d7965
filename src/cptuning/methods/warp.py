"""WARP: the language model is frozen; prompt vectors and one vector per class are trained."""

from collections.abc import Sequence

import torch
from torch import nn

from cptuning.backbone import PromptedEncoder
from cptuning.errors import CPTuningError
from cptuning.methods.heads import Head, VectorHead
from cptuning.methods.rival_settings import WARPSettings
from cptuning.methods.word_learner import WordLearner
from cptuning.methods.words import Tokens
from cptuning.prompting import Layout


class WARP(WordLearner[WARPSettings]):
    """Every word of the template, and every [PRO], is a trainable vector."""

    method = "warp"
    trainable_words = True
    takes_prompts = True

    @property
    def needs_words(self) -> bool:
        """Only for the class vectors to start from."""
        return self.settings.class_vectors == "label-words"

    def masks(self, tokens: Sequence[Tokens]) -> int:
        """One: a class has one vector, however many tokens its word has."""
        return 1

    def make_head(self, classes: Sequence[str], layout: Layout) -> Head:
        """Class vectors that start from the decoder's rows of the label words, or at random."""
        if len(layout.prompt_ids) == 0:
            raise CPTuningError(
                f"The template {self.settings.template!r} has neither words nor [PRO]s, "
                "and a prompt is all that warp trains: add some."
            )
        decoder = self.backbone.model.get_output_embeddings()
        assert isinstance(decoder, nn.Linear)
        rows = decoder.weight.detach()
        if self.needs_words:
            return VectorHead(torch.stack([rows[list(ids)].mean(dim=0) for ids in self.tokens]))
        # At random, and as long as the rows of words are.
        return VectorHead(float(rows.std()) * torch.randn(len(classes), rows.shape[1]))

    def prepare(self, module: PromptedEncoder) -> None:
        """Freeze the language model."""
        module.model.requires_grad_(False)

    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        """The prompt vectors, without weight decay, and the class vectors."""
        return [
            {"params": [self.encoder.module.prompts], "lr": learning_rate, "weight_decay": 0.0},
            {"params": list(self.head.parameters()), "lr": learning_rate},
        ]
