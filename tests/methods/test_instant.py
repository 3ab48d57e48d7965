"""The preset instant on the embedded backbone: the same model as with torch, without it."""

import numpy as np
import pytest

from cptuning import CPTuningClassifier, load
from cptuning.backbone import TextEncoder, load_backbone
from cptuning.data import Examples
from cptuning.data.sample_data import read_sample
from cptuning.inference.embedded_encoder import EmbeddedEncoder
from cptuning.storage import load_predictor


def texts_of(name, rows):
    table = read_sample(name)
    return table.examples.take(rows), [table.labels[row] for row in rows]


TRAIN, LABELS = texts_of("messages_train", range(0, 96, 3))
TEST, TEST_LABELS = texts_of("messages_test", range(0, 90, 4))
PAIRS, PAIR_LABELS = texts_of("same_question_train", range(20))
NEW_PAIRS, NEW_PAIR_LABELS = texts_of("same_question_test", range(20))


def instant(backbone="embedded", **more):
    return CPTuningClassifier(
        backbone, preset="instant", verbose=False, unknown_threshold="auto", **more
    )


@pytest.fixture(scope="module")
def embedded():
    return load_backbone("embedded")


@pytest.fixture(scope="module")
def fitted():
    return instant().fit(TRAIN, LABELS)


@pytest.mark.parametrize(
    ("train", "dev", "new"),
    [
        ((TRAIN, LABELS), (), TEST),
        ((TRAIN, LABELS), (TEST, TEST_LABELS), TEST),
        ((PAIRS, PAIR_LABELS), (), NEW_PAIRS),
    ],
    ids=["texts", "dev", "pairs"],
)
@pytest.mark.parametrize("settings", [{}, {"sentence_weight": 0.0}], ids=["both", "mask"])
def test_it_is_the_model_that_torch_gives(embedded, train, dev, new, settings):
    ours = instant(**settings).fit(*train, *dev)
    theirs = instant(embedded, **settings).fit(*train, *dev)
    assert isinstance(ours.predictor_.encoder, EmbeddedEncoder)
    assert isinstance(theirs.predictor_.encoder, TextEncoder)
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), atol=1e-5)
    assert ours.predict(new).tolist() == theirs.predict(new).tolist()
    assert ours.settings_ == theirs.settings_
    assert ours.training_ == theirs.training_
    assert ours.held_out_score_ == theirs.held_out_score_
    np.testing.assert_allclose(ours.held_out_.scores, theirs.held_out_.scores, atol=1e-4)
    np.testing.assert_array_equal(ours.held_out_rows_, theirs.held_out_rows_)
    assert ours.predictor_.unknown_threshold == pytest.approx(
        theirs.predictor_.unknown_threshold, abs=1e-5
    )
    assert list(ours.history_.scores) == list(theirs.history_.scores)


def test_its_folder_is_small_and_loads_with_torch_and_without(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    size = sum(path.stat().st_size for path in (tmp_path / "model").rglob("*") if path.is_file())
    assert size < 30e6
    answering, trainable = load_predictor(tmp_path / "model"), load(tmp_path / "model")
    assert isinstance(answering.encoder, EmbeddedEncoder)
    assert isinstance(trainable.predictor_.encoder, TextEncoder)
    assert isinstance(load_predictor(tmp_path / "model", "cpu:0").encoder, TextEncoder)
    for model in (answering, trainable):
        np.testing.assert_allclose(model.transform(TEST), fitted.transform(TEST), atol=1e-5)
        assert model.predict(TEST).tolist() == fitted.predict(TEST).tolist()


def test_it_learns_more_examples(fitted):
    predictor = fitted.predictor_.with_examples(["is this vegan?"], ["diet"])
    assert "diet" in predictor.classes_
    [reasons] = predictor.explain(Examples(("is this vegan?",)), k=1)
    assert reasons[0].label == "diet"


def test_a_training_starts_from_it(fitted):
    trained = CPTuningClassifier(steps=1, validation="none", verbose=False, instant_first=False)
    trained.fit(TRAIN, LABELS, init_from=fitted)
    assert isinstance(trained.predictor_.encoder, TextEncoder)
    assert trained.training_["backbone"]["name"] == "embedded"


@pytest.mark.parametrize(
    "settings", [{"centred": True}, {"features": "hidden"}, {"pooling": "mean"}]
)
def test_what_the_graph_does_not_compute_is_left_to_torch(settings):
    classifier = instant(**settings).fit(TRAIN, LABELS)
    assert isinstance(classifier.predictor_.encoder, TextEncoder)


def test_its_seconds_can_be_estimated():
    assert 0 < instant().estimate_seconds(TRAIN, LABELS) < 60
