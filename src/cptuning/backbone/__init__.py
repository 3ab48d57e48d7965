"""Any BERT-style masked language model behind one adapter."""

from cptuning.backbone.adapter import PromptedEncoder, output_positions, to_device
from cptuning.backbone.encoder import TextEncoder, layout_for
from cptuning.backbone.loading import Backbone, describe, load_backbone
from cptuning.backbone.packing import pack, unpack

__all__ = [
    "Backbone",
    "PromptedEncoder",
    "TextEncoder",
    "describe",
    "layout_for",
    "load_backbone",
    "output_positions",
    "pack",
    "to_device",
    "unpack",
]
