"""A fit that changed by one bit, lost a tensor or has a new one is not the same."""

import pytest

from benchmarks.same_fit import differing

OLD = {"weight": "ab", "bias": "cd"}


@pytest.mark.parametrize(
    ("new", "names"),
    [
        (OLD, []),
        (OLD | {"bias": "ce"}, ["bias"]),
        (OLD | {"more": "ef"}, ["more"]),
        ({"weight": "ab"}, ["bias"]),
    ],
)
def test_what_differs_is_named(new, names):
    assert differing(OLD, new) == names
