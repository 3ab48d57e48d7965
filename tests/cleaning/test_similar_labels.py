"""Labels that may mean the same class, and those that surely do not."""

import pytest

from cptuning.cleaning import SimilarLabels, similar_labels


@pytest.mark.parametrize(
    "other", ["Booking", " booking", "book ing", "BOOK-ING", "book_ing", "ｂooking"]
)
def test_case_and_separators_make_no_other_class(other):
    assert similar_labels({"booking": 3, other: 2}) == [SimilarLabels("booking", other, True)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-1", "1"),
        ("1.5", "15"),
        ("c", "c++"),
        ("c#", "c++"),
        ("class 1", "class 2"),
        ("positive", "negative"),
        ("like", "dislike"),
        ("legal", "illegal"),
        ("yes", "no"),
    ],
)
def test_different_classes_stay_different_however_rare(one, other):
    assert similar_labels({one: 100, other: 1}) == []


def test_a_spelling_is_doubted_only_if_it_is_rare():
    assert similar_labels({"refund": 16, "refnud": 4}) == [SimilarLabels("refund", "refnud", False)]
    assert similar_labels({"refund": 16, "refnud": 5}) == []
    assert similar_labels({"alarm_set": 16, "alarm_get": 16}) == []


def test_certain_ones_come_first_and_the_commoner_label_is_kept():
    found = similar_labels({"delivery": 20, "delivry": 1, "Refund": 2, "refund": 9})
    assert found == [
        SimilarLabels("refund", "Refund", True),
        SimilarLabels("delivery", "delivry", False),
    ]
