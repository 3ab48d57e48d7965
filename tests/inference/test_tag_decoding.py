from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cptuning.data.tag_schemes import WordSpan, iob2_of, spans_of
from cptuning.inference.tag_decoding import Transitions, marginals, spans_from, viterbi

TYPES = ["a", "b"]
NAMES = ["O", "B-a", "I-a", "B-b", "I-b"]


def is_valid(tags):
    names = [NAMES[tag] for tag in tags]
    return iob2_of(spans_of(names), len(names)) == names


def transitions(rng):
    """Of random sentences."""
    sentences = []
    for _ in range(5):
        tags = [NAMES[tag] for tag in rng.integers(0, 5, 6)]
        sentences.append((spans_of(tags), 6))
    return Transitions.estimated(sentences)


def score(tags, emissions, first, after):
    total = first[tags[0]] + sum(emissions[place, tag] for place, tag in enumerate(tags))
    return total + sum(after[one, other] for one, other in pairwise(tags))


def all_scores(emissions, first, after):
    sequences = list(product(range(5), repeat=len(emissions)))
    return sequences, np.array([score(tags, emissions, first, after) for tags in sequences])


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 4), st.integers(0, 10_000))
def test_viterbi_is_the_best_of_all_sequences(n_words, seed):
    rng = np.random.default_rng(seed)
    first, after = transitions(rng).scores(2)
    emissions = rng.normal(size=(n_words, 5)) * 3
    sequences, scores = all_scores(emissions, first, after)
    [found] = viterbi([emissions], first, after)
    assert score(found.tolist(), emissions, first, after) == pytest.approx(scores.max())
    assert tuple(found.tolist()) == sequences[scores.argmax()]


def test_sentences_that_are_decoded_together_do_not_change_each_other():
    rng = np.random.default_rng(3)
    first, after = transitions(rng).scores(2)
    sentences = [rng.normal(size=(n, 5)) for n in (4, 0, 1, 9, 4)]
    together = viterbi(sentences, first, after)
    for own, tags in zip(sentences, together, strict=True):
        np.testing.assert_array_equal(viterbi([own], first, after)[0], tags)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 4), st.integers(0, 10_000))
def test_marginals_are_sums_over_all_sequences(n_words, seed):
    rng = np.random.default_rng(seed)
    first, after = transitions(rng).scores(2)
    emissions = rng.normal(size=(n_words, 5))
    sequences, scores = all_scores(emissions, first, after)
    weights = np.exp(scores - scores.max())
    expected = np.zeros((n_words, 5))
    for tags, weight in zip(sequences, weights, strict=True):
        expected[np.arange(n_words), tags] += weight / weights.sum()
    np.testing.assert_allclose(marginals(emissions, first, after), expected, atol=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_only_valid_sequences_are_possible(seed, n_words):
    first, after = transitions(np.random.default_rng(seed)).scores(2)
    for tags in product(range(5), repeat=n_words):
        is_possible = score(tags, np.zeros((n_words, 5)), first, after) > -np.inf
        assert is_possible == is_valid(tags)


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_what_can_follow_a_tag_adds_up_to_one_for_any_number_of_types(seed, n_types):
    first, after = transitions(np.random.default_rng(seed)).scores(n_types)
    assert np.exp(first).sum() == pytest.approx(1)
    totals = np.exp(after).sum(axis=1)
    np.testing.assert_allclose(totals[0], 1)
    if n_types > 1:  # With one type nothing can move to another.
        np.testing.assert_allclose(totals, 1)


def test_transitions_are_counted_by_the_part_of_the_span_and_not_by_its_type():
    spans = spans_of(["O", "B-a", "I-a", "I-a", "B-a", "B-b", "O", "O"])
    found = Transitions.estimated([(spans, 8), ([], 2)], smoothing=0).probabilities
    assert found["start"] == {"outside": 1, "other": 0}
    assert found["outside"] == {"outside": 2 / 3, "other": 1 / 3}
    assert found["begin"] == {"outside": 1 / 3, "inside": 1 / 3, "same": 0, "other": 1 / 3}
    assert found["inside"] == {"outside": 0, "inside": 1 / 2, "same": 1 / 2, "other": 0}


@given(st.lists(st.integers(0, 4), max_size=6).filter(is_valid))
def test_spans_of_tags_are_those_of_their_names(tags):
    expected = spans_of([NAMES[tag] for tag in tags])
    assert spans_from(np.array(tags, dtype=np.int64), TYPES) == expected


def test_a_sentence_without_words_has_no_tags():
    first, after = transitions(np.random.default_rng(0)).scores(2)
    assert viterbi([np.empty((0, 5))], first, after)[0].shape == (0,)
    assert viterbi([], first, after) == []
    assert marginals(np.empty((0, 5)), first, after).shape == (0, 5)
    assert spans_from(np.empty(0, dtype=np.int64), TYPES) == []
    assert WordSpan(0, 1, "a") < WordSpan(1, 2, "a")
