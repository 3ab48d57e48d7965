"""Folders of sentence-transformers: what stands behind the model, read with checks, and written."""

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from cptuning.backbone.checking import read_json
from cptuning.backbone.pooling import (
    ACTIVATIONS,
    POOLING_MODES,
    Dense,
    Normalize,
    PoolingMode,
    SentencePooling,
)
from cptuning.errors import CPTuningError
from cptuning.files.tensors import save_tensors, tensor_shapes

MODULES_FILE = "modules.json"
_PROMPTS_FILE = "config_sentence_transformers.json"
_CONFIG, _WEIGHTS, _PICKLED = "config.json", "model.safetensors", "pytorch_model.bin"
# Not sentence-transformers' own: it pools all tokens.
_TEXT_ONLY = "text_only"
_MOST_MODULES = 16
_MOST_CHARACTERS = 5_000
_MOST_TOKENS = 1 << 20
# Until version 5 each mode had a key of its own.
_KEYS_OF_MODES: dict[str, PoolingMode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True)
class SentenceFolder:
    """What a folder of sentence-transformers says about its modules."""

    transformer: Path
    """The folder of the model itself."""
    modes: tuple[PoolingMode, ...]
    token_width: int
    include_prompt: bool
    """Whether the tokens of the prompt are pooled, too."""
    text_only: bool
    """Whether no other tokens than those of the text are pooled: not [CLS] and [SEP] either."""
    layers: tuple[Dense | Normalize, ...]
    prompt: str
    """What stands before every text."""
    max_length: int | None
    lower_case: bool

    def pooling(self, prompt_tokens: int) -> SentencePooling:
        """The modules behind the model, for a prompt of so many tokens, [CLS] included."""
        return SentencePooling(
            self.modes,
            self.token_width,
            self.layers,
            text_prefix=self.prompt,
            first=prompt_tokens if self.prompt and not self.include_prompt else 0,
            text_only=self.text_only,
        )


def read_sentence_folder(folder: Path) -> SentenceFolder:
    """The modules of a folder; a module that is not known here is refused by its name."""
    modules = [_named(folder, module) for module in _listed(folder)]
    kinds = [kind for kind, _ in modules]
    if kinds[:2] != ["Transformer", "Pooling"]:
        raise CPTuningError(
            f"{folder / MODULES_FILE} begins with {', '.join(kinds[:2]) or 'nothing'}: "
            "only sentence encoders that begin with Transformer, Pooling can be used."
        )
    (_, transformer), (_, pooling), *rest = modules
    facts = _object(pooling / _CONFIG)
    modes = _modes(pooling / _CONFIG, facts)
    width = facts.get("embedding_dimension", facts.get("word_embedding_dimension"))
    token_width = _whole_number(pooling / _CONFIG, "embedding_dimension", width)
    layers: list[Dense | Normalize] = []
    width = token_width * len(modes)
    for kind, place in rest:
        if kind == "Normalize":
            layers.append(Normalize())
        elif kind == "Dense":
            layers.append(layer := _dense(place, width))
            width = layer.linear.out_features
        else:
            raise CPTuningError(
                f"{folder / MODULES_FILE} has the module {_short(kind)}, which is not known here: "
                "behind Transformer and Pooling there may be Dense and Normalize."
            )
    own = next((_object(path) for path in sorted(transformer.glob("sentence_*_config.json"))), {})
    longest = own.get("max_seq_length")
    return SentenceFolder(
        transformer,
        modes,
        token_width,
        facts.get("include_prompt", True) is not False,
        facts.get(_TEXT_ONLY) is True,
        tuple(layers),
        _default_prompt(folder / _PROMPTS_FILE),
        None if longest is None else _whole_number(folder, "max_seq_length", longest),
        own.get("do_lower_case") is True,
    )


def write_sentence_modules(pooling: SentencePooling, folder: Path) -> None:
    """Write what stands behind the model beside it, so that the folder can be read again."""
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    modules += [
        (type(layer).__name__, f"{i}_{type(layer).__name__}")
        for i, layer in enumerate(pooling.layers, start=2)
    ]
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(modules)
    ]
    configuration = {
        "embedding_dimension": pooling.token_width,
        "pooling_mode": list(pooling.modes),
        "include_prompt": pooling.first == 0,
    }
    if pooling.text_only:
        configuration[_TEXT_ONLY] = True
    prompt = {"prompts": {"default": pooling.text_prefix}, "default_prompt_name": "default"}
    _write_json(folder / MODULES_FILE, listed)
    _write_json(folder / _PROMPTS_FILE, prompt)
    _write_json(folder / "1_Pooling" / _CONFIG, configuration)
    for layer, (_, path) in zip(pooling.layers, modules[2:], strict=True):
        (folder / path).mkdir(exist_ok=True)
        if not isinstance(layer, Dense):
            continue
        activation = type(layer.activation_function)
        facts = {
            "in_features": layer.linear.in_features,
            "out_features": layer.linear.out_features,
            "bias": layer.linear.bias is not None,
            "activation_function": f"{activation.__module__}.{activation.__name__}",
        }
        _write_json(folder / path / _CONFIG, facts)
        state = {name: t.detach().cpu().numpy() for name, t in layer.state_dict().items()}
        save_tensors(folder / path / _WEIGHTS, state)


