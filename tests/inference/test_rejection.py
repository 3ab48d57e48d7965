"""Targets of error: what is promised is kept, and what can't be promised is not."""

import numpy as np
import pytest
from scipy.stats import beta, binomtest

from cptuning.errors import CPTuningError
from cptuning.inference import Rejection, error_target, rejection
from cptuning.inference.rejection import CERTAINTY, least_answers


def slow_rejection(confidence, right, target):
    """The rule as it is written: thresholds in turn, each with an exact binomial test."""
    n = len(confidence)
    least = next(m for m in range(1, 10_000) if (1 - target) ** m <= 1 - CERTAINTY)
    best = None
    rank = max(least, n // 3)
    while rank <= n:
        threshold = sorted(confidence, reverse=True)[rank] if rank < n else 0.0
        above = [ok for c, ok in zip(confidence, right, strict=True) if c > threshold]
        if above:
            wrong = len(above) - sum(above)
            test = binomtest(wrong, len(above), target, alternative="less")
            if test.pvalue > 1 - CERTAINTY:
                break
            best = (threshold, len(above), wrong)
        if rank == n:
            break
        rank = min(n, rank + max(1, n // 20))
    return best


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("target", [0.02, 0.05, 0.2])
def test_the_threshold_is_that_of_the_rule_as_it_is_written(seed, target):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 700))
    confidence = rng.random(n).round(int(rng.integers(1, 6)))  # Some with many ties.
    right = rng.random(n) < 0.7 + 0.3 * confidence
    found, expected = (
        rejection(confidence, right, target),
        slow_rejection(confidence, right, target),
    )
    if expected is None:
        assert (found.answered, found.threshold) == (0, 1.0)
        return
    assert (found.threshold, found.answered, found.wrong) == pytest.approx(expected)
    assert (confidence > found.threshold).sum() == found.answered
    assert found.upper_bound <= target


def test_the_bound_is_that_of_clopper_and_pearson():
    for answered, wrong in ((60, 0), (60, 3), (5, 5)):
        found = Rejection(0.05, 0.5, 100, answered, wrong).upper_bound
        expected = 1.0 if wrong == answered else beta.ppf(CERTAINTY, wrong + 1, answered - wrong)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(("offset", "slope"), [(3.5, 3.0), (2.0, 2.5)])
def test_a_promise_is_broken_no_more_often_than_it_says(offset, slope):
    """Of models whose errors are known exactly: P(wrong) = 1 / (1 + exp(offset + slope x))."""
    rng, target, runs = np.random.default_rng(0), 0.1, 400
    grid = np.linspace(-5, 5, 2001)
    density, error = np.exp(-(grid**2) / 2), 1 / (1 + np.exp(offset + slope * grid))
    broken = promised = 0
    for _ in range(runs):
        x = rng.normal(size=200)
        right = rng.random(200) > 1 / (1 + np.exp(offset + slope * x))
        found = rejection(1 / (1 + np.exp(-x)), right, target)
        if found.answered:
            promised += 1
            above = 1 / (1 + np.exp(-grid)) > found.threshold
            broken += (density * error)[above].sum() / density[above].sum() > target
    assert promised > runs / 10
    assert broken <= (1 - CERTAINTY) * runs  # It is far below: about 3 %.


def test_too_few_answers_can_promise_nothing():
    n = least_answers(0.05)
    sure = np.linspace(0.5, 0.9, n)
    assert rejection(sure, np.ones(n, bool), 0.05).answered == n
    found = rejection(sure[1:], np.ones(n - 1, bool), 0.05)
    assert (found.answered, found.threshold, found.upper_bound) == (0, 1.0, 1.0)
    assert "it takes at least 45" in found.sentence()
    wrong = rejection(sure, np.arange(n) < n - 1, 0.05)
    assert wrong.answered == 0
    assert "too many of the surest are wrong" in wrong.sentence()


@pytest.mark.parametrize(
    ("text", "share"), [("error<=0.05", 0.05), ("error <= 5%", 0.05), (" error<=.1 ", 0.1)]
)
def test_targets_are_shares_or_percentages(text, share):
    assert error_target(text) == pytest.approx(share)


@pytest.mark.parametrize("other", ["auto", "error<0.05", "errors<=1", "error<=x", 0.5, None])
def test_anything_else_is_no_target(other):
    assert error_target(other) is None


@pytest.mark.parametrize("text", ["error<=0", "error<=1", "error<=100%", "error<=7"])
def test_a_target_that_promises_nothing_or_all_is_refused(text):
    with pytest.raises(CPTuningError, match="between 0 and 1"):
        error_target(text)
