"""What is said of examples at once."""

import pytest

from cptuning.app.checks import ExamplesCheck, repeated_places
from cptuning.app.user_examples import Example
from cptuning.errors import CPTuningError

EXAMPLES = [Example("a", "x"), Example("a", "x"), Example("b", "x"), Example("b", "y")]


def test_classes_are_counted_in_the_order_of_their_names():
    assert list(ExamplesCheck.of(EXAMPLES).counts.items()) == [("x", 3), ("y", 1)]


def test_repeats_and_contradictions_are_found():
    check = ExamplesCheck.of(EXAMPLES)
    assert (check.repeated, check.contradictions) == (1, {"b": ["x", "y"]})
    assert repeated_places(EXAMPLES) == [1]


def test_case_and_punctuation_make_no_other_text_but_maybe_the_same_class():
    check = ExamplesCheck.of([Example("Hello!", "In"), Example("hello", "in"), Example("b", "in")])
    assert check.contradictions == {"Hello!": ["In", "in"]}
    assert [(pair.label, pair.other) for pair in check.similar] == [("in", "In")]


def test_classes_with_few_examples_are_named():
    assert ExamplesCheck.of([*EXAMPLES, Example("c", "x")]).small == {"y": 1}


@pytest.mark.parametrize(
    ("examples", "sentence"),
    [
        ([], "Add examples first"),
        ([Example("a", "x"), Example("b", "x")], "another class"),
        ([Example("a", "x"), Example("b", "y")], "only one example"),
    ],
)
def test_too_little_to_train_on_is_told(examples, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        ExamplesCheck.of(examples).require_trainable()


def test_two_classes_with_a_pair_in_one_are_enough():
    ExamplesCheck.of(EXAMPLES).require_trainable()
