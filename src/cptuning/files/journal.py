"""A file that only grows: a line of JSON at a time, synced to the disk, read back."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from cptuning.errors import CPTuningError
from cptuning.files.atomic import sync_folder

T = TypeVar("T")


@dataclass(frozen=True)
class Journal:
    r"""A file with one line of JSON per entry.

    A line is on the disk when :meth:`append` returns. The last line may be torn if the power
    failed while it was being written: its writer was never told that it is kept, so it is ignored.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder) / "numbers.jsonl")
    ...     journal.append([1, 2])
    ...     _ = journal.path.open("a").write("[3, ")
    ...     journal.entries(sum)
    [3]
    """

    path: Path

    def entries(self, parse: Callable[[Any], T]) -> list[T]:
        """What was appended, in its order, each entry as ``parse`` makes it of the JSON."""
        if not self.path.exists():
            return []
        whole_lines = self.path.read_bytes().split(b"\n")[:-1]
        return [self._parsed(line, n, parse) for n, line in enumerate(whole_lines, start=1)]

    def append(self, entry: Any) -> None:
        """Keep an entry for good, or raise ``OSError`` and keep nothing of it."""
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        is_new = not self.path.exists()
        with open(self.path, "a+b", buffering=0, opener=_open_no_link) as file:
            end = _end_of_whole_lines(file)
            file.truncate(end)
            try:
                if file.write(line) < len(line):
                    raise OSError(f"{self.path} took only a part of a line.")
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    file.truncate(end)
                raise
        if is_new:
            sync_folder(self.path.parent)

    def _parsed(self, line: bytes, number: int, parse: Callable[[Any], T]) -> T:
        try:
            return parse(json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else error
            raise CPTuningError(
                f"{self.path}, line {number} is damaged ({why}): fix or remove that line."
            ) from error


def _open_no_link(path: str, flags: int) -> int:
    """Open a file that is not a link: it may have been put there to write somewhere else."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _end_of_whole_lines(file: BinaryIO) -> int:
    """Where the next line goes: behind the last line that is not torn."""
    end = file.seek(0, os.SEEK_END)
    if end == 0:
        return 0
    file.seek(end - 1)
    if file.read(1) == b"\n":
        return end
    file.seek(0)
    return file.read().rfind(b"\n") + 1
