"""Files and folders that appear whole, and the removal of what killed processes leave of them."""

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from cptuning.errors import CPTuningError
from cptuning.files.locks import changing, new_locked_file

_SUFFIX = ".unfinished"
# Inside a workspace: whose it is, what is being written, and what it takes the place of.
_OWNER, _NEW, _OLD = "owner.json", "new", "old"
# How many seconds another process may take between the two renames of a replacement.
_PATIENCE = 10.0
# And how many between making a workspace and marking it.
_SECONDS_TO_MARK = 60.0


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place to write a file at, from where it moves to its own in one step.

    The place is in a folder of its own: some libraries write temporary files beside the one that
    they are asked for. The folder is hidden, so that readers of a folder of tables ignore it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "state")) as place:
    ...         _ = place.write_text("all of it")
    ...     [path.name for path in Path(folder).iterdir()]
    ['state']
    """
    with _workspace(path) as work:
        place = work / _NEW / path.name
        place.parent.mkdir()
        yield place
        _sync(place)
        place.replace(path)
        sync_folder(path.parent)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to write to, which takes the place of another one when it is complete.

    A process that is killed leaves the old folder or the new one in place, or, between the two
    renames, both in its workspace, from where :func:`restore` brings the new one back.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as parent:
    ...     model = Path(parent, "model")
    ...     for content in ("old", "new"):
    ...         with whole_folder(model) as place:
    ...             _ = (place / "facts").write_text(content)
    ...     (model / "facts").read_text(), [path.name for path in Path(parent).iterdir()]
    ('new', ['model'])
    """
    with _workspace(path) as work:
        place = work / _NEW
        place.mkdir()
        yield place
        for folder, _, names in os.walk(place):
            for name in names:
                _sync(Path(folder, name))
            sync_folder(Path(folder))
        if path.exists():
            path.rename(work / _OLD)
        try:
            place.rename(path)
        except OSError:
            if (work / _OLD).exists():
                (work / _OLD).rename(path)
            raise
        sync_folder(path.parent)


def require_writable(path: Path) -> None:
    """Try whether a file or folder can be made at a path; ``OSError`` if not.

    What a process leaves that is killed meanwhile is removed like any other workspace.
    """
    with _workspace(path):
        pass


def restore(path: Path) -> None:
    """Finish what a killed process began at a path, and remove what it left there.

    Another process that is between its two renames right now is waited for.
    """
    for work in _workspaces_of(path):
        patience = _PATIENCE if _is_between_renames(work, path) else 0.0
        with suppress(OSError), changing(work / _OWNER, patience, sure=True):
            if _is_between_renames(work, path):
                (work / _NEW).rename(path)  # It was complete before the old one was moved.
                sync_folder(path.parent)
            _remove(work)


def clear_unfinished(folder: Path) -> None:
    """Remove what killed processes have left in a folder."""
    for target in {_target_of(work) for work in folder.glob(f".*{_SUFFIX}")}:
        if target is not None:
            restore(target)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file that is either all there or not there, and say in one sentence why not.

    >>> write_whole("no/such/folder/report.html", "<p>Hello</p>")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: no/such/folder/report.html can't be written: No such file or
    directory.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        with whole_file(Path(path)) as place:
            place.write_bytes(data)
    except OSError as error:
        raise CPTuningError(f"{path} can't be written: {error.strerror or error}.") from error


def sync_folder(folder: Path) -> None:
    """Let the names in a folder be on the disk as well, if the system can sync a folder."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def _workspace(path: Path) -> Iterator[Path]:
    """A hidden folder beside a path, which other processes leave alone while this one lives."""
    restore(path)
    # Not all of a long name: a folder's may not be longer.
    work = path.with_name(f"{_prefix(path)}{secrets.token_hex(8)}{_SUFFIX}")
    work.mkdir()
    try:
        with new_locked_file(work / _OWNER, json.dumps({"cptuning": path.name})):
            yield work
    finally:
        _remove(work)


def _remove(work: Path) -> None:
    """Remove a workspace, last of all what tells that it is one."""
    for content in (_NEW, _OLD):
        shutil.rmtree(work / content, ignore_errors=True)
    shutil.rmtree(work, ignore_errors=True)


def _is_between_renames(work: Path, path: Path) -> bool:
    return (work / _OLD).exists() and not path.exists()


def _prefix(path: Path) -> str:
    return f".{path.name[:40]}."


def _workspaces_of(path: Path) -> list[Path]:
    """The workspaces for a path, of processes that are alive or were killed."""
    works = list(path.parent.glob(f"{escape(_prefix(path))}*{_SUFFIX}"))
    for work in works:
        _remove_if_empty(work)
    return [work for work in works if _target_of(work) == path]


def _remove_if_empty(work: Path) -> None:
    """Remove a workspace whose process was killed before its mark was there, or after it."""
    with suppress(OSError):
        if time.time() - work.stat().st_mtime > _SECONDS_TO_MARK:
            if (work / _OWNER).exists() and not (work / _OWNER).stat().st_size:
                (work / _OWNER).unlink()
            work.rmdir()


def _target_of(work: Path) -> Path | None:
    """What is written in a workspace; None if the folder is not one of ours."""
    owner = work / _OWNER
    if work.is_symlink() or owner.is_symlink() or not owner.is_file():
        return None
    try:
        return work.with_name(json.loads(owner.read_text("utf-8"))["cptuning"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
