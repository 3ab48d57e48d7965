"""Answers and their reasons, with an encoder whose vectors are known."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cptuning.data import AddedExamples, Examples, LabelSpace
from cptuning.errors import CPTuningError
from cptuning.inference import (
    UNKNOWN,
    EmbeddingPredictor,
    Evidence,
    SecondLook,
    SupportSet,
    softmax,
)

ANGLES = {
    "east": 0,
    "east too": 20,
    "north": 90,
    "north too": 110,
    "west": 180,
    "west too": 170,
    "south": 270,
    "eastish": 5,
    "northish": 95,
    "between": 55,
    "x": 90,
}


class Compass:
    """An encoder on the circle: a text is an angle."""

    layout = SimpleNamespace(windows=1)

    def embed(self, examples):
        texts = examples.first if examples.second is None else examples.second
        angles = np.radians([ANGLES[text] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def predictor(classes=("E", "N"), **changes):
    examples = Examples(("east", "east too", "north", "north too"))
    settings = {"inference": "knn", "k": 3, "temperature": 0.2, **changes}
    support = SupportSet(examples, Compass().embed(examples), np.array([0, 0, 1, 1]))
    return EmbeddingPredictor(Compass(), support, LabelSpace(classes), **settings)


INFERENCES = ("knn", "prototype", "unit-prototype", "lda")
every_inference = pytest.mark.parametrize("inference", INFERENCES)


@every_inference
def test_the_label_is_that_of_the_nearest(inference):
    it = predictor(inference=inference)
    assert it.predict(["northish", "eastish", "north"]).tolist() == ["N", "E", "N"]
    assert it.classes_.tolist() == ["E", "N"]


def test_labels_keep_their_type():
    labels = predictor(classes=(3, 7)).predict(["northish", "eastish"])
    assert labels.dtype == np.int64
    assert labels.tolist() == [7, 3]


@every_inference
def test_probabilities_sum_to_one_and_agree_with_the_labels(inference):
    it = predictor(inference=inference)
    texts = list(ANGLES)
    probabilities = it.predict_proba(texts)
    assert probabilities.shape == (len(texts), 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    labels = it.classes_[probabilities.argmax(axis=1)]
    assert labels.tolist() == it.predict(texts).tolist()
    np.testing.assert_array_equal(probabilities, softmax(it.scores(it.transform(texts)), 0.2))


def test_neighbours_are_looked_for_once(monkeypatch):
    searches = []
    plain = SupportSet.nearest
    monkeypatch.setattr(
        SupportSet, "nearest", lambda *words, **more: searches.append(1) or plain(*words, **more)
    )
    predictor().answer(["northish", "eastish"])
    assert len(searches) == 1


def test_a_higher_temperature_is_less_certain():
    cold, warm = (predictor(temperature=t).predict_proba(["eastish"])[0, 0] for t in (0.1, 1.0))
    assert cold > warm > 0.5


def test_embeddings_are_the_encoders():
    np.testing.assert_allclose(
        predictor().transform(["north", "west"]), [[0, 1], [-1, 0]], atol=1e-6
    )


# A second look at what rounding may have decided.


class Coarse(Compass):
    """A compass that tells steps of 20 degrees only."""

    def embed(self, examples):
        sharp = super().embed(examples)
        angles = np.radians(np.round(np.degrees(np.arctan2(sharp[:, 1], sharp[:, 0])) / 20) * 20)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


class Reading(Compass):
    """A compass that remembers what it read."""

    def __init__(self):
        self.texts = []

    def embed(self, examples):
        self.texts += examples.first
        return super().embed(examples)


def coarse_predictor(inference, clear_lead=0.3):
    exact = Reading()
    return exact, replace(
        predictor(inference=inference, k=1),
        encoder=Coarse(),
        second_look=SecondLook(exact, clear_lead),
    )


@every_inference
def test_close_calls_and_no_others_are_left_to_the_exact_encoder(inference):
    # Rounded, "between" (55 degrees) lies at 60, nearer to the north than it is.
    exact, it = coarse_predictor(inference)
    sharp = predictor(inference=inference, k=1)
    texts = ["eastish", "between", "northish", "west"]
    answered = it.answer(texts)
    assert exact.texts == ["between"]
    assert it.transform(texts).tolist() == Coarse().embed(Examples(tuple(texts))).tolist()
    np.testing.assert_array_equal(answered.embeddings[1], sharp.transform(["between"])[0])
    np.testing.assert_array_equal(answered.probabilities[1], sharp.predict_proba(["between"])[0])
    assert answered.labels.tolist() == sharp.predict(texts).tolist()
    np.testing.assert_array_equal(
        it.decision_scores(["between"]), sharp.decision_scores(["between"])
    )
    alone = np.concatenate([it.answer([text]).embeddings for text in texts])
    np.testing.assert_array_equal(alone, answered.embeddings)


@every_inference
def test_without_a_lead_to_reach_nothing_is_read_again(inference):
    exact, it = coarse_predictor(inference, clear_lead=0.0)
    it.answer(list(ANGLES))
    assert exact.texts == []


def test_new_examples_are_read_exactly():
    exact, it = coarse_predictor("knn")
    more = it.with_examples(["west too"], ["W"])
    assert exact.texts == ["west too"]
    np.testing.assert_allclose(
        more.support.embeddings[-1], Compass().embed(Examples(("west too",)))[0]
    )


# Evidence.


def test_the_evidence_is_the_nearest_examples_best_first():
    found = predictor().explain(["northish", "east"], k=2)
    assert [[e.text for e in row] for row in found] == [
        ["north", "north too"],
        ["east", "east too"],
    ]
    assert [e.label for e in found[0]] == ["N", "N"]
    assert found[0][0].similarity == pytest.approx(np.cos(np.radians(5)))
    assert found[1][0] == Evidence("east", "E", pytest.approx(1.0))


def test_evidence_labels_are_plain_values():
    (found,) = predictor(classes=(3, 7)).explain(["north"], k=1)
    assert type(found[0].label) is int
    assert type(found[0].similarity) is float


@pytest.mark.parametrize("k", [0, -1])
def test_no_evidence_can_not_be_asked_for(k):
    with pytest.raises(CPTuningError, match=f"k is {k}: give a whole number"):
        predictor().explain(["north"], k=k)


# Texts far from everything.


def test_a_text_below_the_threshold_is_unknown():
    it = predictor(unknown_threshold=0.9)
    assert it.predict(["south", "northish", "west"]).tolist() == [UNKNOWN, "N", UNKNOWN]
    assert predictor().predict(["south"]).tolist() != [UNKNOWN]


def test_a_text_at_the_threshold_is_known():
    it = predictor()
    similarity = np.float32(it.explain(["between"], k=1)[0][0].similarity)
    exactly = predictor(unknown_threshold=float(similarity))
    just_above = predictor(unknown_threshold=float(np.nextafter(similarity, np.float32(2))))
    assert exactly.predict(["between"])[0] != UNKNOWN
    assert just_above.predict(["between"])[0] == UNKNOWN


def test_unknown_stands_beside_labels_that_are_numbers():
    labels = predictor(classes=(3, 7), unknown_threshold=0.9).predict(["south", "north"])
    assert labels.tolist() == [UNKNOWN, 7]


def test_probabilities_do_not_depend_on_the_threshold():
    np.testing.assert_array_equal(
        predictor(unknown_threshold=0.9).predict_proba(["south", "north"]),
        predictor().predict_proba(["south", "north"]),
    )


# New examples.


@every_inference
def test_a_new_class_comes_last_and_is_predicted_at_once(inference):
    it = predictor(inference=inference)
    more = it.with_examples(["west", "west too"], ["A", "A"])
    assert more.classes_.tolist() == ["E", "N", "A"]
    assert more.predict(["west", "northish", "eastish"]).tolist() == ["A", "N", "E"]
    assert more.predict_proba(["west"]).shape == (1, 3)


@pytest.mark.parametrize("inference", ["prototype", "unit-prototype"])
def test_the_scores_of_old_classes_do_not_move(inference):
    it = predictor(inference=inference)
    more = it.with_examples(["west"], ["A"])
    embeddings = it.transform(list(ANGLES))
    np.testing.assert_array_equal(more.scores(embeddings)[:, :2], it.scores(embeddings))


def test_new_examples_of_an_old_class_join_it():
    it = predictor()
    more = it.with_examples(["south", "west"], ["E", "E"])
    assert more.classes_.tolist() == ["E", "N"]
    assert it.predict(["west"]).tolist() == ["N"]
    assert more.predict(["south"]).tolist() == ["E"]
    assert [e.text for e in more.explain(["south"], k=1)[0]] == ["south"]


def test_of_equals_the_older_example_comes_first():
    more = predictor().with_examples(["x", "x"], ["N", "E"])
    assert [evidence.text for evidence in more.explain(["north"], k=2)[0]] == ["north", "x"]


def test_the_old_predictor_stays_as_it_was():
    it = predictor()
    it.with_examples(["west"], ["A"])
    assert it.classes_.tolist() == ["E", "N"]
    assert len(it.support) == 4


def test_new_examples_need_a_label_each():
    with pytest.raises(CPTuningError, match="2 examples but 1 labels"):
        predictor().with_examples(["west", "south"], ["A"])


def test_no_new_class_may_be_called_unknown_where_that_is_an_answer():
    with pytest.raises(CPTuningError, match="may not be called 'unknown'"):
        predictor(unknown_threshold=0.5).with_examples(["west"], [UNKNOWN])
    assert UNKNOWN in predictor().with_examples(["west"], [UNKNOWN]).classes_


# Pairs.


def test_pairs_are_answered_and_shown_as_pairs():
    examples = Examples(("x", "y"), ("east", "north"))
    support = SupportSet(examples, Compass().embed(examples), np.array([0, 1]))
    it = EmbeddingPredictor(Compass(), support, LabelSpace(("E", "N")), "knn", k=1, temperature=0.2)
    assert it.predict([("z", "northish")]).tolist() == ["N"]
    assert it.explain([("z", "northish")], k=1)[0][0].text == ("y", "north")
    with pytest.raises(CPTuningError, match="expects pairs of texts"):
        it.predict(["north"])


def test_single_texts_are_expected_where_single_texts_were_learned():
    with pytest.raises(CPTuningError, match="expects single texts"):
        predictor().predict([("z", "north")])


def test_only_examples_that_are_not_known_are_new_and_each_once():
    examples = Examples(("east", "east", "west", "west", "west"))
    labels = ["E", "N", "W", "W", "E"]
    assert predictor().new_rows(examples, labels) == [1, 2, 4]


def test_added_batches_read_in_one_go_are_the_same_as_one_by_one():
    batches = [
        AddedExamples(Examples(("west",)), ["W"]),
        AddedExamples(Examples(("south", "west too")), ["S", "W"]),
        AddedExamples(Examples(("eastish",)), ["A"]),
    ]
    one_by_one = predictor()
    for batch in batches:
        one_by_one = one_by_one.with_examples(batch.examples, batch.labels)
    in_one_go = predictor().with_added(batches)
    assert in_one_go.classes_.tolist() == one_by_one.classes_.tolist() == [*"ENWSA"]
    assert in_one_go.support.labels.tolist() == one_by_one.support.labels.tolist()
    assert list(in_one_go.support.examples) == list(one_by_one.support.examples)
    assert predictor().with_added([]).classes_.tolist() == ["E", "N"]


def test_examples_that_repeat_are_added_once():
    batches = [
        AddedExamples(Examples(("west",)), ["W"]),
        AddedExamples(Examples(("east", "west")), ["E", "W"]),
    ]
    assert len(predictor().with_added(batches).support) == 5
    assert len(predictor().with_added([AddedExamples(Examples(("east",)), ["E"])]).support) == 4


def test_what_is_unknown_has_no_confidence():
    it = predictor(unknown_threshold=0.9)
    answered = it.answer(["east", "between"])
    found = [
        it.confidence(*pair) for pair in zip(answered.labels, answered.probabilities, strict=True)
    ]
    assert found == [answered.probabilities[0].max(), None]


def test_examples_can_be_forgotten():
    it = predictor().without_examples([1])
    assert list(it.support.examples) == ["east", "north", "north too"]
    assert it.support.labels.tolist() == [0, 1, 1]
    assert it.predict(["eastish"]).tolist() == ["E"]


def test_a_class_without_examples_is_forgotten():
    it = predictor().without_examples([0, 1])
    assert it.classes_.tolist() == ["N"]
    assert it.predict(["eastish"]).tolist() == ["N"]


def test_one_example_has_to_stay():
    with pytest.raises(CPTuningError, match="at least one"):
        predictor().without_examples(range(4))
