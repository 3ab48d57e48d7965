"""Labels with an order: answers with the least expected distance."""

import numpy as np
import pytest

import cptuning
from cptuning import CPTuningClassifier
from cptuning.data import LabelSpace
from cptuning.errors import CPTuningError
from cptuning.inference import mean_distance, medians, order_of
from cptuning.inference.ordinal import values_of
from cptuning.reporting.evaluation import Evaluation

STARS = {
    1: (
        "terrible, a waste of money",
        "awful and broken",
        "the worst ever",
        "horrible, never again",
    ),
    2: ("rather bad", "not good, quite weak", "disappointing in parts", "below what i hoped"),
    3: ("it is okay", "average, nothing special", "neither good nor bad", "mediocre but fine"),
    4: ("quite good", "pretty nice overall", "good with small flaws", "i rather like it"),
    5: ("perfect, i love it", "the best ever", "wonderful and flawless", "brilliant, a joy"),
}
TEXTS = [text for texts in STARS.values() for text in texts]
LABELS = [stars for stars, texts in STARS.items() for _ in texts]
NEW = ["bad", "fine", "good", "it broke at once", "a wonderful joy", "so so", "the best", "weak"]


@pytest.mark.parametrize("seed", range(5))
def test_the_median_has_the_least_expected_distance(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    probabilities = rng.dirichlet(np.full(n, 0.7), size=50)
    places = rng.permutation(n)
    values = np.empty(n)
    values[places] = np.sort(rng.normal(size=n))  # Whatever the distances of neighbours are.
    for row, found in zip(probabilities, medians(probabilities, places.tolist()), strict=True):
        costs = [sum(p * abs(values[c] - v) for c, p in enumerate(row)) for v in values]
        assert costs[found] == pytest.approx(min(costs))


def test_rounding_does_not_leave_the_last_class_out():
    assert medians(np.array([[0.0, 1 - 1e-16]]), [0, 1]).tolist() == [1]
    assert medians(np.array([[0.49, 0.0, 0.0]]), [2, 1, 0]).tolist() == [0]


@pytest.mark.parametrize(
    ("ordinal", "classes", "order"),
    [
        (True, (3, 1, 2), (1, 2, 3)),
        (True, ("10", "9", "-1"), ("-1", "9", "10")),
        (["a", "c", "b"], ("a", "b", "c"), ("a", "c", "b")),
        (["1", "0"], (0, 1), (1, 0)),
        (np.array(["low", "high"]), ("high", "low"), ("low", "high")),
        (False, ("a", "b"), None),
        (None, ("a", "b"), None),
    ],
)
def test_the_order_is_that_of_the_numbers_or_of_the_list(ordinal, classes, order):
    assert order_of(ordinal, LabelSpace(classes)) == order


@pytest.mark.parametrize(
    ("ordinal", "sentence"),
    [
        (True, "The label 'a' is not a number"),
        (["a"], "no place for the label 'b'"),
        (["a", "b", "a"], "several places for the label 'a'"),
        (["a", "b", "c"], "names 'c', which no example has"),
        ("ab", "give True, or the labels from the least to the greatest"),
        (3, "give True, or the labels from the least to the greatest"),
    ],
)
def test_an_order_that_is_none_is_refused(ordinal, sentence):
    clf = CPTuningClassifier(preset="instant", ordinal=ordinal)
    with pytest.raises(CPTuningError, match=sentence):
        clf.fit(["x", "y", "z", "w"], ["a", "a", "b", "b"])


def test_distances_are_those_of_numbers_or_of_places():
    assert mean_distance([1, 5, 2], [5, 5, "unknown"], (1, 2, 5)) == 2
    assert mean_distance(["low", "high"], ["high", "high"], ("low", "mid", "high")) == 1
    assert mean_distance(["other"], ["low"], ("low", "high")) is None
    assert values_of((1, 2.5)).tolist() == [1, 2.5]


@pytest.fixture(scope="module")
def fitted():
    return CPTuningClassifier(preset="instant", ordinal=True, verbose=False).fit(TEXTS, LABELS)


def test_answers_are_medians_and_the_held_out_accuracy_is_theirs(fitted):
    shares = fitted.predict_proba(NEW)
    expected = fitted.classes_[medians(shares, range(5))]
    assert fitted.predict(NEW).tolist() == expected.tolist()
    plain = CPTuningClassifier(preset="instant", verbose=False).fit(TEXTS, LABELS)
    np.testing.assert_allclose(plain.predict_proba(NEW), shares)
    held_out = fitted.held_out_
    np.testing.assert_array_equal(held_out.answers, medians(held_out.probabilities, range(5)))
    assert fitted.held_out_score_ == np.mean(held_out.answers == held_out.labels)
    found = Evaluation.of(fitted.predictor_, *evaluated(fitted))
    given = shares[np.arange(len(NEW)), fitted.predict(NEW) - 1]
    np.testing.assert_allclose(found.confidence, given)
    distances = np.abs(fitted.predict(NEW) - 3)
    assert found.summary()["mean_distance"] == pytest.approx(distances.mean())


def evaluated(classifier):
    return classifier.predictor_.examples(NEW), [3] * len(NEW)


def test_the_order_is_saved_exported_and_grows_with_numbers(fitted, tmp_path):
    fitted.save(tmp_path / "saved")
    fitted.export(tmp_path / "exported", int8=True)
    for folder in ("saved", "exported"):
        loaded = cptuning.load(tmp_path / folder)
        assert loaded.predictor_.order == (1, 2, 3, 4, 5)
        assert loaded.predict(NEW).tolist() == fitted.predict(NEW).tolist()
    more = fitted.predictor_.with_examples(["beyond words", "no stars at all"], [6, 0])
    assert more.order == (0, 1, 2, 3, 4, 5, 6)
    fewer = more.without_examples([len(more.support) - 1])
    assert fewer.order == (1, 2, 3, 4, 5, 6)
    named = CPTuningClassifier(preset="instant", ordinal=["bad", "good"], verbose=False)
    named.fit(["awful", "terrible", "great", "lovely"], ["bad", "bad", "good", "good"])
    with pytest.raises(CPTuningError, match="'fair' has no place in the order"):
        named.add_examples(["so so"], ["fair"])


def test_label_sets_have_no_order():
    clf = CPTuningClassifier(preset="instant", ordinal=True)
    with pytest.raises(CPTuningError, match="ordinal is for one label per text"):
        clf.fit(["a", "b"], [["1"], ["2"]])
