"""Two views of a text: read in one pass, joined to one vector; pairs by how their texts relate."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize
from torch.testing import assert_close

import cptuning
from cptuning import CPTuningClassifier
from cptuning.backbone import load_backbone
from cptuning.backbone.joined_views import relation, unit
from cptuning.backbone.pooling import Dense, SentencePooling
from cptuning.data import as_examples
from cptuning.inference.choice import SENTENCE_WEIGHTS
from cptuning.methods.cp_tuning import CPTuning
from cptuning.methods.evaluation_log import HeldOut
from tests.tiny import PAIRS, SINGLES

TEXTS = ["great movie", "I loved it", "so good", "dull film", "boring book", "bad food"]
LABELS = ["good"] * 3 + ["bad"] * 3
PAIR_LABELS = ["a", "b", "b"]
FEW = {"steps": 3, "validation": "none", "verbose": False}


@pytest.fixture
def two_views(tiny):
    """A tiny masked LM with a sentence head."""

    def make():
        backbone = load_backbone(tiny("bert"))
        width = backbone.model.config.hidden_size
        torch.manual_seed(0)
        dense = Dense(width, width, bias=True, activation="Identity")
        head = SentencePooling(["mean"], width, [dense], text_only=True).eval()
        return replace(backbone, own_pooling=head)

    return make


def task_of(backbone, X=TEXTS, y=LABELS, **parameters):
    training = CPTuningClassifier(backbone, **FEW | parameters).prepare(X, y)
    return CPTuning(training).task(training.split, None)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("X", "y"), [(TEXTS, LABELS), (PAIRS * 2, PAIR_LABELS * 2)])
def test_torch_and_numpy_join_alike(two_views, X, y, centred):
    encoder = task_of(two_views(), X, y, sentence_weight=2.0, centred=centred).encoder
    encodings = encoder.layout.encode(as_examples(X))
    joined = encoder.module.views.embeddings(encoder.read_encodings(encodings))
    assert_close(joined, encoder.embed_encodings(encodings), rtol=1e-5, atol=1e-6)
    assert encoder.module.centre.any() == centred


def test_a_single_text_is_its_mask_and_the_mean_of_its_own_tokens(two_views):
    """The slow way: the whole model, and everything by hand."""
    backbone = two_views()
    task = task_of(backbone, sentence_weight=3.0, centred=False)
    [encoding] = task.encoder.layout.encode(as_examples(["dull film"]))
    ids = torch.tensor(encoding.ids)[None]
    module = task.encoder.module
    with torch.no_grad():
        embedded = module.embed(ids)
        hidden = backbone.model.base_model(inputs_embeds=embedded).last_hidden_state[0]
        at_mask = backbone.model.cls.predictions.transform(hidden[encoding.output])
        about = backbone.own_pooling.layers[0].linear(hidden[encoding.is_text].mean(dim=0))
    expected = torch.cat([normalize(at_mask, dim=0), 3 * normalize(about, dim=0)])
    [found] = task.encoder.embed_encodings([encoding])
    assert_close(torch.tensor(found), normalize(expected, dim=0), rtol=1e-4, atol=1e-5)


def test_a_pair_is_its_mask_and_the_relation_of_its_texts_alone(two_views):
    task = task_of(two_views(), PAIRS * 2, PAIR_LABELS * 2, sentence_weight=1.0, centred=False)
    single = task_of(two_views(), sentence_weight=1.0, centred=False, template="{a} [MASK]")
    encoder, width = task.encoder, task.encoder.module._mask_width
    encodings = encoder.layout.encode(as_examples(PAIRS))
    assert all(len(encoding.others) == 2 for encoding in encodings)
    joint = [replace(encoding, others=()) for encoding in encodings]
    mask = encoder.read_encodings(joint)[:, 0, :width]
    texts = []
    for which in (0, 1):
        alone = single.encoder.layout.encode(as_examples([pair[which] for pair in PAIRS]))
        # Without its prompt it is read as a text of a pair is.
        bare = [
            e.without(int(np.flatnonzero(e.is_text)[-1]) + 1, e.output + 1)
            if e.is_text.any()
            else e
            for e in alone
        ]
        for mine, encoding in zip(bare, encodings, strict=True):
            np.testing.assert_array_equal(mine.ids, encoding.others[which].ids)
        texts.append(encoder.read_encodings([e.others[which] for e in encodings])[:, 0, width:])
    expected = unit(np.concatenate([unit(mask), unit(relation(*texts))], axis=1))
    np.testing.assert_allclose(encoder.embed_encodings(encodings), expected, atol=1e-5)


@pytest.mark.parametrize(("X", "y"), [(TEXTS, LABELS), (PAIRS * 2, PAIR_LABELS * 2)])
def test_saved_trained_and_loaded(two_views, tmp_path, X, y):
    asked = SINGLES if isinstance(X[0], str) else PAIRS
    classifier = CPTuningClassifier(two_views(), **FEW).fit(X, y)
    assert classifier.settings_.sentence_weight in SENTENCE_WEIGHTS
    classifier.save(tmp_path / "model")
    again = cptuning.load(tmp_path / "model")
    assert again.settings_ == classifier.settings_
    np.testing.assert_allclose(again.transform(asked), classifier.transform(asked), atol=1e-6)
    assert again.predict(asked).tolist() == classifier.predict(asked).tolist()
    assert len(again.explain(asked, k=1)) == len(asked)
    again.add_examples(asked[:1], ["new"])
    assert "new" in again.classes_


def test_training_moves_the_sentence_head_and_the_masked_lm_reads_no_text_twice(two_views):
    backbone = two_views()
    before = backbone.own_pooling.layers[0].linear.weight.detach().clone()
    classifier = CPTuningClassifier(backbone, contrastive_weight=0.5, mlm_rate=1.0, **FEW)
    classifier.fit(PAIRS * 2, PAIR_LABELS * 2, unlabeled=PAIRS)
    assert not torch.equal(backbone.own_pooling.layers[0].linear.weight, before)
    task = task_of(two_views(), PAIRS * 2, PAIR_LABELS * 2, contrastive_weight=0.5, mlm_rate=1.0)
    inputs = task.inputs(0)
    n = len(inputs["labels"])
    assert len(inputs["input_ids"]) == 3 * n
    targets = inputs["rows"][-len(inputs["targets"]) :]
    assert targets.max() < n
    assert torch.isfinite(task.objective(**inputs)["mlm"])


@pytest.mark.parametrize("size", [2, 3, 5])
def test_chunks_of_a_batch_give_the_same_losses(two_views, size):
    losses = []
    for chunk_size in (0, size):
        task = task_of(
            two_views(),
            PAIRS * 2,
            PAIR_LABELS * 2,
            chunk_size=chunk_size,
            contrastive_weight=1.0,
            frozen_share=0.0,
        )
        task.encoder.module.eval()
        loss = task.objective(**task.inputs(0))["loss"]
        loss.backward()
        gradient = task.encoder.module.pooling.layers[0].linear.weight.grad
        losses.append((loss.detach(), gradient))
    assert_close(losses[0][0], losses[1][0], rtol=1e-4, atol=1e-5)
    assert_close(losses[0][1], losses[1][1], rtol=1e-3, atol=1e-4)


def test_the_papers_presets_read_the_mask_alone(two_views, tiny):
    """To the bit what a model without a sentence view gives."""
    asked = CPTuningClassifier(two_views(), preset="paper", **FEW).fit(TEXTS, LABELS)
    plain = CPTuningClassifier(str(tiny("bert")), preset="paper", **FEW).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(asked.transform(SINGLES), plain.transform(SINGLES))


@pytest.mark.parametrize("X", [SINGLES, PAIRS])
def test_an_empty_text_has_an_embedding(two_views, X):
    y = PAIR_LABELS if isinstance(X[0], tuple) else [str(n % 2) for n in range(len(X))]
    classifier = CPTuningClassifier(two_views(), **FEW | {"steps": 0}).fit([*X, *X], [*y, *y])
    empty = [""] if isinstance(X[0], str) else [("", ""), ("same", "same")]
    assert np.isfinite(classifier.transform(empty)).all()


# The model that is not trained, before the one that is.


def scored(right, wrong=0):
    scores = np.array([[1.0, 0.0]] * right + [[0.0, 1.0]] * wrong)
    return HeldOut(scores, np.zeros(len(scores), np.float32), np.zeros(len(scores), int))


def test_answers_are_clearly_better_by_more_than_a_standard_error():
    assert scored(20).is_clearly_better_than(scored(10, 10))
    assert not scored(10, 10).is_clearly_better_than(scored(20))
    assert not scored(20).is_clearly_better_than(scored(20))
    assert not scored(20).is_clearly_better_than(scored(19, 1))
    assert scored(20).is_clearly_better_than(scored(18, 2))
    assert not scored(1).is_clearly_better_than(scored(0, 1))


def fit_watched(two_views, monkeypatch, better):
    from cptuning.training import Callback

    class Told(Callback):
        def __init__(self):
            self.heard = []

        def on_instant(self, score):
            self.heard.append(("instant", score.examples))

        def on_start(self, stage, step, last):
            self.heard.append((stage, last))

    monkeypatch.setattr(HeldOut, "is_clearly_better_than", lambda self, other: better)
    told = Told()
    classifier = CPTuningClassifier(two_views(), steps=3, verbose=False, callbacks=[told])
    return classifier.fit(TEXTS * 2, LABELS * 2), told.heard


def test_the_instant_answers_come_first(two_views, monkeypatch):
    classifier, heard = fit_watched(two_views, monkeypatch, better=False)
    instant = heard.index(("instant", 12))
    assert instant < heard.index(("fold 1 of 2", 3))
    assert classifier.training_["kept"] == "trained"
    assert 0 <= classifier.training_["instant_accuracy"] <= 1
    assert classifier.settings_.steps == 3


def test_the_model_that_is_not_trained_is_kept_as_it_was(two_views, monkeypatch):
    classifier, _ = fit_watched(two_views, monkeypatch, better=True)
    assert classifier.training_["kept"] == "instant"
    assert classifier.settings_.steps == 0
    alone = CPTuningClassifier(two_views(), preset="instant", verbose=False)
    alone.fit(TEXTS * 2, LABELS * 2)
    np.testing.assert_allclose(classifier.transform(SINGLES), alone.transform(SINGLES), atol=1e-6)
    assert classifier.held_out_score_ == alone.held_out_score_
    assert classifier.training_["validation"] == "leave-one-out"
