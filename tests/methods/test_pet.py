"""PET's ensemble of patterns: how it is weighed, and the classifier that it teaches."""

import logging

import numpy as np
import pytest
import torch
from torch.nn.functional import kl_div, log_softmax, softmax

import cptuning
from cptuning.backbone import load_backbone
from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.methods.evaluation_log import EvaluationLog
from cptuning.methods.learner import Learner
from cptuning.methods.pet import Student, fit_patterns
from cptuning.methods.scorer import TextScorer
from cptuning.methods.training import LabelledExamples
from tests.methods.toys import learner_of, rival, settings_of, split_of, toy, training_of

PATTERNS = ("[MASK] : {a}", "so [MASK] ! {a}")
UNLABELED = ["a great movie ?", "the red train .", "great great movie", "red red train"]


@pytest.fixture
def backbone(steady):
    return load_backbone(steady["bert"])


def make_student(backbone, scores, **changes):
    settings = settings_of("pet", **changes)
    split = split_of(unlabeled=Examples(tuple(UNLABELED)))
    return Student(training_of(backbone, settings, split, seed=2), scores)


def test_the_final_classifier_learns_what_the_patterns_say(steady, tmp_path):
    texts, labels = toy(2, pair=False)
    classifier = rival("pet", steady["bert"], patterns=PATTERNS, distillation_steps=80)
    classifier.fit(texts, labels, unlabeled=UNLABELED * 2)
    assert classifier.predict(UNLABELED).tolist() == ["label0", "label1"] * 2
    weights = classifier.training_["pattern_weights"]
    assert list(weights) == ["{a} It was [MASK].", *PATTERNS]
    assert all(0 <= weight <= 1 for weight in weights.values())
    assert classifier.predictor_.scorer.head.kind == "opening"
    classifier.save(tmp_path / "model")
    loaded = cptuning.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(texts), classifier.predict_proba(texts))
    assert loaded.settings_ == classifier.settings_


def test_a_pattern_given_twice_is_one_and_cross_fitting_does_not_measure_the_classifier(steady):
    texts, labels = toy(2, pair=False)
    classifier = rival(
        "pet",
        steady["bert"],
        patterns=(*PATTERNS, PATTERNS[0]),
        steps=2,
        distillation_steps=2,
        validation="cross-fit",
    ).fit(texts, labels, unlabeled=UNLABELED)
    assert list(classifier.training_["pattern_weights"]) == ["{a} It was [MASK].", *PATTERNS]
    assert classifier.training_["validation"] == "none"
    assert classifier.held_out_score_ is None
    classifier.fit(texts, labels, texts, labels, unlabeled=UNLABELED)
    assert classifier.training_["validation"] == "dev"
    assert classifier.held_out_score_ is not None


class Ensemble:
    """Watches the trainings of patterns: where each starts, where it ends, what it says."""

    def __init__(self, monkeypatch, backbone):
        self.backbone = backbone
        self.started_from, self.ended_at, self.said = [], [], []
        plain = Learner.fit

        def fit(learner):
            self.started_from.append(self.sum_of_weights())
            fitted = plain(learner)
            self.ended_at.append(self.sum_of_weights())
            self.said.append(fitted.task.scorer.score(Examples(tuple(UNLABELED))))
            return fitted

        monkeypatch.setattr(Learner, "fit", fit)

    def sum_of_weights(self):
        return sum(p.double().sum().item() for p in self.backbone.model.parameters())

    def run(self, train=None, patterns=PATTERNS):
        split = split_of(unlabeled=Examples(tuple(UNLABELED)))
        if train is not None:
            split = type(split)(train, unlabeled=split.unlabeled)
        settings = settings_of("pet", patterns=patterns, distillation_steps=2)
        return fit_patterns(training_of(self.backbone, settings, split))


def untrained_answers(steady, template, examples):
    learner = learner_of("pet", load_backbone(steady["bert"]), template=template)
    return TextScorer(learner.encoder, learner.head).score(examples).argmax(axis=1)


def test_patterns_count_by_their_untrained_accuracy(steady, backbone, monkeypatch):
    templates = ("{a} It was [MASK].", *PATTERNS)
    examples = split_of().train.examples
    answers = [untrained_answers(steady, template, examples) for template in templates]
    # The first pattern is right about all but one example, which makes the weights differ.
    labels = answers[0].astype(np.int64)
    labels[-1] = 1 - labels[-1]
    weights = [np.mean(answer == labels) for answer in answers]
    assert len(set(weights)) > 1
    ensemble = Ensemble(monkeypatch, backbone)
    fitted = ensemble.run(LabelledExamples(examples, labels))
    assert fitted.facts["pattern_weights"] == dict(zip(templates, weights, strict=True))
    expected = np.zeros((4, 2))
    for weight, said in zip(weights, ensemble.said[:3], strict=True):
        expected += weight / sum(weights) * said
    expected = softmax(torch.tensor(expected) / 2, dim=-1).numpy()
    np.testing.assert_allclose(fitted.task.learner.soft_labels, expected, atol=1e-6)
    alike = softmax(torch.tensor(np.mean(ensemble.said[:3], axis=0)) / 2, dim=-1).numpy()
    assert np.abs(alike - expected).max() > 1e-4


