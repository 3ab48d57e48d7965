"""The nearest labelled examples, against sorting by hand."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data import Examples
from cptuning.inference import SupportSet


def support_of(embeddings, labels=None):
    embeddings = np.asarray(embeddings, dtype=np.float32)
    texts = tuple(f"text {i}" for i in range(len(embeddings)))
    labels = np.zeros(len(texts), dtype=np.int64) if labels is None else np.asarray(labels)
    return SupportSet(Examples(texts), embeddings, labels)


# Few different values: similarities are exact, and many of them equal.
ROWS = st.lists(st.tuples(*[st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])] * 2), min_size=1)


@given(ROWS, ROWS, st.integers(1, 8))
def test_neighbours_are_the_most_similar_and_equals_keep_their_order(known, queries, k):
    support = support_of(known)
    indices, similarities = support.nearest(np.array(queries, dtype=np.float32), k)
    for query, found, values in zip(queries, indices, similarities, strict=True):
        dots = [query[0] * row[0] + query[1] * row[1] for row in known]
        expected = sorted(range(len(known)), key=lambda i: (-dots[i], i))[:k]
        assert found.tolist() == expected
        assert values.tolist() == [dots[i] for i in expected]


@given(ROWS, ROWS, st.integers(1, 8), st.integers(1, 4), st.integers(1, 4))
def test_blocks_make_no_difference(known, queries, k, some_queries, some_examples):
    whole = support_of(known).nearest(np.array(queries, dtype=np.float32), k)
    with (
        patch("cptuning.inference.support._QUERIES", some_queries),
        patch("cptuning.inference.support._EXAMPLES", some_examples),
    ):
        blocks = support_of(known).nearest(np.array(queries, dtype=np.float32), k)
    np.testing.assert_array_equal(whole[0], blocks[0])
    np.testing.assert_array_equal(whole[1], blocks[1])


@given(ROWS, st.data(), st.integers(1, 4))
def test_class_means_are_the_means(known, data, some_examples):
    labels = data.draw(st.lists(st.integers(0, 5), min_size=len(known), max_size=len(known)))
    support = support_of(known, labels)
    with patch("cptuning.inference.support._EXAMPLES", some_examples):
        means = support.class_means
    assert len(means) == max(labels) + 1
    for label, mean in enumerate(means):
        rows = [row for row, own in zip(known, labels, strict=True) if own == label]
        expected = np.mean(rows, axis=0) if rows else np.zeros(2)
        np.testing.assert_allclose(mean, expected, atol=1e-6)


def test_no_queries_have_no_neighbours():
    indices, similarities = support_of(np.eye(3)).nearest(np.zeros((0, 3), dtype=np.float32), 2)
    assert indices.shape == similarities.shape == (0, 2)


def test_a_long_list_of_queries_is_answered_in_full():
    rng = np.random.default_rng(0)
    support = support_of(rng.normal(size=(5, 3)))
    queries = rng.normal(size=(2500, 3)).astype(np.float32)
    indices, similarities = support.nearest(queries, 2)
    dots = queries.astype(np.float64) @ support.embeddings.T.astype(np.float64)
    np.testing.assert_array_equal(indices, np.argsort(-dots, axis=1)[:, :2])
    np.testing.assert_allclose(similarities, -np.sort(-dots, axis=1)[:, :2], atol=1e-5)


def test_more_neighbours_than_examples_are_all_of_them():
    indices, _ = support_of(np.eye(3)).nearest(np.eye(3, dtype=np.float32), k=99)
    assert indices.shape == (3, 3)


def test_two_sets_are_joined_in_order():
    both = support_of([[1, 0]], [4]) + support_of([[0, 1], [1, 1]], [2, 4])
    assert len(both) == 3
    assert both.examples.first == ("text 0", "text 0", "text 1")
    assert both.embeddings.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert both.labels.tolist() == [4, 2, 4]
