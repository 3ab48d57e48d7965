"""How a backbone's own tokenizer lays texts out."""

from typing import Protocol

from tokenizers import Tokenizer

from cptuning.prompting import Layout, SpecialTokens, Template


class TokenizedBackbone(Protocol):
    """What of a backbone a layout depends on."""

    @property
    def fast_tokenizer(self) -> Tokenizer:
        """The tokenizer as the ``tokenizers`` library knows it."""
        ...

    @property
    def special(self) -> SpecialTokens:
        """The tokenizer's special tokens."""
        ...

    @property
    def vocabulary(self) -> int:
        """The number of rows of the embedding table."""
        ...

    @property
    def max_length(self) -> int:
        """The maximum number of tokens that the model can read."""
        ...


def layout_for(
    backbone: TokenizedBackbone,
    template: Template,
    max_length: int,
    *,
    trainable_words: bool = True,
    masks: int = 1,
    text_prefix: str = "",
    sentences: bool = False,
    windows: int = 1,
) -> Layout:
    """The layout of a backbone's tokenizer; no longer than the model can read."""
    return Layout(
        backbone.fast_tokenizer,
        backbone.special,
        template,
        vocabulary=backbone.vocabulary,
        max_length=min(max_length, backbone.max_length),
        trainable_words=trainable_words,
        masks=masks,
        text_prefix=text_prefix,
        sentences=sentences,
        windows=windows,
    )
