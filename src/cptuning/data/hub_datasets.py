"""The paper's data sets from the Hugging Face hub."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cptuning.data.examples import LabelledData, as_examples
from cptuning.errors import CPTuningError


@dataclass(frozen=True)
class HubDataset:
    """The name and columns of a data set on the hub, and our names for its labels 0 and 1."""

    path: str
    config: str | None
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    test: str  # GLUE's test labels are not public: its validation split is the paper's test set.


_SENTIMENT = ("negative", "positive")
_ENTAILMENT = ("entailment", "not_entailment")
_MR = "cornell-movie-review-data/rotten_tomatoes"

HUB_DATASETS = {
    # Not GLUE's 67,349 phrases: the 6,920 sentences from which LM-BFF and the paper draw.
    "SST-2": HubDataset("SetFit/sst2", None, ("text",), _SENTIMENT, "validation"),
    "MR": HubDataset(_MR, None, ("text",), _SENTIMENT, "test"),
    "CR": HubDataset("SetFit/CR", None, ("text",), _SENTIMENT, "test"),
    "MRPC": HubDataset(
        "nyu-mll/glue",
        "mrpc",
        ("sentence1", "sentence2"),
        ("not_equivalent", "equivalent"),
        "validation",
    ),
    "QQP": HubDataset(
        "nyu-mll/glue",
        "qqp",
        ("question1", "question2"),
        ("not_duplicate", "duplicate"),
        "validation",
    ),
    "QNLI": HubDataset("nyu-mll/glue", "qnli", ("question", "sentence"), _ENTAILMENT, "validation"),
    "RTE": HubDataset("nyu-mll/glue", "rte", ("sentence1", "sentence2"), _ENTAILMENT, "validation"),
    "SUBJ": HubDataset("SetFit/subj", None, ("text",), ("objective", "subjective"), "test"),
}

# From (path, config, split) to a table that is indexed by column name.
Loader = Callable[[str, str | None, str], Any]


def load_from_hub(path: str, config: str | None, split: str) -> Any:
    """One split, loaded by the package ``datasets``, which is imported only now."""
    from datasets import load_dataset

    return load_dataset(path, config, split=split)


@dataclass(frozen=True)
class HubSource:
    """One of the paper's data sets on the hub; ``load`` downloads a split of it.

    >>> def offline(path, config, split):
    ...     return {"text": ["good", "bad"], "label": [1, 0]}
    >>> HubSource("CR", load=offline).pool().labels
    ['positive', 'negative']
    """

    name: str
    load: Loader = load_from_hub

    def k_shot(self, k: int, seed: int) -> None:
        """None: splits are drawn from the pool."""

    def pool(self) -> LabelledData:
        """The training split."""
        return self._split("train")

    def test(self) -> LabelledData:
        """The split that the paper tests on, or the closest public one."""
        return self._split(HUB_DATASETS[self.name].test)

    def _split(self, split: str) -> LabelledData:
        dataset = HUB_DATASETS[self.name]
        try:
            table = self.load(dataset.path, dataset.config, split)
        except Exception as error:  # The network or the package may raise any exception.
            first_line = str(error).partition("\n")[0] or type(error).__name__
            raise CPTuningError(
                f"{self.name} was not found in a local folder and can't be loaded from the hub "
                f"({first_line}): set CPTUNING_DATA to a folder that has it, or pip install "
                "datasets and connect to the network."
            ) from error
        texts = [table[column] for column in dataset.texts]
        rows = list(texts[0]) if len(texts) == 1 else list(zip(*texts, strict=True))
        return LabelledData(as_examples(rows), [dataset.labels[index] for index in table["label"]])
