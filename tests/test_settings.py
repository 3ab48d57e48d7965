"""What every method's settings share: the schedule of the learning rate, and their descriptions."""

from dataclasses import fields, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning import list_methods
from cptuning.registry import classifier_class
from cptuning.settings import TrainingSettings

PLAN = TrainingSettings(
    template="[CLS] {a}",
    max_length=16,
    optimizer="adamw",
    learning_rate=1e-3,
    weight_decay=0.0,
    warmup=0.25,
    clip_norm=1.0,
    batch_size=4,
    batches="uniform",
    accumulate=1,
    steps=20,
    epochs=0,
    most_steps=1000,
    evaluate_every=5,
    patience=0,
    selection="best",
    temperature=1.0,
)


@pytest.mark.parametrize("method", list_methods())
def test_every_setting_of_every_method_says_what_it_means(method):
    for field in fields(classifier_class(method).settings_class):
        assert field.metadata["description"].endswith("."), field.name


def test_the_rate_rises_in_equal_steps_to_the_peak_and_falls_in_equal_steps():
    rates = [PLAN.rate(step) for step in range(20)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[5] == 1.0
    falls = [a - b for a, b in pairwise(rates[5:])]
    assert falls == pytest.approx([1 / 15] * 14)
    assert rates[-1] == pytest.approx(1 / 15)


@given(st.integers(1, 300), st.floats(0, 1))
def test_every_step_of_any_plan_has_a_rate_above_zero_and_at_most_one(steps, warmup):
    plan = replace(PLAN, steps=steps, warmup=warmup)
    assert all(0 < plan.rate(step) <= 1 for step in range(steps))
