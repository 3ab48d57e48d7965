"""What holds for every rival: it learns, repeats, is saved and loaded, trains what it should."""

import numpy as np
import pytest
import torch

import cptuning
from cptuning import list_methods, make_classifier
from cptuning.backbone import load_backbone
from cptuning.errors import CPTuningError
from tests.methods.toys import (
    ARCHITECTURES,
    LEARNERS,
    RIVALS,
    WORDS,
    label_words,
    learner_of,
    rival,
    task_of,
    toy,
)

# Every method meets every architecture, both kinds of input and both numbers of classes.
TOYS = [
    (method, ARCHITECTURES[(i + j) % 3], n_classes, pair)
    for i, method in enumerate(RIVALS)
    for j, (n_classes, pair) in enumerate([(2, False), (2, True), (6, False), (6, True)])
] + [(method, ARCHITECTURES[(i + 2) % 3], 2, False) for i, method in enumerate(RIVALS)]


@pytest.mark.parametrize(("method", "architecture", "n_classes", "pair"), TOYS)
def test_a_rival_learns_a_toy_task_by_heart_and_is_the_same_when_loaded(
    steady, tmp_path, method, architecture, n_classes, pair
):
    texts, labels = toy(n_classes, pair)
    changes = {"steps": 250} if n_classes == 6 else {}
    classifier = rival(method, steady[architecture], n_classes, **changes).fit(texts, labels)
    assert classifier.score(texts, labels) == 1.0
    classifier.save(tmp_path / "model")
    loaded = cptuning.load(tmp_path / "model")
    assert type(loaded) is type(classifier)
    np.testing.assert_array_equal(loaded.predict_proba(texts), classifier.predict_proba(texts))
    assert loaded.settings_ == classifier.settings_
    assert loaded.classes_.tolist() == classifier.classes_.tolist()


def test_all_eight_methods_are_listed_with_a_line_each():
    assert tuple(list_methods()) == ("cp-tuning", *RIVALS)
    assert all(line and "\n" not in line for line in list_methods().values())


# Gradients


def trained_names(task):
    """What has a gradient after one batch, and what is to be trained."""
    task.objective.train()
    task.objective(**task.inputs(0))["loss"].backward()
    parameters = dict(task.objective.named_parameters())
    moved = {n for n, p in parameters.items() if p.grad is not None and p.grad.abs().sum() > 0}
    ids = {id(p) for group in task.parameter_groups(1e-3) for p in group["params"]}
    return moved, {n for n, p in parameters.items() if id(p) in ids}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("method", LEARNERS)
def test_gradients_reach_exactly_what_the_method_trains(steady, architecture, method):
    task = task_of(method, load_backbone(steady[architecture]))
    moved, wanted = trained_names(task)
    # A key's bias shifts all attention scores alike, so its gradient is zero up to rounding;
    # a second token type never occurs in single texts.
    assert wanted - moved <= {n for n in wanted if n.endswith("key.bias")}
    assert moved <= wanted
    everything = {n for n, _ in task.objective.named_parameters()}
    in_head = {n for n in everything if "cls.predictions" in n or "lm_head" in n}
    in_head |= {n for n in everything if n.startswith("encoder.model.predictions")}
    expected = {
        "fine-tuning": everything - in_head - {"encoder.prompts"},
        "pet": everything - {"encoder.prompts"},
        "lm-bff-l": everything - {"encoder.prompts"},
        "p-tuning": everything,
        "warp": {"encoder.prompts", "head.vectors"},
    }
    assert wanted == expected[method]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_warp_leaves_the_language_model_bitwise_unchanged(steady, architecture):
    backbone = load_backbone(steady[architecture])
    before = {n: t.clone() for n, t in backbone.model.state_dict().items()}
    learner = learner_of("warp", backbone, steps=5)
    prompts = learner.encoder.module.prompts.detach().clone()
    learner.fit()
    after = backbone.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not torch.equal(prompts, learner.encoder.module.prompts)


# The estimator


@pytest.mark.parametrize("method", RIVALS)
def test_scikit_learn_can_clone_and_set_a_rival(method):
    from sklearn.base import clone
    from sklearn.utils import estimator_checks

    classifier = make_classifier(method, learning_rate=0.1, random_state=4)
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params()
    assert copy.set_params(steps=3).steps == 3
    kind = type(classifier)
    for check in (
        "check_estimator_cloneable",
        "check_no_attributes_set_in_init",
        "check_get_params_invariance",
        "check_set_params",
        "check_parameters_default_constructible",
        "check_valid_tag_types",
    ):
        getattr(estimator_checks, check)(kind.__name__, kind())


