"""Files that appear whole, and what a kill leaves of them: kept together, so that it can go."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cptuning.errors import CPTuningError

_MARK = ".unfinished"


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place to write a file at, from where it moves to its own in one step.

    The place is in a folder of its own: some libraries write temporary files beside the one they
    are asked for, and a process that is killed leaves them behind. The folder is hidden: readers
    of a folder of tables pass over it, though there may be a whole table in it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "state")) as place:
    ...         _ = place.write_text("all of it")
    ...     [path.name for path in Path(folder).iterdir()]
    ['state']
    """
    # Not all of a long name: a folder's may not be longer.
    folder = path.with_name(f".{path.name[:40]}.{os.getpid()}-{secrets.token_hex(4)}{_MARK}")
    folder.mkdir()
    try:
        place = folder / path.name
        yield place
        with place.open("rb+") as file:
            os.fsync(file.fileno())
        place.replace(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def clear_unfinished(folder: Path) -> None:
    """Remove what processes that were killed have left in a folder."""
    for left in folder.glob(f"*{_MARK}"):
        shutil.rmtree(left, ignore_errors=True)
