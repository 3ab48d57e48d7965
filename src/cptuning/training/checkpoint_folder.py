"""The folder of a run's checkpoints: which files are its own, and how they are written."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cptuning.files.atomic import whole_file


@dataclass(frozen=True)
class CheckpointFolder:
    """The folder of a run's checkpoints.

    Other files may lie in it. So only files with a suffix of its own are listed and removed, and
    those only if its marker file is there: a run wrote to this folder.
    """

    path: Path
    marker = ".cptuning-checkpoints"
    state_suffix = ".cptuning-state"
    evaluations_suffix = ".cptuning-evaluations"

    def state_file(self, stage: str) -> Path:
        """Where the state of a training is.

        >>> CheckpointFolder(Path("run")).state_file("fold 1 of 2").name
        'fold-1-of-2.cptuning-state'
        """
        return self.path / f"{stage.replace(' ', '-')}{self.state_suffix}"

    def evaluations_file(self, stage: str) -> Path:
        """Where the evaluations of a training are."""
        return self.path / f"{stage.replace(' ', '-')}{self.evaluations_suffix}"

    def discard_state(self, stage: str) -> None:
        """Remove the state of a training that is over."""
        self.state_file(stage).unlink(missing_ok=True)

    @property
    def holds_state(self) -> bool:
        """Whether a training can be resumed from here."""
        return self._has_marker and any(self.path.glob(f"*{self.state_suffix}"))

    def is_within(self, folder: Path) -> bool:
        """Whether it is this folder, or lies in it."""
        return self.path.resolve().is_relative_to(folder.resolve())

    @contextmanager
    def writing(self, file: Path) -> Iterator[Path]:
        """A temporary path for one of the folder's files, which takes its place once written."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / self.marker).touch()
        with whole_file(file) as place:
            yield place

    def clear(self) -> None:
        """Remove what runs have written here, and the folder itself if nothing else is in it."""
        if not self._has_marker:
            return
        for suffix in (self.state_suffix, self.evaluations_suffix):
            for file in self.path.glob(f"*{suffix}"):
                file.unlink(missing_ok=True)
        for left_by_a_kill in self.path.glob(".*.cptuning-*.unfinished"):
            shutil.rmtree(left_by_a_kill, ignore_errors=True)
        (self.path / self.marker).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    @property
    def _has_marker(self) -> bool:
        return (self.path / self.marker).is_file()
