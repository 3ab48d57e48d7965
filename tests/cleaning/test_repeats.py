"""Repeated texts: against slow loops over all pairs, and what counts as the same text."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cptuning.cleaning.repeats import (
    LEAST_OVERLAP,
    leaks,
    near_duplicates,
    plain,
    same_texts,
    similar_texts,
)
from cptuning.data import Examples

WORDS = st.sampled_from(["where", "is", "my", "order", "orders", "parcel", "refund", "a", "!"])
TEXT = st.lists(WORDS, max_size=30).map(" ".join)
TEXTS = st.lists(TEXT, max_size=12)


def trigrams(text):
    parts = (text,) if isinstance(text, str) else text
    return {
        (place, f" {part} "[i : i + 3])
        for place, part in enumerate(parts)
        for i in range(max(len(part), 1))
    }


def slow_overlap(one, other):
    one, other = trigrams(one), trigrams(other)
    return len(one & other) / len(one | other)


@settings(max_examples=150, deadline=None)
@given(TEXTS, TEXTS)
def test_near_duplicates_are_those_that_a_loop_over_all_pairs_finds(texts, others):
    one, other, overlaps = near_duplicates(texts, others)
    found = {(i, j): o for i, j, o in zip(one.tolist(), other.tolist(), overlaps, strict=True)}
    slow = {
        (i, j): slow_overlap(a, b)
        for i, a in enumerate(texts)
        for j, b in enumerate(others)
        if a != b and slow_overlap(a, b) >= LEAST_OVERLAP - 1e-9
    }
    assert found == pytest.approx(slow)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(TEXTS, TEXTS).map(lambda t: (" ".join(t[0]), " ".join(t[1]))), max_size=6)
)
def test_pairs_are_compared_text_by_text(pairs):
    one, other, _ = near_duplicates(pairs, pairs)
    slow = {
        (i, j)
        for i, a in enumerate(pairs)
        for j, b in enumerate(pairs)
        if a != b and slow_overlap(a, b) >= LEAST_OVERLAP - 1e-9
    }
    assert set(zip(one.tolist(), other.tolist(), strict=True)) == slow


@given(TEXTS)
def test_groups_of_the_same_text_are_those_of_a_loop(texts):
    groups = same_texts(Examples(tuple(texts))) if texts else []
    together = {pair for group in groups for pair in combinations(group.rows, 2)}
    slow = {
        (i, j)
        for i, j in combinations(range(len(texts)), 2)
        if plain(texts[i]) == plain(texts[j]) and plain(texts[i])
    }
    assert together == slow


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Where is my parcel?", "where is my  parcel"),
        ("Straße", "STRASSE"),
        ("ﬁne", "fine"),
        ("it's late", "it s late"),
        ("snake_case", "snake case"),
    ],
)
def test_case_punctuation_and_spaces_do_not_count(one, other):
    assert plain(one) == plain(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("C++ or Java", "C# or Java"), (":-)", ":-("), ("50 %", "50"), ("über", "uber")],
)
def test_signs_that_mean_something_count(one, other):
    assert plain(one) != plain(other)


def test_a_chain_of_near_duplicates_is_one_group_of_first_rows():
    text = "please cancel my order of last monday and send the money back to my account"
    chain = (text, f"{text}!", text.replace("last", "past"), text.replace("last", "past") + " now")
    assert [r.rows for r in similar_texts(Examples((*chain, "something else")))] == [(0, 2, 3)]
    assert [r.rows for r in same_texts(Examples((*chain, "something else")))] == [(0, 1)]


def test_rows_without_text_repeat_nothing():
    assert same_texts(Examples(("", " ", "a", "a"))) == same_texts(Examples(("x", "y", "a", "a")))


def test_a_leak_names_the_most_similar_training_row():
    long = "please tell me where the parcel is that i ordered from you on the second of may"
    train = Examples((long.replace("second", "sixth"), f"{long} then", "bye"))
    [near, exact] = leaks(train, Examples((f"{long} th", "other", "Bye!")))
    assert (near.test_row, near.train_row, near.is_exact) == (0, 1, False)
    assert (exact.test_row, exact.train_row, exact.is_exact) == (2, 2, True)


def test_the_two_texts_of_a_pair_are_not_exchanged():
    pairs = Examples(("is it red?", "it is red."), ("it is red.", "is it red?"))
    assert same_texts(pairs) == []
    assert similar_texts(pairs) == []
