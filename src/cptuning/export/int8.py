"""A graph in 8 bits: products of integers, scaled so that texts don't touch each other.

The usual "dynamic" quantisation scales an activation by the largest value of a whole batch: a
text's answer would depend on its neighbours. Here each token is divided by its own largest value.
Everything else is decided on export, from the activations of the labelled examples. A part of each
channel's range moves from the activations into the weights (SmoothQuant, Xiao et al., 2023).
Channels are centred first: their mean needs no integers, it is a part of the bias. And rows of
weights are rounded one after the other, so that later rows make up for the rounding of earlier ones
(GPTQ, Frantar et al., 2023). docs/export.md has the equations, and what each of these is worth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray

from cptuning.export.folding import fold_constants
from cptuning.export.graph import MICROSOFT, Graph
from cptuning.inference.onnx_encoder import run, session
from cptuning.prompting import Encoding

FloatArray = NDArray[np.float32]
# The share of a channel's range, as an exponent, that moves into the weights.
_SMOOTHING = np.float32(0.4)
# Channels that are silent in the examples need a range that is not zero.
_LEAST_RANGE = np.float32(1e-4)
# GPTQ's: how much each row of weights is taken to matter by itself, as a share of the mean.
_DAMPING = 0.01
_ROWS_AT_A_TIME = 128


def quantized(model: onnx.ModelProto, samples: Sequence[Encoding]) -> onnx.ModelProto:
    """The model with 8-bit integers in place of its constant matrices, and in their products.

    Embedding tables get 16 bits: looking up a row costs no time. What is computed once per
    sequence, behind [OMSK] or pooling, stays as it is: it costs next to nothing, and the embedding
    is made of it.
    """
    graph = Graph(model)
    products = [n for n in graph.nodes if n.op_type == "MatMul" and _is_matrix(graph, n.input[1])]
    tables = [n for n in graph.nodes if n.op_type == "Gather" and _is_matrix(graph, n.input[0])]
    found = observed(model, sorted({node.input[0] for node in products}), samples)
    # Looked up at once: a product that feeds another gives its result a new name.
    for node, activations in [(node, found[node.input[0]]) for node in products]:
        if len(activations) > len(samples):
            _quantize_product(graph, node, activations)
    for node in tables:
        _store_table_in_16_bits(graph, node)
    fold_constants(graph)
    return graph.model()


def stored_in_16_bits(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with matrices of 16-bit integers in its file; it computes in float32.

    Integers with a scale per column are closer to a matrix than 16-bit floats are.
    """
    graph = Graph(model)
    for name in [name for name in graph.constants if _is_matrix(graph, name)]:
        matrix, first = graph.constants[name], graph.consumers(name)[0]
        largest = np.abs(matrix).max(axis=0)
        scales = (np.where(largest > 0, largest, 1) / 32767).astype(np.float32)
        integers = np.round(matrix / scales).astype(np.int16)
        short, long, whole = (f"{name}/{part}" for part in ("int16", "float32", "scaled"))
        graph.constant(short, integers)
        graph.insert(first, "Cast", [short], [long], to=onnx.TensorProto.FLOAT)
        graph.insert(first, "Mul", [long, graph.constant(f"{name}/scales", scales)], [whole])
        graph.replace(name, whole)
    return graph.model()


def observed(
    model: onnx.ModelProto, values: Sequence[str], samples: Sequence[Encoding]
) -> dict[str, FloatArray]:
    """Some values of a graph for all samples: one row per token, one column per channel."""
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(onnx.ValueInfoProto(name=value) for value in values)
    watching = session(watched.SerializeToString())
    seen = [run(watching, [sample], values) for sample in samples]
    return {
        value: np.concatenate([array.reshape(-1, array.shape[-1]) for array in arrays])
        for value, arrays in zip(values, zip(*seen, strict=True), strict=True)
    }


def _is_matrix(graph: Graph, value: str) -> bool:
    array = graph.constants.get(value)
    return array is not None and array.ndim == 2 and array.dtype == np.float32


