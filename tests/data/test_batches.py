from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cptuning.data import batches
from cptuning.data.batches import (
    BalancedBatches,
    UniformBatches,
)
from cptuning.errors import CPTuningError

SEEDS = st.integers(0, 2**32 - 1)
STEPS = st.integers(0, 10_000)
CLASS_SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=10)


def labels_of(class_sizes):
    return np.repeat(np.arange(len(class_sizes)), class_sizes)


@given(n=st.integers(1, 60), size=st.integers(1, 80), seed=SEEDS, step=STEPS)
@example(n=5, size=4, seed=0, step=9_999)
def test_a_uniform_batch_is_full_and_has_no_row_twice(n, size, seed, step):
    batch = UniformBatches(n, size, seed)(step)
    assert len(set(batch.tolist())) == len(batch) == min(size, n)
    assert set(batch.tolist()) <= set(range(n))


@given(n=st.integers(1, 40), size=st.integers(1, 40), seed=SEEDS)
@example(n=5, size=4, seed=0)
@example(n=9, size=4, seed=0)
def test_every_row_has_its_turn_in_every_epoch(n, size, seed):
    """However the batches cut it, the stream of rows is one permutation after another."""
    size = min(size, n)
    n_epochs = 3
    batches = [UniformBatches(n, size, seed)(step) for step in range(-(-n_epochs * n // size))]
    stream = np.concatenate(batches)
    for epoch in range(n_epochs):
        assert sorted(stream[epoch * n : (epoch + 1) * n].tolist()) == list(range(n))


def test_epochs_and_seeds_have_orders_of_their_own():
    first_epoch = UniformBatches(30, 30, seed=0)(step=0)
    assert (first_epoch != UniformBatches(30, 30, seed=0)(step=1)).any()
    assert (first_epoch != UniformBatches(30, 30, seed=1)(step=0)).any()


@given(CLASS_SIZES, st.integers(2, 30), SEEDS, STEPS)
@example([1, 1, 1, 5], 4, 0, 0)
@example([2, 2, 3], 3, 0, 0)
@example([3, 3], 4, 0, 0)
@example([2, 2], 3, 0, 0)
def test_a_balanced_batch_is_full_and_every_class_in_it_has_a_positive(sizes, size, seed, step):
    labels = labels_of(sizes)
    batch = BalancedBatches(labels, size, seed)(step)
    assert len(set(batch.tolist())) == len(batch) == min(size, len(labels))
    lonely = [c for c, count in Counter(labels[batch]).items() if count == 1 and sizes[c] > 1]
    # Pairs alone cannot fill an odd number of places: then, and only then, one row is alone.
    unavoidable = set(sizes) == {2} and len(batch) % 2 == 1
    assert len(lonely) == unavoidable


@pytest.mark.parametrize(
    ("sizes", "size"), [([1, 1, 1, 5], 4), ([1, 2, 2], 4), ([2, 2, 2, 3], 3), ([2, 2, 3, 2], 5)]
)
def test_nobody_is_left_alone_where_small_classes_hardly_fill_the_batch(sizes, size):
    labels = labels_of(sizes)
    for step in range(30):
        counts = Counter(labels[BalancedBatches(labels, size, seed=0)(step=step)])
        assert sum(counts.values()) == size
        assert all(count >= min(2, sizes[class_]) for class_, count in counts.items())


@given(CLASS_SIZES, st.integers(2, 30), SEEDS, STEPS)
def test_classes_in_a_batch_are_equal_unless_one_has_run_out(sizes, size, seed, step):
    labels = labels_of(sizes)
    counts = Counter(labels[BalancedBatches(labels, size, seed)(step)])
    more_to_give = [count for c, count in counts.items() if count < sizes[c]]
    if more_to_give:
        assert max(counts.values()) - min(more_to_give) <= 1


@given(CLASS_SIZES, st.integers(2, 30), SEEDS, STEPS)
def test_as_many_classes_take_part_as_have_room_for_two(sizes, size, seed, step):
    labels = labels_of(sizes)
    size = min(size, len(labels))
    present = len(set(labels[BalancedBatches(labels, size, seed)(step)].tolist()))
    assert present >= min(len(sizes), size // 2)
    if min(sizes) * (size // 2) >= size:
        assert present == min(len(sizes), size // 2)


def test_the_rest_goes_to_the_others_when_a_class_runs_out():
    labels = labels_of([1, 20, 20])
    for step in range(10):
        counts = Counter(labels[BalancedBatches(labels, 15, seed=0)(step=step)])
        assert counts == {0: 1, 1: 7, 2: 7}


def test_too_many_classes_take_turns():
    labels = labels_of([4] * 9)
    steps = [set(labels[BalancedBatches(labels, 8, seed=3)(step=s)].tolist()) for s in range(90)]
    assert {len(classes) for classes in steps} == {4}
    assert len({frozenset(classes) for classes in steps}) > 30
    assert Counter(c for classes in steps for c in classes) == dict.fromkeys(range(9), 40)


@pytest.mark.parametrize(
    ("sizes", "size"), [([16, 16], 8), ([5, 16, 7], 8), ([4] * 9, 8), ([3, 40], 16)]
)
def test_over_many_steps_the_rows_of_a_class_are_drawn_equally_often(sizes, size):
    labels = labels_of(sizes)
    drawn = np.zeros(len(labels))
    for step in range(2000):
        drawn[BalancedBatches(labels, size, seed=5)(step=step)] += 1
    for class_ in range(len(sizes)):
        times = drawn[labels == class_]
        assert times.max() < 1.25 * times.min()


def test_rows_of_a_balanced_task_have_their_turn_in_every_epoch():
    labels = labels_of([16, 16])
    batches = [BalancedBatches(labels, 8, seed=0)(step=step) for step in range(4)]
    assert sorted(np.concatenate(batches).tolist()) == list(range(32))


def test_a_balanced_batch_is_mixed():
    labels = labels_of([16, 16])
    halves = [set(labels[BalancedBatches(labels, 16, 0)(step)[:8]].tolist()) for step in range(5)]
    assert halves == [{0, 1}] * 5


def test_a_batch_of_one_is_any_row():
    labels = labels_of([1, 5])
    drawn = {BalancedBatches(labels, 1, seed=0)(step=step).item() for step in range(6)}
    assert drawn == set(range(6))


def test_any_labels_can_be_balanced():
    labels = ["ham", "spam", "ham", "ham", "spam", "ham"]
    batch = BalancedBatches(labels, 4, seed=0)(step=0)
    assert Counter(labels[row] for row in batch) == {"ham": 2, "spam": 2}


@given(CLASS_SIZES, st.integers(1, 30), SEEDS, STEPS)
def test_a_batch_depends_on_the_seed_and_the_step_alone(sizes, size, seed, step):
    labels = labels_of(sizes)
    np.random.seed(step)
    first = BalancedBatches(labels, size, seed)(step), UniformBatches(len(labels), size, seed)(step)
    np.random.seed(step + 1)
    BalancedBatches(labels, size, seed)(step + 1)
    again = BalancedBatches(labels, size, seed)(step), UniformBatches(len(labels), size, seed)(step)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("n", "size"), [(0, 4), (4, 0), (4, -1)])
def test_an_empty_batch_is_a_mistake(n, size):
    with pytest.raises(CPTuningError, match=r"no rows|batch size is"):
        UniformBatches(n, size, seed=0)(step=0)
    with pytest.raises(CPTuningError, match=r"no rows|batch size is"):
        BalancedBatches([0] * n, size, seed=0)(step=0)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.integers(1, 20),
    st.lists(st.integers(0, 60), min_size=1, max_size=20),
)
def test_a_batch_does_not_depend_on_those_drawn_before(class_sizes, size, steps):
    labels = labels_of(class_sizes)
    balanced, uniform = BalancedBatches(labels, size, 3), UniformBatches(len(labels), size, 3)
    for step in steps:
        assert (balanced(step) == BalancedBatches(labels, size, 3)(step)).all()
        assert (uniform(step) == UniformBatches(len(labels), size, 3)(step)).all()


@pytest.mark.parametrize("n_classes", [2, 3, 50])
def test_an_epoch_is_ordered_once_and_not_at_every_step(n_classes, monkeypatch):
    ordered = []
    plain = batches._permutation
    monkeypatch.setattr(
        batches, "_permutation", lambda n, *more: ordered.append(n) or plain(n, *more)
    )
    many = BalancedBatches(np.arange(30_000) % n_classes, 16, seed=0)
    for step in range(200):
        many(step)
    # Of each class for each size of its share, and of the classes themselves in every epoch.
    of_rows = [n for n in ordered if n > n_classes]
    assert len(of_rows) <= 3 * n_classes
