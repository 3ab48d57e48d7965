"""The embedded architecture in ONNX Runtime gives torch's embeddings, and shares its weights."""

import pickle

import numpy as np
import pytest

from cptuning.backbone.encoder_files import EncoderFiles
from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.inference.embedded_encoder import EmbeddedEncoder
from cptuning.prompting import Template

TEXTS = Examples(("a great film", "", "Where is my parcel? I ordered it weeks ago.", "so " * 300))
PAIRS = Examples(TEXTS.first, ("i loved it", "", "a great film", "nothing"))


def encoder(template="{a} all in all , [MASK] !", weight=2.0, max_length=128):
    return EmbeddedEncoder.untrained(Template.parse(template), max_length, weight)


@pytest.mark.parametrize("weight", [None, 2.0, 0.0])
@pytest.mark.parametrize(
    ("template", "examples"),
    [
        ("{a} all in all , [MASK] !", TEXTS),
        ("{a} [MASK]", TEXTS),
        ("{a} [SEP] {b} these are [MASK] .", PAIRS),
    ],
)
def test_embeddings_are_torchs(template, examples, weight):
    it = encoder(template, weight)
    found, expected = it.embed(examples), it.with_torch().embed(examples)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_encoders_of_one_backbone_share_its_weights(tmp_path):
    one, other = encoder(), encoder("{a} ? [MASK] {b}", weight=1.0)
    one.save(tmp_path)
    loaded = EmbeddedEncoder.load(tmp_path, one.layout, "auto", 2.0)
    assert one._session is other._session is loaded._session
    np.testing.assert_array_equal(loaded.embed(TEXTS), one.embed(TEXTS))


def test_it_survives_pickling():
    it = encoder(weight=4.0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(it)).embed(TEXTS), it.embed(TEXTS))


def test_prompts_and_centre_of_a_trained_encoder_are_its_own(tmp_path):
    trained = encoder().with_torch()
    trained.module.prompts.data += 0.1
    trained.module.centre += 0.2
    trained.save(tmp_path)
    found = EmbeddedEncoder.load(tmp_path, trained.layout, "auto", 2.0)
    np.testing.assert_allclose(found.embed(TEXTS), trained.embed(TEXTS), atol=1e-5)
    again = tmp_path / "again"
    again.mkdir()
    found.save(again)
    assert EncoderFiles.of(again).digest == EncoderFiles.of(tmp_path).digest
    shorter = encoder("{a} it is [MASK]").layout
    with pytest.raises(ValueError, match="made for other weights"):
        EmbeddedEncoder.load(tmp_path, shorter, "auto", 2.0)
    with pytest.raises(ValueError, match="centre has another shape"):
        EmbeddedEncoder.load(tmp_path, trained.layout, "mask", None)


def test_weights_that_have_changed_since_are_not_saved_as_this_model(tmp_path):
    it = encoder()
    it.save(tmp_path)
    loaded = EmbeddedEncoder.load(tmp_path, it.layout, "auto", 2.0)
    with (tmp_path / "backbone" / "model.packed.safetensors").open("ab") as file:
        file.write(b"more")
    (tmp_path / "again").mkdir()
    with pytest.raises(CPTuningError, match="has changed since it was loaded"):
        loaded.save(tmp_path / "again")


def test_a_layout_of_another_backbone_is_refused(tmp_path):
    it = encoder()
    it.save(tmp_path)
    it.layout.max_length = 4096
    with pytest.raises(ValueError, match="made for another backbone"):
        EmbeddedEncoder.load(tmp_path, it.layout, "auto", 2.0)
    it.layout.max_length, it.layout.vocabulary = 128, 5
    with pytest.raises(ValueError, match="made for other weights"):
        EmbeddedEncoder.load(tmp_path, it.layout, "auto", 2.0)
