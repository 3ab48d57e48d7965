"""Safetensors files: written and read back, and their shapes without the tensors."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

Tensor = NDArray[Any]


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write tensors to a file, and verify that they are in it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_tensors(Path(folder, "t.safetensors"), {"a": np.zeros((2, 3))})
    ...     tensor_shapes(Path(folder, "t.safetensors"))
    {'a': (2, 3)}
    """
    written = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    save_file(written, path, metadata)
    found = load_file(path)
    if {n: _fingerprint(t) for n, t in found.items()} != {
        n: _fingerprint(t) for n, t in written.items()
    }:
        raise OSError(f"{path.name} does not hold what was written to it")


def verify_tensors(paths: Iterable[Path], tensors: Iterable[Tensor]) -> None:
    """Raise ``OSError`` unless some files hold these tensors, and nothing else.

    Their names don't matter: of tensors that share their memory a file has one, and some libraries
    use other names on the disk.
    """
    paths = list(paths)
    found = {_fingerprint(tensor) for path in paths for tensor in load_file(path).values()}
    if found != {_fingerprint(tensor) for tensor in tensors}:
        names = ", ".join(path.name for path in paths) or "no file"
        raise OSError(f"{names} does not hold what was written to it")


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors in a file, by name."""
    with safe_open(path, framework="np") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def _fingerprint(tensor: Tensor) -> tuple[tuple[int, ...], str, bytes]:
    return tensor.shape, tensor.dtype.str, blake2b(np.ascontiguousarray(tensor).data).digest()
