"""One process at a time: whoever changes what a file stands for holds the file's lock."""

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
    """The stamp of a file; None if there is no such file.

    >>> stamp_of(Path("no-such-file")) is None
    True
    """
    try:
        return _stamp(path.stat())
    except OSError:
        return None


@contextmanager
def changing(path: Path, patience: float = inf, *, sure: bool = False) -> Iterator[Stamp]:
    """Be the only process that changes a file, or the folder that it is in; gives its stamp.

    The file itself is locked, without being written: the holder of the lock may replace the folder
    around it, and those who waited for it then wait for the new file's. The kernel frees a lock
    when its process dies. ``TimeoutError`` after ``patience`` seconds. If the system has no such
    locks, nobody is kept out; or, if ``sure``, everybody is.

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
            while not _try_lock(file, otherwise=not sure):
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"Another process is changing {path}.")
                time.sleep(_SECONDS_BETWEEN_TRIES)
            own = _stamp(os.fstat(file.fileno()))
            if own == stamp_of(path):  # Otherwise it was replaced while this process waited.
                yield own
                return


@contextmanager
def new_locked_file(path: Path, content: str) -> Iterator[None]:
    """Make a file, and hold its lock; there is no moment at which it is complete and not locked."""
    with path.open("xb") as file:
        _try_lock(file, otherwise=True)
        file.write(content.encode())
        file.flush()
        yield


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_ino, status.st_mtime_ns)


def _try_lock(file: BinaryIO, otherwise: bool) -> bool:
    """Whether the file could be locked, until it is closed; ``otherwise`` without any locks."""
    try:
        import fcntl
    except ImportError:
        return otherwise
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # A file system without locks.
        return otherwise
    return True