def test_patterns_count_the_same_where_none_is_ever_right(steady, backbone, monkeypatch, caplog):
    templates = ("{a} It was [MASK].", *PATTERNS)
    examples = split_of().train.examples
    answers = [untrained_answers(steady, template, examples) for template in templates]
    # Only examples that all patterns agree on can be wrong in all of them.
    rows = np.flatnonzero((answers[0] == answers[1]) & (answers[0] == answers[2]))
    labels = 1 - answers[0][rows].astype(np.int64)
    ensemble = Ensemble(monkeypatch, backbone)
    with caplog.at_level(logging.WARNING, "cptuning"):
        fitted = ensemble.run(LabelledExamples(examples.take(rows), labels))
    assert "all of them count the same" in caplog.text
    assert set(fitted.facts["pattern_weights"].values()) == {1.0}
    expected = softmax(torch.tensor(np.mean(ensemble.said[:3], axis=0)) / 2, dim=-1).numpy()
    np.testing.assert_allclose(fitted.task.learner.soft_labels, expected, atol=1e-6)


def test_every_pattern_and_the_classifier_start_from_the_weights_of_the_backbone(
    backbone, monkeypatch
):
    ensemble = Ensemble(monkeypatch, backbone)
    untrained = ensemble.sum_of_weights()
    ensemble.run()
    assert ensemble.started_from == [untrained] * 4
    assert untrained not in ensemble.ended_at


@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        ("{a} it was", r"has no \[MASK\]"),
        ("{a} [PRO] [MASK]", "only words around a text"),
        ("{a} [MASK] {b}", "pairs"),
    ],
)
def test_a_mistake_in_the_last_pattern_is_told_before_the_first_is_trained(
    backbone, monkeypatch, last, sentence
):
    ensemble = Ensemble(monkeypatch, backbone)
    with pytest.raises(CPTuningError, match=sentence):
        ensemble.run(patterns=(*PATTERNS, last))
    assert ensemble.started_from == []


def test_pairs_have_an_ensemble_too(steady):
    texts, labels = toy(2, pair=True)
    classifier = rival(
        "pet",
        steady["roberta"],
        patterns=["{b} ? [MASK] , {a}"],
        distillation_steps=2,
        steps=2,
    )
    assert classifier.fit(texts, labels, unlabeled=texts).predict(texts).shape == (6,)


def test_soft_labels_are_the_patterns_scores_at_a_temperature(backbone):
    scores = np.array([[2.0, 0.0], [0.0, 4.0], [1.0, 1.0], [3.0, 1.0]])
    student = make_student(backbone, scores)
    expected = np.exp(scores / 2) / np.exp(scores / 2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(student.soft_labels, expected, atol=1e-6)


def test_the_distillation_loss_has_the_gradient_of_pets(backbone):
    """PET: T² · KL(soft labels ‖ softmax(scores / T)), which differs by a constant."""
    teacher = np.array([[2.0, 0.0], [0.0, 4.0], [1.0, 1.0], [3.0, 1.0]])
    student = make_student(backbone, teacher, batch_size=4)
    task = student.task(split_of(), EvaluationLog())
    inputs = task.inputs(0)
    assert inputs["labels"].shape == (4, 2)
    scores = torch.tensor([[0.3, -0.2], [1.0, 0.5], [0.0, 0.0], [-1.0, 2.0]], requires_grad=True)
    ours = task.objective.classification_loss(scores, inputs["labels"])
    (gradient,) = torch.autograd.grad(ours, scores)
    theirs = 4 * kl_div(log_softmax(scores / 2, -1), inputs["labels"], reduction="sum") / 4
    (expected,) = torch.autograd.grad(theirs, scores)
    torch.testing.assert_close(gradient, expected)
    entropy = softmax(torch.tensor(teacher) / 2, -1) * softmax(torch.tensor(teacher) / 2, -1).log()
    assert ours.item() == pytest.approx(theirs.item() - 4 * entropy.sum().item() / 4, abs=1e-4)


def test_a_student_trains_a_new_head_and_the_encoder_but_not_the_masked_lm_head(backbone):
    student = make_student(backbone, np.zeros((4, 2)))
    names = {n for n, p in student.module.named_parameters() if p.requires_grad}
    assert "head.dense.weight" in names
    assert not any("predictions" in name for name in names)


def test_the_masked_lm_weight_changes_what_is_learned(steady):
    texts, labels = toy(2, pair=False)
    found = [
        rival("pet", steady["bert"], steps=3, mlm_weight=weight)
        .fit(texts, labels, unlabeled=UNLABELED)
        .decision_function(texts)
        for weight in (0.0, 0.5)
    ]
    assert np.abs(found[0] - found[1]).max() > 1e-4
