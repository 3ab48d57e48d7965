"""The embedded backbone without torch is what torch loads, and others are told apart from it."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_tensors

from cptuning.backbone import describe, load_backbone, packed, unpack
from cptuning.backbone.packed import (
    EMBEDDED,
    GRAPH_FILE,
    PACKED_WEIGHTS,
    PackedBackbone,
    graph_weights,
    has_embedded_architecture,
    unpacked,
)
from cptuning.errors import CPTuningError
from pretraining.graph import embedded_graph


@pytest.fixture(scope="module")
def embedded():
    return load_backbone("embedded")


@pytest.fixture
def copy(tmp_path):
    for name in packed.BACKBONE_FILES:
        shutil.copyfile(EMBEDDED / name, tmp_path / name)
    return tmp_path


def test_it_is_read_as_torch_reads_it(embedded):
    found = PackedBackbone()
    assert found.special == embedded.special
    assert found.vocabulary == embedded.vocabulary
    assert found.max_length == embedded.max_length
    assert found.facts == describe(embedded)
    texts = ["Where is my parcel?", "naïve [MASK] café", "", "很好"]
    assert [found.fast_tokenizer.encode(text).ids for text in texts] == [
        embedded.fast_tokenizer.encode(text).ids for text in texts
    ]


def test_weights_are_unpacked_to_the_same_bits(embedded):
    weights = unpacked(load_file(EMBEDDED / PACKED_WEIGHTS))
    state = embedded.model.state_dict()
    for name in set(weights) & set(state):
        np.testing.assert_array_equal(weights[name], state[name].numpy())
    in_torch = unpack(load_tensors(EMBEDDED / PACKED_WEIGHTS))
    assert all(torch.equal(in_torch[name], torch.as_tensor(w)) for name, w in weights.items())


def test_the_graph_in_the_package_is_up_to_date():
    """If not: python -m pretraining.graph."""
    assert (EMBEDDED / GRAPH_FILE).read_bytes() == embedded_graph()


def test_a_copy_of_it_is_a_backbone(copy, embedded):
    assert has_embedded_architecture(copy)
    found = load_backbone(copy)
    assert found.name == str(copy)
    assert found.views("auto")[1].text_only
    assert all(
        torch.equal(found.state_dict()[name], tensor)
        for name, tensor in embedded.state_dict().items()
    )


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), "utf-8")


@pytest.mark.parametrize("changed", [{"num_attention_heads": 12}, {"hidden_act": "relu"}])
def test_another_architecture_is_not_computed_by_the_graph(copy, changed):
    change(copy / "config.json", **changed)
    assert not has_embedded_architecture(copy)
    with pytest.raises(CPTuningError, match="are of an unknown architecture"):
        load_backbone(copy)


def test_weights_that_are_not_those_of_the_architecture_are_refused(copy):
    change(copy / "config.json", vocab_size=10**12)
    with pytest.raises(CPTuningError, match="are damaged: save or copy the model again"):
        load_backbone(copy)
    weights = load_file(copy / PACKED_WEIGHTS)
    del weights["sentence.dense.bias"]
    save_file(weights, copy / PACKED_WEIGHTS)
    with pytest.raises(ValueError, match="not those of its architecture"):
        graph_weights(copy, PackedBackbone().vocabulary)


def test_a_saved_sentence_view_of_another_kind_is_not_computed_by_the_graph(embedded, tmp_path):
    from cptuning.backbone.sentence_folder import write_sentence_modules

    embedded.model.save_pretrained(tmp_path)
    assert not has_embedded_architecture(tmp_path)
    write_sentence_modules(embedded.own_pooling, tmp_path)
    assert has_embedded_architecture(tmp_path)
    weights = graph_weights(tmp_path, embedded.vocabulary)
    expected = graph_weights(EMBEDDED, embedded.vocabulary)
    assert weights.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(weights[name], array)
    change(tmp_path / "1_Pooling" / "config.json", text_only=False)
    assert not has_embedded_architecture(tmp_path)
