"""Nested parts of the data, tested on what they never contain."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.reporting.curve_measurement import (
    LabelledData,
    default_sizes,
    measure,
    nested_subsets,
    rounds,
)


def data(counts):
    labels = [label for label, n in counts.items() for _ in range(n)]
    return LabelledData(Examples(tuple(f"text {i}" for i in range(len(labels)))), labels)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=40), st.integers(0, 5))
def test_every_subset_is_inside_the_next_with_so_many_of_each_class(labels, seed):
    sizes = [1, 2, 5]
    subsets = nested_subsets(labels, sizes, seed)
    for size, rows in zip(sizes, subsets, strict=True):
        chosen = [labels[row] for row in rows]
        for label in set(labels):
            assert chosen.count(label) == min(size, labels.count(label))
    for small, large in pairwise(subsets):
        assert set(small) <= set(large)


def test_another_seed_draws_other_rows():
    labels = ["a"] * 50
    first, second = (nested_subsets(labels, [5], seed)[0].tolist() for seed in (0, 1))
    assert first != second


def test_without_a_test_set_every_example_is_tested_once_and_never_trained_on_then():
    everything = data({"a": 9, "b": 6})
    tested = []
    for train, held_out in rounds(everything, None, 3):
        assert not set(train.examples) & set(held_out.examples)
        assert len(train.labels) + len(held_out.labels) == 15
        tested += held_out.examples
    assert sorted(tested) == sorted(everything.examples)


def test_one_repeat_still_holds_something_out():
    [(train, held_out)] = rounds(data({"a": 4, "b": 4}), None, 1)
    assert len(train.labels) == len(held_out.labels) == 4


def test_with_a_test_set_all_the_data_is_trained_on():
    train, test = data({"a": 4}), data({"a": 2})
    assert list(rounds(train, test, 2)) == [(train, test)] * 2


def test_too_few_examples_to_deal_out_are_refused():
    with pytest.raises(CPTuningError, match="--test"):
        list(rounds(data({"a": 2, "b": 1}), None, 3))


@pytest.mark.parametrize(
    ("largest", "sizes"),
    [(1, [1]), (2, [2]), (3, [2, 3]), (16, [2, 4, 8, 16]), (17, [2, 4, 8, 16, 17])],
)
def test_sizes_double_up_to_what_there_is(largest, sizes):
    assert default_sizes(largest) == sizes


def test_measuring_trains_each_size_in_each_repeat_and_can_be_stopped_between():
    seen = []

    def answer(examples, labels, new, seed):
        seen.append((seed, sorted(labels)))
        return ["a"] * len(new)

    test = LabelledData(Examples(("x", "y", "z")), ["a", "a", "b"])
    steps = measure(data({"a": 4, "b": 4}), test, sizes=[1, 2], repeats=2, seed=5, answer=answer)
    next(steps)
    assert seen == [(5, ["a", "b"])]
    *_, last = steps
    assert [seed for seed, _ in seen] == [5, 5, 6, 6]
    assert last.accuracies == {1: [2 / 3, 2 / 3], 2: [2 / 3, 2 / 3]}
    assert last.majority == pytest.approx(2 / 3)
    assert last.answers == 3


@given(
    st.lists(st.sets(st.sampled_from("abc")).map(sorted).map(tuple), min_size=1),
    st.integers(1, 4),
)
def test_of_label_sets_each_label_has_so_many_texts_or_as_many_as_there_are(sets, size):
    smaller, rows = nested_subsets(sets, [size, size + 1], seed=0)
    assert set(smaller) <= set(rows)
    for label in {part for own in sets for part in own}:
        there = sum(label in own for own in sets)
        assert sum(label in sets[row] for row in smaller) >= min(size, there)
    bare = [row for row in smaller if not sets[row]]
    assert len(bare) == min(size, sets.count(()))
