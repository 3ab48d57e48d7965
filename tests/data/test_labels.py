import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data.labels import LabelSpace, aligned, as_labels
from cptuning.errors import CPTuningError

LABELS = st.one_of(
    st.lists(st.text(), min_size=1),
    st.lists(st.integers(), min_size=1),
    st.lists(st.booleans(), min_size=1),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1),
    st.lists(st.one_of(st.text(), st.integers()), min_size=1),
)


@given(LABELS)
def test_labels_survive_encoding_and_decoding(labels):
    space = LabelSpace.from_labels(labels)
    assert space.decode(space.encode(labels)).tolist() == labels


@given(st.one_of(st.lists(st.text(), min_size=1), st.lists(st.integers(), min_size=1)))
def test_classes_that_can_be_sorted_are(labels):
    assert LabelSpace.from_labels(labels).classes == tuple(sorted(set(labels)))


@given(LABELS)
def test_a_saved_space_is_the_same_space(labels):
    space = LabelSpace.from_labels(labels)
    loaded = LabelSpace.from_json(json.loads(json.dumps(space.to_json())))
    assert loaded == space
    assert [type(label) for label in loaded.classes] == [type(label) for label in space.classes]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["b", 1, "a", 1], ("b", 1, "a")),
        ([*map(frozenset, ("ab", "a", "c"))], (*map(frozenset, ("ab", "a", "c")),)),
        ([("b", 1), ("a", 2)], (("a", 2), ("b", 1))),
        ([2.5, 1], (1, 2.5)),
    ],
)
def test_classes_without_an_order_stay_as_they_first_appear(labels, classes):
    assert LabelSpace.from_labels(labels).classes == classes


@pytest.mark.parametrize(
    "labels", [["b", "abc"], [3, 1], [2.5, 1.0], [True, False]], ids=["str", "int", "float", "bool"]
)
def test_decoded_labels_have_the_type_that_numpy_gives_them(labels):
    space = LabelSpace.from_labels(labels)
    assert space.decode([0]).dtype == np.unique(labels).dtype
    assert space.decode(range(len(space))).tolist() == np.unique(labels).tolist()


@pytest.mark.parametrize("labels", [[1, "a"], [("a", 1), ("b", 2)], ["a", "a\0"], [1, 2.5]])
def test_other_labels_are_decoded_as_objects(labels):
    decoded = LabelSpace.from_labels(labels).decode([1, 0])
    assert decoded.dtype == object
    assert decoded.tolist() == labels[::-1]


@pytest.mark.parametrize("index", [-1, 2])
def test_there_is_no_label_outside_the_classes(index):
    with pytest.raises(IndexError, match="2 classes"):
        LabelSpace(("a", "b")).decode([index])


def test_nothing_decodes_to_nothing():
    assert LabelSpace(("a", "b")).decode([]).tolist() == []


def test_indices_are_64_bit_integers():
    assert LabelSpace(("a", "b")).encode(["b"]).dtype == np.int64


def test_an_unknown_label_is_named_with_its_row():
    with pytest.raises(CPTuningError, match=r"label 'c' in row 2 .* \('a', 'b'\)"):
        LabelSpace(("a", "b")).encode(["a", "c"])


@pytest.mark.parametrize("labels", [[1, True], [0, 1, 1.0], [False, 0.0], [1, Fraction(1)]])
def test_equal_labels_of_different_types_are_not_merged(labels):
    with pytest.raises(CPTuningError, match="equal in Python but of different types"):
        LabelSpace.from_labels(labels)


def test_equal_labels_of_different_types_are_not_merged_later_either():
    space = LabelSpace((0, 1))
    with pytest.raises(CPTuningError, match="label True in row 1 is not one of the classes"):
        space.encode([True])
    with pytest.raises(CPTuningError, match="1 and True are equal"):
        space.extended([True])


def test_new_classes_go_to_the_end_and_old_ones_keep_their_place():
    space = LabelSpace(("m", "z"))
    assert space.extended(["b", "z", "a", "b"]).classes == ("m", "z", "a", "b")
    assert space.extended(["m"]) == space


@pytest.mark.parametrize("label", [("a", 1), np.datetime64("2020-01-01"), frozenset("a")])
def test_only_strings_and_numbers_can_be_saved(label):
    with pytest.raises(CPTuningError, match=r"Labels of type \w+ cannot be saved"):
        LabelSpace.from_labels([label]).to_json()


def test_infinity_is_no_json():
    with pytest.raises(CPTuningError, match="inf cannot be saved"):
        LabelSpace((float("inf"),)).to_json()


@pytest.mark.parametrize("saved", [[None], [["a"]], "ab", {"a": 1}])
def test_a_damaged_list_of_classes_is_refused(saved):
    with pytest.raises(CPTuningError, match="Saved classes"):
        LabelSpace.from_json(saved)


def test_a_class_is_listed_once():
    with pytest.raises(CPTuningError, match="listed twice"):
        LabelSpace(("a", "b", "a"))


@pytest.mark.parametrize(
    "y",
    [
        [1, 2],
        (1, 2),
        np.array([1, 2]),
        np.array([[1], [2]]),
        np.array([1, 2], dtype=object),
        pd.Series([1, 2], index=[5, 6]),
        pd.DataFrame({"label": [1, 2]}),
        Dataset.from_dict({"label": [1, 2]})["label"],
    ],
    ids=lambda y: type(y).__name__,
)
def test_labels_come_in_many_shapes(y):
    labels = as_labels(y, n_expected=2)
    assert labels == [1, 2]
    assert {type(label) for label in labels} == {int}


def test_the_items_of_a_tensor_are_not_classes_of_their_own():
    assert LabelSpace.from_labels(torch.tensor([1, 0, 1])).classes == (0, 1)


def test_categories_and_dates_are_labels_too():
    assert as_labels(pd.Series(["b", "a"], dtype="category")) == ["b", "a"]
    dates = np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[ns]")
    assert LabelSpace.from_labels(dates).classes == tuple(dates[::-1])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ("abc", "cannot be read from a str"),
        (3, "cannot be read from a int"),
        ({"a": 1}, "cannot be read from a dict"),
        ([], "no labels"),
        (["a", None], "label in row 2 is missing"),
        ([1.0, float("nan")], "label in row 2 is missing"),
        (pd.Series(["a", None, "b"]), "label in row 2 is missing"),
        (["a", ["b"]], "label in row 2 is of type list, which is not hashable"),
        (np.zeros((2, 2)), r"shape \(2, 2\)"),
        (np.array(1), r"shape \(\)"),
    ],
)
def test_a_mistake_in_labels_is_named_with_its_row(y, message):
    with pytest.raises(CPTuningError, match=message):
        as_labels(y)


def test_every_example_needs_its_label():
    with pytest.raises(CPTuningError, match="3 examples but 2 labels"):
        as_labels(["a", "b"], n_expected=3)


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (["1", "0"], [0, 1], [1, 0]),
        ([1, 0], ["0", "1"], ["1", "0"]),
        (["a", "b"], ["a"], ["a", "b"]),
        (["1"], [1, "1"], ["1"]),
        ([1], [1, "1"], [1]),
        (["True"], [True, False], [True]),
    ],
)
def test_labels_are_spelt_as_the_model_spells_them(labels, classes, expected):
    found = aligned(labels, classes)
    assert found == expected
    assert [type(label) for label in found] == [type(label) for label in expected]
