"""[TMSK]: how many text tokens are hidden, how, and that nothing else is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.prompting import Encoding, mask_batch, mask_text

VOCABULARY, MASK = 1000, 999


def encoding_of(is_text, first_id=0):
    """Text tokens are below 900, so that a hidden one is never taken for one that stayed."""
    is_text = np.array(is_text, dtype=bool)
    ids = (first_id + np.arange(len(is_text))) % 900
    return Encoding(ids, np.zeros(len(ids), dtype=np.int64), is_text, output=0, shortened=False)


def masked(encoding, seed=0, rate=0.15):
    rng = np.random.default_rng(seed)
    return mask_text(encoding, rng, rate=rate, mask=MASK, vocabulary=VOCABULARY)


def near(count, total, probability):
    """Within five standard deviations of a binomial count."""
    spread = (total * probability * (1 - probability)) ** 0.5
    return abs(count - total * probability) < 5 * spread


@pytest.fixture(scope="module")
def long():
    """A million tokens, every other one of a text."""
    return encoding_of(np.arange(1_000_000) % 2)


def test_fifteen_in_a_hundred_text_tokens_are_chosen(long):
    assert near(len(masked(long)[1]), 500_000, 0.15)


def test_of_the_chosen_ones_eight_in_ten_are_masked_one_random_and_one_left(long):
    hidden, chosen = masked(long)
    before, after = long.ids[chosen], hidden.ids[chosen]
    # A random token is the mask, or the very token that stood there, once in a thousand times.
    assert near((after == MASK).sum(), len(chosen), 0.8 + 0.1 / VOCABULARY)
    assert near((after == before).sum(), len(chosen), 0.1 + 0.1 / VOCABULARY)
    assert near(((after != MASK) & (after != before)).sum(), len(chosen), 0.1 * (1 - 2 / 1000))


def test_random_tokens_come_from_the_whole_vocabulary_and_never_from_past_its_end(long):
    hidden, chosen = masked(long, rate=1.0)
    before, after = long.ids[chosen], hidden.ids[chosen]
    random = after[(after != MASK) & (after != before)]
    counts = np.bincount(random, minlength=VOCABULARY)
    assert len(counts) == VOCABULARY
    assert counts[:-1].min() > 0.5 * counts[:-1].mean()


FLAGS = st.lists(st.booleans(), min_size=1, max_size=40)


@given(FLAGS, st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_nothing_but_text_changes(is_text, seed, rate):
    encoding = encoding_of(is_text)
    before = encoding.ids.copy()
    hidden, chosen = masked(encoding, seed, rate)
    assert encoding.is_text[chosen].all()
    others = np.setdiff1d(np.arange(len(before)), chosen)
    np.testing.assert_array_equal(hidden.ids[others], before[others])
    np.testing.assert_array_equal(encoding.ids, before)
    assert hidden.output == encoding.output
    np.testing.assert_array_equal(hidden.is_text, encoding.is_text)


@given(FLAGS, st.integers(0, 2**32 - 1))
def test_a_rate_of_zero_chooses_none_and_of_one_all(is_text, seed):
    encoding = encoding_of(is_text)
    hidden, chosen = masked(encoding, seed, rate=0.0)
    assert len(chosen) == 0
    np.testing.assert_array_equal(hidden.ids, encoding.ids)
    assert masked(encoding, seed, rate=1.0)[1].tolist() == np.flatnonzero(is_text).tolist()


def mask_all(encodings, seeds, rate=0.5):
    return mask_batch(encodings, seeds, rate=rate, mask=MASK, vocabulary=VOCABULARY)


@given(st.lists(FLAGS, min_size=2, max_size=6), st.data())
def test_masks_do_not_depend_on_how_a_batch_is_divided(flags, data):
    encodings = [encoding_of(is_text, first_id=10 * i) for i, is_text in enumerate(flags)]
    seeds = [[7, 3, i] for i in range(len(encodings))]
    cut = data.draw(st.integers(1, len(encodings) - 1))
    whole, targets = mask_all(encodings, seeds)
    head, head_targets = mask_all(encodings[:cut], seeds[:cut])
    tail, tail_targets = mask_all(encodings[cut:], seeds[cut:])
    for one, other in zip(whole, head + tail, strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
    for name in ("columns", "ids"):
        parts = [getattr(part, name) for part in (head_targets, tail_targets)]
        np.testing.assert_array_equal(getattr(targets, name), np.concatenate(parts))
    rows = np.concatenate([head_targets.rows, cut + tail_targets.rows])
    np.testing.assert_array_equal(targets.rows, rows)


@given(st.lists(FLAGS, min_size=1, max_size=6))
def test_targets_are_the_tokens_that_stood_at_the_chosen_places(flags):
    encodings = [encoding_of(is_text) for is_text in flags]
    hidden, targets = mask_all(encodings, [[i] for i in range(len(encodings))])
    found = set()
    for row, column, token in zip(targets.rows, targets.columns, targets.ids, strict=True):
        assert encodings[row].is_text[column]
        assert encodings[row].ids[column] == token
        found.add((row, column))
    assert len(found) == len(targets.ids)
    for row, (before, after) in enumerate(zip(encodings, hidden, strict=True)):
        changed = np.flatnonzero(before.ids != after.ids)
        assert {(row, column) for column in changed} <= found


def test_another_seed_gives_another_mask():
    encoding = encoding_of([True] * 200)
    hidden, _ = mask_all([encoding] * 3, [[0, 0], [0, 1], [0, 0]])
    assert (hidden[0].ids != hidden[1].ids).any()
    np.testing.assert_array_equal(hidden[0].ids, hidden[2].ids)


def test_a_batch_without_text_has_no_targets():
    _, targets = mask_all([encoding_of([False, False])], [[0]], rate=1.0)
    assert targets.rows.shape == targets.columns.shape == targets.ids.shape == (0,)
