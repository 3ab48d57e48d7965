"""PET's ensemble of patterns: how it is weighed, and the classifier that it teaches."""

import numpy as np
import pytest
import torch
from torch.nn.functional import kl_div, log_softmax, softmax

import cptuning
from cptuning.backbone import load_backbone
from cptuning.data import Examples
from cptuning.methods.answers import Answers
from cptuning.methods.fitting import Run
from cptuning.methods.pet import Student
from tests.methods.toys import CPU, rival, settings_of, split_of, toy

PATTERNS = ("[MASK] : {a}", "so [MASK] ! {a}")
UNLABELED = ["a great movie ?", "the red train .", "great great movie", "red red train"]


@pytest.fixture
def backbone(steady):
    return load_backbone(steady["bert"])


def make_student(backbone, scores, **changes):
    settings = settings_of("pet", **changes)
    texts = Examples(tuple(UNLABELED))
    return Student(backbone, settings, Run(CPU, seed=2), ("label0", "label1"), texts, scores)


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
    task = student.task(split_of(), Answers())
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
