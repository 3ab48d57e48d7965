"""A file that only grows: a line of JSON at a time, synced to the disk, read back."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from cptuning.errors import CPTuningError

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
        with self.path.open("a+b", buffering=0) as file:
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
            _sync_folder(self.path.parent)

    def _parsed(self, line: bytes, number: int, parse: Callable[[Any], T]) -> T:
        try:
            return parse(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise CPTuningError(
                f"{self.path}, line {number} is damaged ({error}): fix or remove that line."
            ) from error


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


def _sync_folder(folder: Path) -> None:
    """Let a new file's name be on the disk as well, where a folder can be synced."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
