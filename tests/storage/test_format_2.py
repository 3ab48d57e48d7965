"""Folders of format 2, written by the code of that time (format_2/make.py), answer as they did."""

import json
import shutil

import numpy as np
import pytest
from tests.storage.format_2.make import ANSWERS, FIXTURES, HERE, answers_of

import cptuning
from cptuning.errors import CPTuningError
from cptuning.storage import FORMAT, load_predictor

EXPECTED = json.loads(ANSWERS.read_text("utf-8"))
IN_FLOATS = 1e-5
# 8 bits: whichever numbers a processor rounds in its own way are looked at again in floats.
IN_8_BITS = 5e-3


def compare(found, expected, tolerance):
    """Texts and labels are equal, numbers nearly."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, abs=tolerance)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            compare(one, other, tolerance)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            compare(found[key], expected[key], tolerance)
    else:
        assert found == expected


def tolerance_of(name):
    return IN_8_BITS if "int8" in name else IN_FLOATS


def test_the_fixtures_are_those_that_were_written():
    folders = {path.name for path in HERE.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == set(FIXTURES) == set(EXPECTED)
    for name in folders:
        assert json.loads((HERE / name / "cptuning.json").read_text())["format"] == 2


def test_together_they_are_small():
    assert sum(path.stat().st_size for path in HERE.rglob("*") if path.is_file()) < 3_000_000


@pytest.mark.parametrize("name", FIXTURES)
def test_a_stored_model_answers_as_it_did(name):
    found = answers_of(name, cptuning.load(HERE / name))
    compare(found, EXPECTED[name], tolerance_of(name))


@pytest.mark.parametrize("name", [n for n in FIXTURES if not n.startswith("onnx")])
def test_saving_it_again_makes_it_one_of_todays(name, tmp_path):
    cptuning.load(HERE / name).save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "cptuning.json").read_text())["format"] == FORMAT
    found = answers_of(name, cptuning.load(tmp_path / "model"))
    compare(found, EXPECTED[name], tolerance_of(name))


@pytest.mark.parametrize("name", ["cp-tuning", "multi-label", "onnx", "onnx-int8", "added"])
def test_the_predictor_alone_answers_alike(name):
    from tests.storage.format_2.make import ASKED

    predictor = load_predictor(HERE / name)
    found = predictor.predict_proba(list(ASKED))
    np.testing.assert_allclose(found, EXPECTED[name]["probabilities"], atol=tolerance_of(name))


@pytest.mark.parametrize("name", FIXTURES)
def test_a_newer_format_is_one_clear_sentence(name, tmp_path):
    model = shutil.copytree(HERE / name, tmp_path / "model")
    facts = json.loads((model / "cptuning.json").read_text())
    # Whatever else it holds by then: the number is read first.
    newer = {"format": FORMAT + 1, "method": facts["method"], "classes": {"of": "another kind"}}
    (model / "cptuning.json").write_text(json.dumps(newer))
    for load in (cptuning.load, load_predictor):
        with pytest.raises(CPTuningError) as caught:
            load(model)
        assert str(caught.value) == (
            f"The model {model} was written by a newer cptuning (format {FORMAT + 1}, this one "
            f"reads up to {FORMAT}): pip install --upgrade cptuning."
        )
