"""Text to model inputs: templates, the [PRO]/[TMSK]/[OMSK] layout, collation. No torch here."""

from cptuning.prompting.catalog import TaskPrompt, default_template, study_prompts, task_prompt
from cptuning.prompting.collate import Batch, collate, token_budget_batches
from cptuning.prompting.laid_out import LaidOut
from cptuning.prompting.layout import Encoding, Layout, SpecialTokens
from cptuning.prompting.masking import Targets, mask_batch, mask_text
from cptuning.prompting.template import Template
from cptuning.prompting.windows import all_windows, drawn_windows, pooled, windows_of

__all__ = [
    "Batch",
    "Encoding",
    "LaidOut",
    "Layout",
    "SpecialTokens",
    "Targets",
    "TaskPrompt",
    "Template",
    "all_windows",
    "collate",
    "default_template",
    "drawn_windows",
    "mask_batch",
    "mask_text",
    "pooled",
    "study_prompts",
    "task_prompt",
    "token_budget_batches",
    "windows_of",
]
