"""A graph in 8 bits: products of integers, scaled so that texts don't touch each other.

The usual "dynamic" quantisation scales an activation by the largest value of a whole batch: a
text's answer would depend on its neighbours. Here scales are settled when the model is exported,
from what the labelled examples show, and a part of each channel's range is moved from the
activations into the weights, where a scale for every column costs nothing (SmoothQuant, Xiao et
al., 2023). Channels are centred first: what they have in common needs no integers, it is a part of
the bias. So is what rounding takes from a product on average (Nagel et al., 2019). Where tokens
differ much in size, each is first divided by its own largest value, and the few channels with the
largest values of all are multiplied apart, as they are (LLM.int8(), Dettmers et al., 2022).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray

from cptuning.export.graph import MICROSOFT, Graph
from cptuning.inference.onnx_encoder import run, session
from cptuning.prompting import Encoding

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
# The share of a channel's range, as an exponent, that moves into the weights.
_MOVED = np.float32(0.4)
# Channels that are silent in the examples need a range that is not zero.
_LEAST_RANGE = np.float32(1e-4)
# One channel in so many is multiplied apart, where any is.
_ONE_APART_IN = 24
# A token divided by its largest value may be a little more negative than the examples were.
_ROOM_BELOW = 1.2


def quantized(
    model: onnx.ModelProto, samples: Sequence[Encoding], row_input: str
) -> onnx.ModelProto:
    """The model with 8-bit integers in place of its constant matrices, and in their products.

    What is computed for one row of a text, the one that ``row_input`` tells, stays as it is: it
    costs next to nothing, and is what the embedding is made of.
    """
    graph = Graph(model)
    one_row = _made_from(graph, row_input)
    products = [
        node
        for node in graph.nodes
        if node.op_type == "MatMul"
        and _is_matrix(graph, node.input[1])
        and node.input[0] not in one_row
    ]
    tables = [n for n in graph.nodes if n.op_type == "Gather" and _is_matrix(graph, n.input[0])]
    found = activations(model, sorted({node.input[0] for node in products}), samples)
    # Looked up at once: a product that feeds another gives its result a new name.
    for node, seen in [(node, found[node.input[0]]) for node in products]:
        _quantize_product(graph, node, seen)
    for node in tables:
        _quantize_table(graph, node)
    return graph.model()


def moved_back(model: onnx.ModelProto, shift: FloatArray) -> onnx.ModelProto:
    """The model with a vector taken off its embeddings, which have length one again then."""
    graph = Graph(model)
    (embedding,) = (output.name for output in model.graph.output)
    moved, rounded = f"{embedding}/moved", f"{embedding}/rounded"
    maker = graph.maker(embedding)
    assert maker is not None
    maker.output[:] = [rounded if value == embedding else value for value in maker.output]
    graph.append("Sub", [rounded, graph.constant(f"{embedding}/shift", shift)], [moved])
    graph.append("LpNormalization", [moved], [embedding], axis=-1, p=2)
    return graph.model()


def activations(
    model: onnx.ModelProto, values: Sequence[str], samples: Sequence[Encoding]
) -> dict[str, FloatArray]:
    """Some values as the samples make them: a row a token, a column a channel."""
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(onnx.ValueInfoProto(name=value) for value in values)
    watching = session(watched.SerializeToString())
    seen = [run(watching, [sample], values) for sample in samples]
    return {
        value: np.concatenate([array.reshape(-1, array.shape[-1]) for array in arrays])
        for value, arrays in zip(values, zip(*seen, strict=True), strict=True)
    }


def _made_from(graph: Graph, value: str) -> set[str]:
    """All that is computed from a value."""
    made = {value}
    for node in graph.nodes:
        if made & set(node.input):
            made.update(node.output)
    return made


def _is_matrix(graph: Graph, value: str) -> bool:
    array = graph.constants.get(value)
    return array is not None and array.ndim == 2 and array.dtype == np.float32


@dataclass(frozen=True)
class _Rounding:
    """How a value becomes integers from 0 to 255, channel by channel."""

    middle: FloatArray
    """Is taken off first."""
    factors: FloatArray
    """Then it is multiplied by this, which the weights are divided by; zero: counts as silent."""
    by_row: bool
    """Then each token is divided by its own largest value."""
    step: np.float32
    zero: np.uint8

    @classmethod
    def of(cls, seen: FloatArray, by_row: bool) -> "_Rounding":
        """Such that what was seen fills the range."""
        # Tokens of any size have no common middle.
        middle = np.zeros_like(seen[0]) if by_row else (seen.min(axis=0) + seen.max(axis=0)) / 2
        ranges = np.abs(seen - middle).max(axis=0)
        factors = np.maximum(ranges, _LEAST_RANGE) ** -_MOVED
        if by_row:
            factors[np.argsort(-ranges)[: len(ranges) // _ONE_APART_IN]] = 0
        divided = (seen - middle) * factors
        if by_row:
            lowest = float((divided / _largest(divided)).min())
            least, greatest = max(-1.0, _ROOM_BELOW * min(0.0, lowest)), 1.0
        else:
            least = min(0.0, float(divided.min()))
            greatest = max(0.0, float(divided.max()), least + float(_LEAST_RANGE))
        step = np.float32((greatest - least) / 255)
        return cls(middle, factors, by_row, step, np.uint8(np.round(-least / step)))

    @property
    def apart(self) -> IntArray:
        """The channels that are silent here."""
        return np.flatnonzero(self.factors == 0)

    def smoothed(self, weights: FloatArray) -> FloatArray:
        """The weights that belong to what is rounded."""
        heard = self.factors > 0
        return np.where(heard, 1 / np.where(heard, self.factors, 1), 0)[:, None] * weights

    def means(self, seen: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mean of what was seen, centred and smoothed: as it was, and as integers tell it."""
        divided = (seen - self.middle) * self.factors
        step = self.step * (_largest(divided) if self.by_row else 1)
        told = (np.clip(np.round(divided / step) + self.zero, 0, 255) - self.zero) * step
        return divided.mean(axis=0), told.mean(axis=0)


