import sys

import pytest
from datasets import Dataset

from cptuning.data.benchmark_datasets import PAIR_DATASETS, PAPER_DATASETS
from cptuning.data.hub_datasets import HUB_DATASETS, HubSource
from cptuning.errors import CPTuningError

GLUE = "nyu-mll/glue"


def offline(path, config, split):
    """A hub with every column that a data set of the paper has, and the request in the texts."""
    request = f"{path} {config} {split}"
    names = ["text", "sentence", "sentence1", "sentence2", "question", "question1", "question2"]
    columns = {name: [f"{name} of {request}", "…"] for name in names}
    return Dataset.from_dict({**columns, "label": [1, 0]})


def test_all_data_sets_of_the_paper_are_there():
    assert set(HUB_DATASETS) == set(PAPER_DATASETS)
    for name in PAPER_DATASETS:
        assert HubSource(name, load=offline).pool().examples.is_pair == (name in PAIR_DATASETS)


@pytest.mark.parametrize(
    ("name", "example", "labels"),
    [
        ("SST-2", "text of SetFit/sst2 None train", ["positive", "negative"]),
        ("SUBJ", "text of SetFit/subj None train", ["subjective", "objective"]),
        (
            "MRPC",
            (f"sentence1 of {GLUE} mrpc train", f"sentence2 of {GLUE} mrpc train"),
            ["equivalent", "not_equivalent"],
        ),
        (
            "QNLI",
            (f"question of {GLUE} qnli train", f"sentence of {GLUE} qnli train"),
            ["not_entailment", "entailment"],
        ),
    ],
)
def test_columns_and_labels_get_our_names(name, example, labels):
    pool = HubSource(name, load=offline).pool()
    assert next(iter(pool.examples)) == example
    assert pool.labels == labels


@pytest.mark.parametrize(("name", "split"), [("RTE", "validation"), ("MR", "test")])
def test_the_test_set_is_the_one_with_public_labels(name, split):
    test = HubSource(name, load=offline).test()
    assert test.examples.first[0].endswith(split)


def test_nothing_is_ready_made():
    assert HubSource("RTE", load=offline).k_shot(16, 13) is None


def test_without_network_the_message_says_what_to_do():
    def unreachable(path, config, split):
        raise ConnectionError("no route to host\nlong story")

    with pytest.raises(CPTuningError, match=r"\(no route to host\): set CPTUNING_DATA to a folder"):
        HubSource("RTE", load=unreachable).pool()


def test_the_package_datasets_does_the_fetching(monkeypatch):
    def load_dataset(path, config, *, split):
        return offline(path, config, split)

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    assert HubSource("CR").pool().examples.first[0] == "text of SetFit/CR None train"


def test_without_the_package_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CPTuningError, match="pip install datasets"):
        HubSource("RTE").pool()
