import numpy as np
import pytest

import cptuning
from cptuning import CPTuningTagger
from cptuning.errors import CPTuningError

TOKENS = [["the", "red", "train"], ["the", "movie", "was", "great"], ["is", "it", "red"]]
TAGS = [["O", "B-colour", "O"], ["O", "O", "O", "B-praise"], ["O", "O", "B-colour"]]
TEXTS = ["the red movie is great", "", "it was great " * 30]


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
@pytest.mark.parametrize("pieces", ["mean", "first"])
def test_an_exported_tagger_answers_as_before(tiny, tmp_path, architecture, pieces):
    tagger = CPTuningTagger(
        tiny(architecture), preset="instant", verbose=False, pieces=pieces, max_length=24
    ).fit(TOKENS, TAGS)
    tagger.export(tmp_path / "onnx")
    loaded = cptuning.load(tmp_path / "onnx")
    sentences = tagger.predictor_.examples.sentences
    vectors = loaded.predictor_.encoder.embed(sentences)
    np.testing.assert_allclose(np.concatenate(vectors), tagger.predictor_.vectors, atol=1e-4)
    assert loaded.predict(TEXTS) == tagger.predict(TEXTS)
    assert not (tmp_path / "onnx" / "backbone").exists()
    loaded.add_examples([["a", "dull", "film"]], [["O", "B-blame", "O"]])
    loaded.save(tmp_path / "again")
    again = cptuning.load(tmp_path / "again")
    assert again.classes_.tolist() == ["colour", "praise", "blame"]
    assert again.predict(TEXTS) == loaded.predict(TEXTS)
    with pytest.raises(CPTuningError, match="exported already"):
        loaded.export(tmp_path / "third")


def test_8_bits_are_refused(tiny, tmp_path):
    tagger = CPTuningTagger(tiny("bert"), preset="instant", verbose=False).fit(TOKENS, TAGS)
    with pytest.raises(CPTuningError, match="int8"):
        tagger.export(tmp_path / "onnx", int8=True)
