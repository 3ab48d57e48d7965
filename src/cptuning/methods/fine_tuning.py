"""Standard fine-tuning: a new classifier on [CLS], cross-entropy, every weight trained."""

from collections.abc import Sequence

from cptuning.backbone import PromptedEncoder, layout_for
from cptuning.errors import CPTuningError
from cptuning.methods.classification import HeadLearner
from cptuning.methods.heads import ClsHead, Head
from cptuning.prompting import Layout, Template
from cptuning.prompting.template import Mask
from cptuning.settings import TrainingSettings


class FineTuning(HeadLearner[TrainingSettings]):
    """An encoder with a head on [CLS]; the masked-LM head is left as it is."""

    def layout(self, classes: Sequence[str]) -> Layout:
        """The texts, and no prompt unless the template has one."""
        template = Template.parse(self.settings.template)
        if any(isinstance(part, Mask) for part in template.parts):
            raise CPTuningError(
                f"The template {template.source!r} has a [MASK], but fine-tuning reads its answer "
                "at [CLS]: begin the template with [CLS] instead."
            )
        return layout_for(self.backbone, template, self.settings.max_length, trainable_words=False)

    def make_head(self, classes: Sequence[str], layout: Layout) -> Head:
        """A new head, with the backbone's own dropout and spread of first weights."""
        config = self.backbone.model.config
        own_dropout = getattr(config, "classifier_dropout", None)
        return ClsHead(
            config.hidden_size,
            len(classes),
            getattr(config, "hidden_dropout_prob", 0.1) if own_dropout is None else own_dropout,
            getattr(config, "initializer_range", 0.02),
        )

    def prepare(self, module: PromptedEncoder) -> None:
        """Hold still what is behind the encoder: the masked-LM head takes no part."""
        inside = {id(p) for p in self.backbone.model.base_model.parameters()}
        for parameter in self.backbone.model.parameters():
            parameter.requires_grad_(id(parameter) in inside)
