"""A graph in 8 bits: products of integers with fixed scales, so that texts don't touch each other.

The usual "dynamic" quantisation scales an activation by the largest value of a whole batch: a
text's answer would depend on its neighbours. Here every scale is settled when the model is
exported, from what the labelled examples show, and a part of each channel's range is moved from
the activations into the weights, where a scale for every column costs nothing (SmoothQuant, Xiao
et al., 2023).
"""

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray

from cptuning.export.graph import MICROSOFT, Graph
from cptuning.inference.onnx_encoder import run, session
from cptuning.prompting import Encoding

FloatArray = NDArray[np.float32]
# The share of a channel's range, as an exponent, that moves into the weights.
_MOVED = 0.65
# Channels that are silent in the examples need a range that is not zero.
_LEAST_RANGE = 1e-4


def quantized(model: onnx.ModelProto, samples: Sequence[Encoding]) -> onnx.ModelProto:
    """The model with 8-bit integers in place of its constant matrices, and in their products."""
    graph = Graph(model)
    products = [n for n in graph.nodes if n.op_type == "MatMul" and _is_matrix(graph, n.input[1])]
    tables = [n for n in graph.nodes if n.op_type == "Gather" and _is_matrix(graph, n.input[0])]
    found = channel_ranges(model, sorted({node.input[0] for node in products}), samples)
    # Looked up at once: a product that feeds another gives its result a new name.
    for node, ranges in [(node, found[node.input[0]]) for node in products]:
        _quantize_product(graph, node, *ranges)
    for node in tables:
        _quantize_table(graph, node)
    return graph.model()


def channel_ranges(
    model: onnx.ModelProto, values: Sequence[str], samples: Sequence[Encoding]
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """The least and the greatest number in each channel of some values; zero is always inside."""
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(onnx.ValueInfoProto(name=value) for value in values)
    watching = session(watched.SerializeToString())
    seen = [run(watching, [sample], values) for sample in samples]
    ranges = {}
    for value, arrays in zip(values, zip(*seen, strict=True), strict=True):
        rows = np.concatenate([array.reshape(-1, array.shape[-1]) for array in arrays])
        ranges[value] = (np.minimum(rows.min(axis=0), 0), np.maximum(rows.max(axis=0), 0))
    return ranges


def _is_matrix(graph: Graph, value: str) -> bool:
    array = graph.constants.get(value)
    return array is not None and array.ndim == 2 and array.dtype == np.float32


def _quantize_product(
    graph: Graph, node: onnx.NodeProto, least: FloatArray, greatest: FloatArray
) -> None:
    value, weights = node.input
    moved = np.maximum(np.maximum(-least, greatest), _LEAST_RANGE) ** np.float32(_MOVED)
    low, high = (least / moved).min(), (greatest / moved).max()
    step = np.float32(max(high - low, _LEAST_RANGE) / 255)
    rounded, smoothed = f"{value}/int8", f"{value}/smoothed"
    scale = graph.constant(f"{rounded}/scale", np.array(step))
    zero = graph.constant(f"{rounded}/zero", np.array(np.round(-low / step), np.uint8))
    if graph.maker(rounded) is None:  # Several products may read one value.
        factors = graph.constant(f"{smoothed}/factors", 1 / moved)
        graph.insert(node, "Mul", [value, factors], [smoothed])
        graph.insert(node, "QuantizeLinear", [smoothed, scale, zero], [rounded])
    columns, column_scales = _rounded(graph.constants[weights] * moved[:, None], axis=0)
    # The name of the value belongs to it: layers that share weights don't share activations.
    matrix = graph.constant(f"{weights}/{value}/int8", columns)
    scales = graph.constant(f"{weights}/{value}/scale", column_scales[0])
    inputs = [rounded, matrix, scale, scales, zero, ""]
    result = node.output[0]
    bias = _bias_of(graph, result)
    if bias is not None:
        inputs.append(bias)
        result = graph.users(result)[0].output[0]
    made = f"{result}/of int8"
    graph.insert(node, "MatMulIntegerToFloat", inputs, [made], domain=MICROSOFT)
    graph.replace(result, made)


def _bias_of(graph: Graph, product: str) -> str | None:
    """The constant vector that is all that becomes of a product."""
    users = graph.users(product)
    if len(users) != 1 or users[0].op_type != "Add":
        return None
    vectors = [v for v in users[0].input if v in graph.constants and graph.constants[v].ndim == 1]
    return vectors[0] if vectors else None


def _quantize_table(graph: Graph, node: onnx.NodeProto) -> None:
    table, ids = node.input
    rows, row_scales = _rounded(graph.constants[table], axis=1)
    rounded, numbers, scales, made = (
        f"{node.output[0]}/{part}" for part in ("int8", "numbers", "scale", "of int8")
    )
    graph.insert(node, "Gather", [graph.constant(f"{table}/int8", rows), ids], [rounded])
    graph.insert(node, "Gather", [graph.constant(f"{table}/scale", row_scales), ids], [scales])
    graph.insert(node, "Cast", [rounded], [numbers], to=onnx.TensorProto.FLOAT)
    graph.insert(node, "Mul", [numbers, scales], [made])
    graph.replace(node.output[0], made)


def _rounded(matrix: FloatArray, axis: int) -> tuple[NDArray[np.int8], FloatArray]:
    """The matrix in 8 bits, and its scales: one a column (axis 0) or one a row (axis 1)."""
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    scales = (np.where(largest > 0, largest, 1) / 127).astype(np.float32)
    return np.round(matrix / scales).astype(np.int8), scales
