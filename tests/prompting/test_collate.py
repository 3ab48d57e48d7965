"""Padding, and batches of about equal cost."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cptuning.prompting import Encoding, collate, token_budget_batches

PAD = 77


@st.composite
def encodings(draw):
    n = draw(st.integers(1, 20))
    numbers = st.lists(st.integers(0, 500), min_size=n, max_size=n)
    return Encoding(
        ids=np.array(draw(numbers)),
        types=np.array(draw(numbers)) % 2,
        is_text=np.zeros(n, dtype=bool),
        output=draw(st.integers(0, n - 1)),
        shortened=False,
    )


@given(st.lists(encodings(), min_size=1, max_size=6))
def test_rows_are_the_encodings_and_the_rest_is_padding(some):
    batch = collate(some, PAD)
    assert len(batch) == len(some)
    assert batch.input_ids.shape == (len(some), max(len(encoding) for encoding in some))
    assert batch.attention_mask.shape == batch.token_type_ids.shape == batch.input_ids.shape
    for row, encoding in enumerate(some):
        n = len(encoding)
        np.testing.assert_array_equal(batch.input_ids[row, :n], encoding.ids)
        np.testing.assert_array_equal(batch.token_type_ids[row, :n], encoding.types)
        assert (batch.input_ids[row, n:] == PAD).all()
        assert (batch.token_type_ids[row, n:] == 0).all()
        assert batch.attention_mask[row].tolist() == [1] * n + [0] * (batch.input_ids.shape[1] - n)
        assert batch.outputs[row] == encoding.output


LENGTHS = st.lists(st.integers(1, 50), max_size=60)
BUDGET = st.integers(1, 300)


@given(LENGTHS, BUDGET)
def test_every_example_is_in_one_batch(lengths, budget):
    batches = token_budget_batches(lengths, budget)
    assert sorted(i for batch in batches for i in batch.tolist()) == list(range(len(lengths)))
    assert all(len(batch) for batch in batches)


@given(LENGTHS, BUDGET)
def test_a_padded_batch_keeps_to_the_budget_unless_one_example_alone_exceeds_it(lengths, budget):
    for batch in token_budget_batches(lengths, budget):
        cost = len(batch) * max(lengths[i] for i in batch)
        assert cost <= budget or len(batch) == 1


@given(LENGTHS, BUDGET)
def test_batches_are_as_full_as_their_order_by_length_allows(lengths, budget):
    batches = token_budget_batches(lengths, budget)
    ordered = [lengths[i] for batch in batches for i in batch]
    assert ordered == sorted(lengths)
    for batch, following in pairwise(batches):
        assert (len(batch) + 1) * lengths[following[0]] > budget
