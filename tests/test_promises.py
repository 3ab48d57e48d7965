"""Targets of error and label sets, from ``fit`` to a loaded folder."""

import logging
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import cptuning
from cptuning import CPTuningClassifier, make_classifier
from cptuning.data.sample_data import read_sample
from cptuning.errors import CPTuningError
from cptuning.inference import UNKNOWN
from cptuning.storage import load_predictor

TARGET = 0.2


@pytest.fixture(scope="module")
def messages():
    tables = [read_sample(f"messages_{part}") for part in ("test", "train")]
    return [(list(table.examples), list(table.labels)) for table in tables]


@pytest.fixture(scope="module")
def fitted(messages):
    return CPTuningClassifier(
        preset="instant", unknown_threshold=f"error<={TARGET}", verbose=False
    ).fit(*messages[0])


def test_texts_are_answered_if_their_confidence_is_above_the_threshold(fitted, messages):
    texts, truth = messages[1]
    found = fitted.rejection_
    confidence = fitted.predict_proba(texts).max(axis=1)
    answers = fitted.predict(texts)
    np.testing.assert_array_equal(answers != UNKNOWN, confidence > found.threshold)
    plain = CPTuningClassifier(preset="instant", verbose=False).fit(*messages[0])
    given = answers != UNKNOWN
    assert (answers[given] == plain.predict(texts)[given]).all()
    assert 0 < found.answered < found.held_out == 180
    assert found.upper_bound <= TARGET
    assert np.mean(answers[given] != np.array(truth)[given]) <= TARGET
    assert fitted.explain([texts[int(np.flatnonzero(~given)[0])]]).confidences == [None]


def test_the_numbers_are_those_of_the_held_out_answers(fitted):
    held_out, found = fitted.held_out_, fitted.rejection_
    answered = held_out.probabilities.max(axis=1) > found.threshold
    assert answered.sum() == found.answered
    assert (held_out.quality[answered] == 0).sum() == found.wrong
    assert fitted.training_["rejection"]["wrong"] == found.wrong


def test_what_cannot_be_promised_is_said_and_nothing_is_answered(messages, caplog):
    clf = CPTuningClassifier(preset="instant", unknown_threshold="error<=0.01", verbose=False)
    with caplog.at_level(logging.WARNING, "cptuning"):
        clf.fit(*messages[0])
    assert "can't be promised from 180 held-out answers" in caplog.text
    assert set(clf.predict(messages[1][0])) == {UNKNOWN}
    assert clf.predict_proba(messages[1][0][:2]).shape == (2, 6)


def test_label_sets_hold_the_right_label_and_grow_with_the_coverage(fitted, messages):
    texts, truth = messages[1]
    small, large = (fitted.predict_set(texts, coverage=c) for c in (0.6, 0.9))
    for some, more in zip(small, large, strict=True):
        assert some == more[: len(some)]
        assert some
    hits = np.mean([label in found for label, found in zip(truth, large, strict=True)])
    assert hits >= 0.9 - 3 * np.sqrt(0.09 * (1 / 180 + 1 / 96))
    order = fitted.predict_proba(texts[:1])[0].argsort()[::-1]
    assert large[0] == fitted.classes_[order][: len(large[0])].tolist()


def test_a_saved_and_an_exported_model_make_the_same_promises(fitted, messages, tmp_path):
    texts = messages[1][0][:40]
    fitted.save(tmp_path / "saved")
    fitted.export(tmp_path / "exported")
    for folder in ("saved", "exported"):
        for loaded in (cptuning.load(tmp_path / folder), load_predictor(tmp_path / folder)):
            assert loaded.predict_set(texts, coverage=0.8) == fitted.predict_set(
                texts, coverage=0.8
            )
            assert loaded.predict(texts).tolist() == fitted.predict(texts).tolist()


def test_an_older_folder_has_no_label_sets_and_a_damaged_one_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    old = shutil.copytree(tmp_path / "model", tmp_path / "old")
    (old / "held_out.safetensors").unlink()
    with pytest.raises(CPTuningError, match="no held-out answers, which label sets rest on"):
        cptuning.load(old).predict_set(["a text"])
    stored = load_file(old.parent / "model" / "held_out.safetensors")
    for name, values in stored.items():
        save_file({name: values[::-1].copy()}, tmp_path / "model" / "held_out.safetensors")
    with pytest.raises(CPTuningError, match="held-out answers"):
        cptuning.load(tmp_path / "model")


def test_a_rival_has_label_sets_too(tiny, tmp_path):
    texts = ["good film", "fine film", "great film", "bad film", "dull film", "poor film"]
    rival = make_classifier("fine-tuning", backbone=tiny("bert"), steps=2, verbose=False)
    rival.fit(texts, ["good"] * 3 + ["bad"] * 3)
    sets = rival.predict_set(texts, coverage=0.8)
    assert all(set(found) <= {"good", "bad"} and found for found in sets)
    rival.save(tmp_path / "rival")
    assert cptuning.load(tmp_path / "rival").predict_set(texts, coverage=0.8) == sets


def test_without_held_out_answers_there_are_no_promises(messages, tiny):
    bare = CPTuningClassifier(tiny("bert"), steps=1, validation="none", verbose=False)
    bare.fit(*messages[0])
    with pytest.raises(CPTuningError, match="no held-out answers"):
        bare.predict_set(["a text"])
    with pytest.raises(CPTuningError, match=r'"error<=0.1" needs held-out examples'):
        bare.set_params(unknown_threshold="error<=0.1").fit(*messages[0])
    single = CPTuningClassifier(preset="instant", unknown_threshold="error<=0.1", verbose=False)
    with pytest.raises(CPTuningError, match="Every class has a single example"):
        single.fit(["good film", "bad film"], ["good", "bad"])


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"unknown_threshold": "error<=2"}, "between 0 and 1"),
        ({"unknown_threshold": "error<0.1"}, "a target such as"),
        ({"unknown_threshold": "error<=0.1", "class_prior": [0.5, 0.5]}, "leave one of them out"),
    ],
)
def test_bad_targets_are_refused_before_anything_is_read(parameters, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        CPTuningClassifier(preset="instant", **parameters).fit(["a", "b", "c", "d"], [0, 0, 1, 1])


def test_a_class_prior_and_promises_do_not_go_together(fitted, messages):
    with pytest.raises(CPTuningError, match="leave one of them out"):
        fitted.predictor_.with_class_prior([1 / 6] * 6)
    plain = CPTuningClassifier(preset="instant", verbose=False).fit(*messages[0])
    plain.set_class_prior([1 / 6] * 6)
    with pytest.raises(CPTuningError, match="leave it out for label sets"):
        plain.predict_set(["a text"])


def test_label_sets_are_for_one_label_per_text():
    texts = ["red sun", "red moon", "blue sun", "blue moon"] * 2
    labels = [["red", "sun"], ["red"], ["blue", "sun"], ["blue"]] * 2
    clf = CPTuningClassifier(preset="instant", verbose=False).fit(texts, labels)
    with pytest.raises(CPTuningError, match="mean nothing for a multi-label model"):
        clf.predict_set(texts)
