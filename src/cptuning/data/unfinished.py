"""Files that appear whole, and what a kill leaves of them: kept together, so that it can go."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MARK = ".unfinished"


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place to write a file at, from where it moves to its own in one step.

    The place is in a folder of its own: some libraries write temporary files beside the one they
    are asked for, and a process that is killed leaves them behind.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "state")) as place:
    ...         _ = place.write_text("all of it")
    ...     [path.name for path in Path(folder).iterdir()]
    ['state']
    """
    folder = path.with_name(f"{path.name}.{os.getpid()}{_MARK}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        place = folder / path.name
        yield place
        with place.open("rb+") as file:
            os.fsync(file.fileno())
        place.replace(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def clear_unfinished(folder: Path) -> None:
    """Remove what processes that were killed have left in a folder."""
    for left in folder.glob(f"*{_MARK}"):
        shutil.rmtree(left, ignore_errors=True)
