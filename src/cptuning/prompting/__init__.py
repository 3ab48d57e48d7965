"""Text to model inputs: templates, the [PRO]/[TMSK]/[OMSK] layout, collation. No torch here."""

from cptuning.prompting.collate import Batch, collate, token_budget_batches
from cptuning.prompting.layout import Encoding, Layout, SpecialTokens
from cptuning.prompting.masking import Targets, mask_batch, mask_text
from cptuning.prompting.template import Template

__all__ = [
    "Batch",
    "Encoding",
    "Layout",
    "SpecialTokens",
    "Targets",
    "Template",
    "collate",
    "mask_batch",
    "mask_text",
    "token_budget_batches",
]
