"""Texts to unit vectors: the order, the batches, the centre, and a model's longest text."""

import numpy as np
import pytest
import torch
from tests.tiny import ARCHITECTURES, PAIRS, SINGLES

from cptuning.backbone import PromptedEncoder, TextEncoder, encoder, layout_for, load_backbone
from cptuning.backbone.encoder_files import EncoderFiles
from cptuning.data import as_examples
from cptuning.prompting import Template


def text_encoder(folder, template="{a} it is [MASK]", features="head", max_length=10_000):
    backbone = load_backbone(folder)
    layout = layout_for(backbone, Template.parse(template), max_length)
    return TextEncoder(layout, PromptedEncoder(backbone, layout.prompt_ids, features), backbone)


@pytest.fixture
def it(tiny):
    return text_encoder(tiny("bert"))


def test_embeddings_are_unit_vectors_of_float32(it):
    embeddings = it.embed(as_examples(SINGLES))
    assert embeddings.dtype == np.float32
    assert embeddings.shape == (len(SINGLES), 16)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, rtol=1e-5)


def test_many_batches_give_what_one_gives_in_the_same_order(it, monkeypatch):
    texts = as_examples([text * n for n in (3, 1, 2) for text in SINGLES])
    together = it.embed(texts)
    monkeypatch.setitem(encoder.TOKEN_BUDGET, "cpu", 30)
    np.testing.assert_allclose(it.embed(texts), together, atol=1e-5)
    alone = np.concatenate([it.embed(texts.take([i])) for i in range(len(texts))])
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_dropout_is_off_while_embedding_and_back_afterwards(it):
    it.module.train()
    first, second = (it.embed(as_examples(SINGLES)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert it.module.training
    assert it.module.model.training
    it.module.eval()
    it.embed(as_examples(SINGLES))
    assert not it.module.training
    it.module.model.train()  # Somebody else who shares the model.
    np.testing.assert_array_equal(it.embed(as_examples(SINGLES)), first)


def test_the_mean_feature_becomes_the_origin(it):
    encodings = it.layout.encode(as_examples(SINGLES))
    before = it.embed_encodings(encodings)
    it.centre_on(encodings)
    first = it.module.centre.clone()
    assert it._features(encodings).mean(dim=0).abs().max() < 1e-5
    assert np.abs(it.embed_encodings(encodings) - before).max() > 0.1
    it.centre_on(encodings)  # from where it stood at first, not from where it stands now
    torch.testing.assert_close(it.module.centre, first)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_longest_layout_is_one_that_the_model_can_read(tiny, architecture):
    for template, text in (
        ("{a} it is [MASK]", "great " * 99),
        ("{a} ? [MASK] {b}", ("it " * 99,) * 2),
    ):
        it = text_encoder(tiny(architecture), template)
        embeddings = it.embed(as_examples([text]))
        longest = 62 if architecture in ("roberta", "mpnet") else 64
        assert it.layout.max_length == longest == len(it.layout.encode(as_examples([text]))[0])
        assert np.isfinite(embeddings).all()


def test_a_shorter_layout_is_kept_as_asked_for(tiny):
    assert text_encoder(tiny("bert"), max_length=20).layout.max_length == 20


@pytest.mark.parametrize("features", ["head", "hidden"])
@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "headless"])
def test_a_saved_encoder_loads_as_it_was(tiny, headless, tmp_path, architecture, features):
    folder = headless if architecture == "headless" else tiny(architecture)
    it = text_encoder(folder, "{a} ? [MASK] {b}", features)
    with torch.no_grad():
        for parameter in it.module.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
        it.module.centre.add_(0.1)
    it.save(tmp_path)
    again = TextEncoder.load(EncoderFiles.of(tmp_path), it.layout, features, torch.device("cpu"))
    examples = as_examples(PAIRS)
    np.testing.assert_array_equal(again.embed(examples), it.embed(examples))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_is_saved_verified_and_read_back(tiny, tmp_path, architecture):
    saved = text_encoder(tiny(architecture))
    saved.save(tmp_path)
    again = TextEncoder.load(EncoderFiles.of(tmp_path), saved.layout, "head", torch.device("cpu"))
    assert not again.module.training
    np.testing.assert_array_equal(
        again.embed(as_examples(SINGLES)), saved.embed(as_examples(SINGLES))
    )
