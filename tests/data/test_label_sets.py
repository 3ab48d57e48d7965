"""Label sets: what is taken for them, their matrix, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.preprocessing import MultiLabelBinarizer

from cptuning.data import LabelSpace, MultiLabelSpace, is_multi_label, label_space_of, strata
from cptuning.errors import CPTuningError

LISTS = [["late", "rude"], [], ["late"]]
label_lists = st.lists(st.lists(st.sampled_from("abcd"), unique=True), min_size=1).filter(any)


@given(label_lists)
def test_lists_are_encoded_as_multi_label_binarizer_does(lists):
    binarizer = MultiLabelBinarizer().fit(lists)
    space = label_space_of(lists)
    assert list(space.classes) == list(binarizer.classes_)
    matrix = space.encode(lists)
    assert matrix.tolist() == binarizer.transform(lists).tolist()
    assert space.decode(matrix).tolist() == binarizer.inverse_transform(matrix)


@given(label_lists, st.sampled_from([list, tuple, set, np.array]))
def test_lists_tuples_sets_and_arrays_say_the_same(lists, kind):
    given = [kind(labels) for labels in lists]
    assert is_multi_label(given)
    space = label_space_of(given)
    assert space.encode(given).tolist() == space.encode(lists).tolist()
    assert space.formatted(space.encode(given)) == [sorted(labels) for labels in lists]


@pytest.mark.parametrize("kind", [np.array, csr_matrix, pd.DataFrame])
def test_a_matrix_has_a_label_per_column_also_without_any_example(kind):
    matrix = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0]])
    space = label_space_of(kind(matrix))
    assert space.classes == (0, 1, 2)
    assert space.as_labels(kind(matrix)) == [(0,), (0, 1), ()]
    assert space.encode(kind(matrix)).tolist() == matrix.tolist()
    back = space.formatted(matrix)
    assert (back.toarray() if kind is csr_matrix else back).tolist() == matrix.tolist()


def test_the_columns_of_a_data_frame_are_the_labels_in_any_order():
    frame = pd.DataFrame({"rude": [0, 1], "late": [True, True]})
    space = label_space_of(frame)
    assert space.classes == ("rude", "late")
    assert space.encode(frame[["late", "rude"]]).tolist() == [[0, 1], [1, 1]]


def test_a_list_of_single_labels_is_not_multi_label():
    for labels in (["a", "b"], np.array([1, 0]), pd.Series(["a"]), np.array([["a"], ["b"]])):
        assert not is_multi_label(labels)
        assert type(label_space_of(labels)) is LabelSpace


def test_new_labels_come_after_the_known_ones():
    space = MultiLabelSpace(("m", "z")).extended([["b", "z"], [], ["a"]])
    assert space.classes == ("m", "z", "a", "b")
    assert space.encode([["z", "a"]]).tolist() == [[0, 1, 1, 0]]
    assert MultiLabelSpace((0, 1), "matrix").extended(np.array([[0, 0, 1]])).classes == (0, 1, 2)


def test_rows_are_drawn_by_their_rarest_label():
    assert strata(np.array([[1, 1], [1, 0], [0, 0]])).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["a"], ["b", 3]], r"The label 3 in row 2 is of type int, those before it are of type"),
        ([["a"], "b"], r"The label set in row 2 is 'b', not a list of labels"),
        ([["a"], None], r"The label set in row 2 is missing"),
        ([["a"], [None]], r"A label in row 2 is missing"),
        ([["a"], [["b"]]], r"A label in row 2 is of type list"),
        ([[], []], r"No text has a label"),
        (np.array([[0, 2]]), r"has 2 in row 1, column 2: give 1 for a label"),
        (np.array([["a", "b"]]), r"has 'a' in row 1, column 1"),
    ],
)
def test_bad_label_sets_are_refused_in_one_sentence(labels, message):
    with pytest.raises(CPTuningError, match=message):
        label_space_of(labels).encode(labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["late"], ["early"]], r"The label 'early' in row 2 is not one of the classes"),
        (np.array([[1, 0, 1]]), r"The label matrix has 3 columns for 2 labels"),
        (pd.DataFrame({"late": [1], "new": [1]}), r"The label matrix has no column 'rude'"),
        (pd.DataFrame({"late": [1], "rude": [0], "new": [1]}), r"The label 'new' in row 1 is not"),
    ],
)
def test_label_sets_that_do_not_fit_a_model_are_refused(labels, message):
    space = MultiLabelSpace(("late", "rude"))
    with pytest.raises(CPTuningError, match=message):
        space.encode(labels)


def test_there_must_be_a_label_set_for_each_text():
    with pytest.raises(CPTuningError, match="There are 3 examples but 2 label sets"):
        MultiLabelSpace(("late", "rude")).as_labels(LISTS[:2], 3)
