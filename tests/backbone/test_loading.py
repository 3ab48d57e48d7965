"""Backbones by name: what is loaded, and what is said when nothing can be."""

import json
import logging
import shutil

import pytest
import torch
from safetensors.numpy import load_file as load_arrays
from safetensors.torch import load_file, save_file
from tests.tiny import ARCHITECTURES
from transformers import AutoModelForMaskedLM, AutoTokenizer

from cptuning.backbone import describe, load_backbone, packed
from cptuning.backbone.packed import EMBEDDED
from cptuning.errors import CPTuningError


def dtypes(model):
    return {tensor.dtype for tensor in model.state_dict().values() if tensor.is_floating_point()}


@pytest.mark.parametrize("as_type", [str, lambda path: path])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_folder_is_loaded_with_its_weights(tiny, architecture, as_type):
    folder = tiny(architecture)
    backbone = load_backbone(as_type(folder))
    assert backbone.name == str(folder)
    assert backbone.has_head
    assert not backbone.model.training
    assert dtypes(backbone.model) == {torch.float32}
    stored = load_file(folder / "model.safetensors")
    loaded = backbone.model.state_dict()
    assert set(stored) <= set(loaded)
    assert all(torch.equal(loaded[name], tensor) for name, tensor in stored.items())


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_files_load_as_float32(tiny, tmp_path, architecture, dtype):
    AutoModelForMaskedLM.from_pretrained(tiny(architecture), dtype=dtype).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny(architecture)).save_pretrained(tmp_path)
    assert {t.dtype for t in load_file(tmp_path / "model.safetensors").values()} == {dtype}
    assert dtypes(load_backbone(tmp_path).model) == {torch.float32}


def test_a_model_without_a_head_is_loaded_and_said_to_have_none(headless, caplog):
    with caplog.at_level(logging.WARNING, logger="cptuning"):
        backbone = load_backbone(headless)
    assert not backbone.has_head
    assert type(backbone.model).__name__ == "BertModel"
    assert [record.message for record in caplog.records if record.name == "cptuning"] == [
        f"{headless} has no masked-LM head: a text's vector is the mean of its tokens' (pooling), "
        "and there is no masked-LM loss."
    ]


def test_a_model_with_a_head_is_loaded_in_silence(tiny, caplog):
    load_backbone(tiny("bert"))
    assert not [record for record in caplog.records if record.name == "cptuning"]


def test_a_card_says_what_the_backbone_is(tiny):
    backbone = load_backbone(tiny("bert"))
    facts = describe(backbone)
    assert facts["name"] == "bert"  # The folder's name, not its place.
    assert facts["architecture"] == "BertForMaskedLM"
    stored = load_file(tiny("bert") / "model.safetensors").values()
    assert facts["parameters"] == sum(tensor.numel() for tensor in stored)


# What goes wrong.


def sentence(name):
    """What is said of a backbone that can't be loaded: one line."""
    with pytest.raises(CPTuningError) as caught:
        load_backbone(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def copy(tiny, tmp_path):
    """A copy of a tiny BERT's folder, to be damaged."""
    return shutil.copytree(tiny("bert"), tmp_path / "copy")


@pytest.mark.parametrize("name", ["somebody/some-model", "some-model", "no such thing!"])
def test_a_name_that_is_not_there_without_network_says_what_to_do(name):
    said = sentence(name)
    assert repr(name) in said
    for advice in ("check its name and the network", "give its folder", "backbone='embedded'"):
        assert advice in said


def test_a_folder_that_is_not_there(tmp_path):
    assert "is neither a folder here" in sentence(tmp_path / "nothing")


def test_a_folder_without_a_model(tmp_path):
    assert "holds no model (it has no config.json)" in sentence(tmp_path)


@pytest.mark.parametrize(
    "contents", [b"", b"garbage" * 99, (1 << 40).to_bytes(8, "little") + b"{}"]
)
def test_corrupt_weights(copy, contents):
    (copy / "model.safetensors").write_bytes(contents)
    assert f"The folder {copy} could not be loaded" in sentence(copy)


def test_weights_that_end_too_soon(copy):
    path = copy / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert f"The folder {copy} could not be loaded" in sentence(copy)


def test_no_weights(copy):
    (copy / "model.safetensors").unlink()
    assert "no file named model.safetensors, or it is damaged" in sentence(copy)


def test_pickled_weights_are_not_read(copy):
    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    assert f"The folder {copy} could not be loaded" in sentence(copy)


def test_an_encoder_with_a_missing_layer(copy):
    path = copy / "model.safetensors"
    weights = {name: t for name, t in load_file(path).items() if "layer.1." not in name}
    save_file(weights, path, {"format": "pt"})
    assert sentence(copy) == f"The model {copy} lacks weights of its encoder: it is damaged."


def change(path, **changes):
    """Change a JSON file; a value of None removes the key."""
    facts = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: v for name, v in facts.items() if v is not None}))


