"""Folders with packed weights: from a stranger, damaged or incomplete, they are one sentence."""

import json
import shutil

import pytest
from safetensors.numpy import load_file, save_file

import cptuning
from cptuning import CPTuningClassifier
from cptuning.errors import CPTuningError
from cptuning.storage import load_predictor

PACKED = "backbone/model.packed.safetensors"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("instant") / "model"
    texts, labels = ["good film", "i loved it", "bad film", "i hated it"], ["+", "+", "-", "-"]
    CPTuningClassifier(preset="instant", verbose=False).fit(texts, labels).save(folder)
    return folder


@pytest.fixture
def model(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def cut_weights(model):
    with (model / PACKED).open("r+b") as file:
        file.truncate(1_000_000)


def lost(name):
    def change(model):
        (model / name).unlink()

    return change


def tensors(change):
    def rewrite(model):
        stored = load_file(model / PACKED)
        change(stored)
        save_file(stored, model / PACKED)

    return rewrite


def facts(name, *path, value):
    def rewrite(model):
        stored = inner = json.loads((model / name).read_text("utf-8"))
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        (model / name).write_text(json.dumps(stored), "utf-8")

    return rewrite


def nest(model):
    (model / "backbone" / "config.json").write_text("[" * 200_000)


CHANGES = {
    "cut": cut_weights,
    "no weights": lost(PACKED),
    "no configuration": lost("backbone/config.json"),
    "no tokenizer": lost("tokenizer.json"),
    "a tensor less": tensors(lambda stored: stored.pop("sentence.dense.weight")),
    "a scale less": tensors(lambda stored: stored.pop("sentence.dense.weight.scale")),
    "a tensor more": tensors(lambda s: s.update(more=s["sentence.dense.bias"])),
    "another architecture": facts("backbone/config.json", "num_attention_heads", value=3),
    "a larger vocabulary": facts("cptuning.json", "layout", "vocabulary", value=1 << 20),
    "a longer text": facts("cptuning.json", "layout", "max_length", value=4096),
    "another view": facts("cptuning.json", "settings", "sentence_weight", value=0.0),
    "nested": nest,
}


@pytest.mark.parametrize("load", [load_predictor, cptuning.load], ids=["answering", "trainable"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_can_not_be_a_model_is_refused(model, change, load):
    change(model)
    with pytest.raises(CPTuningError) as caught:
        load(model)
    assert str(model) in str(caught.value)
    assert "\n" not in str(caught.value)
