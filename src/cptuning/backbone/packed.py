"""The embedded backbone, and models that were trained from it, without torch: weights and words."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from cptuning.backbone.checking import WEIGHTS, read_json
from cptuning.files.tensors import tensor_shapes
from cptuning.prompting import SpecialTokens

EMBEDDED = Path(__file__).parent / "embedded"
PACKED_WEIGHTS = "model.packed.safetensors"
GRAPH_FILE = "encoder.onnx"
BACKBONE_FILES = (PACKED_WEIGHTS, "config.json", "tokenizer.json", "tokenizer_config.json")
"""A backbone with packed weights in a folder."""
WORDS = "bert.embeddings.word_embeddings.weight"

_SCALE = ".scale"
# What the graph is made of, and so the same in all that it can compute.
_ARCHITECTURE = (
    *("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "hidden_act"),
    *("intermediate_size", "layer_norm_eps", "max_position_embeddings", "type_vocab_size"),
)
# Not in the graph: only the decoder has it.
_DECODER_BIAS = "cls.predictions.bias"
_SENTENCE = "sentence."

Weights = dict[str, NDArray[np.float32]]


def unpacked(packed: Mapping[str, NDArray[Any]]) -> Weights:
    """Rows of 8-bit integers times their scales, and all else, as float32.

    >>> unpacked({"w": np.array([[2, -4]], np.int8), "w.scale": np.array([[0.5]], np.float16)})
    {'w': array([[ 1., -2.]], dtype=float32)}
    """
    return {
        name: value.astype(np.float32) * packed[name + _SCALE].astype(np.float32)
        if value.dtype == np.int8
        else value.astype(np.float32)
        for name, value in packed.items()
        if not name.endswith(_SCALE)
    }


@dataclass(frozen=True)
class PackedBackbone:
    """A folder with packed weights of the embedded architecture; the package has one.

    >>> backbone = PackedBackbone()
    >>> backbone.facts["parameters"] > 1_000_000
    True
    """

    folder: Path = EMBEDDED

    @cached_property
    def fast_tokenizer(self) -> Tokenizer:
        """The tokenizer as the ``tokenizers`` library knows it."""
        return Tokenizer.from_file(str(self.folder / "tokenizer.json"))

    @cached_property
    def special(self) -> SpecialTokens:
        """The tokenizer's special tokens."""
        ids = self.fast_tokenizer.get_vocab()
        mask, pad = (ids[self._tokenizer_config[name]] for name in ("mask_token", "pad_token"))
        return SpecialTokens.of(self.fast_tokenizer, mask, pad)

    @property
    def vocabulary(self) -> int:
        """The number of rows of the embedding table."""
        return int(self._config["vocab_size"])

    @property
    def max_length(self) -> int:
        """The maximum number of tokens that the model can read."""
        positions = self._config["max_position_embeddings"]
        return int(min(self._tokenizer_config["model_max_length"], positions))

    @property
    def facts(self) -> dict[str, Any]:
        """What records and model cards say about it."""
        shapes = tensor_shapes(self.folder / PACKED_WEIGHTS)
        counted = [n for n in shapes if not (n.startswith(_SENTENCE) or n.endswith(_SCALE))]
        return {
            "name": self.folder.name,
            "architecture": self._config["architectures"][0],
            "parameters": sum(prod(shapes[name]) for name in counted),
        }

    @cached_property
    def _config(self) -> dict[str, Any]:
        return _object(self.folder / "config.json")

    @cached_property
    def _tokenizer_config(self) -> dict[str, Any]:
        return _object(self.folder / "tokenizer_config.json")


def has_embedded_architecture(folder: Path) -> bool:
    """Whether a backbone's folder is one that the embedded graph computes."""
    embedded, other = _object(EMBEDDED / "config.json"), _object(folder / "config.json")
    if any(embedded[name] != other.get(name) for name in _ARCHITECTURE):
        return False
    if (folder / PACKED_WEIGHTS).is_file():
        return True
    return (folder / WEIGHTS).is_file() and all(
        (folder / name).is_file() and read_json(folder / name) == facts
        for name, facts in _sentence_modules(embedded["hidden_size"]).items()
    )


def packed_weights(folder: Path) -> Weights:
    """The weights in a folder of the embedded architecture, those of the sentence view included.

    ``ValueError`` if they are of other shapes.
    """
    weights = unpacked(load_file(folder / PACKED_WEIGHTS))
    _check_shapes(weights, PackedBackbone(folder).vocabulary)
    return weights


def graph_weights(folder: Path, vocabulary: int) -> Weights:
    """The weights of the embedded graph from a backbone's folder, packed or not.

    ``ValueError`` if they are of other shapes.
    """
    if (folder / PACKED_WEIGHTS).is_file():
        weights = packed_weights(folder)
    else:
        dense = load_file(folder / "2_Dense" / WEIGHTS)
        weights = unpacked(load_file(folder / WEIGHTS))
        weights |= {
            f"{_SENTENCE}dense.{name}": dense[f"linear.{name}"].astype(np.float32)
            for name in ("weight", "bias")
        }
    _check_shapes(weights, vocabulary)
    del weights[_DECODER_BIAS]
    return weights


def _check_shapes(weights: Weights, vocabulary: int) -> None:
    """Raise ``ValueError`` unless these are the weights of the embedded architecture."""
    expected = {
        name: shape
        for name, shape in tensor_shapes(EMBEDDED / PACKED_WEIGHTS).items()
        if not name.endswith(_SCALE)
    }
    expected[WORDS] = (vocabulary, *expected[WORDS][1:])
    expected[_DECODER_BIAS] = (vocabulary,)
    if {name: array.shape for name, array in weights.items()} != expected:
        raise ValueError("its weights are not those of its architecture")


def _sentence_modules(width: int) -> dict[str, Any]:
    """What a folder says about the embedded sentence view, if it was written with torch."""
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
    return {
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(kinds.items())
        ],
        "1_Pooling/config.json": {
            "embedding_dimension": width,
            "pooling_mode": ["mean"],
            "include_prompt": True,
            "text_only": True,
        },
        "2_Dense/config.json": {
            "in_features": width,
            "out_features": width,
            "bias": True,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
    }


def _object(path: Path) -> dict[str, Any]:
    facts = read_json(path)
    if not isinstance(facts, dict):
        raise ValueError(f"{path.name} is not an object")
    return facts
