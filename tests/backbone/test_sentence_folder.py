"""Sentence encoders in the format of sentence-transformers: read, compared, refused, saved."""

import json
from importlib import import_module
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.tiny import SINGLES, save_sentence_encoder
from torch.testing import assert_close
from transformers import AutoModel, AutoTokenizer

from cptuning.backbone import PromptedEncoder, TextEncoder, layout_for, load_backbone
from cptuning.backbone.encoder_files import EncoderFiles
from cptuning.backbone.pooling import POOLING_MODES
from cptuning.data import as_examples
from cptuning.errors import CPTuningError
from cptuning.prompting import Template

TEXTS = [*SINGLES, "", "great " * 60, "It WAS a Great movie [MASK]"]
FOLDERS = {
    **{mode: {"modes": [mode]} for mode in POOLING_MODES},
    **{f"{a}+{b}": {"modes": [a, b]} for a, b in list(combinations(POOLING_MODES, 2))[::4]},
    "dense": {"dense": [(8, "Tanh")]},
    "two layers": {"dense": [(24, "GELU"), (8, "Identity")], "modes": ["cls", "mean"]},
    "normalize": {"normalize": True},
    "dense, normalize": {"dense": [(8, "Identity")], "normalize": True},
    "prompt": {"prompt": "the movie: "},
    **{
        f"{mode}, prompt not counted": {
            "modes": [mode],
            "prompt": "it is ",
            "include_prompt": False,
        }
        for mode in POOLING_MODES
    },
    "prompt that is not there": {"include_prompt": False},
    "short": {"max_length": 12},
    "lower case": {"architecture": "roberta", "lower_case": True},
    "roberta": {"architecture": "roberta"},
    "mpnet": {"architecture": "mpnet"},
}
every_folder = pytest.mark.parametrize("name", FOLDERS)


def encoder_of(folder, pooling="auto"):
    backbone = load_backbone(folder)
    _, sentence = backbone.views(pooling)
    template = Template.parse("{a}", needs_output=False)
    layout = layout_for(backbone, template, 64, text_prefix=sentence.text_prefix)
    module = PromptedEncoder(backbone, layout.prompt_ids, pooling=sentence)
    return TextEncoder(layout, module.eval(), backbone)


def features(encoder, texts):
    return encoder._features(encoder.layout.encode(as_examples(texts)))


def slow_embedding(folder, text, **changes):
    """The embedding of one text, made with transformers alone."""
    folder = Path(folder)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    case = {"modes": ["mean"], "prompt": "", "include_prompt": True, "max_length": 40, **changes}
    if case.get("lower_case"):
        text = text.lower()
    own = case["prompt"] + text
    # What looks like a special token is text to us.
    ids = tokenizer(own, split_special_tokens=True)["input_ids"]
    ids = (
        [*ids[: min(case["max_length"], 64) - 1], ids[-1]] if len(ids) > case["max_length"] else ids
    )
    with torch.no_grad():
        tokens = model.eval()(input_ids=torch.tensor([ids])).last_hidden_state[0]
    start = 0
    if case["prompt"] and not case["include_prompt"]:
        start = len(tokenizer(case["prompt"])["input_ids"]) - 1
    weights = torch.arange(1.0, len(tokens) + 1)[start:, None]
    tokens = tokens[start:]
    vectors = {
        "cls": tokens[0],
        "max": tokens.max(dim=0).values,
        "mean": tokens.mean(dim=0),
        "mean_sqrt_len_tokens": tokens.sum(dim=0) / len(tokens) ** 0.5,
        "weightedmean": (tokens * weights).sum(dim=0) / weights.sum(),
        "lasttoken": tokens[-1],
    }
    vector = torch.cat([vectors[mode] for mode in case["modes"]])
    for place in sorted(folder.glob("*_Dense")):
        state = load_file(place / "model.safetensors")
        vector = state["linear.weight"] @ vector + state["linear.bias"]
        name = json.loads((place / "config.json").read_text())["activation_function"]
        vector = getattr(torch.nn, name.rpartition(".")[2])()(vector)
    return vector / vector.norm() if case.get("normalize") else vector


