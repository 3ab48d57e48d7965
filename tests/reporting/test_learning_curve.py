"""The verdict on a learning curve follows its stated rule."""

import json

import pytest
from scipy.stats import t

from cptuning.reporting.learning_curve import FEWEST_ANSWERS, CurvePoint, LearningCurve


def curve(before, after, answers=200):
    return LearningCurve({4: [0.5] * len(before), 8: before, 16: after}, 0.5, answers)


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ([0.60, 0.61, 0.60], [0.66, 0.67, 0.65], "rising"),
        ([0.60, 0.61, 0.60], [0.60, 0.61, 0.61], "levelled-off"),
        ([0.70, 0.71, 0.70], [0.66, 0.67, 0.65], "levelled-off"),  # It even fell.
        ([0.60, 0.70, 0.65], [0.70, 0.60, 0.75], "unclear"),
        ([0.600, 0.600, 0.600], [0.605, 0.605, 0.605], "levelled-off"),  # Sure, but small.
        ([0.60], [0.70], "unclear"),
    ],
)
def test_the_state_follows_the_rule(before, after, state):
    assert curve(before, after).state == state


def test_a_handful_of_test_texts_decides_nothing():
    assert curve([0.6, 0.6], [0.8, 0.8], answers=FEWEST_ANSWERS).state == "rising"
    few = curve([0.6, 0.6], [0.8, 0.8], answers=FEWEST_ANSWERS - 1)
    assert few.state == "unclear"
    assert "49 test answers" in few.verdict


def test_the_gain_is_measured_against_the_size_nearest_to_half():
    measured = LearningCurve({2: [0.1, 0.1], 8: [0.5, 0.5], 15: [0.7, 0.7]}, 0.5, 100)
    assert measured.gain[0] == pytest.approx(0.2)


def test_a_curve_that_was_stopped_early_compares_the_repeats_that_both_sizes_have():
    stopped = LearningCurve({8: [0.5, 0.6, 0.7], 16: [0.7, 0.8]}, 0.5, 100)
    assert stopped.gain[0] == pytest.approx(0.2)
    assert LearningCurve({8: [0.5], 16: []}, 0.5, 100).verdict.startswith("It is unclear")


def test_the_interval_is_students():
    low, high = CurvePoint(8, [0.5, 0.6, 0.7]).interval
    half = t.ppf(0.975, 2) * 0.1 / 3**0.5
    assert (low, high) == pytest.approx((0.6 - half, 0.6 + half))
    assert CurvePoint(8, [0.5]).interval is None
    assert CurvePoint(8, [0.9, 1.0]).interval[1] == 1.0


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ([0.60, 0.61], [0.66, 0.67], "The curve is still rising"),
        ([0.60, 0.61], [0.60, 0.61], "The curve has levelled off"),
        ([0.60, 0.70], [0.70, 0.60], "It is unclear"),
    ],
)
def test_the_verdict_is_one_plain_sentence(before, after, sentence):
    verdict = curve(before, after).verdict
    assert verdict.startswith(sentence)
    assert verdict.endswith(".")


def test_the_summary_is_json():
    summary = json.loads(json.dumps(curve([0.6, 0.6], [0.7, 0.7]).summary(), allow_nan=False))
    assert [point["size"] for point in summary["sizes"]] == [4, 8, 16]
    assert summary["state"] == "rising"


def test_the_page_shows_the_verdict_the_rule_and_the_picture():
    html = curve([0.6, 0.6], [0.7, 0.7]).html("<train>.csv")
    assert "The curve is still rising" in html
    assert "The rule:" in html
    assert "<svg" in html
    assert "&lt;train&gt;.csv" in html
    assert "<train>" not in html