def test_grid_search_works_on_a_rival(steady):
    from sklearn.model_selection import GridSearchCV

    texts, labels = toy(2, pair=False)
    classifier = rival("pet", steady["bert"], steps=2)
    search = GridSearchCV(classifier, {"learning_rate": [1e-4, 1e-3]}, cv=2).fit(texts, labels)
    assert search.predict(texts).shape == (6,)


@pytest.mark.parametrize("method", RIVALS)
def test_a_rival_cross_fits_estimates_and_repeats_exactly(steady, method):
    texts, labels = toy(2, pair=False)
    changes = {"steps": 4, "evaluate_every": 2, "validation": "cross-fit", "random_state": 5}
    runs = [rival(method, steady["bert"], **changes).fit(texts, labels) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].predict_proba(texts), runs[1].predict_proba(texts))
    assert 0 <= runs[0].held_out_score_ <= 1
    assert runs[0].training_["validation"] == "cross-fit"
    assert runs[0].decision_function(texts).shape == (6,)
    assert runs[0].n_features_in_ == 1
    assert rival(method, steady["bert"], **changes).estimate_seconds(texts, labels) > 0


def test_a_dev_set_chooses_the_step(steady):
    texts, labels = toy(2, pair=False)
    classifier = rival("pet", steady["bert"], steps=6, evaluate_every=2)
    classifier.fit(texts, labels, X_dev=texts, y_dev=labels)
    assert classifier.history_.best == max(classifier.history_.scores.values())
    assert classifier.training_["validation"] == "dev"


def test_what_a_rival_cannot_do_is_refused_in_a_sentence(steady, tmp_path):
    from cptuning.export import export_onnx

    texts, labels = toy(2, pair=False)
    classifier = rival("fine-tuning", steady["bert"], steps=0).fit(texts, labels)
    for call in (
        lambda: classifier.transform(texts),
        lambda: classifier.explain(texts),
        lambda: classifier.add_examples(texts, labels),
        lambda: export_onnx(classifier, tmp_path / "onnx"),
    ):
        with pytest.raises(CPTuningError, match="cp-tuning"):
            call()
    with pytest.raises(CPTuningError, match="unknown_threshold"):
        make_classifier("pet", unknown_threshold=0.5)


def test_any_models_weights_can_be_the_start_of_any_other(steady):
    texts, labels = toy(2, pair=False)
    source = cptuning.CPTuningClassifier(
        str(steady["bert"]), steps=3, learning_rate=1e-2, validation="none", verbose=False
    ).fit(texts, labels)
    fresh = rival("pet", steady["bert"], steps=0).fit(texts, labels)
    moved = rival("pet", steady["bert"], steps=0).fit(texts, labels, init_from=source)
    assert np.abs(fresh.decision_function(texts) - moved.decision_function(texts)).max() > 1e-3
    back = cptuning.CPTuningClassifier(
        str(steady["bert"]), steps=0, validation="none", verbose=False
    ).fit(texts, labels, init_from=moved)
    assert back.predict(texts).shape == (6,)


def test_what_one_method_froze_the_next_one_trains(steady):
    texts, labels = toy(2, pair=False)
    frozen = rival("warp", steady["bert"], steps=1).fit(texts, labels)
    before = frozen.predictor_.encoder.module.model.state_dict()
    after = rival("pet", steady["bert"], steps=2).fit(texts, labels, init_from=frozen)
    changed = after.predictor_.encoder.module.model.state_dict()
    assert any(not torch.equal(before[name], changed[name]) for name in before)


@pytest.mark.parametrize("freezing", ["warp", "fine-tuning", "cp-tuning"])
@pytest.mark.parametrize("method", ["pet", "p-tuning", "cp-tuning"])
def test_a_loaded_backbone_is_trained_whatever_another_method_froze(steady, freezing, method):
    """WARP freezes all of it, fine-tuning the masked-LM head, frozen_share the lowest layers."""
    texts, labels = toy(2, pair=False)
    quick = {"backbone": load_backbone(str(steady["bert"])), "validation": "none", "verbose": False}
    words = {"label_words": label_words(2)}
    more = {"warp": words, "fine-tuning": {}, "cp-tuning": {"frozen_share": 0.5}}
    make_classifier(freezing, steps=1, **quick, **more[freezing]).fit(texts, labels)
    before = {n: p.detach().clone() for n, p in quick["backbone"].model.named_parameters()}
    more = words if method != "cp-tuning" else {"frozen_share": 0.0}
    make_classifier(method, steps=2, learning_rate=1e-2, **quick, **more).fit(texts, labels)
    same = [n for n, p in quick["backbone"].model.named_parameters() if torch.equal(p, before[n])]
    assert same == []


