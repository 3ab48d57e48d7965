"""The sources of data sets: the interface of a source, and our own folder layout."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cptuning.data.examples import LabelledData
from cptuning.data.files import read_table
from cptuning.errors import CPTuningError


class DatasetSource(Protocol):
    """One data set in one place."""

    def k_shot(self, k: int, seed: int) -> tuple[LabelledData, LabelledData] | None:
        """The stored train and dev split, if there is one."""

    def pool(self) -> LabelledData:
        """All training examples, in their original order."""

    def test(self) -> LabelledData:
        """The test examples."""


@dataclass(frozen=True)
class JSONLFolder:
    """A folder with ``train.jsonl.gz``, ``test.jsonl.gz`` and ``16-13/{train,dev}.jsonl.gz``.

    ``heldout_from_train.jsonl.gz`` is the test set if the real test labels are not public.
    """

    folder: Path

    def k_shot(self, k: int, seed: int) -> tuple[LabelledData, LabelledData] | None:
        """The split in the folder ``K-SEED``."""
        split = self.folder / f"{k}-{seed}"
        if not split.is_dir():
            return None
        return _read(split / "train.jsonl.gz"), _read(split / "dev.jsonl.gz")

    def pool(self) -> LabelledData:
        """The rows of ``train.jsonl.gz``."""
        return _read(self.folder / "train.jsonl.gz")

    def test(self) -> LabelledData:
        """The rows of the test file, or of the file held out from training."""
        for name in ("test.jsonl.gz", "heldout_from_train.jsonl.gz"):
            if (self.folder / name).exists():
                return _read(self.folder / name)
        raise CPTuningError(f"{self.folder} has no test.jsonl.gz: add one to test on.")


def _read(path: Path) -> LabelledData:
    table = read_table(path, need_label=True)
    return LabelledData(table.examples, [str(label) for label in table.labels or []])
