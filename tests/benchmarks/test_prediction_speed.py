"""The benchmark of prediction: what it says, and when it stops."""

from types import SimpleNamespace

import pytest

from benchmarks import prediction_speed
from benchmarks.alternating import Times
from benchmarks.setfit_side import OtherWorkError
from cptuning import CPTuningClassifier


def test_the_table_compares_round_by_round():
    seconds = {
        prediction_speed.SETFIT: [9.0, 20.0, 12.0],
        prediction_speed.FLOAT32: [6.0, 10.0, 9.0],
        prediction_speed.INT8: [3.0, 5.0, 3.0],
        prediction_speed.ONE_LOOK: [2.0, 4.0, 2.5],
        prediction_speed.PRODUCTS: [4.5, 8.0, 6.3],
    }
    text = prediction_speed.table(Times(seconds, {}), texts=900, twice=31)
    assert "| cptuning, float32 | 100 | 1.50 (1.33 to 2.00) |" in text
    assert "| cptuning, int8 | 300 | 4.00 (3.00 to 4.00) |" in text
    assert "| cptuning, int8, no second look | 360 | 4.80 (4.50 to 5.00) |" in text
    assert "that is 75 (70 to 80) % of the products" in text
    assert "In 8 bits 31 of the 900 were read twice." in text


def test_it_stops_where_the_work_is_not_the_same(tiny):
    classifier = CPTuningClassifier(
        backbone=str(tiny("bert")), steps=0, max_length=64, validation="none", verbose=False
    ).fit(["good film", "bad film"], ["good", "bad"])
    weights = classifier.predictor_.encoder.module.model.base_model.state_dict()
    other = {name: weight + 1 for name, weight in weights.items()}
    for theirs, complaint in ((other, "weights"), (weights, "longest input")):
        body = SimpleNamespace(state_dict=lambda theirs=theirs: theirs)
        setfit = SimpleNamespace(model_body=FakeBody([SimpleNamespace(auto_model=body)]))
        with pytest.raises(OtherWorkError, match=complaint):
            prediction_speed.check_same_work(setfit, classifier, {}, threads=1)


class FakeBody(list):
    max_seq_length = 128
