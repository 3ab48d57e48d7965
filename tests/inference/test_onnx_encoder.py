"""Graphs from strangers are refused in a sentence; exported models are tested in tests/export."""

import os
import re
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cptuning.backbone.joined_views import Views
from cptuning.errors import CPTuningError
from cptuning.inference import onnx_encoder, onnx_file
from cptuning.inference.onnx_encoder import OnnxEncoder
from cptuning.prompting import Encoding

WIDTH = 4


def tensor(name="table"):
    return numpy_helper.from_array(np.ones((9, WIDTH), np.float32), name)


def model(nodes=(), tensors=(), domains=("",), **more):
    """A graph that reads a row of ``table`` for the first token of each text, and more nodes."""
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["input_ids", "zero"], ["first"], axis=1),
            helper.make_node("Gather", ["table", "first"], ["embeddings"]),
            *nodes,
        ],
        "encoder",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["batch", WIDTH])],
        [numpy_helper.from_array(np.array(0), "zero"), *(tensors or [tensor()])],
    )
    opsets = [helper.make_opsetid(domain, 18 if domain == "" else 1) for domain in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **more)


def external(location):
    """The table, with its numbers in another file."""
    elsewhere = tensor()
    elsewhere.ClearField("raw_data")
    elsewhere.data_location = TensorProto.EXTERNAL
    elsewhere.external_data.add(key="location", value=location)
    return elsewhere


def encoder_of(graph, folder, ids=(1, 2)):
    path = folder / "encoder.onnx"
    path.write_bytes(graph if isinstance(graph, bytes) else graph.SerializeToString())
    return OnnxEncoder(FixedLayout(ids), path)


def sequence(*ids):
    ids = np.array(ids)
    return Encoding(ids, 0 * ids, ids > 0, output=0, shortened=False)


class FixedLayout:
    """Gives every text the same ids, but for the last one, which is its place."""

    def __init__(self, ids):
        self.ids = ids

    def encode(self, examples):
        return [sequence(*self.ids, place) for place in range(len(examples))]


def test_a_graph_with_everything_it_needs_is_read(tmp_path):
    found = encoder_of(model(), tmp_path).embed(["one", "two"])
    np.testing.assert_array_equal(found, np.ones((2, WIDTH)))


@pytest.mark.parametrize(
    "contents", [None, b"", b"no graph", b"\x3a\xff\xff\xff\xff\x0f", b"\xff" * 99]
)
def test_a_file_that_is_no_graph_is_named(tmp_path, contents):
    path = tmp_path / "encoder.onnx"
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(CPTuningError, match=r"encoder\.onnx is not a readable ONNX model"):
        OnnxEncoder(layout=None, path=path)


@pytest.mark.parametrize("location", ["../secret.bin", "beside.bin", "/secret.bin"])
def test_weights_in_another_file_are_refused(tmp_path, monkeypatch, location):
    folder = tmp_path / "model"
    folder.mkdir()
    for secret in (tmp_path / "secret.bin", folder / "beside.bin"):
        secret.write_bytes(tensor().raw_data)
    monkeypatch.chdir(folder)
    with pytest.raises(CPTuningError, match="has weights in another file"):
        encoder_of(model(tensors=[external(location)]), folder)


def test_weights_in_another_file_are_refused_in_attributes_too(tmp_path):
    constant = helper.make_node("Constant", [], ["unused"], value=external("../secret.bin"))
    with pytest.raises(CPTuningError, match="has weights in another file"):
        encoder_of(model([constant]), tmp_path)


def with_training(graph):
    graph.training_info.append(onnx.TrainingInfoProto())
    return graph


def branch():
    return helper.make_graph([], "branch", [], [helper.make_empty_tensor_value_info("zero")])


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (
            model([helper.make_node("Run", ["first"], ["x"], domain="evil")], domains=("", "evil")),
            "operators of a foreign domain",
        ),
        (
            model([helper.make_node("Loop", [], ["x"], body=branch())]),
            "a subgraph",
        ),
        (
            model(
                functions=[
                    helper.make_function("own", "F", [], [], [], [helper.make_opsetid("", 18)])
                ],
                domains=("", "own"),
            ),
            "functions of its own",
        ),
        (with_training(model()), "a training graph"),
    ],
    ids=["domain", "subgraph", "function", "training"],
)
def test_what_no_exported_model_has_is_refused(tmp_path, graph, said):
    with pytest.raises(CPTuningError, match=rf"encoder\.onnx has {said}, which no exported"):
        encoder_of(graph, tmp_path)


def test_a_link_a_pipe_and_a_folder_are_refused(tmp_path):
    (tmp_path / "elsewhere.onnx").write_bytes(model().SerializeToString())
    (tmp_path / "link.onnx").symlink_to(tmp_path / "elsewhere.onnx")
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "folder.onnx").mkdir()
    for name in ("link", "pipe", "folder"):
        with pytest.raises(CPTuningError, match=rf"{name}\.onnx is not a"):
            OnnxEncoder(layout=None, path=tmp_path / f"{name}.onnx")


