"""An evaluation counts right and wrong, and shows why the wrong ones went wrong."""

import json

import pytest
from tests.reporting.conftest import circle_predictor

from cptuning.data import Examples
from cptuning.reporting import Evaluation

TEXTS = Examples(("80 a", "10 b", "-60 c", "30 d"))


def test_answers_are_compared_with_the_labels(predictor):
    evaluation = Evaluation.of(predictor, TEXTS, ["north", "east", "south", "north"])
    assert evaluation.answers == ["north", "east", "south", "east"]
    assert evaluation.right.tolist() == [True, True, True, False]
    assert evaluation.confusion.accuracy == 0.75


def test_the_summary_is_json_with_the_promised_names(predictor):
    summary = Evaluation.of(predictor, TEXTS, ["north", "east", "south", "north"]).summary()
    read = json.loads(json.dumps(summary, allow_nan=False))
    assert read["accuracy"] == 0.75
    assert read["n"] == 4
    assert read["majority"] == 0.5
    assert 0 < read["macro_f1"] < 1
    assert read["classes"]["north"]["recall"] == 0.5


def test_the_hardest_error_is_the_most_confident_wrong_answer(predictor):
    evaluation = Evaluation.of(predictor, Examples(("80 a", "44 b", "46 c")), ["east"] * 3)
    hardest = evaluation.most_confident_errors(limit=1, k=2)
    assert [error.text for error in hardest] == ["80 a"]
    assert (hardest[0].truth, hardest[0].answer) == ("east", "north")
    assert [example.label for example in hardest[0].reasons] == ["north"]
    assert hardest[0].reasons.against is None


def test_without_errors_there_are_no_hardest_ones(predictor):
    assert Evaluation.of(predictor, Examples(("80 a",)), ["north"]).most_confident_errors() == []


def test_a_label_that_the_model_does_not_know_counts_as_wrong_and_is_named(predictor):
    evaluation = Evaluation.of(predictor, Examples(("80 a", "81 b")), ["north", "west"])
    assert evaluation.confusion.accuracy == 0.5
    assert evaluation.foreign_labels == {"west": 1}


def test_unknown_answers_have_no_place_in_calibration():
    predictor = circle_predictor(unknown_threshold=0.9)
    evaluation = Evaluation.of(predictor, Examples(("80 a", "180 b")), ["north", "east"])
    assert evaluation.answers == ["north", "unknown"]
    assert evaluation.answered.tolist() == [True, False]
    assert evaluation.summary()["unknown_answers"] == 1
    assert evaluation.calibration_error == pytest.approx(1 - evaluation.confidence[0])
    assert evaluation.most_confident_errors() == []


def test_unknown_is_right_where_the_label_says_unknown():
    predictor = circle_predictor(unknown_threshold=0.9)
    evaluation = Evaluation.of(predictor, Examples(("180 b",)), ["unknown"])
    assert evaluation.confusion.accuracy == 1.0
    assert evaluation.foreign_labels == {}
    assert evaluation.calibration_error is None


def test_texts_that_the_model_was_trained_on_are_counted(predictor):
    evaluation = Evaluation.of(predictor, Examples(("90 is north", "80 a")), ["north", "north"])
    assert evaluation.overlap == 1