@every_folder
def test_an_embedding_is_what_the_modules_say(name, tmp_path):
    folder = save_sentence_encoder(tmp_path, **FOLDERS[name])
    found = features(encoder_of(folder), TEXTS)
    for text, row in zip(TEXTS, found, strict=True):
        assert_close(row, slow_embedding(folder, text, **FOLDERS[name]), rtol=1e-4, atol=1e-5)


@every_folder
def test_an_embedding_is_that_of_sentence_transformers(name, tmp_path):
    package = import_module("sentence_transformers")  # heavy, and for two tests only
    folder = save_sentence_encoder(tmp_path, **FOLDERS[name])
    # A special token in a text is one to sentence-transformers, and text to us.
    texts = TEXTS[:-1]
    model = package.SentenceTransformer(str(folder), device="cpu")
    expected = torch.from_numpy(model.encode(texts))
    assert_close(features(encoder_of(folder), texts), expected, rtol=1e-4, atol=1e-5)


@every_folder
def test_a_saved_encoder_gives_the_same_embeddings(name, tmp_path):
    encoder = encoder_of(save_sentence_encoder(tmp_path / "a", **FOLDERS[name]))
    expected = encoder.embed(as_examples(TEXTS))
    encoder.save(tmp_path)
    device = torch.device("cpu")
    again = TextEncoder.load(EncoderFiles.of(tmp_path), encoder.layout, "head", device, "auto")
    np.testing.assert_array_equal(again.embed(as_examples(TEXTS)), expected)
    assert not list(tmp_path.rglob("*.bin"))
    copy = encoder_of(tmp_path / "backbone")  # It is a sentence encoder again.
    assert copy.layout.text_prefix == encoder.layout.text_prefix
    np.testing.assert_array_equal(copy.embed(as_examples(TEXTS)), expected)


def test_a_saved_encoder_is_one_for_sentence_transformers_too(tmp_path):
    package = import_module("sentence_transformers")  # heavy, and for two tests only
    case = {"modes": ["cls", "mean"], "dense": [(8, "Tanh")], "normalize": True, "prompt": "it is "}
    encoder = encoder_of(save_sentence_encoder(tmp_path / "a", **case))
    encoder.save(tmp_path)
    model = package.SentenceTransformer(str(tmp_path / "backbone"), device="cpu")
    expected = torch.from_numpy(model.encode(TEXTS[:-1]))
    assert_close(features(encoder, TEXTS[:-1]), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", POOLING_MODES)
def test_older_folders_have_a_key_for_each_mode(mode, tmp_path):
    folder = save_sentence_encoder(tmp_path)
    key = f"pooling_mode_{mode}" if mode == "lasttoken" else f"pooling_mode_{mode}_tokens"
    key = {"cls": "pooling_mode_cls_token"}.get(mode, key.replace("tokens_tokens", "tokens"))
    config = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": False, key: True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))
    assert load_backbone(folder).own_pooling.modes == (mode,)


def test_a_module_goes_by_the_last_part_of_its_type(tmp_path):
    """The rest has changed between versions of sentence-transformers."""
    folder = save_sentence_encoder(tmp_path, modes=["max"], types="some.newer.place.")
    assert load_backbone(folder).own_pooling.modes == ("max",)


def test_a_plain_encoder_is_pooled_and_a_masked_lm_is_not(tiny, headless):
    assert load_backbone(tiny("bert")).views("auto") == (True, None)
    assert load_backbone(headless).views("auto")[1].modes == ("mean",)
    assert load_backbone(tiny("bert")).views("cls")[1].modes == ("cls",)
    assert load_backbone(headless).views("mask") == (True, None)


def test_a_folder_may_hold_its_model_in_a_folder_of_its_own(tmp_path):
    whole = save_sentence_encoder(tmp_path / "a")
    inner = save_sentence_encoder(tmp_path / "b" / "0_Transformer")
    for part in ("modules.json", "1_Pooling"):
        (inner / part).rename(tmp_path / "b" / part)
    modules = json.loads((tmp_path / "b" / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (tmp_path / "b" / "modules.json").write_text(json.dumps(modules))
    found = features(encoder_of(tmp_path / "b"), SINGLES)
    assert_close(found, features(encoder_of(whole), SINGLES))


def edited(path, **changes):
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | changes))


def with_module(folder, kind, path="9_Other"):
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 9, "name": "9", "path": path, "type": f"somewhere.models.{kind}"})
    (folder / "modules.json").write_text(json.dumps(modules))


