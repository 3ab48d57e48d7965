"""The data sets of the paper and a few more, by name, from a folder or from the hub."""

import os
from dataclasses import dataclass
from pathlib import Path

from cptuning.data.dataset_sources import DatasetSource, JSONLFolder
from cptuning.data.examples import Examples, LabelledData
from cptuning.data.hub_datasets import HUB_DATASETS, HubSource
from cptuning.data.lm_bff_folder import LMBFFFolder
from cptuning.data.splits import k_shot_split
from cptuning.errors import CPTuningError

PAPER_DATASETS = ("SST-2", "MR", "CR", "MRPC", "QQP", "QNLI", "RTE", "SUBJ")
PAIR_DATASETS = ("MRPC", "QQP", "QNLI", "RTE", "SNLI")
MORE_DATASETS = ("TREC", "CLINC150", "SNLI")
EVERYDAY_DATASETS = (
    *("TREC", "CLINC150", "HWU64", "StackOverflow20", "DSTC11_insurance", "Bitext_support"),
    *("tweeteval_emotion", "SST5", "Airline_tweets", "Clickbait", "dbpedia14", "20Newsgroups"),
)
"""Single texts as they are classified every day; those that the hub's names don't cover need a
folder."""

# LM-BFF's five splits of each data set.
SEEDS = (13, 21, 42, 87, 100)

FOLDER_VARIABLE = "CPTUNING_DATA"


@dataclass(frozen=True)
class DatasetSplit:
    """A few-shot task: examples and labels for training, for model selection and for testing.

    >>> one, two = Examples(("good", "bad")), ["positive", "negative"]
    >>> split = DatasetSplit(one, two, one, two, one, two, name="CR")
    >>> len(split.train), split.test_labels
    (2, ['positive', 'negative'])
    """

    train: Examples
    train_labels: list[str]
    dev: Examples
    dev_labels: list[str]
    test: Examples
    test_labels: list[str]
    name: str


def load_dataset_split(
    name: str, folder: str | Path | None = None, k: int = 16, seed: int = 13
) -> DatasetSplit:
    """One K-shot split of a data set, from ``folder``, else $CPTUNING_DATA, else the hub.

    The layout of a folder is ``NAME/16-13/train.jsonl.gz``, or that of LM-BFF's ``data`` folder. A
    split that does not exist is drawn from the whole training set as LM-BFF draws it. For MRPC and
    RTE this gives LM-BFF's own splits; for other data sets, LM-BFF's training files have the rows
    in another order, so only its split folders give its splits.

    >>> load_dataset_split("GSM8K")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: There is no data set 'GSM8K': use one of SST-2, MR, CR, MRPC,
    QQP, QNLI, RTE, SUBJ, TREC, CLINC150, SNLI, HWU64, ...
    """
    train, dev = load_few_shot(name, folder, k, seed)
    return DatasetSplit(*train, *dev, *load_test(name, folder), name=name)


def load_few_shot(
    name: str, folder: str | Path | None = None, k: int = 16, seed: int = 13
) -> tuple[LabelledData, LabelledData]:
    """The train and dev examples of a split; the test set is not read.

    >>> load_few_shot("SST-2", "no/such/folder")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: no/such/folder is not a folder: name a folder with the data sets.
    """
    source = _source(name, folder)
    return source.k_shot(k, seed) or _drawn(source.pool(), k, seed)


def load_test(name: str, folder: str | Path | None = None) -> LabelledData:
    """The test examples and labels of a data set.

    >>> load_test("SST-2", "no/such/folder")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: no/such/folder is not a folder: name a folder with the data sets.
    """
    return _source(name, folder).test()


def full_train(name: str, folder: str | Path | None = None) -> LabelledData:
    """All training examples and labels of a data set, from which splits are drawn.

    >>> full_train("SST-2", "no/such/folder")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: no/such/folder is not a folder: name a folder with the data sets.
    """
    return _source(name, folder).pool()


def _source(name: str, folder: str | Path | None) -> DatasetSource:
    names = dict.fromkeys((*PAPER_DATASETS, *MORE_DATASETS, *EVERYDAY_DATASETS))
    if name not in names:
        raise CPTuningError(f"There is no data set {name!r}: use one of {', '.join(names)}.")
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    if folder:
        root = Path(folder)
        if not root.is_dir():
            raise CPTuningError(f"{root} is not a folder: name a folder with the data sets.")
        if (root / name).is_dir():
            return JSONLFolder(root / name)
        found = LMBFFFolder.find(root, name)
        if found:
            return found
    if name not in HUB_DATASETS:
        raise CPTuningError(f"{name} was not found: set {FOLDER_VARIABLE} to a folder that has it.")
    return HubSource(name)


def _drawn(pool: LabelledData, k: int, seed: int) -> tuple[LabelledData, LabelledData]:
    train, dev = k_shot_split(pool.labels, k, seed)
    return pool.take(train), pool.take(dev)
