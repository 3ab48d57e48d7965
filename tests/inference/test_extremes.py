"""Every inference and calibration at its extremes: finite scores, valid probabilities."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cptuning.data import Examples
from cptuning.inference.calibration import fit_temperature, softmax
from cptuning.inference.closed_form import SHRINKAGES, DiscriminantAnalysis
from cptuning.inference.label_regression import LabelRegression
from cptuning.inference.ranked_documents import (
    PairView,
    RankingPredictor,
    SentenceEncoder,
    TunedView,
    with_tuned,
)
from cptuning.inference.scoring import class_scores
from cptuning.inference.support import SupportSet
from cptuning.inference.tag_decoding import Transitions
from cptuning.inference.word_answers import (
    WORD_INFERENCES,
    LabelledWords,
    WordAnswer,
    decoded,
    emissions,
)

INFERENCES = ("knn", "prototype", "unit-prototype", "lda")


def unit(n, d=8, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, d))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def alike(n, spread=0.0):
    rows = unit(1) + spread * unit(n)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


SUPPORTS = {
    "identical texts of several classes": (alike(6), [0, 0, 1, 1, 2, 2]),
    "collapsed but for rounding": (alike(6, 1e-7), [0, 0, 1, 1, 2, 2]),
    "collapsed but for less than rounding": (alike(6, 1e-20), [0, 0, 1, 1, 2, 2]),
    "collapsed classes apart": (np.repeat(unit(3), 2, axis=0), [0, 0, 1, 1, 2, 2]),
    "opposite directions": (np.concatenate([alike(3), -alike(3)]), [0, 1, 0, 1, 0, 1]),
    "one example per class": (unit(6), list(range(6))),
    "two examples": (unit(2), [0, 1]),
    "one class among many": (unit(101), [0] * 100 + [1]),
    "2000 classes": (unit(2000), list(range(2000))),
    "10,000 examples": (unit(10_000), [row % 3 for row in range(10_000)]),
    "one dimension": (np.array([[1], [-1], [1], [-1]], np.float32), [0, 0, 1, 1]),
    "vectors of zeros": (np.zeros((4, 8), np.float32), [0, 0, 1, 1]),
}
every_support = pytest.mark.parametrize("support", SUPPORTS)


def check(probabilities):
    assert np.isfinite(probabilities).all()
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)


def support_set(rows, labels):
    return SupportSet(Examples(tuple(map(str, labels))), rows, np.array(labels))


@every_support
@pytest.mark.parametrize("inference", INFERENCES)
def test_probabilities_are_valid(support, inference):
    rows, labels = SUPPORTS[support]
    n_classes = max(labels) + 2  # The last one has no examples.
    found = support_set(rows, labels)
    queries = np.concatenate([rows[:3], -rows[:3], unit(3, rows.shape[1], seed=1)])
    scores = class_scores(queries, found, n_classes, inference, k=3)
    assert np.isfinite(scores).all()
    for temperature in (1e-6, 1.0, 1e6):
        check(softmax(scores, temperature))


@every_support
def test_leave_one_out_answers_and_their_calibration_are_finite(support):
    rows, labels = SUPPORTS[support]
    analysis = DiscriminantAnalysis(rows, np.array(labels))
    if not len(analysis.left_out):
        return
    assert 0 < analysis.shrinkage <= 1
    assert np.isfinite(analysis.least_loss)
    for shrinkage in (SHRINKAGES[0], SHRINKAGES[4], SHRINKAGES[-1]):
        scores = analysis.leave_one_out(shrinkage)
        assert np.isfinite(scores).all()
        temperature = fit_temperature(scores, np.array(labels)[analysis.left_out])
        assert np.isfinite(temperature)
        check(softmax(scores, temperature))


@every_support
def test_label_sets_are_answered_with_finite_scores(support):
    rows, labels = SUPPORTS[support]
    if max(labels) > 500:  # a matrix of millions
        rows, labels = rows[:500], labels[:500]
    sets = np.eye(max(labels) + 1, dtype=np.int64)[labels]
    sets[0] = 0
    regression = LabelRegression(rows, sets)
    assert np.isfinite(regression.discriminants(1.0).scores(rows)).all()
    if len(regression.left_out):
        assert np.isfinite(regression.leave_one_out(1.0)).all()
        probabilities = regression.calibration.probabilities(regression.leave_one_out(1.0))
        assert ((probabilities >= 0) & (probabilities <= 1)).all()


@every_support
@pytest.mark.parametrize("inference", WORD_INFERENCES)
def test_words_get_finite_scores_and_sentences_spans_that_fit(support, inference):
    rows, labels = SUPPORTS[support]
    n_labels = max(labels) + 2  # The last type has no words.
    types = [f"type {number}" for number in range(1, n_labels)]
    words = LabelledWords(rows, np.ones((len(rows), 2), np.float32), np.array(labels), np.arange(0))
    transitions = Transitions.estimated([([], 3)])
    for answer in (
        WordAnswer(inference),
        WordAnswer(inference, shrinkage=0.25, shape_weight=0.6, temperature=1e-6),
        WordAnswer(inference, temperature=1e6, outside_bias=-1.0),
    ):
        sentence = answer.joined(rows[:5], words.shapes[:5])
        scores = words.scores(answer, n_labels).of(answer, sentence)
        assert np.isfinite(scores).all()
        assert np.isfinite(emissions(scores, answer)).all()
        if n_labels < 500:  # The best of all sequences is looked for.
            [spans] = decoded([scores], transitions, answer, types)
            ends = [0, *(place for span in spans for place in (span.start, span.stop)), len(scores)]
            assert ends == sorted(ends)


class AsGiven:
    """An encoder of the numbers of rows."""

    layout = None

    class views:  # noqa: N801 - stands for an object
        mask_width = 0

    def __init__(self, rows):
        self.rows = rows

    def embed(self, examples):
        return self.rows[[int(text) for text in examples.first]]


@every_support
def test_documents_are_ranked_by_finite_scores(support):
    from cptuning.data import LabelSpace

    rows = SUPPORTS[support][0][:500]
    n, width = rows.shape
    texts = Examples(tuple(map(str, range(n))))
    documents = SupportSet(texts, rows, np.arange(n))
    plain = RankingPredictor(
        SentenceEncoder(AsGiven(rows)),
        documents,
        LabelSpace(texts.first),
        inference="knn",
        k=1,
        temperature=1.0,
    )
    tuned = with_tuned(plain, TunedView(np.zeros((width, width), np.float32), weight=1.0))
    large = PairView(np.full(width + 1, 1e6), 1.0)
    for predictor in (plain, tuned, replace(plain, pair=large, rerank=100)):
        for found in predictor.rank(texts.first[:3], top_k=n + 5):
            scores = [one.score for one in found]
            assert np.isfinite(scores).all()
            assert scores == sorted(scores, reverse=True)
            assert sorted(one.document for one in found) == sorted(texts.first)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=n, max_size=n
        )
    )
)
@settings(max_examples=60)
def test_a_temperature_is_found_for_any_scores(rows):
    scores = np.array(rows)
    temperature = fit_temperature(scores, np.arange(len(rows)) % 3)
    assert 0 < temperature < np.inf
    check(softmax(scores, temperature))


@pytest.mark.parametrize("scores", [np.zeros((4, 3)), np.full((4, 3), 1e300), np.eye(4) * 1e-300])
def test_scores_that_tell_nothing_give_a_temperature_too(scores):
    temperature = fit_temperature(scores, np.array([0, 1, 2, 0]))
    assert 0 < temperature < np.inf
    check(softmax(scores, temperature))
