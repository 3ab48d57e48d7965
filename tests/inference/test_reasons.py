"""The reasons shown are those of the answer that was given, whatever the inference."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data import Examples, LabelSpace
from cptuning.inference import UNKNOWN, EmbeddingPredictor, SupportSet

# Few different values: similarities are exact, and many of them equal.
POINTS = st.tuples(*[st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])] * 2)
KNOWN = st.lists(st.tuples(POINTS, st.integers(0, 3)), min_size=1, max_size=30)
CLASSES = LabelSpace(("a", "b", "c", "d"))


class Written:
    """An encoder of texts that are their own vectors."""

    layout = SimpleNamespace(windows=1)

    def embed(self, examples):
        rows = [[float(number) for number in text.split()[:2]] for text in examples.first]
        return np.array(rows, dtype=np.float32)


def written(point, number=0):
    return f"{point[0]} {point[1]} {number}"


def predictor_of(known, inference, threshold=None):
    examples = Examples(tuple(written(point, n) for n, (point, _) in enumerate(known)))
    labels = np.array([label for _, label in known])
    support = SupportSet(examples, Written().embed(examples), labels)
    return EmbeddingPredictor(Written(), support, CLASSES, inference, 3, 0.5, threshold)


@given(
    KNOWN,
    st.lists(POINTS, min_size=1, max_size=5),
    st.sampled_from(["knn", "prototype", "unit-prototype", "lda"]),
    st.integers(1, 6),
    st.sampled_from([None, 0.25]),
)
def test_reasons_support_the_answer_and_what_is_nearer_is_told(
    known, queries, inference, k, threshold
):
    predictor = predictor_of(known, inference, threshold)
    texts = [written(query) for query in queries]
    answers = predictor.predict(texts)
    for query, answer, reasons in zip(queries, answers, predictor.explain(texts, k=k), strict=True):
        similarity = [query[0] * x + query[1] * y for (x, y), _ in known]
        own = [
            n for n, (_, label) in enumerate(known) if answer in (CLASSES.classes[label], UNKNOWN)
        ]
        nearest = sorted(own, key=lambda n: (-similarity[n], n))[:k]
        expected = [
            (written(known[n][0], n), CLASSES.classes[known[n][1]], similarity[n]) for n in nearest
        ]
        assert [(e.text, e.label, e.similarity) for e in reasons] == expected
        # A class without examples has a score of zero, and may have the largest one.
        own_best = max((similarity[n] for n in own), default=-np.inf)
        if max(similarity) > own_best:
            assert reasons.against.similarity == max(similarity)
            assert reasons.against.label not in (answer, UNKNOWN)
        else:
            assert reasons.against is None


def test_reasons_are_for_the_labels_that_were_given():
    predictor = predictor_of([((1.0, 0.0), 0), ((0.0, 1.0), 1)], "unit-prototype")
    [reasons] = predictor.reasons(np.array([[0.5, 0.5]], np.float32), ["b"], k=2)
    assert [example.label for example in reasons] == ["b"]
    assert predictor.reasons(np.empty((0, 2), np.float32), [], k=2) == []


def test_a_class_direction_may_win_over_a_nearer_example():
    """The very case in which the nearest neighbours would contradict the answer."""
    known = [((1.0, 0.5), 0), ((1.0, -0.5), 0), ((1.0, -1.0), 1), ((-1.0, -1.0), 1)]
    predictor = predictor_of(known, "unit-prototype")
    text = written((1.0, -0.5))
    assert predictor.predict([text]).tolist() == ["a"]
    [reasons] = predictor.explain([text], k=3)
    assert [(e.label, e.similarity) for e in reasons] == [("a", 1.25), ("a", 0.75)]
    assert (reasons.against.label, reasons.against.similarity) == ("b", 1.5)


@pytest.mark.parametrize("k", [0, -1])
def test_no_reasons_can_not_be_asked_for(k):
    predictor = predictor_of([((1.0, 0.0), 0)], "knn")
    with pytest.raises(Exception, match="give a whole number of examples, at least 1"):
        predictor.explain([written((1.0, 0.0))], k=k)
