import numpy as np
import pandas as pd
import pytest

from cptuning.data.value_checks import is_missing, label_problem, plain, shortlist, text_problem


@pytest.mark.parametrize("value", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_every_way_of_saying_nothing_is_missing(value):
    assert is_missing(value)
    assert text_problem(value) == "is missing (None or NaN)"
    assert label_problem(value) == "is missing (None or NaN)"


@pytest.mark.parametrize("value", ["", "nan", 0, 0.0, False, np.float32(1)])
def test_values_that_look_empty_are_not_missing(value):
    assert not is_missing(value)


@pytest.mark.parametrize(
    ("value", "type_"), [(np.int64(3), int), (np.float32(0.5), float), (np.bool_(True), bool)]
)
def test_numpy_scalars_become_python_values(value, type_):
    assert type(plain(value)) is type_
    assert plain(value) == value


def test_a_date_in_nanoseconds_stays_a_date():
    date = np.datetime64("2020-01-01", "ns")
    assert plain(date) is date


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "日本", "🙂", np.str_("a")])
def test_any_real_text_is_a_text(text):
    assert text_problem(text) is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (3, "is a number (int), not a text"),
        (np.float64(3), "is a number (float64), not a text"),
        (True, "is a number (bool), not a text"),
        (b"a", "is bytes, not a text: decode it first"),
        ({"a": 1}, "is of type dict, not a text"),
        ("é\ud800", "contains half of a surrogate pair, which is not valid"),
    ],
)
def test_what_is_no_text_is_said_to_be_something_else(value, problem):
    assert text_problem(value) == problem


def test_a_label_must_be_hashable():
    assert label_problem((1, "a")) is None
    assert "list, which is not hashable" in label_problem([1])


def test_a_label_must_be_what_can_be_written():
    assert label_problem("\ud83d") == "contains half of a surrogate pair, which is not valid"
    assert label_problem("\U0001f600") is None


def test_long_lists_and_long_values_are_cut():
    assert shortlist(range(20), limit=2) == "0, 1 and 18 more"
    assert len(shortlist(["x" * 1000])) < 100