def test_files_and_graphs_have_a_largest_size(tmp_path, monkeypatch):
    path = tmp_path / "encoder.onnx"
    with path.open("wb") as file:
        file.truncate(onnx_file.MAX_BYTES + 1)  # It has no contents and takes no room.
    with pytest.raises(CPTuningError, match="is not a plain file of at most 2 GiB"):
        OnnxEncoder(layout=None, path=path)
    monkeypatch.setattr(onnx_file, "MAX_OPERATORS", 1)
    with pytest.raises(CPTuningError, match="has more than 1 operators"):
        encoder_of(model(), tmp_path)


def test_a_graph_can_not_take_all_memory(tmp_path):
    """It would take more than there is in most machines, and a minute to fill."""
    many = numpy_helper.from_array(np.array([300_000, 300_000]), "many")
    grown = [
        helper.make_node("ConstantOfShape", ["many"], ["zeros"]),
        helper.make_node("ReduceSum", ["zeros"], ["sum"], keepdims=0),
        helper.make_node("Add", ["embeddings", "sum"], ["moved"]),
    ]
    graph = model(grown, [tensor(), many])
    graph.graph.output[0].name = "moved"
    assert onnx_encoder._MAX_MEMORY < 4 * 300_000**2
    with pytest.raises(CPTuningError, match=r"encoder\.onnx can't compute embeddings"):
        encoder_of(graph, tmp_path).embed(["one"])


def test_ids_that_the_graph_does_not_know_are_a_sentence(tmp_path):
    with pytest.raises(CPTuningError, match=r"encoder\.onnx can't compute embeddings"):
        encoder_of(model(), tmp_path, ids=(99, 2)).embed(["one"])


def renamed_input(graph):
    graph.graph.input[0].name = graph.graph.node[0].input[0] = "pixels"


def two_outputs(graph):
    graph.graph.output.append(helper.make_tensor_value_info("first", TensorProto.INT64, ["batch"]))


def output_of_integers(graph):
    del graph.graph.output[:]
    two_outputs(graph)


@pytest.mark.parametrize("change", [renamed_input, two_outputs, output_of_integers])
def test_a_graph_that_is_not_an_encoder_is_refused(tmp_path, change):
    graph = model()
    change(graph)
    with pytest.raises(CPTuningError, match=r"encoder\.onnx is not an encoder"):
        encoder_of(graph, tmp_path)


def test_a_graph_must_give_one_vector_per_text(tmp_path):
    graph = model([helper.make_node("Flatten", ["embeddings"], ["row"], axis=0)])
    graph.graph.output[0].name = "row"
    with pytest.raises(CPTuningError, match="does not give one embedding per text"):
        encoder_of(graph, tmp_path).embed(["one", "two"])


def features_of(table, views, folder):
    """An encoder whose features of a sequence are the row of its first token."""
    graph = model(tensors=[numpy_helper.from_array(np.array(table, np.float32), "table")])
    graph.graph.node[1].output[0] = graph.graph.output[0].name = "features"
    path = folder / "encoder.onnx"
    path.write_bytes(graph.SerializeToString())
    return OnnxEncoder(FixedLayout((1,)), path, views)


def test_features_of_a_pair_are_joined_from_its_sequences_each_distinct_one_read_once(
    tmp_path, monkeypatch
):
    views = Views(np.array([1, 0, 0, 0], np.float32), mask_width=2, sentence_weight=2.0)
    table = np.random.default_rng(0).normal(size=(9, WIDTH)).astype(np.float32)
    encoder = features_of(table, views, tmp_path)
    rows = []
    monkeypatch.setattr(
        onnx_encoder, "run", lambda s, e, run=onnx_encoder.run: rows.extend(e) or run(s, e)
    )
    ids = [(1, 2, 3), (4, 2, 2)]
    encodings = [
        replace(sequence(first, 5), others=(sequence(second), sequence(third)))
        for first, second, third in ids
    ]
    expected = views.embeddings(table[np.array(ids)])
    np.testing.assert_allclose(encoder.embed_encodings(encodings), expected, rtol=1e-6)
    assert len(rows) == 4


def test_features_and_views_are_refused_without_each_other(tmp_path):
    views = Views(np.zeros(WIDTH, np.float32), mask_width=2)
    with pytest.raises(CPTuningError, match=r"views\.safetensors do not belong together"):
        features_of(np.ones((9, WIDTH)), None, tmp_path)
    encoder_of(model(), tmp_path)
    with pytest.raises(CPTuningError, match=r"views\.safetensors do not belong together"):
        OnnxEncoder(FixedLayout((1,)), tmp_path / "encoder.onnx", views)
    narrow = Views(np.zeros(1, np.float32), mask_width=1)
    with pytest.raises(CPTuningError, match="does not give one embedding per text"):
        features_of(np.ones((9, WIDTH)), narrow, tmp_path).embed(["one"])


def test_a_runtime_says_nothing_by_itself(tmp_path, capfd):
    with pytest.raises(CPTuningError):
        encoder_of(model(), tmp_path, ids=(99, 2)).embed(["one"])
    assert re.sub(r"\s", "", "".join(capfd.readouterr())) == ""


def test_threads_are_as_many_as_asked_for(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert onnx_encoder.available_threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert onnx_encoder.available_threads() == len(os.sched_getaffinity(0))
