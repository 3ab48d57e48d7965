"""Label sets: they hold the right label as often as they say, and are as small as they can be."""

import numpy as np
import pytest

from cptuning.errors import CPTuningError
from cptuning.inference import ConformalSets


def answers(rng, n, classes=5):
    """Probabilities that are not calibrated, and labels."""
    scores = rng.normal(size=(n, classes))
    shares = np.exp(2 * scores)
    labels = (scores + 0.7 * rng.normal(size=scores.shape)).argmax(axis=1)
    return shares / shares.sum(axis=1, keepdims=True), labels


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("n", [19, 200])
def test_the_right_label_is_in_the_set_as_often_as_promised(coverage, n):
    rng, covered = np.random.default_rng(0), []
    for _ in range(300):
        sets = ConformalSets.of(*answers(rng, n))
        probabilities, labels = answers(rng, 20)
        members = sets.members(probabilities, coverage)
        covered += members[np.arange(20), labels].tolist()
    assert np.mean(covered) >= coverage - 0.01
    # With the likeliest label always in it, a set of 50 % covers more.
    assert coverage == 0.5 or np.mean(covered) <= coverage + 1 / (n + 1) + 0.015


def test_members_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    probabilities, labels = answers(rng, 37)
    sets = ConformalSets.of(probabilities, labels)
    new, _ = answers(rng, 25)
    for coverage in (0.3, 0.75, 0.9, 0.97, 0.99):
        scores = sorted(1 - probabilities[row, label] for row, label in enumerate(labels))
        k = int(np.ceil(38 * coverage))
        limit = scores[k - 1] if k <= 37 else np.inf
        expected = (1 - new <= limit) | (new == new.max(axis=1, keepdims=True))
        np.testing.assert_array_equal(sets.members(new, coverage), expected)


def test_nine_answers_are_enough_for_nine_in_ten_and_eight_are_not():
    few, enough = (ConformalSets(np.full(n, 0.6)) for n in (8, 9))
    assert few.members(np.array([[0.9, 0.1]]), 0.9).all()
    assert enough.members(np.array([[0.9, 0.1]]), 0.9).tolist() == [[True, False]]


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 90, float("nan"), "0.9", True, None])
def test_a_coverage_that_is_no_share_is_refused(coverage):
    with pytest.raises(CPTuningError, match=r"coverage is .* between 0 and 1"):
        ConformalSets(np.array([0.5])).members(np.array([[0.9, 0.1]]), coverage)