def _listed(folder: Path) -> list[Any]:
    path = folder / MODULES_FILE
    modules = read_json(path)
    if not isinstance(modules, list) or len(modules) > _MOST_MODULES:
        raise _damaged(path, "it is not a short list of modules")
    return modules


def _named(folder: Path, module: Any) -> tuple[str, Path]:
    """The last part of a module's type, which stays the same between versions, and its folder."""
    path = folder / MODULES_FILE
    if not isinstance(module, dict) or not all(
        isinstance(module.get(name), str) for name in ("type", "path")
    ):
        raise _damaged(path, "a module has no type or path")
    if module["path"] and Path(module["path"]).name != module["path"]:
        raise _damaged(path, "it names files outside the folder")
    return module["type"].rpartition(".")[2], folder / module["path"]


def _modes(path: Path, facts: dict[str, Any]) -> tuple[PoolingMode, ...]:
    found = facts.get("pooling_mode")
    if found is None:
        found = [mode for key, mode in _KEYS_OF_MODES.items() if facts.get(key)] or ["mean"]
    modes = (found,) if isinstance(found, str) else found
    if not isinstance(modes, list | tuple) or not 0 < len(modes) <= len(POOLING_MODES):
        raise _damaged(path, "its pooling_mode is not a list of modes")
    for mode in modes:
        if mode not in POOLING_MODES:
            raise CPTuningError(
                f"{path} has the pooling mode {_short(mode)}: "
                f"there are only {', '.join(POOLING_MODES)}."
            )
    return tuple(modes)


def _dense(folder: Path, width: int) -> Dense:
    """A layer whose weights are as its configuration says, and fit what comes before it."""
    path = folder / _CONFIG
    facts = _object(path)
    read, written = facts.get("module_input_name"), facts.get("module_output_name")
    usual = (None, "sentence_embedding")
    if facts.get("use_residual") or read not in usual or written not in usual:
        raise CPTuningError(f"{path} has a residual or reads an input other than the embedding.")
    sizes = [_whole_number(path, n, facts.get(n)) for n in ("in_features", "out_features")]
    activation = str(facts.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise CPTuningError(
            f"{path} has the activation {_short(activation)}: "
            f"there are only {', '.join(ACTIVATIONS)}."
        )
    weights = folder / _WEIGHTS
    if not weights.is_file() and (folder / _PICKLED).exists():
        raise CPTuningError(
            f"{folder / _PICKLED} is pickled and could run any code: save the sentence encoder "
            f"with its weights as {_WEIGHTS}."
        )
    bias = facts.get("bias", True) is not False
    expected = {"linear.weight": (sizes[1], sizes[0])}
    if bias:
        expected["linear.bias"] = (sizes[1],)  # type: ignore[assignment]
    try:
        shapes = tensor_shapes(weights)
        if shapes != expected or sizes[0] != width or prod(sizes) == 0:
            raise ValueError("its sizes do not fit")
        layer = Dense(sizes[0], sizes[1], bias, activation)
        layer.load_state_dict({n: t.float() for n, t in load_file(weights).items()})
    except (OSError, SafetensorError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise _damaged(weights, str(why)) from error
    return layer


def _default_prompt(path: Path) -> str:
    facts = _object(path) if path.is_file() else {}
    name, prompts = facts.get("default_prompt_name"), facts.get("prompts")
    if name is None:
        return ""
    prompt = prompts.get(name) if isinstance(prompts, dict) and isinstance(name, str) else None
    if not isinstance(prompt, str) or len(prompt) > _MOST_CHARACTERS:
        raise _damaged(path, "its default prompt is not a short text")
    return prompt


def _object(path: Path) -> dict[str, Any]:
    facts = read_json(path)
    if not isinstance(facts, dict):
        raise _damaged(path, "it is not an object")
    return facts


def _whole_number(path: Path, name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MOST_TOKENS:
        raise _damaged(path, f"its {name} is {_short(value)}")
    return value


def _write_json(path: Path, values: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _damaged(path: Path, why: str) -> CPTuningError:
    return CPTuningError(f"{path} is damaged ({why}): save or copy the model again.")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