def _largest(rows: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(np.abs(rows).max(axis=1, keepdims=True), _LEAST_RANGE))


def _quantize_product(graph: Graph, node: onnx.NodeProto, seen: FloatArray) -> None:
    value, weights = node.input
    rows, rounded = f"{value}/largest", f"{value}/int8"
    exact = graph.constants[weights]
    # A product that narrows reads what an activation function made: there, tokens differ in size.
    rounding = _Rounding.of(seen, by_row=exact.shape[0] > exact.shape[1])
    scale = graph.constant(f"{rounded}/scale", np.array(rounding.step))
    zero = graph.constant(f"{rounded}/zero", np.array(rounding.zero))
    if graph.maker(rounded) is None:  # Several products may read one value.
        source = _insert_division(graph, node, rounding, rows)
        graph.insert(node, "QuantizeLinear", [source, scale, zero], [rounded])
    smoothed = rounding.smoothed(exact)
    columns, column_scales = _rounded(smoothed, axis=0)
    # The name of the value belongs to it: layers that share weights don't share activations.
    matrix = graph.constant(f"{weights}/{value}/int8", columns)
    scales = graph.constant(f"{weights}/{value}/scale", column_scales[0])
    was, told = rounding.means(seen)
    lost = was @ smoothed - told @ (columns * column_scales)
    bias, result = rounding.middle @ exact + lost, node.output[0]
    known = _bias_of(graph, result)
    if known is not None:
        bias = bias + graph.constants[known]
        result = graph.users(result)[0].output[0]
    made = f"{result}/of int8"
    added = graph.constant(f"{made}/bias", bias.astype(np.float32))
    inputs = [rounded, matrix, scale, scales, zero, "", *([] if rounding.by_row else [added])]
    graph.insert(node, "MatMulIntegerToFloat", inputs, [made], domain=MICROSOFT)
    if rounding.by_row:
        graph.insert(node, "Mul", [made, rows], [f"{made}/sized"])
        graph.insert(node, "Add", [f"{made}/sized", added], [f"{made}/moved"])
        made = f"{made}/moved"
        if len(rounding.apart):
            made = _insert_apart(graph, node, made, rounding.apart)
    graph.replace(result, made)


def _insert_division(graph: Graph, node: onnx.NodeProto, rounding: _Rounding, rows: str) -> str:
    """Centre and divide what a product reads; gives the name of the result."""
    value = node.input[0]
    centred, divided, sized = (f"{value}/{part}" for part in ("centred", "divided", "sized"))
    factors = graph.constant(f"{divided}/factors", rounding.factors)
    if not rounding.by_row:
        middle = graph.constant(f"{centred}/middle", rounding.middle)
        graph.insert(node, "Sub", [value, middle], [centred])
        graph.insert(node, "Mul", [centred, factors], [divided])
        return divided
    graph.insert(node, "Mul", [value, factors], [divided])
    graph.insert(node, "Abs", [divided], [f"{rows}/sizes"])
    graph.insert(node, "ReduceMax", [f"{rows}/sizes"], [f"{rows}/any"], axes=[-1], keepdims=1)
    tiny = graph.constant(f"{rows}/least", np.array(_LEAST_RANGE))
    graph.insert(node, "Max", [f"{rows}/any", tiny], [rows])
    graph.insert(node, "Div", [divided, rows], [sized])
    return sized


def _insert_apart(graph: Graph, node: onnx.NodeProto, made: str, channels: IntArray) -> str:
    """Add the product of a few channels, in full precision; gives the name of the sum."""
    value, weights = node.input
    few, product, whole = (f"{made}/{part}" for part in ("apart", "product apart", "whole"))
    numbers = graph.constant(f"{few}/channels", channels)
    matrix = graph.constant(f"{few}/weights", graph.constants[weights][channels])
    graph.insert(node, "Gather", [value, numbers], [few], axis=-1)
    graph.insert(node, "MatMul", [few, matrix], [product])
    graph.insert(node, "Add", [made, product], [whole])
    return whole


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
