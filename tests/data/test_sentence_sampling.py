import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data.sentence_files import read_sentences
from cptuning.data.sentence_sampling import k_to_2k_sample
from cptuning.data.tag_schemes import WordSpan

SENTENCES = st.lists(
    st.lists(st.sampled_from("abc"), max_size=5).map(
        lambda labels: [WordSpan(i, i + 1, label) for i, label in enumerate(labels)]
    ),
    max_size=30,
)


def counts_of(sentences):
    """In how many sentences each type is."""
    return Counter(label for spans in sentences for label in {span.label for span in spans})


@given(SENTENCES, st.integers(1, 4), st.integers(0, 99))
def test_no_type_has_more_than_2k_and_nothing_could_be_added(sentences, k, seed):
    rows = k_to_2k_sample(sentences, k, seed)
    assert len(set(rows)) == len(rows)
    have = counts_of(sentences[row] for row in rows)
    assert max(have.values(), default=0) <= 2 * k
    for row in set(range(len(sentences))) - set(rows):
        new = counts_of([sentences[row]])
        fits = all(have[label] < 2 * k for label in new)
        assert not (fits and any(have[label] < k for label in new))
    assert rows == k_to_2k_sample(sentences, k, seed)


def test_each_drawn_sentence_was_needed_when_it_was_drawn():
    sentences = [[WordSpan(0, 1, label)] for label in "ab" * 20]
    rows = k_to_2k_sample(sentences, k=3, seed=1)
    assert counts_of(sentences[row] for row in rows) == {"a": 3, "b": 3}
    assert rows != k_to_2k_sample(sentences, k=3, seed=2)


@pytest.mark.skipif("CPTUNING_DATA" not in os.environ, reason="CPTUNING_DATA names no folder")
@pytest.mark.parametrize("name", ["WNUT17", "MIT_restaurant"])
def test_real_sets_have_k_to_2k_sentences_of_each_type(name):
    path = Path(os.environ["CPTUNING_DATA"], name, "train.jsonl.gz")
    tagged = read_sentences(path, need_tags=True).tagged
    rows = k_to_2k_sample(tagged.spans, k=5, seed=0)
    have, there = counts_of(tagged.take(rows).spans), counts_of(tagged.spans)
    assert all(min(5, n) <= have[label] <= 10 for label, n in there.items())