def test_unlabelled_texts_that_a_method_has_no_use_for_are_said_to_be_of_no_use(steady, caplog):
    texts, labels = toy(2, pair=False)
    rival("warp", steady["bert"], steps=0).fit(texts, labels, unlabeled=["the red train"])
    assert "warp does not use texts without labels" in caplog.text


# What users get wrong


@pytest.mark.parametrize("method", [m for m in RIVALS if m != "fine-tuning"])
def test_a_model_without_a_masked_lm_head_is_refused(headless, method):
    texts, labels = toy(2, pair=False)
    with pytest.raises(CPTuningError, match="no masked-LM head"):
        rival(method, headless).fit(texts, labels)


def test_fine_tuning_needs_no_masked_lm_head(headless):
    texts, labels = toy(2, pair=False)
    classifier = rival("fine-tuning", headless, steps=1).fit(texts, labels)
    assert classifier.predict(texts).shape == (6,)


@pytest.mark.parametrize(
    ("method", "changes", "sentence"),
    [
        ("pet", {"label_words": {"label0": "great"}}, "no word for the label 'label1'"),
        ("pet", {"label_words": label_words(3)}, "'label2', which is not a label"),
        ("pet", {"label_words": None}, "'label0' is not a word of the model's vocabulary"),
        ("pet", {"label_words": dict.fromkeys(label_words(2), "it")}, "have the same word 'it'"),
        ("pet", {"label_words": {"label0": "it", "label1": "☃"}}, "'☃' of the label 'label1'"),
        ("pet", {"label_words": "great"}, "a word for each label"),
        (
            "pet",
            {"label_words": {"label0": ["great", "good"], "label1": "no"}},
            r"has \['great', 'good'\] for the label 'label0': it must be a text",
        ),
        ("pet", {"label_words": {"label0": "it", "label1": None}}, "has None for the label"),
        ("pet", {"label_words": None, "task": "SST-2"}, "The task SST-2 has no word"),
        ("pet", {"task": "SST-9"}, "no task 'SST-9'"),
        ("pet", {"template": "{a} it is"}, r"no \[MASK\]"),
        ("pet", {"template": "[CLS] {a}"}, r"no \[MASK\], where pet asks for a word"),
        ("pet", {"template": "{a} [PRO] [MASK]"}, "pet puts only words around a text"),
        ("pet", {"template": "{a} [MASK] {b}"}, "pairs"),
        ("pet", {"patterns": ("{a} [MASK] !",)}, "give unlabeled texts"),
        ("pet", {"patterns": "{a} [MASK] !"}, "a list of texts"),
        ("pet", {"patterns": [1]}, r"patterns is \[1\]: it must be a list of texts"),
        ("pet", {"patterns": ("{a} [MASK] !", None)}, "it must be a list of texts"),
        ("pet", {"mlm_weight": 2.0}, "mlm_weight is 2.0"),
        ("p-tuning", {"template": "{a} it is [MASK]"}, r"no \[PRO\]"),
        ("p-tuning", {"prompt_learning_rate": 0}, "above 0"),
        ("warp", {"template": "{a} [MASK]"}, "neither words nor"),
        ("warp", {"class_vectors": "magic"}, "choose one of 'label-words', 'random'"),
        ("fine-tuning", {"template": "{a} it is [MASK]"}, r"begin the template with \[CLS\]"),
        ("lm-bff-t", {"generator": "no/such-t5"}, "neither the folder of a T5"),
        ("lm-bff-l", {"n_mappings": -1}, "at least 0"),
    ],
)
def test_a_mistake_is_named_in_one_sentence(steady, method, changes, sentence):
    texts, labels = toy(2, pair=False)
    with pytest.raises(CPTuningError, match=sentence) as caught:
        rival(method, steady["bert"], **changes).fit(texts, labels)
    assert "\n" not in str(caught.value)


def test_names_of_labels_are_words_where_the_vocabulary_has_them(steady):
    texts, _ = toy(2, pair=False)
    labels = [WORDS[0]] * 3 + ["so_good"] * 3
    classifier = rival("pet", steady["bert"], steps=0, label_words=None).fit(texts, labels)
    assert classifier.settings_.label_words == {"great": "great", "so_good": "so good"}


def test_label_words_may_be_given_for_labels_of_any_type(steady):
    texts, _ = toy(2, pair=False)
    classifier = rival("pet", steady["bert"], steps=0, label_words={False: "it", True: "is"})
    assert set(classifier.fit(texts, [False] * 3 + [True] * 3).predict(texts)) <= {False, True}
