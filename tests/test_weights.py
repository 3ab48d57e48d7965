"""Weights of examples and classes, and the shares of classes, from the fit to the answer."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import cptuning
from cptuning import CPTuningClassifier, make_classifier
from cptuning.backbone import load_backbone
from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.inference import SecondLook
from cptuning.losses import pccl_per_anchor
from cptuning.methods.training import LabelledExamples
from tests.methods.conftest import BAD, GOOD
from tests.methods.test_cp_tuning import make_task, slow_losses
from tests.tiny import save_tiny

TEXTS = [*GOOD, *BAD]
LABELS = ["good"] * len(GOOD) + ["bad"] * len(BAD)
WEIGHTS = 1 + np.arange(12) % 3 / 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(save_tiny("bert", tmp_path_factory.mktemp("tiny") / "bert"))


def instant(**more):
    return CPTuningClassifier(preset="instant", verbose=False, **more)


def trained(folder, **more):
    return CPTuningClassifier(
        folder, **{"steps": 3, "batch_size": 6, "verbose": False, "instant_first": False} | more
    )


@pytest.mark.parametrize("inference", ["lda", "prototype"])
def test_whole_weights_are_copies_to_a_model_that_is_not_trained(inference):
    texts, labels, times = TEXTS[3:9], LABELS[3:9], [1, 3, 2, 1, 4, 2]
    changes = {"inference": inference, "sentence_weight": 1.0}
    weighted = instant(**changes).fit(texts, labels, sample_weight=times).predictor_.support
    copies = instant(**changes).fit(
        np.repeat(texts, times).tolist(), np.repeat(labels, times).tolist()
    )
    support = copies.predictor_.support
    np.testing.assert_allclose(weighted.class_means, support.class_means, atol=1e-6)
    found, expected = (s.analysis.discriminants(0.25) for s in (weighted, support))
    np.testing.assert_allclose(found.directions, expected.directions, atol=1e-5)
    np.testing.assert_allclose(found.offsets, expected.offsets, atol=1e-5)


def test_held_out_answers_are_those_of_weighted_refits_without_each_example():
    changes = {"sentence_weight": 1.0}
    whole = instant(**changes).fit(TEXTS, LABELS, sample_weight=WEIGHTS)
    analysis = whole.predictor_.support.analysis
    for row in range(12):
        rest = np.arange(12) != row
        texts, labels = np.array(TEXTS)[rest].tolist(), np.array(LABELS)[rest].tolist()
        refit = instant(**changes).fit(texts, labels, sample_weight=WEIGHTS[rest])
        own = whole.predictor_.support.embeddings[row]
        expected = refit.predictor_.support.analysis.discriminants(0.25).scores(own)
        found = analysis.leave_one_out(0.25, np.array([row]))[0]
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    "weights",
    [
        {"sample_weight": np.ones(12)},
        {"class_weight": {"good": 1, "bad": 1.0}},
        {"class_weight": "balanced"},
    ],
)
def test_weights_of_one_change_no_bit(folder, weights):
    own = {"sample_weight": weights.get("sample_weight")}
    for plain in (instant(), trained(folder)):
        weighted = clone(plain).set_params(class_weight=weights.get("class_weight"))
        plain.fit(TEXTS, LABELS)
        weighted.fit(TEXTS, LABELS, **own)
        np.testing.assert_array_equal(weighted.predict_proba(TEXTS), plain.predict_proba(TEXTS))
        assert weighted.predictor_.temperature == plain.predictor_.temperature


def test_an_example_of_weight_zero_is_left_out():
    weights = np.ones(12)
    weights[2] = 0
    found = instant().fit(TEXTS, LABELS, sample_weight=weights)
    rest = np.arange(12) != 2
    expected = instant().fit(np.array(TEXTS)[rest].tolist(), np.array(LABELS)[rest].tolist())
    np.testing.assert_array_equal(found.predict_proba(TEXTS), expected.predict_proba(TEXTS))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_anchors_are_weighted_in_the_loss(folder, reduction):
    numbers = np.repeat([0, 1], 6)
    weighted = LabelledExamples(Examples(tuple(TEXTS)), numbers, WEIGHTS, WEIGHTS)
    task = make_task(load_backbone(folder), weighted, reduction=reduction, mlm_rate=0.0)
    task.objective.eval()
    inputs = task.inputs(0)
    rows = task._batches(0)
    np.testing.assert_allclose(inputs["weights"].numpy(), WEIGHTS[rows])
    with torch.no_grad():
        z, _ = slow_losses(task, inputs)
        settings = task.settings
        losses = pccl_per_anchor(
            z,
            inputs["labels"],
            margin=settings.margin,
            tau_n=settings.tau_n,
            xi=settings.xi,
            reduction=reduction,
        )
        expected, mass = 0.0, 0.0
        for loss, weight in zip(losses.tolist(), WEIGHTS[rows], strict=True):
            expected += weight * loss
            mass += weight
        found = task.objective(**inputs)["contrastive"].item()
    assert found == pytest.approx(expected / (mass if reduction == "mean" else 1), rel=1e-4)


def test_balanced_batches_balance_the_loss_by_themselves():
    texts, labels = [*GOOD, *BAD[:2]], ["good"] * len(GOOD) + ["bad"] * 2
    for batches in ("balanced", "uniform"):
        chosen = CPTuningClassifier(class_weight="balanced", batches=batches, verbose=False)
        train = chosen.prepare(texts, labels).split.train
        assert train.weights.tolist() == [8 / 12] * 6 + [8 / 4] * 2
        if batches == "balanced":
            assert train.loss_weights is None
        else:
            assert train.loss_weights.tolist() == train.weights.tolist()


def test_training_follows_the_weights(folder):
    plain = trained(folder, validation="none").fit(TEXTS, LABELS)
    weighted = trained(folder, validation="none").fit(TEXTS, LABELS, sample_weight=WEIGHTS)
    assert np.abs(plain.transform(TEXTS) - weighted.transform(TEXTS)).max() > 1e-6


def test_dev_answers_are_calibrated_by_class_weight(folder):
    settings = {"validation": "none", "class_weight": {"good": 9}}
    fitted = trained(folder, **settings).fit(TEXTS, LABELS, TEXTS, LABELS)
    assert fitted.held_out_.weights.tolist() == [9.0] * 6 + [1.0] * 6


@pytest.mark.parametrize("method", ["fine-tuning", "warp"])
def test_rivals_weight_their_cross_entropy(folder, method):
    def fitted(**more):
        words = {} if method == "fine-tuning" else {"label_words": {"good": "great", "bad": "no"}}
        rival = make_classifier(
            method,
            backbone=folder,
            steps=3,
            batch_size=6,
            validation="none",
            verbose=False,
            class_weight=more.pop("class_weight", None),
            **words,
        )
        return rival.fit(TEXTS, LABELS, **more).predict_proba(TEXTS)

    plain = fitted()
    np.testing.assert_array_equal(plain, fitted(sample_weight=np.ones(12)))
    much = fitted(class_weight={"good": 100})
    assert much[:, 1].mean() > plain[:, 1].mean()


def test_models_with_weights_and_shares_are_saved_exported_and_loaded(tmp_path):
    fitted = instant(class_weight={"bad": 2}, class_prior={"good": 0.9, "bad": 0.1})
    fitted.fit(TEXTS, LABELS, sample_weight=WEIGHTS)
    fitted.save(tmp_path / "model")
    loaded = cptuning.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(TEXTS), fitted.predict_proba(TEXTS), atol=1e-5)
    assert loaded.class_prior == {"good": 0.9, "bad": 0.1}
    fitted.export(tmp_path / "onnx")
    exported = cptuning.load(tmp_path / "onnx")
    np.testing.assert_allclose(
        exported.predict_proba(TEXTS), fitted.predict_proba(TEXTS), atol=1e-4
    )
    more = loaded.add_examples(["where is my parcel?"], ["delivery"])
    assert more.predictor_.support.weights[-1] == 1
    assert more.predict_proba(TEXTS).shape == (12, 3)


@pytest.mark.parametrize("change", ["negative", "short", "kind", "prior"])
def test_a_folder_with_impossible_weights_is_refused(tmp_path, change):
    fitted = instant(class_prior=[0.5, 0.5]).fit(TEXTS, LABELS, sample_weight=WEIGHTS)
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "support.safetensors"
    tensors = load_file(path)
    weights = tensors["weights"]
    changed = {"negative": -weights, "short": weights[1:], "kind": weights.astype(np.float32)}
    save_file(tensors | {"weights": changed.get(change, weights)}, path)
    if change == "prior":
        facts = tmp_path / "model" / "cptuning.json"
        stored = json.loads(facts.read_text())
        facts.write_text(json.dumps(stored | {"class_prior": [0.5, 0.6]}))
    with pytest.raises(CPTuningError, match="model"):
        cptuning.load(tmp_path / "model")


# The shares of the classes


@pytest.mark.parametrize("inference", ["lda", "prototype", "knn"])
def test_shares_correct_probabilities_and_labels_by_bayes_rule(inference):
    texts, labels = TEXTS[:10], LABELS[:10]  # six good, four bad
    plain = instant(inference=inference).fit(texts, labels)
    before = plain.predict_proba(TEXTS)
    assumed = [4 / 10, 6 / 10] if inference == "knn" else [1 / 2, 1 / 2]
    after = plain.set_class_prior({"good": 0.02, "bad": 0.98})
    for row, found in zip(before, after.predict_proba(TEXTS), strict=True):
        wanted = [row[c] * prior / assumed[c] for c, prior in enumerate([0.98, 0.02])]
        np.testing.assert_allclose(found, np.array(wanted) / sum(wanted), rtol=1e-6)
    best = after.predict_proba(TEXTS).argmax(axis=1)
    assert after.predict(TEXTS).tolist() == after.classes_[best].tolist()
    assert (after.predict(TEXTS) == "bad").sum() >= (before.argmax(axis=1) == 0).sum()
    np.testing.assert_array_equal(after.set_class_prior(None).predict_proba(TEXTS), before)


def test_shares_given_to_fit_are_those_set_later():
    given_to_fit = instant(class_prior=[0.1, 0.9]).fit(TEXTS, LABELS)
    later = instant().fit(TEXTS, LABELS).set_class_prior([0.1, 0.9])
    np.testing.assert_array_equal(given_to_fit.predict_proba(TEXTS), later.predict_proba(TEXTS))
    assert later.class_prior == [0.1, 0.9]


def test_a_class_added_later_is_as_likely_as_without_shares():
    fitted = instant(class_prior=[0.2, 0.8]).fit(TEXTS, LABELS)
    fitted.add_examples(["where is my parcel?", "my parcel is late"], ["delivery"] * 2)
    corrected = fitted.predictor_
    plain = corrected.with_class_prior(None)
    ratio = corrected.predict_proba(TEXTS) / plain.predict_proba(TEXTS)
    np.testing.assert_allclose(ratio[:, 0] / ratio[:, 2], 0.4, rtol=1e-6)
    np.testing.assert_allclose(ratio[:, 1] / ratio[:, 2], 1.6, rtol=1e-6)
    forgotten = corrected.without_examples(range(len(GOOD)))
    assert forgotten.classes_.tolist() == ["bad", "delivery"]
    assert forgotten.predict_proba(TEXTS).shape == (12, 2)


def test_close_calls_are_those_under_the_shares():
    plain = instant(inference="knn").fit(TEXTS, LABELS)
    corrected = plain.predictor_.with_class_prior([0.001, 0.999])
    embeddings = plain.transform(TEXTS)
    scores = corrected.scores(embeddings)
    assert (scores.argmax(axis=1) != plain.predictor_.scores(embeddings).argmax(axis=1)).any()
    looks_again = replace(corrected, second_look=SecondLook(corrected.encoder, 0.0))
    assert looks_again.close_calls(embeddings, scores).tolist() == []


# scikit-learn


def test_grid_search_takes_weights():
    search = GridSearchCV(instant(), {"class_weight": [None, "balanced", {"good": 3}]}, cv=3)
    search.fit(TEXTS, LABELS, sample_weight=WEIGHTS)
    assert len(search.cv_results_["params"]) == 3


def test_metadata_routing_passes_sample_weight_on():
    with config_context(enable_metadata_routing=True):
        inner = instant().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(inner, {"class_weight": [None]}, cv=3, refit=True)
        search.fit(TEXTS, LABELS, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(search.best_estimator_.predictor_.support.weights, WEIGHTS)


def test_wrong_weights_and_shares_are_named_before_the_training(folder):
    with pytest.raises(CPTuningError, match="class_weight names 'odd'"):
        trained(folder, class_weight={"odd": 2}).fit(TEXTS, LABELS)
    with pytest.raises(CPTuningError, match="class_prior has no share for the label 'good'"):
        trained(folder, class_prior={"bad": 1}).fit(TEXTS, LABELS)
    with pytest.raises(CPTuningError, match="sample_weight has shape"):
        trained(folder).fit(TEXTS, LABELS, sample_weight=[1, 2])


def test_rivals_refuse_shares(folder):
    rival = make_classifier("fine-tuning", backbone=folder, steps=1, validation="none")
    predictor = rival.set_params(verbose=False).fit(TEXTS, LABELS).predictor_
    with pytest.raises(CPTuningError, match="class_prior can't correct its probabilities"):
        predictor.with_class_prior([0.5, 0.5])
