"""Votes and prototypes, against slow loops in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data import Examples
from cptuning.inference import SupportSet, class_scores, knn_votes, prototypes
from cptuning.inference.scoring import close_calls


def support_of(embeddings, labels):
    embeddings = np.asarray(embeddings, dtype=np.float32)
    return SupportSet(Examples(("",) * len(embeddings)), embeddings, np.asarray(labels))


def support_on_a_line(similarities, labels):
    """Examples whose similarities to the one query of these tests are given."""
    return support_of([[s, 0.0] for s in similarities], labels)


QUERY = np.array([[1.0, 0.0]], dtype=np.float32)
EIGHTHS = st.integers(-8, 8).map(lambda n: n / 8)
NEIGHBOURS = st.lists(st.tuples(EIGHTHS, st.integers(0, 3)), min_size=1, max_size=12)


def slow_votes(similarities, labels, n_classes, k):
    """The votes, and the winner: most votes, then the nearest example, then the first."""
    order = sorted(range(len(labels)), key=lambda i: (-similarities[i], i))[:k]
    votes = [Fraction(0)] * n_classes
    first_place = [len(labels)] * n_classes
    for place, i in enumerate(order):
        votes[labels[i]] += (1 + Fraction(similarities[i])) / 2 / len(order)
        first_place[labels[i]] = min(first_place[labels[i]], place)
    return votes, max(range(n_classes), key=lambda c: (votes[c], -first_place[c]))


@given(NEIGHBOURS, st.integers(1, 15))
def test_votes_are_those_of_the_slow_loop(neighbours, k):
    similarities, labels = zip(*neighbours, strict=True)
    expected, winner = slow_votes(similarities, labels, 4, k)
    votes = knn_votes(QUERY, support_on_a_line(similarities, labels), n_classes=4, k=k)
    np.testing.assert_allclose(votes, [[float(vote) for vote in expected]], atol=2e-9)
    assert votes.argmax() == winner


# Of sixteenths, as similarities are of eighths: no neighbour draws level with another.
LEADS = st.integers(0, 8).map(lambda n: (2 * n + 1) / 16)


@given(NEIGHBOURS, st.integers(1, 8), LEADS)
def test_a_vote_is_close_if_others_win_when_they_are_nearer(neighbours, k, lead):
    similarities, labels = zip(*neighbours, strict=True)
    support = support_on_a_line(similarities, labels)
    votes = knn_votes(QUERY, support, n_classes=4, k=k)
    near = sorted(range(len(labels)), key=lambda i: (-similarities[i], i))[: 2 * k]
    best = votes.argmax()
    nearer = [similarities[i] + lead * (labels[i] != best) for i in near]
    _, then = slow_votes(nearer, [labels[i] for i in near], 4, k)
    found = close_calls(QUERY, votes, support, "knn", k, lead)
    assert found.tolist() == ([] if then == best else [0])


@pytest.mark.parametrize("inference", ["prototype", "unit-prototype", "lda"])
@given(st.lists(st.tuples(*[EIGHTHS] * 3), min_size=1, max_size=9), LEADS)
def test_a_score_is_close_if_its_lead_is_not_clear(inference, rows, lead):
    scores = np.array(rows)
    support = support_of(np.eye(3), [0, 1, 2])  # Their scores are all that counts.
    ordered = np.sort(scores, axis=1)
    # Equal scores are close as well, where the earlier of them was taken.
    expected = np.flatnonzero(ordered[:, 2] - ordered[:, 1] < lead)
    queries = np.zeros((len(rows), 3), np.float32)
    found = close_calls(queries, scores, support, inference, 1, lead)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("inference", ["knn", "prototype", "unit-prototype", "lda"])
def test_one_class_is_never_a_close_call(inference):
    support = support_of([[1, 0], [0, 1]], [0, 0])
    scores = class_scores(QUERY, support, 1, inference, 3)
    assert len(close_calls(QUERY, scores, support, inference, 3, 0.5)) == 0


def test_rows_of_a_batch_do_not_mix():
    rng = np.random.default_rng(0)
    support = support_of(rng.normal(size=(20, 4)), rng.integers(0, 3, 20))
    queries = rng.normal(size=(7, 4)).astype(np.float32)
    together = knn_votes(queries, support, 3, k=5)
    alone = [knn_votes(query[None], support, 3, k=5)[0] for query in queries]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def winner(similarities, labels, k):
    votes = knn_votes(QUERY, support_on_a_line(similarities, labels), max(labels) + 1, k)
    return votes.argmax()


@pytest.mark.parametrize("order", [1, -1])
def test_the_nearest_wins_a_tie_whatever_its_number(order):
    # 1 + 1/4 against 3/4 + 1/2
    labels = [1, 1, 0, 0][::order]
    assert winner([1.0, 0.25, 0.75, 0.5], labels, k=4) == labels[0]


def test_the_nearest_of_the_tied_wins_even_where_a_third_class_is_nearer():
    # Class 2 is nearest but has one vote; 1 and 0 have equal votes, and 1 comes nearer.
    assert winner([1.0, 0.75, 0.5, 0.625, 0.625], [2, 1, 1, 0, 0], k=5) == 1
    assert winner([1.0, 0.75, 0.5, 0.625, 0.625], [2, 0, 0, 1, 1], k=5) == 0


def test_of_equally_similar_examples_the_earlier_one_is_nearer():
    assert winner([0.5, 0.5], [1, 0], k=2) == 1
    assert winner([0.5, 0.5], [0, 1], k=2) == 0


def test_two_fair_neighbours_outvote_one_near_one():
    assert winner([0.875, 0.5, 0.5], [0, 1, 1], k=3) == 1
    assert winner([0.875, 0.5, 0.5], [0, 1, 1], k=1) == 0


def test_opposite_examples_never_vote_against_their_class():
    votes = knn_votes(QUERY, support_on_a_line([-1.0, -1.0], [0, 1]), n_classes=3, k=2)
    assert (votes >= 0).all()


def test_more_neighbours_than_examples_is_all_of_them():
    support = support_on_a_line([0.5, 0.25], [0, 1])
    np.testing.assert_array_equal(knn_votes(QUERY, support, 2, 2), knn_votes(QUERY, support, 2, 99))


@given(NEIGHBOURS)
def test_a_prototype_is_the_mean_of_its_class(neighbours):
    values, labels = zip(*neighbours, strict=True)
    centres = prototypes(support_on_a_line(values, labels), n_classes=4)
    for class_ in range(4):
        own = [value for value, label in neighbours if label == class_]
        expected = sum(own) / len(own) if own else 0.0
        np.testing.assert_allclose(centres[class_], [expected, 0.0], atol=1e-6)


# Class 0 is compact, class 1 spread around (0, 1): its mean is short.
SPREAD = support_of([[1, 0], [1, 0], [0.8, 0.6], [-0.8, 0.6]], [0, 0, 1, 1])
DIAGONAL = np.array([[0.6, 0.8]], dtype=np.float32)


def test_prototype_scores_are_products_with_the_means():
    scores = class_scores(DIAGONAL, SPREAD, 2, "prototype", k=3)
    np.testing.assert_allclose(scores, [[0.6, 0.8 * 0.6]], atol=1e-6)


def test_unit_prototypes_compare_directions_alone():
    scores = class_scores(DIAGONAL, SPREAD, 2, "unit-prototype", k=3)
    np.testing.assert_allclose(scores, [[0.6, 0.8]], atol=1e-6)


def test_a_prototype_of_opposites_or_of_nothing_scores_zero():
    support = support_of([[1, 0], [-1, 0]], [0, 0])
    for inference in ("prototype", "unit-prototype"):
        np.testing.assert_array_equal(class_scores(DIAGONAL, support, 2, inference, 3), [[0, 0]])


def test_knn_is_the_third_way():
    np.testing.assert_array_equal(
        class_scores(DIAGONAL, SPREAD, 2, "knn", k=3), knn_votes(DIAGONAL, SPREAD, 2, k=3)
    )


@pytest.mark.parametrize("inference", ["knn", "prototype", "unit-prototype", "lda"])
def test_scores_are_float64_one_column_a_class(inference):
    scores = class_scores(np.repeat(DIAGONAL, 5, axis=0), SPREAD, 3, inference, k=2)
    assert scores.shape == (5, 3)
    assert scores.dtype == np.float64
