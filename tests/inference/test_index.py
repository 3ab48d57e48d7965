"""The approximate index: how much it finds, and that answers through it are as through all."""

import sys

import numpy as np
import pytest

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.inference import ApproximateIndex, SupportSet, class_scores, familiarity

CLASSES = 40


def clustered(n, noise, seed, classes=CLASSES, width=32):
    """Unit vectors around the centres of some classes, and the classes; of one world for all."""
    centres = np.random.default_rng(7).normal(size=(classes, width))
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    rows = centres[labels] + noise * rng.normal(size=(n, width))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit.astype(np.float32), labels


def support_of(embeddings, labels):
    return SupportSet(Examples(tuple(map(str, range(len(labels))))), embeddings, labels)


def recall(found, true):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, true, strict=True)])


@pytest.mark.parametrize("noise", [0.1, 1.0], ids=["tight classes", "loose classes"])
def test_nearly_all_of_the_nearest_are_found(noise):
    exact = support_of(*clustered(20_000, noise, seed=0))
    queries, _ = clustered(300, noise, seed=1)
    true, similarities = exact.nearest(queries, 10)
    found, approximate = exact.searched("approximate").nearest(queries, 10)
    assert recall(found, true) >= 0.95
    assert recall(found[:, :1], true[:, :1]) >= 0.95
    # A miss costs a little nearness: what is found instead is nearly as similar.
    np.testing.assert_allclose(approximate, similarities, atol=0.02)


def test_neighbours_votes_and_familiarity_go_through_the_index():
    exact = support_of(*clustered(5_000, 0.3, seed=0))
    indexed = exact.searched("approximate")
    queries, labels = clustered(200, 0.3, seed=1)
    votes = class_scores(queries, indexed, CLASSES, "knn", k=5)
    assert (votes.argmax(axis=1) == labels).mean() > 0.99
    true_votes = class_scores(queries, exact, CLASSES, "knn", k=5)
    np.testing.assert_array_equal(votes.argmax(axis=1), true_votes.argmax(axis=1))
    np.testing.assert_allclose(
        familiarity(queries, indexed), familiarity(queries, exact), atol=0.02
    )
    # Similarities are the true ones, not those of the index's 16 bits, and in order.
    indices, similarities = indexed.nearest(queries, 5)
    products = np.einsum("qd,qkd->qk", queries, exact.embeddings[indices])
    np.testing.assert_allclose(similarities, products, atol=1e-6)
    assert (np.diff(similarities, axis=1) <= 0).all()


def test_added_examples_are_found_and_the_set_they_were_added_to_stays_as_it_was():
    before = support_of(*clustered(2_000, 0.3, seed=0)).searched("approximate")
    queries, labels = clustered(50, 0.3, seed=1)
    after = before + support_of(queries, labels)
    indices, similarities = after.nearest(queries, 1)
    assert indices[:, 0].tolist() == list(range(2_000, 2_050))
    np.testing.assert_allclose(similarities, 1, atol=1e-6)
    assert before.nearest(queries, 1)[0].max() < 2_000
    assert (len(before.index), len(after.index)) == (2_000, 2_050)


def test_more_neighbours_than_the_nearest_cells_hold_are_looked_for_everywhere():
    support = support_of(*clustered(1_000, 1.0, seed=0)).searched("approximate")
    queries, _ = clustered(3, 1.0, seed=1)
    indices, _ = support.nearest(queries, 1_000)
    assert [sorted(row) for row in indices.tolist()] == [list(range(1_000))] * 3


def test_a_single_example_and_no_query_are_no_special_case():
    support = support_of(*clustered(1, 1.0, seed=0)).searched("approximate")
    assert support.nearest(clustered(2, 1.0, seed=1)[0], 3)[0].tolist() == [[0], [0]]
    assert support.nearest(np.empty((0, 32), np.float32), 3)[0].shape == (0, 1)


def test_without_faiss_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(CPTuningError, match=r'pip install "cptuning\[index\]"'):
        ApproximateIndex(np.eye(2, dtype=np.float32))
