"""CP-Tuning on sentence encoders: everything downstream sees one vector per text."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import cptuning
from cptuning import CPTuningClassifier, make_classifier
from cptuning.backbone import PromptedEncoder, layout_for, load_backbone, to_device
from cptuning.data import as_examples
from cptuning.errors import CPTuningError
from cptuning.inference.suggestion import suggestions
from cptuning.methods.cp_tuning import CPTuning
from cptuning.prompting import Template, collate
from tests.tiny import PAIRS, SINGLES, save_sentence_encoder

TEXTS = ["great movie", "I loved it", "so good", "dull film", "boring book", "bad food"]
LABELS = ["good"] * 3 + ["bad"] * 3
FEW = {"steps": 3, "validation": "none", "verbose": False}
CASES = {
    "mean": {},
    "cls, normalize": {"modes": ["cls"], "normalize": True},
    "joined, dense": {"modes": ["max", "mean"], "dense": [(8, "Tanh")]},
    "prompt": {"prompt": "it is ", "include_prompt": False, "architecture": "roberta"},
}


@pytest.fixture(scope="module", params=CASES)
def folder(request, tmp_path_factory):
    return save_sentence_encoder(tmp_path_factory.mktemp("sentence"), **CASES[request.param])


@pytest.fixture
def encoder(tmp_path):
    return save_sentence_encoder(tmp_path / "encoder")


def fitted(backbone, X=TEXTS, y=LABELS, **parameters):
    return CPTuningClassifier(backbone=str(backbone), **FEW | parameters).fit(X, y)


def test_a_saved_classifier_answers_as_before(folder, tmp_path):
    classifier = fitted(folder)
    classifier.save(tmp_path / "model")
    again = cptuning.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(SINGLES), classifier.transform(SINGLES))
    np.testing.assert_array_equal(again.predict_proba(SINGLES), classifier.predict_proba(SINGLES))
    assert again.explain(SINGLES, k=2) == classifier.explain(SINGLES, k=2)
    assert again.get_params()["backbone"] == str(folder)
    assert not list((tmp_path / "model").rglob("*.bin"))
    again.add_examples(["where is the parcel?"], ["delivery"]).save(tmp_path / "more")
    more = cptuning.load(tmp_path / "more")
    assert more.predict(["where is the parcel?"]).tolist() == ["delivery"]
    assert len(suggestions(more.predictor_, as_examples(SINGLES), 2)) == 2


def test_training_moves_all_that_makes_the_vector(folder):
    """The model below and the layers above; cross-fitting starts each fold where the first was."""
    untrained, trained = load_backbone(folder), load_backbone(folder)
    classifier = CPTuningClassifier(backbone=trained, steps=3, evaluate_every=1, verbose=False)
    classifier.fit(TEXTS, LABELS)
    before, after = untrained.state_dict(), trained.state_dict()
    assert before.keys() == after.keys()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert {n for n in before if n.startswith("own_pooling.")} <= moved
    assert any("layer.0" in name for name in moved)
    again = CPTuningClassifier(str(folder), steps=3, evaluate_every=1, verbose=False)
    again.fit(TEXTS, LABELS)
    np.testing.assert_array_equal(again.transform(SINGLES), classifier.transform(SINGLES))


def test_there_is_no_template_and_no_masked_lm(folder):
    training = CPTuningClassifier(str(folder), **FEW).prepare(TEXTS, LABELS)
    assert training.settings.template == "{a}"
    learner = CPTuning(training)
    assert len(learner.module.prompts) == 0
    task = learner.task(training.split, None)
    assert set(task.objective(**task.inputs(0))) == {"loss", "contrastive"}
    mask = learner.encoder.layout.special.mask
    assert all(mask not in encoding.ids for encoding in task.encodings)


def test_a_pair_is_the_relation_of_its_texts(encoder, tmp_path):
    classifier = fitted(encoder, PAIRS * 2, ["a", "b", "b"] * 2)
    assert classifier.settings_.template == "{a} [SEP] {b}"
    swapped = [(b, a) for a, b in PAIRS]
    assert_close(classifier.transform(PAIRS), classifier.transform(swapped))
    classifier.save(tmp_path / "model")
    again = cptuning.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(PAIRS), classifier.transform(PAIRS))


def test_pairs_are_compared_without_training_unless_steps_are_asked_for(encoder):
    given = {"backbone": str(encoder), "verbose": False}
    pairs, labels = PAIRS * 2, ["a", "b", "b"] * 2
    untrained = CPTuningClassifier(**given).fit(pairs, labels)
    assert untrained.history_.best_step == 0
    assert untrained.held_out_score_ is not None
    instant = CPTuningClassifier(**given, preset="instant").fit(pairs, labels)
    np.testing.assert_array_equal(untrained.predict_proba(PAIRS), instant.predict_proba(PAIRS))
    trained = fitted(encoder, pairs, labels)
    assert trained.history_.best_step == 3
    assert not np.allclose(trained.transform(PAIRS), untrained.transform(PAIRS))


def test_a_preset_of_its_own_unless_the_papers_is_asked_for(encoder, tiny):
    own = fitted(encoder).settings_
    assert (own.contrastive_weight, own.tau_n, own.centred) == (1.0, 1 / 8, True)
    many = fitted(encoder, TEXTS, ["a", "b", "c"] * 2).settings_
    assert many == own
    paper = fitted(encoder, preset="paper").settings_
    assert (paper.tau_n, paper.centred, paper.template) == (1.0, False, "{a}")
    assert fitted(tiny("bert")).settings_.template == "{a} it is [MASK] ."


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_masked_lm_can_be_pooled_too_with_its_own_loss_beside(pooling, tiny, tmp_path):
    classifier = fitted(tiny("bert"), pooling=pooling, contrastive_weight=0.5)
    classifier.save(tmp_path / "model")
    again = cptuning.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(SINGLES), classifier.transform(SINGLES))
    training = CPTuningClassifier(
        str(tiny("bert")), pooling=pooling, contrastive_weight=0.5, mlm_rate=1.0, **FEW
    ).prepare(TEXTS, LABELS)
    task = CPTuning(training).task(training.split, None)
    assert task.objective(**task.inputs(0))["mlm"] > 0


def test_a_sentence_encoder_can_be_read_at_a_mask(encoder, tmp_path):
    classifier = fitted(encoder, pooling="mask", template="{a} it is [MASK]")
    classifier.save(tmp_path / "model")
    again = cptuning.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(SINGLES), classifier.transform(SINGLES))
    assert not np.allclose(again.transform(SINGLES), fitted(encoder).transform(SINGLES), atol=0.01)


def test_a_model_from_before_pooling_is_read_at_its_mask(headless, tmp_path):
    """Then an encoder without a head was read at its mask, too."""
    classifier = fitted(headless, pooling="mask")
    classifier.save(tmp_path / "model")
    path = tmp_path / "model" / "cptuning.json"
    facts = json.loads(path.read_text())
    del facts["settings"]["pooling"], facts["parameters"]["pooling"], facts["layout"]["text_prefix"]
    path.write_text(json.dumps(facts))
    again = cptuning.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(SINGLES), classifier.transform(SINGLES))


def test_transfer_starts_from_the_layers_above_the_model(tmp_path):
    folder = save_sentence_encoder(tmp_path / "encoder", dense=[(8, "Tanh")])
    first = fitted(folder, centred=False)
    expected = first.transform(SINGLES)
    second = CPTuningClassifier(centred=False, **FEW | {"steps": 0})
    second.fit(TEXTS, LABELS, init_from=first)
    np.testing.assert_array_equal(second.transform(SINGLES), expected)
    third = CPTuningClassifier(**FEW).fit(TEXTS, LABELS, init_from=first)
    assert not np.allclose(third.transform(SINGLES), expected)
    np.testing.assert_array_equal(first.transform(SINGLES), expected)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "mpnet"])
def test_training_reads_texts_that_share_rows_as_if_each_stood_alone(architecture, tmp_path):
    modes = ["cls", "max", "mean", "weightedmean", "lasttoken"]
    folder = save_sentence_encoder(tmp_path, architecture=architecture, modes=modes)
    backbone = load_backbone(folder)
    layout = layout_for(backbone, Template.parse("{a}", needs_output=False), 64)
    module = PromptedEncoder(backbone, layout.prompt_ids, pooling=backbone.own_pooling).eval()
    batch = collate(layout.encode(as_examples(SINGLES)), layout.special.pad)
    rows = torch.arange(len(batch))
    assert module._can_share_rows == (architecture != "mpnet")
    seen = []
    for training in (False, True):
        module.zero_grad()
        module.training = training  # the adapter alone: what is inside draws no dropout
        features, _ = module(**to_device(batch, torch.device("cpu")), rows=rows, columns=0 * rows)
        (features**2).sum().backward()
        gradients = [p.grad.clone() for p in backbone.model.parameters() if p.grad is not None]
        seen.append((features.detach(), gradients))
    assert_close(seen[0][0], seen[1][0], rtol=1e-4, atol=1e-5)
    for one, other in zip(seen[0][1], seen[1][1], strict=True):
        assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_threads_get_the_answers_of_one(folder):
    classifier = fitted(folder)
    texts = [text * n for n in (1, 2, 3) for text in SINGLES]
    expected = [classifier.transform([text]) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: classifier.transform([text]), texts))
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))


def test_a_template_is_refused(encoder):
    with pytest.raises(CPTuningError, match='leave template out, or choose pooling="mask"'):
        fitted(encoder, template="{a} it is [MASK]")


def test_methods_that_ask_for_words_say_so(encoder):
    pet = make_classifier("pet", backbone=str(encoder), task="SST-2", **FEW)
    with pytest.raises(CPTuningError, match="has no masked-LM head"):
        pet.fit(TEXTS, ["positive"] * 3 + ["negative"] * 3)
    classifier = make_classifier("fine-tuning", backbone=str(encoder), **FEW).fit(TEXTS, LABELS)
    assert set(classifier.predict(SINGLES)) <= {"good", "bad"}


DAMAGE = {
    "another layer": ("2_Dense/config.json", {"out_features": 4}),
    "another prompt": (
        "config_sentence_transformers.json",
        {"prompts": {"a": "x "}, "default_prompt_name": "a"},
    ),
    "an unknown module": ("1_Pooling/config.json", {"pooling_mode": ["median"]}),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_strangers_folder_is_checked(what, tmp_path):
    fitted(save_sentence_encoder(tmp_path / "e", dense=[(8, "Tanh")])).save(tmp_path / "model")
    name, changes = DAMAGE[what]
    path = tmp_path / "model" / "backbone" / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CPTuningError):
        cptuning.load(tmp_path / "model")
