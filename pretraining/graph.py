"""The embedded backbone's architecture as an ONNX graph without weights, for use without torch.

``python -m pretraining.graph`` writes it into the package. Its weights are missing on purpose: they
are called as in the model's state dict, and given to ONNX Runtime when the graph is loaded.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cptuning.backbone.packed import EMBEDDED, GRAPH_FILE

_MICROSOFT = "com.microsoft"
_OPSET, _IR_VERSION = 18, 10


class _Writer:
    """Adds one node after another; each has one output, which is returned."""

    def __init__(self, epsilon: float) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._epsilon = epsilon

    def node(self, kind: str, *inputs: str, name: str = "", domain: str = "", **more: Any) -> str:
        output = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **more))
        return output

    def constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value), name))
        return name

    def linear(self, rows: str, name: str) -> str:
        return self.node("Gemm", rows, f"{name}.weight", f"{name}.bias", transB=1)

    def norm(self, rows: str, name: str) -> str:
        weights = f"{name}.weight", f"{name}.bias"
        return self.node("LayerNormalization", rows, *weights, axis=-1, epsilon=self._epsilon)

    def gelu(self, rows: str) -> str:
        return self.node("Gelu", rows, domain=_MICROSOFT)


def weightless_graph(config: dict[str, Any]) -> onnx.ModelProto:
    """Token ids of texts of one length in; the features of both views out.

    ``outputs`` is the position of [OMSK] in each text, ``is_text`` is one at the text's own tokens.
    """
    width, heads = config["hidden_size"], config["num_attention_heads"]
    write = _Writer(config["layer_norm_eps"])
    # All but attention treats tokens one by one: they are rows of one matrix.
    as_rows = write.constant([-1, width])
    first, second = write.constant([0]), write.constant([1])

    table = "bert.embeddings.{}_embeddings.weight".format
    length = write.node("Shape", "input_ids", start=1, end=2)
    words = write.node("Gather", table("word"), "input_ids")
    types = write.node("Gather", table("token_type"), "token_type_ids")
    positions = write.node("Slice", table("position"), first, length, first)
    tokens = write.node("Add", write.node("Add", words, types), positions)
    shape = write.node("Shape", tokens)
    rows = write.node("Reshape", tokens, as_rows)
    rows = write.norm(rows, "bert.embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        inside = f"bert.encoder.layer.{layer}."
        read = [
            write.node("Reshape", write.linear(rows, f"{inside}attention.self.{part}"), shape)
            for part in ("query", "key", "value")
        ]
        attended = write.node("MultiHeadAttention", *read, domain=_MICROSOFT, num_heads=heads)
        attended = write.node("Reshape", attended, as_rows)
        attended = write.linear(attended, f"{inside}attention.output.dense")
        rows = write.node("Add", attended, rows)
        rows = write.norm(rows, f"{inside}attention.output.LayerNorm")
        inner = write.gelu(write.linear(rows, f"{inside}intermediate.dense"))
        rows = write.node("Add", write.linear(inner, f"{inside}output.dense"), rows)
        rows = write.norm(rows, f"{inside}output.LayerNorm")
    tokens = write.node("Reshape", rows, shape)

    at_mask = write.node("GatherND", tokens, "outputs", batch_dims=1)
    head = "cls.predictions.transform."
    mask = write.linear(write.node("Reshape", at_mask, as_rows), f"{head}dense")
    mask = write.norm(write.gelu(mask), f"{head}LayerNorm")

    counted = write.node("Cast", "is_text", to=TensorProto.FLOAT)
    count = write.node("ReduceSum", counted, second, keepdims=1)
    count = write.node("Max", count, write.constant(np.float32(1e-9)))
    total = write.node("MatMul", write.node("Unsqueeze", counted, second), tokens)
    mean = write.node("Div", write.node("Reshape", total, as_rows), count)
    sentence = write.linear(mean, "sentence.dense")
    write.node("Concat", mask, sentence, name="features", axis=1)

    shapes: dict[str, list[int | str]] = {
        "input_ids": ["texts", "length"],
        "token_type_ids": ["texts", "length"],
        "outputs": ["texts", 1, 1],
        "is_text": ["texts", "length"],
    }
    graph = helper.make_graph(
        write.nodes,
        "encoder",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, axes)
            for name, axes in shapes.items()
        ],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["texts", 2 * width])],
        write.constants,
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)


def embedded_graph(folder: Path = EMBEDDED) -> bytes:
    """The graph for the configuration in a folder."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    contents: bytes = weightless_graph(config).SerializeToString()
    return contents


if __name__ == "__main__":
    (EMBEDDED / GRAPH_FILE).write_bytes(embedded_graph())
