from dataclasses import replace

import numpy as np
import pytest
import torch

from cptuning.backbone import load_backbone
from cptuning.data.sentences import Sentence
from cptuning.methods.tagging import word_encoder
from cptuning.methods.tagging_settings import TAGGER_PRESETS
from cptuning.prompting.word_layout import windows_of

SENTENCES = [
    Sentence.of_text("It was a great movie, and I loved it."),
    Sentence.of_words(["Telenet", "was", "founded", "long", "ago"]),
    Sentence.of_words([]),
    Sentence.of_text("unbelievable stories"),
]


def encoder_of(folder, **changes):
    settings = replace(TAGGER_PRESETS["instant"]["single"], **changes)
    encoder = word_encoder(load_backbone(folder), settings)
    encoder.encoder.module.eval()
    return encoder


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
@pytest.mark.parametrize("pieces", ["mean", "first"])
def test_a_word_is_the_mean_or_the_first_of_its_pieces(tiny, architecture, pieces):
    encoder = encoder_of(tiny(architecture), pieces=pieces)
    found = encoder.embed(SENTENCES)
    assert [len(vectors) for vectors in found] == [len(one) for one in SENTENCES]
    backbone = encoder.encoder.backbone
    special = backbone.special
    for sentence, vectors in zip(SENTENCES, found, strict=True):
        if not len(sentence):
            continue
        pieces_of = encoder.layout.pieces_of(sentence.words)
        ids = [*special.prefix, *(token for ids in pieces_of for token in ids), *special.suffix]
        with torch.no_grad():
            hidden = backbone.model.base_model(torch.tensor([ids])).last_hidden_state[0].numpy()
        at = len(special.prefix)
        for word, own in enumerate(pieces_of):
            rows = hidden[at : at + (1 if pieces == "first" else len(own))]
            at += len(own)
            expected = rows.mean(axis=0) / np.linalg.norm(rows.mean(axis=0))
            np.testing.assert_allclose(vectors[word], expected, atol=2e-5)


def test_a_centre_is_the_mean_of_all_words(tiny):
    encoder = encoder_of(tiny("bert"))
    encoder.centre_on(SENTENCES)
    encoder.centre_on(SENTENCES)  # What was the centre before does not matter.
    raw = encoder._read(encoder.windows(SENTENCES))
    np.testing.assert_allclose(raw.mean(dim=0), 0, atol=1e-5)


def test_long_sentences_are_read_in_windows_that_have_every_word_once(tiny):
    encoder = encoder_of(tiny("bert"), max_length=16)
    words = ["the", "movie", "was", "great", "and", "so", "unbelievable"] * 6
    windows = windows_of(encoder.layout, [Sentence.of_words(words), Sentence.of_words(["it"])])
    assert all(len(window.encoding) <= 16 for window in windows)
    read = [word for w in windows if w.sentence == 0 for word in dict.fromkeys(w.words.tolist())]
    assert read == list(range(len(words)))
    lengths = [len(window.encoding) for window in windows if window.sentence == 0]
    assert max(lengths) - min(lengths) <= 8  # Of about equal size.
    found = encoder.embed([Sentence.of_words(words), Sentence.of_words(["it"])])
    assert [len(vectors) for vectors in found] == [len(words), 1]
    assert all(np.isfinite(vectors).all() for vectors in found)


def test_a_word_that_fills_the_window_is_cut_and_one_without_pieces_is_read(tiny):
    encoder = encoder_of(tiny("bert"), max_length=16)
    [vectors] = encoder.embed([Sentence.of_words(["a" * 50, "\u200b", "movie"])])
    assert vectors.shape[0] == 3
    assert np.isfinite(vectors).all()


def test_the_answer_does_not_depend_on_the_other_sentences(tiny):
    encoder = encoder_of(tiny("bert"))
    together = encoder.embed(SENTENCES * 3)
    for sentence, vectors in zip(SENTENCES * 3, together, strict=True):
        np.testing.assert_allclose(encoder.embed([sentence])[0], vectors, atol=1e-5)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
def test_a_share_of_the_layers_is_read_and_the_backbone_stays_whole(tiny, architecture):
    backbone = load_backbone(tiny(architecture))
    layers = backbone.model.config.num_hidden_layers
    before = {name: tensor.clone() for name, tensor in backbone.model.state_dict().items()}
    settings = TAGGER_PRESETS["instant"]["single"]
    encoder = word_encoder(backbone, settings, depth=0.5)
    encoder.encoder.module.eval()
    assert encoder.encoder.module.model.config.num_hidden_layers == round(layers / 2)
    [vectors] = encoder.embed(SENTENCES[:1])
    assert backbone.model.config.num_hidden_layers == layers
    assert all(torch.equal(before[n], t) for n, t in backbone.model.state_dict().items())
    [window] = encoder.windows(SENTENCES[:1])
    ids = torch.as_tensor(window.encoding.ids)[None]
    with torch.no_grad():
        hidden = backbone.model.base_model(ids, output_hidden_states=True).hidden_states
    rows = hidden[round(layers / 2)][0].numpy()
    for word in range(len(SENTENCES[0])):
        mean = rows[window.pieces[window.words == word]].mean(axis=0)
        np.testing.assert_allclose(vectors[word], mean / np.linalg.norm(mean), atol=2e-5)