@pytest.mark.parametrize(
    ("model_type", "kind"), [("gpt2", "a decoder-only model"), ("t5", "an encoder-decoder")]
)
def test_a_model_that_is_no_encoder(copy, model_type, kind):
    change(copy / "config.json", model_type=model_type, architectures=None)
    assert f"The backbone {copy} is {kind}" in sentence(copy)


@pytest.mark.parametrize("model_type", ["no-such-type", None])
def test_a_model_of_another_kind(copy, model_type):
    change(copy / "config.json", model_type=model_type, architectures=None)
    assert f"The folder {copy} could not be loaded as a masked language model" in sentence(copy)


def test_a_broken_configuration(copy):
    (copy / "config.json").write_text("{")
    assert "config.json" in sentence(copy)


def test_a_broken_tokenizer(copy):
    (copy / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}')
    assert f"The folder {copy} could not be loaded" in sentence(copy)


@pytest.mark.parametrize("role", ["mask_token", "pad_token"])
def test_a_tokenizer_without_a_mask_or_padding_token(copy, role):
    change(copy / "tokenizer_config.json", **{role: None})
    assert f"The tokenizer of {copy} has no mask or padding token" in sentence(copy)


def test_a_tokenizer_whose_files_are_missing(copy):
    (copy / "tokenizer.json").unlink()
    (copy / "tokenizer_config.json").unlink()
    assert "or the tokenizer's files are missing" in sentence(copy)


def test_a_tokenizer_with_more_tokens_than_the_model_has_rows(copy):
    tokenizer = AutoTokenizer.from_pretrained(copy)
    tokenizer.add_tokens(["quux"])
    tokenizer.save_pretrained(copy)
    n = len(tokenizer)
    assert f"knows {n} tokens and the model {n - 1}: they don't belong together" in sentence(copy)


def test_code_that_comes_with_a_model_is_not_run(copy, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked whether to run it"))
    change(
        copy / "config.json",
        model_type="own",
        auto_map={"AutoConfig": "own.Config", "AutoModelForMaskedLM": "own.Model"},
    )
    (copy / "own.py").write_text("raise SystemExit('it was run')")
    assert f"The folder {copy} could not be loaded" in sentence(copy)


# The embedded backbone.


@pytest.fixture(scope="module")
def embedded():
    return load_backbone("embedded")


def best_fillings(model, tokenizer, text, n=5):
    inputs = tokenizer(text, return_tensors="pt")
    place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    with torch.no_grad():
        logits = model(**inputs).logits[0, place]
    return tokenizer.convert_ids_to_tokens(logits.topk(n).indices.tolist())


def test_the_embedded_backbone_weighs_no_more_than_30_megabytes():
    assert sum(path.stat().st_size for path in EMBEDDED.iterdir()) <= 30_000_000


def test_it_is_the_default_and_loads_as_float32(embedded):
    assert embedded.name == load_backbone().name == "embedded"
    assert dtypes(embedded.model) == {torch.float32}
    assert not embedded.model.training
    assert all(tensor.device.type == "cpu" for tensor in embedded.model.state_dict().values())


def test_it_fills_masks(embedded):
    found = best_fillings(embedded.model, embedded.tokenizer, "this movie was [MASK], i loved it.")
    assert {"great", "amazing", "awesome"} <= set(found)


def test_a_damaged_installation_is_named(monkeypatch):
    some = dict(list(load_arrays(EMBEDDED / packed.PACKED_WEIGHTS).items())[:4])
    monkeypatch.setattr(packed, "load_file", lambda _path: some)
    with pytest.raises(CPTuningError, match="damaged: install the package again"):
        load_backbone("embedded")


def test_saved_it_is_a_plain_model_of_transformers(embedded, tmp_path):
    embedded.model.save_pretrained(tmp_path)
    embedded.tokenizer.save_pretrained(tmp_path)
    model = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    inputs = tokenizer("the food was [MASK].", "and cold", return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(model(**inputs).logits, embedded.model(**inputs).logits)
    assert load_backbone(tmp_path).has_head
