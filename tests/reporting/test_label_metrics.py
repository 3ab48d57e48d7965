"""Metrics of label sets are those of scikit-learn; the baseline is found by trying all sets."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from cptuning.reporting.label_metrics import LabelScores

LABELS = "abcd"
label_sets = st.lists(st.sets(st.sampled_from(LABELS)).map(sorted).map(tuple), min_size=1)
both = st.lists(
    st.tuples(*[st.sets(st.sampled_from(LABELS)).map(sorted).map(tuple)] * 2), min_size=1
)


def matrix(sets, labels):
    return np.array([[int(label in own) for label in labels] for own in sets])


@given(both)
def test_they_are_scikit_learns(pairs):
    truth, answers = map(list, zip(*pairs, strict=True))
    scores = LabelScores.of(truth, answers, LABELS)
    y, p = matrix(truth, scores.labels), matrix(answers, scores.labels)
    assert scores.truth.tolist() == y.tolist()
    right = [t == a for t, a in pairs]
    assert scores.subset_accuracy == pytest.approx(np.mean(right))
    if not scores.labels:
        assert scores.micro_f1 == scores.macro_f1 == scores.sample_f1 == 1
        return
    assume(len(scores.labels) > 1)  # scikit-learn takes a single column for one class.
    assert scores.subset_accuracy == pytest.approx(accuracy_score(y, p))
    for average, found in (
        ("micro", scores.micro_f1), ("macro", scores.macro_f1), ("samples", scores.sample_f1),
    ):  # fmt: skip
        assert found == pytest.approx(f1_score(y, p, average=average, zero_division=1))
    assert scores.micro_precision == pytest.approx(
        precision_score(y, p, average="micro", zero_division=0)
    )
    assert scores.micro_recall == pytest.approx(
        recall_score(y, p, average="micro", zero_division=0)
    )


@given(label_sets)
def test_the_baseline_is_the_best_of_all_constant_answers(truth):
    scores = LabelScores.of(truth, [()] * len(truth), LABELS)
    present = scores.labels
    found = [
        LabelScores.of(truth, [chosen] * len(truth)).micro_f1
        for size in range(1, len(present) + 1)
        for chosen in combinations(present, size)
    ]
    assert scores.constant_f1 == pytest.approx(max(found, default=1))


@given(both)
def test_mistakes_are_counted_text_by_text(pairs):
    truth, answers = map(list, zip(*pairs, strict=True))
    slow = {}
    for own, given_labels in pairs:
        for missing in set(own) - set(given_labels):
            for extra in set(given_labels) - set(own):
                slow[missing, extra] = slow.get((missing, extra), 0) + 1
    found = LabelScores.of(truth, answers, LABELS).mistakes()
    assert {(missing, extra): n for missing, extra, n in found} == slow
    assert [n for *_, n in found] == sorted(slow.values(), reverse=True)


def test_the_interval_holds_the_f1_and_is_narrower_with_more_texts():
    truth, answers = [("a",), ("b",), ("a", "b"), ()], [("a",), ("a",), ("a",), ("b",)]
    few, many = LabelScores.of(truth * 5, answers * 5), LabelScores.of(truth * 50, answers * 50)
    for scores in (few, many):
        low, high = scores.micro_f1_interval
        assert low < scores.micro_f1 < high
    widths = [s.micro_f1_interval[1] - s.micro_f1_interval[0] for s in (few, many)]
    assert widths[1] < widths[0] / 2


def test_the_most_frequent_set_is_the_majority():
    assert LabelScores.of([("a", "b"), ("b", "a"), ("a",)], [()] * 3).majority == pytest.approx(
        2 / 3
    )
