"""A model folder from a stranger: what can't be one is refused in one sentence, quickly."""

import base64
import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

STORED = Path(__file__).parents[1] / "storage" / "format_1"
DEEP = "[" * 200_000


def edit(path, change):
    """Change what a JSON file holds."""
    stored = json.loads(path.read_text("utf-8"))
    change(stored)
    path.write_text(json.dumps(stored), "utf-8")


def put(*keys):
    """A change of one value, at the end of a path of keys."""
    *path, last, value = keys

    def change(stored):
        for key in path:
            stored = stored[key]
        stored[last] = value

    return change


def replace_by_link(path):
    elsewhere = path.parent.parent / f"elsewhere-{path.name}"
    if path.exists():
        path.rename(elsewhere)
    else:
        elsewhere.write_text("")
    path.symlink_to(elsewhere)


def replace_by_pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def link_folder(model):
    (model / "backbone").rename(model.parent / "elsewhere")
    (model / "backbone").symlink_to(model.parent / "elsewhere")


def link_to_device(model):
    (model / "support.jsonl").unlink()
    (model / "support.jsonl").symlink_to("/dev/zero")


def index_outside(model):
    weights = model / "backbone" / "model.safetensors"
    names = load_file(weights)
    weights.rename(model.parent / "model.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "../../model.safetensors")}
    (model / "backbone" / "model.safetensors.index.json").write_text(json.dumps(index))


def blow_up(model, *steps):
    normalizer = {"type": "Sequence", "normalizers": list(steps)}
    for path in (model / "tokenizer.json", model / "backbone" / "tokenizer.json"):
        edit(path, put("normalizer", normalizer))


def replacement(content, pattern=None):
    return {"type": "Replace", "pattern": pattern or {"String": "a"}, "content": content}


def sentencepiece_map(longest):
    blob = (4).to_bytes(4, "little") + bytes(4) + b"a" * longest + b"\0"
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(blob).decode()}


def vocabulary_of_billions(model):
    edit(model / "cptuning.json", put("layout", "vocabulary", 4_000_000_000))


def one_tensor(model, shape):
    path = model / "support.safetensors"
    tensors = load_file(path)
    save_file(tensors | {"embeddings": np.zeros(shape, np.float32)}, path)


def facts(*keys):
    return lambda model: edit(model / "cptuning.json", put(*keys))


def config(*keys):
    return lambda model: edit(model / "backbone" / "config.json", put(*keys))


def tokenizer(*keys):
    return lambda model: edit(model / "tokenizer.json", put(*keys))


STRANGE = "neither a file nor a folder"
CASES = {
    "cptuning.json is a link": (lambda m: replace_by_link(m / "cptuning.json"), STRANGE),
    "weights are a link": (lambda m: replace_by_link(m / "backbone/model.safetensors"), STRANGE),
    "a folder is a link": (link_folder, STRANGE),
    "a link to a device": (link_to_device, STRANGE),
    "added.jsonl is a link": (lambda m: replace_by_link(m / "added.jsonl"), STRANGE),
    "cptuning.json is a pipe": (lambda m: replace_by_pipe(m / "cptuning.json"), STRANGE),
    "the tokenizer is a pipe": (lambda m: replace_by_pipe(m / "tokenizer.json"), STRANGE),
    "a pipe that nobody reads": (lambda m: replace_by_pipe(m / "more"), STRANGE),
    "an index that leads outside": (index_outside, "it names files outside the folder"),
    "ten million layers": (config("num_hidden_layers", 10_000_000), "num_hidden_layers=10000000"),
    "a thousand layers": (config("num_hidden_layers", 1000), "describes a model of"),
    "ten million labels": (config("num_labels", 10_000_000), "num_labels=10000000"),
    "a vector of billions": (config("hidden_size", 2**40), "hidden_size=1099511627776"),
    "a wider layer": (config("intermediate_size", 9_000_000), "describes a model of"),
    "billions of positions": (config("max_position_embeddings", 2**32), "max_position_embeddings"),
    "another vocabulary": (config("vocab_size", 9_000_000), "describes a model of"),
    "a quantized model": (config("quantization_config", {"quant_method": "x"}), "is quantized"),
    "a vocabulary of billions": (vocabulary_of_billions, "layout.vocabulary is 4000000000"),
    "an id of four billion": (tokenizer("model", "vocab", "great", 4_000_000_000), "4000000000"),
    "an added id of four billion": (tokenizer("added_tokens", 0, "id", 4_000_000_000), "40000000"),
    "a mask past the end": (facts("layout", "special", "mask", 100_000), "layout.special.mask"),
    "a text blown up": (lambda m: blow_up(m, replacement("a" * 10_000_000)), "times longer"),
    "blown up by steps": (lambda m: blow_up(m, *[replacement("a" * 99)] * 9), "times longer"),
    "blown up by a pattern": (
        lambda m: blow_up(m, *[replacement("aa" * 99, {"Regex": ""})] * 2),
        "times longer",
    ),
    "blown up by a map": (lambda m: blow_up(m, *[sentencepiece_map(500)] * 2), "times longer"),
    "words of any length": (tokenizer("model", "max_input_chars_per_word", 10**9), "any length"),
    "deep facts": (lambda m: (m / "cptuning.json").write_text(DEEP), "is damaged"),
    "a deep configuration": (lambda m: (m / "backbone/config.json").write_text(DEEP), "is damaged"),
    "a deep tokenizer": (lambda m: (m / "tokenizer.json").write_text(DEEP), "is damaged"),
    "a deep text": (lambda m: (m / "support.jsonl").write_text(DEEP + "\n"), "is damaged"),
    "a deep journal": (lambda m: (m / "added.jsonl").write_text(DEEP + "\n"), "line 1 is damaged"),
    "a temperature of nothing": (facts("temperature", 1e-320), "temperature is 1e-320"),
    "examples of another length": (lambda m: one_tensor(m, (6, 3)), "of different lengths"),
    "more examples than texts": (lambda m: one_tensor(m, (7, 32)), "is not whole"),
    "a setting nobody knows": (facts("settings", "inference", "oracle"), "inference is 'oracle'"),
    "a foreign checkpoint folder": (facts("parameters", "checkpoint_dir", "/"), "checkpoint_dir"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_folder_is_one_sentence(run, films, tmp_path, case):
    change, sentence = CASES[case]
    model = shutil.copytree(STORED / "cp-tuning", tmp_path / "model")
    change(model)
    began = time.monotonic()
    result = run("predict", model, films)
    assert time.monotonic() - began < 20
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert sentence in line
    assert len(line) < 700
    assert result.stdout == ""


@pytest.mark.parametrize("value", ["flash_attention_2", "somebody/some-kernel", "no such thing"])
@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation"])
def test_a_folder_does_not_choose_the_attention(run, films, tmp_path, name, value):
    model = shutil.copytree(STORED / "cp-tuning", tmp_path / "model")
    expected = run("predict", model, films).stdout
    edit(model / "backbone" / "config.json", put(name, value))
    result = run("predict", model, films)
    assert result.exit_code == 0, result.output
    assert result.stdout == expected
