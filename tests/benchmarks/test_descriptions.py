"""The benchmark of names and descriptions: what is run, and what its table says."""

import json

import pytest

from benchmarks import descriptions
from benchmarks.everyday.data import SETS


def record(name, words, shots, accuracy, weight=None, split=13):
    return {
        "set": name,
        "split": split,
        "shots": shots,
        "words": words,
        "accuracy": accuracy,
        "weight": weight,
    }


def test_what_needs_no_words_is_not_run_without_examples():
    jobs = descriptions.planned(["TREC", "HWU64"], [0, 1], [13])
    zero = [(job["set"], job["words"]) for job in jobs if job["shots"] == 0]
    assert zero == [("TREC", "names"), ("TREC", "descriptions"), ("HWU64", "names")]
    assert len([job for job in jobs if job["shots"] == 1]) == 9


def test_every_described_set_describes_each_of_its_labels_once():
    stored = json.loads(descriptions.SENTENCES.read_text("utf-8"))
    assert set(stored) <= set(SETS)
    for texts in stored.values():
        assert all(text.strip() for text in texts.values())
        assert len(set(texts.values())) == len(texts)


def test_the_table_has_means_over_splits_and_the_weights_that_were_chosen():
    records = [
        record("TREC", "none", 1, 0.4),
        record("TREC", "names", 1, 0.5, 2.0),
        record("TREC", "names", 1, 0.7, 0.0, split=21),
        record("TREC", "names", 0, 0.3, 1.0),
    ]
    lines = descriptions.table(records).splitlines()
    assert "| TREC | none | - | 40.0 | - | - | - | - |  |" in lines
    assert "| TREC | names | 30.0 | 60.0 | - | - | - | - | 2/0, , , ,  |" in lines
    assert "| **mean of 1 sets** | names | 30.0 | 60.0 | - | - | - | - | |" in lines


@pytest.mark.parametrize("words", ["names", "shuffled"])
def test_every_class_has_words_of_its_own(words):
    given = descriptions.descriptions(words, "TREC", ["b_c", "a", "b_c"])
    assert set(given) == {"a", "b_c"}
