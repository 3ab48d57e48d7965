"""Places of files: what a caller names, and where the hub's cache keeps a file."""

import os
from pathlib import Path
from typing import Any

from cptuning.errors import CPTuningError


def as_path(given: Any, name: str) -> Path:
    r"""The path that was given as the argument of this name.

    >>> as_path("models/shop", "folder").name
    'shop'
    >>> as_path(None, "folder")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: folder is None: give a path, as a string or a Path.
    """
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str):
        raise CPTuningError(f"{name} is {given!r}: give a path, as a string or a Path.")
    if not path or "\0" in path:
        why = "holds a NUL character" if path else "is empty"
        raise CPTuningError(f"{name} {why}: give the path of a file or folder.")
    return Path(path)


def cached_file(path: Path, folder: Path) -> Path:
    """What a link in a snapshot of the hub's cache stands for; any other path as it is.

    The cache keeps the files of all snapshots of a repository in its folder ``blobs``; links to
    other places are none of its own, and are not followed.

    >>> cached_file(Path("models/shop/encoder.onnx"), Path("models/shop")).name
    'encoder.onnx'
    """
    if folder.parent.name != "snapshots":
        return path
    file = path.resolve()
    return file if file.parent == folder.parents[1].resolve() / "blobs" else path
