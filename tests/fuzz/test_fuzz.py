"""A fixed small part of the fuzzing; ``make fuzz MINUTES=60`` does more of it."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.fuzz.estimator import EstimatorMachine
from tests.fuzz.targets import TARGETS

FEW = {"model folders": 30}


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_in_is_read_or_refused(name):
    limits = settings(
        max_examples=FEW.get(name, 60),
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    limits(TARGETS[name])()


def test_the_estimator_in_any_order_of_calls():
    run_state_machine_as_test(
        EstimatorMachine,
        settings=settings(
            max_examples=6,
            stateful_step_count=8,
            derandomize=True,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
