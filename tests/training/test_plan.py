from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.training import TrainingPlan

PLAN = TrainingPlan(
    steps=20,
    learning_rate=1e-3,
    optimizer="adamw",
    weight_decay=0.0,
    warmup=0.25,
    clip_norm=1.0,
    accumulate=1,
    evaluate_every=5,
    patience=0,
    precision="float32",
    seed=0,
)


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