def pickled(folder):
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")


def begins_with_a_table(folder):
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["type"] = "sentence_transformers.models.StaticEmbedding"
    (folder / "modules.json").write_text(json.dumps(modules))


DAMAGE = {
    "an unknown module": (lambda f: with_module(f, "WordWeights"), "the module WordWeights"),
    "a path outside": (lambda f: with_module(f, "Dense", "../x"), "outside the folder"),
    "no transformer": (begins_with_a_table, "begins with StaticEmbedding, Pooling"),
    "pickled weights": (pickled, "pytorch_model.bin is pickled"),
    "an unknown mode": (
        lambda f: edited(f / "1_Pooling" / "config.json", pooling_mode="median"),
        "the pooling mode median",
    ),
    "another width": (
        lambda f: edited(f / "1_Pooling" / "config.json", embedding_dimension=17),
        "its sizes do not fit",
    ),
    "a huge layer": (
        lambda f: edited(f / "2_Dense" / "config.json", out_features=1 << 20),
        "its sizes do not fit",
    ),
    "no width": (
        lambda f: edited(f / "2_Dense" / "config.json", out_features="8"),
        "its out_features is 8",
    ),
    "an unknown activation": (
        lambda f: edited(f / "2_Dense" / "config.json", activation_function="os.system"),
        "the activation system",
    ),
    "a residual": (
        lambda f: edited(f / "2_Dense" / "config.json", use_residual=True),
        "has a residual",
    ),
    "a cut file": (
        lambda f: (f / "2_Dense" / "model.safetensors").write_bytes(b"12345678"),
        "model.safetensors is damaged",
    ),
    "a default prompt without text": (
        lambda f: edited(f / "config_sentence_transformers.json", default_prompt_name="x"),
        "its default prompt",
    ),
    "no list": (lambda f: (f / "modules.json").write_text("{}"), "modules.json is damaged"),
    "not JSON": (lambda f: (f / "modules.json").write_text("["), "modules.json is damaged"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_can_not_be_used_is_refused_in_a_sentence(what, tmp_path):
    damage, sentence = DAMAGE[what]
    folder = save_sentence_encoder(tmp_path, dense=[(8, "Tanh")])
    load_backbone(folder)
    damage(folder)
    with pytest.raises(CPTuningError, match=sentence):
        load_backbone(folder)


def test_a_pooling_for_another_model_is_refused(tmp_path):
    folder = save_sentence_encoder(tmp_path)
    edited(folder / "1_Pooling" / "config.json", embedding_dimension=17)
    with pytest.raises(CPTuningError, match="vectors of 17 numbers, and its model gives 16"):
        load_backbone(folder)


def test_a_decoder_only_embedder_is_refused(tmp_path):
    from transformers import Qwen3Config

    folder = save_sentence_encoder(tmp_path, modes=["lasttoken"])
    Qwen3Config(hidden_size=16, num_hidden_layers=1).save_pretrained(folder)
    with pytest.raises(CPTuningError, match="decoder-only model, which reads from left to right"):
        load_backbone(folder)


def test_a_prompt_needs_room(tmp_path):
    folder = save_sentence_encoder(tmp_path, prompt="the movie was great and dull ", max_length=8)
    with pytest.raises(CPTuningError, match="leaves no room"):
        encoder_of(folder)
