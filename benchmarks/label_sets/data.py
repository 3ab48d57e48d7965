"""The splits of GoEmotions: a few texts per label to learn from, and 1,000 to test on."""

import os
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from cptuning.data import SEEDS, LabelledData, read_table
from cptuning.errors import CPTuningError
from cptuning.reporting.curve_measurement import nested_subsets

DATASET = "GoEmotions"
SHOTS = 16
SPLITS = SEEDS
MOST_TEST = 1000
TEST_SEED = 0


@dataclass(frozen=True)
class SplitData:
    """What a method learns from, and what it is tested on; labels are tuples."""

    train: LabelledData
    test: LabelledData

    @property
    def labels(self) -> list[str]:
        """The labels of the training texts, sorted."""
        return sorted({label for own in self.train.labels for label in own})

    @property
    def digest(self) -> str:
        """A hash of all texts and labels, in their order."""
        return sha256(repr((self.train, self.test)).encode()).hexdigest()[:16]


@lru_cache
def load_split(seed: int) -> SplitData:
    """The training texts drawn with a seed, none of which is a test text, and the test texts."""
    test = _read("test")
    known = set(test.examples)
    pool = _read("train")
    rows = {text: row for row, text in reversed(list(enumerate(pool.examples)))}
    pool = pool.take([row for text, row in rows.items() if text not in known])
    [drawn] = nested_subsets(pool.labels, [SHOTS], seed)
    some = np.random.default_rng(TEST_SEED).permutation(len(test.labels))[:MOST_TEST]
    return SplitData(pool.take(drawn), test.take(np.sort(some)))


@lru_cache
def _read(part: str) -> LabelledData:
    root = os.environ.get("CPTUNING_DATA")
    if not root:
        raise CPTuningError("Set CPTUNING_DATA to the folder that holds the data sets.")
    table = read_table(Path(root, DATASET, f"{part}.jsonl.gz"), need_label=True)
    return LabelledData(table.examples, list(table.labels or []))
