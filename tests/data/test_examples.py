import numpy as np
import pandas as pd
import pytest
from datasets import Dataset, DatasetDict
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data.examples import Examples, as_examples
from cptuning.errors import CPTuningError

TEXTS = ["first", "second", ""]
PAIRS = [("a", "x"), ("b", "y"), ("c", "")]
AS_TEXTS = Examples(("first", "second", ""))
AS_PAIRS = Examples(("a", "b", "c"), ("x", "y", ""))


def frame(**columns):
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    "X",
    [
        TEXTS,
        tuple(TEXTS),
        (text for text in TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        np.array(TEXTS).reshape(3, 1),
        # numpy 2 has it.
        *([np.array(TEXTS, dtype=np.dtypes.StringDType())] if np.__version__ >= "2" else []),
        pd.Series(TEXTS, index=[7, 7, 9]),
        frame(text=TEXTS),
        frame(text_a=TEXTS),
        frame(id=[1, 2, 3], text=TEXTS, label=[0, 1, 0]),
        frame(sentence=TEXTS),
        frame(sentence=TEXTS, label=[0, 1, 0]),
        Dataset.from_dict({"text": TEXTS, "label": [0, 1, 0]}),
        Dataset.from_dict({"sentence": TEXTS, "label": [0, 1, 0]}),
        Dataset.from_dict({"text": TEXTS})["text"],
        AS_TEXTS,
    ],
    ids=lambda X: type(X).__name__,
)
def test_texts_come_in_many_shapes(X):
    assert as_examples(X) == AS_TEXTS


@pytest.mark.parametrize(
    "X",
    [
        PAIRS,
        [list(pair) for pair in PAIRS],
        [np.array(pair) for pair in PAIRS],
        np.array(PAIRS),
        np.array(PAIRS, dtype=object),
        frame(text_a=["a", "b", "c"], text_b=["x", "y", ""]),
        frame(text=["a", "b", "c"], text_b=["x", "y", ""]),
        frame(text_b=["x", "y", ""], id=[1, 2, 3], text_a=["a", "b", "c"]),
        frame(text_a=["a", "b", "c"], text_b=["x", "y", ""], label=[0, 1, 0]),
        Dataset.from_dict({"text_a": ["a", "b", "c"], "text_b": ["x", "y", ""]}),
        AS_PAIRS,
    ],
    ids=lambda X: type(X).__name__,
)
def test_pairs_come_in_many_shapes(X):
    assert as_examples(X) == AS_PAIRS


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1))
def test_no_text_is_changed_on_its_way_in(texts):
    assert list(as_examples(texts)) == texts


def test_numpy_strings_become_plain_ones():
    examples = as_examples(np.array(["a", "b"]))
    assert {type(text) for text in examples} == {str}


def test_two_strings_in_a_tuple_are_two_texts_and_no_pair():
    assert not as_examples(("a", "b")).is_pair


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("a bare text", "A single text was given"),
        (b"bytes", "A single text was given"),
        (np.array("a"), r"shape \(\)"),
        ([], "There are no examples"),
        (Examples(()), "There are no examples"),
        (pd.Series([], dtype=object), "There are no examples"),
        (7, "cannot be read from a int"),
        ({"text": ["a"]}, "cannot be read from a dict"),
        ({"a", "b"}, "cannot be read from a set"),
        (DatasetDict(train=Dataset.from_dict({"text": ["a"]})), "select one of its splits"),
        (["a", None], "row 2 is missing"),
        (pd.Series(["a", np.nan]), "row 2 is missing"),
        (pd.Series(["a", pd.NA], dtype="string"), "row 2 is missing"),
        (["a", 3.5], r"row 2 is a number \(float\), not a text"),
        (np.zeros((3, 1)), r"row 1 is a number \(float64\)"),
        (["a", b"b"], "row 2 is bytes"),
        (["a", {"text": "b"}], "row 2 is of type dict"),
        (["a", "b\ud800"], "row 2 contains half of a surrogate pair"),
        ([("a", "b", "c")], "Row 1 has 3 values"),
        ([("a",)], "Row 1 has 1 values"),
        ([("a", "b"), ("c", None)], "The second text in row 2 is missing"),
        ([("a", "b"), (1, "c")], "The first text in row 2 is a number"),
        (["a", ("b", "c")], "Row 1 is a single text but row 2 is a pair"),
        ([("b", "c"), "a"], "Row 1 is a pair of texts but row 2 is a single text"),
        (np.array([["a", "b", "c"]]), r"shape \(1, 3\)"),
        (np.array([[["a"]]]), r"shape \(1, 1, 1\)"),
        (frame(a=["x"], b=["y"], c=["z"]), "no column 'text' or 'text_a', only 'a', 'b', 'c'"),
        (frame(text=["x"], text_a=["y"]), "both a column 'text' and a column 'text_a'"),
        (frame(label=[1]), "no column 'text'"),
        (frame(message=["x"], category=["y"]), "only 'message', 'category': give the column with"),
        (frame(question=["x"], answer=["y"], label=[0]), "name those of pairs 'text_a' and 'text_"),
        (frame(text_b=["x"], id=["y"]), "no column 'text' or 'text_a', only 'text_b', 'id'"),
        (pd.DataFrame(PAIRS), "no column 'text' or 'text_a', only 0, 1"),
        (Dataset.from_dict({"message": ["x"], "team": ["y"]}), "only 'message', 'team'"),
        (
            pd.DataFrame([["x", "y"]], columns=["text", "text"]),
            "columns of the table have the same name",
        ),
    ],
)
def test_a_mistake_is_named_with_its_row(X, message):
    with pytest.raises(CPTuningError, match=message):
        as_examples(X)


def test_a_fitted_model_says_what_kind_it_expects():
    assert as_examples(TEXTS, pair=False) == AS_TEXTS
    assert as_examples(AS_PAIRS, pair=True) is AS_PAIRS
    with pytest.raises(CPTuningError, match="expects pairs of texts, but single texts"):
        as_examples(TEXTS, pair=True)
    with pytest.raises(CPTuningError, match="expects single texts, but pairs"):
        as_examples(AS_PAIRS, pair=False)


def test_examples_are_taken_in_the_order_asked_for():
    assert list(AS_PAIRS.take(np.array([2, 0, 0]))) == [("c", ""), ("a", "x"), ("a", "x")]
    assert list(AS_TEXTS.take([1])) == ["second"]
    assert len(AS_TEXTS.take([])) == 0


def test_examples_of_one_kind_join():
    assert AS_TEXTS + Examples(("more",)) == Examples(("first", "second", "", "more"))
    assert (AS_PAIRS + AS_PAIRS).second == ("x", "y", "", "x", "y", "")
    with pytest.raises(CPTuningError, match="cannot be joined"):
        AS_PAIRS + AS_TEXTS


def test_a_pair_has_both_texts():
    with pytest.raises(CPTuningError, match="2 first texts but 1 second"):
        Examples(("a", "b"), ("x",))
