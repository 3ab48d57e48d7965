"""Whether the files of a backbone fit together, looked at before a model is built of them."""

import json
import re
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from cptuning.errors import CPTuningError
from cptuning.files.tensors import tensor_shapes

if TYPE_CHECKING:
    from transformers import PretrainedConfig

WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
# Configurations and indexes of weights take a few kilobytes; this is room enough.
_MOST_BYTES = 16_000_000
# Building a model takes time for each of these, so they are checked before that.
_COUNT = re.compile(r"num|layer|group|block|head|label|expert")
_MOST_COUNTED = 1024
_MOST_POSITIONS = 65_536
# Rope's base may be as large.
_MOST = 10_000_000
# Parts of a masked LM that a file may lack: its head, and tables that are computed.
_SPARE_NUMBERS = 1_000_000


def check_backbone_files(folder: Path) -> None:
    """Refuse a folder with numbers in its configuration that do not match its tensors."""
    largest = max((size for shape in weight_shapes(folder).values() for size in shape), default=0)
    for name, number in _numbers(read_json(folder / "config.json")):
        most = max(_MOST, largest)
        if _COUNT.search(name):
            most = _MOST_COUNTED
        elif "position" in name:
            most = max(_MOST_POSITIONS, largest)
        if "token_id" not in name and not abs(number) <= most:
            raise CPTuningError(
                f"The configuration of {folder} says {name}={_short(number)}, which does not "
                "match its weights: save or copy the model again."
            )


def check_size(folder: Path, config: "PretrainedConfig") -> None:
    """Refuse a configuration of a model that is far larger than its weights."""
    import torch
    from transformers import AutoModelForMaskedLM

    stored = sum(prod(shape) for shape in weight_shapes(folder).values())
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        model = AutoModelForMaskedLM.from_config(config)
    wanted = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    if wanted > 2 * stored + _SPARE_NUMBERS:
        raise CPTuningError(
            f"The configuration of {folder} describes a model of {wanted} numbers, and its weights "
            f"are {stored}: save or copy the model again."
        )


def weight_files(folder: Path) -> list[Path]:
    """The files of a backbone's weights: one, or those that an index names."""
    if not (folder / _INDEX).is_file():
        return [folder / WEIGHTS]
    try:
        names = set(read_json(folder / _INDEX)["weight_map"].values())
        if not all(Path(name).name == name for name in names):
            raise ValueError("it names files outside the folder")
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise CPTuningError(
            f"{folder / _INDEX} is damaged ({error}): save or copy the model again."
        ) from error
    return [folder / name for name in sorted(names)]


def weight_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of a backbone's tensors, by name."""
    shapes: dict[str, tuple[int, ...]] = {}
    for path in weight_files(folder):
        try:
            shapes |= tensor_shapes(path)
        except (OSError, SafetensorError) as error:
            raise CPTuningError(
                f"The folder {folder} could not be loaded as a masked language model: "
                f"there is no file named {path.name}, or it is damaged."
            ) from error
    return shapes


def read_json(path: Path) -> Any:
    """What a small JSON file holds."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("it is too large")
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        raise CPTuningError(f"{path} is damaged ({why}): save or copy the model again.") from error


def _numbers(values: Any, name: str = "") -> Iterator[tuple[str, int | float]]:
    """The numbers in a configuration, each with the name that it goes by."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _numbers(value, str(key) if name == "" else f"{name}.{key}")
    elif isinstance(values, list):
        for value in values:
            yield from _numbers(value, name)
    elif isinstance(values, int | float):
        yield name, values


def _short(number: float) -> str:
    text = str(number)
    return text if len(text) < 20 else f"{text[:20]}…"