@dataclass(frozen=True)
class _Quantizer:
    """How activations become integers from 0 to 255: channel by channel, then token by token."""

    centre: FloatArray
    """Subtracted from the channels first."""
    factors: FloatArray
    """Then channels are multiplied by these, and the rows of weights divided by them."""
    one_sided: bool
    """Whether nothing lies below the centre, so that all integers are for what lies above."""

    @classmethod
    def fit(cls, activations: FloatArray) -> "_Quantizer":
        """The one with the least noise."""
        # What comes out of an activation function has a floor, and most of it lies close above.
        floor = np.full_like(activations[0], activations.min())
        from_floor = cls._around(activations, floor, one_sided=True)
        from_mean = cls._around(activations, activations.mean(axis=0), one_sided=False)
        return min(from_mean, from_floor, key=lambda quantizer: quantizer.noise(activations))

    @classmethod
    def _around(cls, activations: FloatArray, centre: FloatArray, one_sided: bool) -> "_Quantizer":
        ranges = np.abs(activations - centre).max(axis=0)
        return cls(centre, np.maximum(ranges, _LEAST_RANGE) ** -_SMOOTHING, one_sided)

    @property
    def step(self) -> np.float32:
        """The step from one integer to the next, for a token whose largest value is one."""
        return np.float32(1 / 255 if self.one_sided else 1 / 127)

    @property
    def zero_point(self) -> np.uint8:
        """The integer that stands for zero."""
        return np.uint8(0 if self.one_sided else 128)

    def noise(self, activations: FloatArray) -> float:
        """The mean square of a step, in the units that the channels had before."""
        steps = self.step * self.token_ranges(self.smoothed(activations))
        return float((steps**2).mean() * (self.factors**-2).sum())

    def smoothed(self, activations: FloatArray) -> FloatArray:
        """Centred activations, times the factors."""
        return (activations - self.centre) * self.factors

    def smoothed_weights(self, weights: FloatArray) -> FloatArray:
        """Weights that undo the factors."""
        return np.asarray(weights / self.factors[:, None], np.float32)

    def token_ranges(self, smoothed: FloatArray) -> FloatArray:
        """The largest value of each token."""
        sizes = smoothed if self.one_sided else np.abs(smoothed)
        return np.asarray(np.maximum(sizes.max(axis=1, keepdims=True), _LEAST_RANGE))

    def dequantized(self, smoothed: FloatArray) -> FloatArray:
        """What the integers stand for."""
        step = self.step * self.token_ranges(smoothed)
        integers = np.clip(np.round(smoothed / step) + self.zero_point, 0, 255)
        return np.asarray((integers - self.zero_point) * step)


def _quantize_product(graph: Graph, node: onnx.NodeProto, activations: FloatArray) -> None:
    """Replace a product with a constant matrix, and the bias behind it, by one of integers."""
    value, weights = node.input
    ranges, quantized, leading = (f"{value}/{part}" for part in ("ranges", "int8", "leading shape"))
    exact = graph.constants[weights]
    quantizer = _Quantizer.fit(activations)
    step = graph.constant(f"{quantized}/step", np.array(quantizer.step))
    zero_point = graph.constant(f"{quantized}/zero point", np.array(quantizer.zero_point))
    if graph.producer(quantized) is None:  # Several products may read one value.
        smoothed = _insert_smoothing(graph, node, quantizer, ranges)
        graph.insert(node, "Shape", [smoothed], [leading], end=-1)
        _insert_rounding(graph, node, [smoothed, ranges, step, zero_point], quantized)
    integers, column_scales = _rounded_weights(
        quantizer.smoothed_weights(exact),
        quantizer.dequantized(quantizer.smoothed(activations)),
    )
    # The value is a part of the name: layers that share weights don't share activations.
    matrix = graph.constant(f"{weights}/{value}/int8", integers)
    scales = graph.constant(f"{weights}/{value}/scales", column_scales)
    bias, result = quantizer.centre @ exact, node.output[0]
    known = _bias_of(graph, result)
    if known is not None:
        bias = bias + graph.constants[known]
        result = graph.consumers(result)[0].output[0]
    product = f"{result}/of int8"
    added = graph.constant(f"{product}/bias", bias.astype(np.float32))
    inputs = [quantized, matrix, step, scales, zero_point]
    graph.insert(node, "MatMulIntegerToFloat", inputs, [f"{product}/flat"], domain=MICROSOFT)
    shape = f"{leading} and {exact.shape[1]}"
    if graph.producer(shape) is None:
        width = graph.constant(f"{shape}/width", np.array([exact.shape[1]]))
        graph.insert(node, "Concat", [leading, width], [shape], axis=0)
    graph.insert(node, "Reshape", [f"{product}/flat", shape], [product])
    graph.insert(node, "Mul", [product, ranges], [f"{product}/scaled"])
    graph.insert(node, "Add", [f"{product}/scaled", added], [f"{product}/biased"])
    graph.replace(result, f"{product}/biased")


