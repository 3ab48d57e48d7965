"""Weights and shares as users give them: right ones as arrays, wrong ones in one sentence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from cptuning.data import LabelSpace
from cptuning.data.weights import as_class_prior, as_sample_weights, class_weights
from cptuning.errors import CPTuningError

SPACE = LabelSpace(("a", "b", "c"))


@given(st.lists(st.integers(0, 2), max_size=20))
def test_balanced_weights_are_those_of_scikit_learn(more):
    labels = np.array([0, 1, 2, *more])
    expected = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    np.testing.assert_allclose(class_weights("balanced", SPACE, labels), expected)


def test_balanced_weights_count_examples_by_their_own_weight():
    labels, weights = np.array([0, 0, 1, 2]), np.array([1.0, 1.0, 4.0, 2.0])
    found = class_weights("balanced", SPACE, labels, weights)
    masses = [weights[labels == c].sum() * found[c] for c in range(3)]
    np.testing.assert_allclose(masses, weights.sum() / 3)


def test_a_label_that_is_not_named_weighs_one_and_may_be_spelled_as_text():
    assert class_weights({"b": 5}, SPACE, np.arange(3)).tolist() == [1, 5, 1]
    assert class_weights({"2": 5}, LabelSpace((1, 2)), np.arange(2)).tolist() == [1, 5]
    assert class_weights(None, SPACE, np.arange(3)) is None


@pytest.mark.parametrize(
    ("given_weights", "sentence"),
    [
        ("uniform", 'class_weight is .uniform.: give "balanced", or a dictionary'),
        ({"d": 1}, "class_weight names 'd', which is not a label"),
        ({"a": "much"}, "class_weight is 'much' for the label 'a': give a number"),
        ({"a": float("nan")}, "class_weight is nan for the label 'a': give a number"),
        ({"a": True}, "give a number"),
        ({"a": 0}, "class_weight is 0 for a label: give numbers above 0"),
        ([1, 2, 3], "give .balanced., or a dictionary"),
    ],
)
def test_wrong_class_weights_get_one_sentence(given_weights, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        class_weights(given_weights, SPACE, np.arange(3))


@pytest.mark.parametrize(
    ("given_weights", "sentence"),
    [
        ([1, 2], r"sample_weight has shape \(2,\) for 3 examples"),
        ([1, "many", 2], "values that are not numbers"),
        ([1, -2, 3], "sample_weight is -2.0 in row 2"),
        ([1, 2, float("inf")], "sample_weight is inf in row 3"),
        ([0, 0, 0], "All weights of examples are 0"),
    ],
)
def test_wrong_sample_weights_get_one_sentence(given_weights, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        as_sample_weights(given_weights, 3)


def test_shares_are_in_the_order_of_the_classes():
    assert as_class_prior({"c": 0.2, "a": 0.7, "b": 0.1}, SPACE).tolist() == [0.7, 0.1, 0.2]
    np.testing.assert_allclose(
        as_class_prior(np.array([1, 2, 5]) / 8, SPACE), [1 / 8, 2 / 8, 5 / 8]
    )


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ({"a": 0.5, "b": 0.5}, "class_prior has no share for the label 'c'"),
        ({"a": 0.5, "b": 0.4, "d": 0.1}, "class_prior names 'd', which is not a label"),
        ([0.5, 0.5], "or 3 numbers, one for each class"),
        ("often", "or 3 numbers, one for each class"),
        ([0.5, 0.5, 0.0], "class_prior has the share 0: give numbers above 0"),
        ([0.5, 0.3, 0.1], "add up to 0.9: they must add up to 1"),
        (0.5, "or 3 numbers"),
    ],
)
def test_wrong_shares_get_one_sentence(shares, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        as_class_prior(shares, SPACE)
