"""Any BERT-style masked language model or sentence encoder behind one adapter."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cptuning.backbone.catalogue import CATALOGUE, NamedBackbone
from cptuning.backbone.hub import cached_folder, is_folder

if TYPE_CHECKING:
    from cptuning.backbone.adapter import PromptedEncoder, output_positions, to_device
    from cptuning.backbone.encoder import TextEncoder
    from cptuning.backbone.loading import Backbone, describe, load_backbone
    from cptuning.backbone.packing import pack, unpack
    from cptuning.backbone.text_layout import layout_for

__all__ = [
    "CATALOGUE",
    "Backbone",
    "NamedBackbone",
    "PromptedEncoder",
    "TextEncoder",
    "cached_folder",
    "describe",
    "is_folder",
    "layout_for",
    "load_backbone",
    "output_positions",
    "pack",
    "to_device",
    "unpack",
]

# Looked up when first used: the table of backbones needs no torch.
_HOMES = {
    "Backbone": "loading",
    "PromptedEncoder": "adapter",
    "TextEncoder": "encoder",
    "describe": "loading",
    "layout_for": "text_layout",
    "load_backbone": "loading",
    "output_positions": "adapter",
    "pack": "packing",
    "to_device": "adapter",
    "unpack": "packing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cptuning.backbone' has no attribute {name!r}")
    return getattr(import_module(f"cptuning.backbone.{_HOMES[name]}"), name)