def _insert_smoothing(
    graph: Graph, node: onnx.NodeProto, quantizer: _Quantizer, ranges: str
) -> str:
    """Insert what centres and smooths the input of a product, and finds each token's range.

    Returns the name of the smoothed input.
    """
    value = node.input[0]
    centred, smoothed = (f"{value}/{part}" for part in ("centred", "smoothed"))
    centre = graph.constant(f"{centred}/centre", quantizer.centre)
    factors = graph.constant(f"{smoothed}/factors", quantizer.factors)
    graph.insert(node, "Sub", [value, centre], [centred])
    graph.insert(node, "Mul", [centred, factors], [smoothed])
    sizes = smoothed
    if not quantizer.one_sided:
        sizes = f"{ranges}/sizes"
        graph.insert(node, "Abs", [smoothed], [sizes])
    last = graph.constant("last axis", np.array([-1]))
    graph.insert(node, "ReduceMax", [sizes, last], [f"{ranges}/largest"], keepdims=1)
    least = graph.constant(f"{ranges}/least", np.array(_LEAST_RANGE))
    graph.insert(node, "Max", [f"{ranges}/largest", least], [ranges])
    return smoothed


def _insert_rounding(
    graph: Graph, node: onnx.NodeProto, inputs: Sequence[str], quantized: str
) -> None:
    """Insert what rounds the smoothed input, each token by a step of its own: one row per token."""
    smoothed, ranges, step, zero_point = inputs
    flat, scaled, steps, zero_points = (
        f"{quantized}/{part}" for part in ("flat", "scaled step", "steps", "zero points")
    )
    # The operator takes a step for each index of one axis: all tokens must be on one.
    graph.insert(node, "Flatten", [smoothed], [flat], axis=-1)
    graph.insert(node, "Mul", [ranges, step], [scaled])
    graph.insert(node, "Reshape", [scaled, graph.constant("vector", np.array([-1]))], [steps])
    graph.insert(node, "Shape", [steps], [f"{steps}/count"])
    graph.insert(node, "Expand", [zero_point, f"{steps}/count"], [zero_points])
    graph.insert(node, "QuantizeLinear", [flat, steps, zero_points], [quantized], axis=0)


def _bias_of(graph: Graph, product: str) -> str | None:
    """The constant vector that is added to a product, if nothing else reads the product."""
    users = graph.consumers(product)
    if len(users) != 1 or users[0].op_type != "Add":
        return None
    vectors = [v for v in users[0].input if v in graph.constants and graph.constants[v].ndim == 1]
    return vectors[0] if vectors else None


def _store_table_in_16_bits(graph: Graph, node: onnx.NodeProto) -> None:
    """As floats: an error in a word's vector is carried into everything computed from it."""
    table, ids = node.input
    rounded, made = (f"{node.output[0]}/{part}" for part in ("float16", "of float16"))
    short = graph.constant(f"{table}/float16", graph.constants[table].astype(np.float16))
    graph.insert(node, "Gather", [short, ids], [rounded])
    graph.insert(node, "Cast", [rounded], [made], to=onnx.TensorProto.FLOAT)
    graph.replace(node.output[0], made)


def _rounded_weights(
    weights: FloatArray, inputs: FloatArray
) -> tuple[NDArray[np.int8], FloatArray]:
    """Weights in 8 bits, and a scale per column, such that products with the inputs change little.

    Rows are rounded one after the other; those that follow make up for the error, as far as the
    inputs of their channels are alike (GPTQ). With H = XᵀX of the inputs, and U the upper Cholesky
    factor of H⁻¹, an error e of row i changes row j > i by -e U[i, j] / U[i, i].
    """
    largest = np.abs(weights).max(axis=0)
    scales = (np.where(largest > 0, largest, 1) / 127).astype(np.float32)
    hessian = (inputs.T @ inputs).astype(np.float64)
    # In a few inputs some channels are alike by chance, and some are silent.
    damping = _DAMPING * np.trace(hessian) / len(hessian) + float(_LEAST_RANGE) ** 2
    hessian += damping * np.eye(len(hessian))
    upper = np.linalg.cholesky(np.linalg.inv(hessian)).T.astype(np.float32)
    left = weights.astype(np.float32)
    integers = np.zeros(weights.shape, np.int8)
    for start in range(0, len(left), _ROWS_AT_A_TIME):
        end = start + _ROWS_AT_A_TIME
        errors = np.zeros_like(left[start:end])
        for row in range(start, min(end, len(left))):
            integers[row] = np.clip(np.round(left[row] / scales), -127, 127)
            errors[row - start] = (left[row] - integers[row] * scales) / upper[row, row]
            left[row + 1 : end] -= np.outer(upper[row, row + 1 : end], errors[row - start])
        left[end:] -= upper[start:end, end:].T @ errors
    return integers, scales
