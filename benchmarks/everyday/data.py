"""The sets of the everyday benchmark: what is trained on, and what is tested."""

import os
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from benchmarks.out_of_scope import apart
from cptuning.data import SEEDS, Examples, LabelledData, read_table, unbalanced_split
from cptuning.data.dataset_sources import JSONLFolder
from cptuning.errors import CPTuningError

SETS = (
    "TREC",
    "CLINC150",
    "HWU64",
    "StackOverflow20",
    "DSTC11_insurance",
    "Bitext_support",
    "tweeteval_emotion",
    "SST5",
    "Airline_tweets",
    "Clickbait",
    "dbpedia14",
    "20Newsgroups",
)
SHOTS = (8, 16)
SPLITS = SEEDS
"""Seeds of the five draws: 13, 21, 42, 87 and 100."""

PUBLISHED = "published"
"""The split of a task whose training examples others have published: those of ``train_5`` …"""
PUBLISHED_SETS = ("CLINC150", "HWU64")
PUBLISHED_SHOTS = (5, 10)

MOST_TEST = 1000
TEST_SEED = 0


@dataclass(frozen=True)
class Task:
    """Few examples per class of one set, drawn with a seed or published."""

    name: str
    shots: int
    split: int | str

    @property
    def seed(self) -> int:
        """What a method's own randomness starts from."""
        return self.split if isinstance(self.split, int) else 0


# A benchmark that was ended early has whole splits of all sets.
TASKS = (
    *(Task(name, shots, split) for shots in SHOTS for split in SPLITS for name in SETS),
    *(Task(name, shots, PUBLISHED) for name in PUBLISHED_SETS for shots in PUBLISHED_SHOTS),
)


@dataclass(frozen=True)
class TaskData:
    """The texts of a task; ``outside`` are test texts of no class, which only CLINC150 has."""

    train: LabelledData
    test: LabelledData
    outside: Examples

    @property
    def digest(self) -> str:
        """A hash of all texts and labels, in their order."""
        content = repr((self.train, self.test, self.outside)).encode()
        return sha256(content).hexdigest()[:16]


def load_task(task: Task) -> TaskData:
    """The texts of a task, from the folder that ``CPTUNING_DATA`` names.

    A drawn task is tested on a stratified sample of at most 1,000 texts, the same ones in every
    split, and trained on texts that are not in the test file. Its 8 examples of a class are among
    the 16 of the same seed. A published task has the published examples and the whole test set.
    """
    folder = _root() / task.name
    test, outside = apart(_test(folder))
    if task.split == PUBLISHED:
        table = read_table(folder / f"train_{task.shots}.jsonl.gz", need_label=True)
        labels = [str(label) for label in table.labels or []]
        return TaskData(LabelledData(table.examples, labels), test, outside.examples)
    pool = _pool(folder)
    counts = {c: min(task.shots, n) for c, n in Counter(pool.labels).items()}
    rows, _ = unbalanced_split(pool.labels, counts, task.seed)
    sample = test.take(stratified_rows(test.labels, MOST_TEST, TEST_SEED))
    return TaskData(pool.take(rows), sample, outside.examples)


def stratified_rows(labels: list[str], most: int, seed: int) -> list[int]:
    """At most ``most`` rows, sorted; every class keeps its share, up to rounding.

    >>> stratified_rows(["a"] * 6 + ["b"] * 3, most=3, seed=0)
    [1, 2, 7]
    """
    sizes = Counter(labels)
    seen: Counter[str] = Counter()
    depth = {}
    for row in np.random.RandomState(seed).permutation(len(labels)).tolist():
        # How deep in its class a row lies, from 0 to 1: cut all classes at the same depth.
        depth[row] = (seen[labels[row]] + 0.5) / sizes[labels[row]]
        seen[labels[row]] += 1
    return sorted(sorted(depth, key=lambda row: depth[row])[:most])


def _root() -> Path:
    root = os.environ.get("CPTUNING_DATA")
    if not root:
        raise CPTuningError("Set CPTUNING_DATA to the folder that holds the data sets.")
    return Path(root)


@lru_cache
def _test(folder: Path) -> LabelledData:
    return JSONLFolder(folder).test()


@lru_cache
def _pool(folder: Path) -> LabelledData:
    """What can be drawn: each text once, and none that is tested."""
    pool, _ = apart(JSONLFolder(folder).pool())
    known = {_plain(text) for text in _test(folder).examples.first}
    rows = []
    for row, text in enumerate(pool.examples.first):
        if (plain := _plain(text)) and plain not in known:
            known.add(plain)
            rows.append(row)
    return pool.take(rows)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
