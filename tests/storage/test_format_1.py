"""Folders of format 1, written by the code of that time, are read as if they were written today."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import cptuning
from cptuning.storage import FORMAT

STORED = Path(__file__).parent / "format_1"
ANSWERS = json.loads((STORED / "answers.json").read_text())


@pytest.fixture(params=ANSWERS["probabilities"])
def method(request):
    return request.param


def test_a_folder_of_format_1_answers_as_it_did(method):
    loaded = cptuning.load(STORED / method)
    found = loaded.predict_proba(ANSWERS["texts"])
    np.testing.assert_allclose(found, ANSWERS["probabilities"][method], atol=1e-6)
    assert loaded.settings_.selection == "one-standard-error"
    if method == "lm-bff-l":
        assert loaded.words_per_class == loaded.settings_.words_per_class == 3


def test_saving_it_again_makes_it_one_of_todays(method, tmp_path):
    model = shutil.copytree(STORED / method, tmp_path / "model")
    cptuning.load(model).save(model)
    assert json.loads((model / "cptuning.json").read_text())["format"] == FORMAT
    found = cptuning.load(model).predict_proba(ANSWERS["texts"])
    np.testing.assert_allclose(found, ANSWERS["probabilities"][method], atol=1e-6)
