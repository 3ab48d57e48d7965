"""Examples that a model was taught since it was saved: appended, synced to the disk, read back."""

import json
import os
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from cptuning.data.examples import Examples, as_examples
from cptuning.data.labels import as_labels
from cptuning.errors import CPTuningError

JOURNAL_FILE = "added.jsonl"
"""What a model folder holds where the model was taught more examples while it was served."""


@dataclass(frozen=True)
class Lesson:
    """Examples that were added together, with their labels."""

    examples: Examples
    labels: list[Hashable]


@dataclass(frozen=True)
class Journal:
    r"""A file that only grows: one line of JSON for each time that examples were added.

    A line is on the disk when :meth:`append` returns. The last one may be torn, where the power
    failed while it was written: nobody was told that it is kept, so it is passed over.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder) / JOURNAL_FILE)
    ...     journal.append(Examples(("where is my parcel?",)), ["delivery"])
    ...     _ = journal.path.open("a").write('{"texts": ["do you')
    ...     journal.lessons()
    [Lesson(examples=Examples(first=('where is my parcel?',), second=None), labels=['delivery'])]
    """

    path: Path

    def lessons(self) -> list[Lesson]:
        """What was added, in its order."""
        if not self.path.exists():
            return []
        whole_lines = self.path.read_bytes().split(b"\n")[:-1]
        return [self._lesson(line, n) for n, line in enumerate(whole_lines, start=1)]

    def append(self, examples: Examples, labels: Sequence[Hashable]) -> None:
        """Keep examples for good, or raise ``OSError`` and keep none of them."""
        lesson = {"texts": list(examples), "labels": list(labels)}
        line = json.dumps(lesson, ensure_ascii=False, allow_nan=False).encode() + b"\n"
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

    def _lesson(self, line: bytes, number: int) -> Lesson:
        try:
            stored: dict[str, Any] = json.loads(line)
            examples = as_examples(stored["texts"])
            return Lesson(examples, as_labels(stored["labels"], len(examples)))
        except (ValueError, KeyError, TypeError) as error:
            raise CPTuningError(
                f"{self.path}, line {number} is damaged ({error}): mend that line or remove it."
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
