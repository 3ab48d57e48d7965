"""Long texts in windows, from ``fit`` to a loaded folder: all of a text counts."""

import logging

import numpy as np
import pytest

import cptuning
from cptuning import CPTuningClassifier
from cptuning.backbone import TextEncoder
from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.export import export_onnx
from cptuning.storage import load_predictor

FILLER = "the meeting was moved to another room and everybody sat down again . " * 6
SPORT = ("the team won the match", "a goal in the last minute", "the coach praised the players")
FOOD = ("the soup was too salty", "she baked fresh bread", "the cook roasted the potatoes")
SHORT = [*SPORT, *FOOD]
LABELS = ["sport"] * 3 + ["food"] * 3
HIDDEN = [f"{FILLER} {text} ." for text in SHORT]


@pytest.fixture(scope="module")
def instant():
    classifier = CPTuningClassifier(preset="instant", long_texts="windows", verbose=False)
    return classifier.set_params(max_length=48).fit(SHORT + HIDDEN, LABELS * 2)


def test_what_stands_behind_the_first_window_decides(instant):
    new = [f"{FILLER} the players scored a goal", f"{FILLER} bread and salty potatoes"]
    windows = clone_with(instant, long_texts="windows").fit(SHORT, LABELS)
    cut = clone_with(instant, long_texts="truncate").fit(SHORT, LABELS)
    np.testing.assert_allclose(cut.transform(new)[0], cut.transform(new)[1], atol=1e-6)
    assert np.abs(windows.transform(new)[0] - windows.transform(new)[1]).max() > 0.01
    np.testing.assert_allclose(windows.transform(SHORT), cut.transform(SHORT), atol=1e-6)


def clone_with(classifier, **parameters):
    from sklearn.base import clone

    return clone(classifier).set_params(**parameters)


def test_a_long_text_is_the_mean_of_its_windows_before_the_views_are_joined(instant):
    encoder = instant.predictor_.encoder
    [encoding] = encoder.layout.encode(Examples((HIDDEN[0],)))
    from cptuning.prompting import windows_of

    read = encoder.read_encodings(windows_of(encoding)).mean(axis=0, keepdims=True)
    np.testing.assert_allclose(
        instant.transform([HIDDEN[0]]), encoder.views.embeddings(read), atol=1e-5
    )
    assert len(encoding.windows) > 1


def test_torch_a_folder_and_an_export_read_alike(instant, tmp_path):
    expected = instant.transform(SHORT + HIDDEN)
    torch_encoder = instant.predictor_.encoder.with_torch()
    np.testing.assert_allclose(
        torch_encoder.embed(Examples((*SHORT, *HIDDEN))), expected, atol=1e-4
    )
    instant.save(tmp_path / "saved")
    instant.export(tmp_path / "exported")
    for folder in ("saved", "exported"):
        loaded = load_predictor(tmp_path / folder)
        assert loaded.encoder.layout.windows == 32
        np.testing.assert_allclose(loaded.transform(SHORT + HIDDEN), expected, atol=1e-4)
        np.testing.assert_allclose(
            loaded.predict_proba(HIDDEN), instant.predict_proba(HIDDEN), atol=1e-4
        )


def test_the_reasons_name_the_passage_that_decided(instant):
    text = f"{FILLER} the players scored a late goal . {FILLER}"
    explained = instant.explain(["a goal", text])
    assert explained[0].passage is None
    passage, windows = explained[1].passage, instant.predictor_.encoder.layout.passages(text)
    assert passage in windows
    label = explained.labels[1]
    own = list(instant.classes_).index(label)
    shares = instant.predict_proba(windows)[:, own]
    assert shares[windows.index(passage)] == shares.max()
    assert f"decided by the passage: {passage[:20]}" in repr(explained)
    assert "decided by the passage" in explained._repr_html_()


def test_each_label_of_a_set_names_its_own_passage():
    sets = [["sport"], ["sport"], ["sport"], ["food"], ["food"], ["food"]]
    classifier = CPTuningClassifier(
        preset="instant", long_texts="windows", max_length=32, verbose=False
    ).fit(SHORT, sets)
    text = f"the players won the match with a goal . {FILLER} the cook baked bread and potatoes ."
    explained = classifier.explain([text, "a goal"])
    windows = classifier.predictor_.encoder.layout.passages(text)
    for reasons in explained[0].values():
        assert reasons.passage in windows
    for reasons in explained[1].values():
        assert reasons.passage is None
    assert [r.passage for r in classifier.predictor_.explained(*asked(classifier, [text]))]


def asked(classifier, texts):
    examples = Examples(tuple(texts))
    return examples, classifier.predictor_.answer(examples)


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_training_draws_windows_and_what_is_trained_is_exported(tiny, tmp_path, architecture):
    parameters = {"long_texts": "windows", "max_length": 24, "most_windows": 4}
    clf = CPTuningClassifier(
        tiny(architecture), steps=2, batch_size=4, validation="none", verbose=False, **parameters
    ).fit(SHORT + HIDDEN, LABELS * 2)
    assert isinstance(clf.predictor_.encoder, TextEncoder)
    expected = clf.transform(HIDDEN)
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-5)
    export_onnx(clf, tmp_path / "exported")
    clf.save(tmp_path / "saved")
    for folder in ("saved", "exported"):
        loaded = cptuning.load(tmp_path / folder)
        np.testing.assert_allclose(loaded.transform(HIDDEN), expected, atol=1e-4)


def test_training_reads_more_than_the_beginnings(tiny, monkeypatch):
    from cptuning.methods import task

    drawn = []
    plain = task.drawn_windows
    monkeypatch.setattr(
        task, "drawn_windows", lambda *given: drawn.extend(found := plain(*given)) or found
    )
    CPTuningClassifier(
        tiny("bert"),
        steps=6,
        batch_size=6,
        validation="none",
        verbose=False,
        long_texts="windows",
        max_length=24,
    ).fit(HIDDEN, LABELS)
    assert all(encoding.windows == () for encoding in drawn)
    assert len({encoding.key for encoding in drawn}) > len(HIDDEN)


def test_what_no_window_reads_is_told(caplog):
    clf = CPTuningClassifier(
        preset="instant", long_texts="windows", max_length=32, most_windows=2, verbose=False
    )
    with caplog.at_level(logging.WARNING, "cptuning"):
        clf.fit(SHORT + HIDDEN, LABELS * 2)
    assert "6 of 12 texts are longer than 2 windows of max_length=32 tokens" in caplog.text
    assert "reads them" not in caplog.text
    with caplog.at_level(logging.WARNING, "cptuning"):
        clf.set_params(long_texts="truncate").fit(SHORT + HIDDEN, LABELS * 2)
    assert 'their ends are not read, long_texts="windows" reads them.' in caplog.text


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"long_texts": "middle"}, "long_texts is 'middle': choose one of"),
        ({"most_windows": 0}, "most_windows is 0: it must be between 1 and 1024"),
    ],
)
def test_bad_settings_are_refused(parameters, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        CPTuningClassifier(preset="instant", **parameters).fit(SHORT, LABELS)


def test_pairs_have_no_windows():
    clf = CPTuningClassifier(preset="instant", long_texts="windows")
    with pytest.raises(CPTuningError, match="which is for single texts: leave it out for pairs"):
        clf.fit([("a", "b"), ("c", "d")], [0, 1])
