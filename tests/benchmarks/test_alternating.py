"""Sides are timed in turns, and only their own work is timed."""

import pytest

from benchmarks.alternating import Ratio, Times, alternate


def test_every_round_has_every_side_once_and_the_first_takes_turns():
    calls = []
    sides = {name: lambda name=name: calls.append(name) for name in "ab"}
    alternate(sides, rounds=3, warm=lambda: calls.append("warm"))
    assert calls == ["warm", "a", "b", "b", "a", "a", "b"]


def test_without_a_warm_up_of_its_own_every_side_runs_once_untimed():
    calls = []
    sides = {name: lambda name=name: calls.append(name) for name in "abc"}
    times = alternate(sides, rounds=1)
    assert calls == ["a", "b", "c", "a", "b", "c"]
    assert all(len(seconds) == 1 for seconds in times.seconds.values())


def test_a_round_may_have_an_argument_and_its_result_is_kept_by_side():
    sides = {"square": lambda n: n * n, "double": lambda n: 2 * n}
    times = alternate(sides, [1, 2, 3], after=str)
    assert times.results == {"square": ["1", "4", "9"], "double": ["2", "4", "6"]}


def test_what_is_done_with_a_result_is_not_timed():
    now = [0]

    def taking(seconds):
        now[0] += seconds

    times = alternate(
        {"a": lambda: taking(2)}, rounds=1, after=lambda _: taking(100), clock=lambda: now[0]
    )
    assert times.seconds["a"] == [2]


def test_the_ratio_is_taken_within_rounds():
    """The machine was ten times slower in the last round, for both."""
    times = Times({"a": [2.0, 2.2, 20.0], "b": [1.0, 1.0, 10.0]}, {})
    assert times.ratio("a", "b") == Ratio(2.0, 2.0, 2.2)
    assert f"{times.ratio('a', 'b')}" == "2.00 (2.00 to 2.20)"
    assert times.median("b") == 1.0


def test_no_round_is_refused():
    with pytest.raises(ValueError, match="no round"):
        alternate({"a": print}, rounds=[])
