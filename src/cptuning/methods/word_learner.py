"""What PET, LM-BFF, P-tuning and WARP share: a masked LM with a prompt and words for labels."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from cptuning.backbone import layout_for
from cptuning.errors import CPTuningError
from cptuning.methods.classification import HeadLearner, require_masked_lm
from cptuning.methods.heads import Head
from cptuning.methods.rival_settings import WordSettings
from cptuning.methods.words import Tokens, WordHead, tokens_of, words_for
from cptuning.prompting import Layout, Template
from cptuning.prompting.template import Mask, Prompts

W = TypeVar("W", bound=WordSettings)


class WordLearner(HeadLearner[W], Generic[W]):
    """A prompt of ordinary words, and the model's own logits of the label words at its mask."""

    method = "The method"
    trainable_words = False
    takes_prompts = False
    """Whether its template may contain [PRO]s."""

    def layout(self, classes: Sequence[str]) -> Layout:
        """The prompt, with as many masks as the longest word needs; it also sets the words."""
        require_masked_lm(self.backbone, self.method)
        template = Template.parse(self.settings.template)
        self._check(template)
        layout = self._layout(template, masks=1)
        if not self.needs_words:
            return layout
        unknown = self.backbone.tokenizer.unk_token_id
        words = words_for(classes, self.settings.label_words, layout, unknown)
        self.settings = replace(self.settings, label_words=words)
        self.tokens: list[Tokens] = tokens_of(words, layout, unknown)
        masks = self.masks(self.tokens)
        return layout if masks == 1 else self._layout(template, masks)

    @property
    def needs_words(self) -> bool:
        """Whether words stand for the labels at all."""
        return True

    def masks(self, tokens: Sequence[Tokens]) -> int:
        """How many masks the prompt needs."""
        return max(map(len, tokens))

    def make_head(self, classes: Sequence[str], layout: Layout) -> Head:
        """The words' own logits."""
        return WordHead(self.tokens)

    def _layout(self, template: Template, masks: int) -> Layout:
        return layout_for(
            self.backbone,
            template,
            self.settings.max_length,
            trainable_words=self.trainable_words,
            masks=masks,
        )

    def _check(self, template: Template) -> None:
        if not any(isinstance(part, Mask) for part in template.parts):
            raise CPTuningError(
                f"The template {template.source!r} has no [MASK], "
                f"where {self.method} asks for a word."
            )
        has_prompts = any(isinstance(part, Prompts) for part in template.parts)
        if has_prompts and not self.takes_prompts:
            raise CPTuningError(
                f"The template {template.source!r} has [PRO]s, "
                f"but {self.method} puts only words around a text."
            )
