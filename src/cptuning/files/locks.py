"""One process at a time: who changes what a file stands for holds the file's lock meanwhile."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import BinaryIO, NamedTuple

_SECONDS_BETWEEN_TRIES = 0.02


class Stamp(NamedTuple):
    """What tells a file from another one that takes its place."""

    inode: int
    changed_ns: int


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; None where there is none.

    >>> stamp_of(Path("no-such-file")) is None
    True
    """
    try:
        return _stamp(path.stat())
    except OSError:
        return None


@contextmanager
def changing(path: Path, patience: float = inf) -> Iterator[Stamp]:
    """Be the only process that changes a file, or the folder that it is in; gives its stamp.

    The file itself is locked, without being written: the folder around it may be replaced by who
    holds the lock, and those who waited for it then wait for the new file's. The kernel frees a
    lock when its process dies. ``TimeoutError`` after ``patience`` seconds. Where the system has
    no such locks nobody is kept out.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile() as file, changing(Path(file.name)):
    ...     with changing(Path(file.name), patience=0.0):
    ...         pass
    Traceback (most recent call last):
    ...
    TimeoutError: Another process is changing ...
    """
    deadline = time.monotonic() + patience
    while True:
        with path.open("rb") as file:
            while not _is_locked(file):
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"Another process is changing {path}.")
                time.sleep(_SECONDS_BETWEEN_TRIES)
            own = _stamp(os.fstat(file.fileno()))
            if own == stamp_of(path):  # Else it was replaced while this process waited.
                yield own
                return


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_ino, status.st_mtime_ns)


def _is_locked(file: BinaryIO) -> bool:
    """Whether the file could be locked; closing it frees it."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # A file system without locks: the same as none at all.
        return True
    return True
