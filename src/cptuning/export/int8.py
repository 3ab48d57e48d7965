"""A graph in 8 bits: products of integers, scaled so that texts don't touch each other.

The usual "dynamic" quantisation scales an activation by the largest value of a whole batch: a
text's answer would depend on its neighbours. Here each token is divided by its own largest value.
The rest is settled when the model is exported, from what the labelled examples show. A part of each
channel's range is moved from the activations into the weights, where a scale for every column costs
nothing (SmoothQuant, Xiao et al., 2023). Channels are centred first: what they have in common needs
no integers, it is a part of the bias. So is what rounding takes from a product on average (Nagel et
al., 2019). Channels that tower above the others behind an activation function are multiplied apart,
as they are (LLM.int8(), Dettmers et al., 2022). And weights are rounded one after the other, so
that later ones make up for what rounding does to earlier ones (GPTQ, Frantar et al., 2023).
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
IntArray = NDArray[np.int64]
# The share of a channel's range, as an exponent, that moves into the weights.
_MOVED = np.float32(0.4)
# Channels that are silent in the examples need a range that is not zero.
_LEAST_RANGE = np.float32(1e-4)
# One channel in so many is multiplied apart, where any is.
_ONE_APART_IN = 96

# How much each row of weights is taken to matter by itself, as a share of the mean.
_DAMPING = 0.01
_ROWS_AT_A_TIME = 128


def quantized(
    model: onnx.ModelProto, samples: Sequence[Encoding], row_input: str
) -> onnx.ModelProto:
    """The model with 8-bit integers in place of its constant matrices, and in their products.

    Tables of words have 16 bits: they cost no time. What is computed for one row of a text, the one
    that ``row_input`` tells, stays as it is: it costs next to nothing, and is what the embedding is
    made of.
    """
    graph = Graph(model)
    one_row = graph.made_from(row_input)
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
        _shorten_table(graph, node)
    fold_constants(graph)
    return graph.model()


def shortened(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with 16-bit integers for matrices in its file; it computes in float32.

    Integers with a scale a column tell a matrix more exactly than 16-bit floats do.
    """
    graph = Graph(model)
    for name in [name for name in graph.constants if _is_matrix(graph, name)]:
        matrix, first = graph.constants[name], graph.users(name)[0]
        largest = np.abs(matrix).max(axis=0)
        scales = (np.where(largest > 0, largest, 1) / 32767).astype(np.float32)
        integers = np.round(matrix / scales).astype(np.int16)
        short, long, whole = (f"{name}/{part}" for part in ("int16", "float32", "scaled"))
        graph.constant(short, integers)
        graph.insert(first, "Cast", [short], [long], to=onnx.TensorProto.FLOAT)
        graph.insert(first, "Mul", [long, graph.constant(f"{name}/scales", scales)], [whole])
        graph.replace(name, whole)
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


def _is_matrix(graph: Graph, value: str) -> bool:
    array = graph.constants.get(value)
    return array is not None and array.ndim == 2 and array.dtype == np.float32


@dataclass(frozen=True)
class _Rounding:
    """How a value becomes integers from 0 to 255: channel by channel, then token by token."""

    middle: FloatArray
    """Is taken off first."""
    factors: FloatArray
    """Then it is multiplied by this, which the weights are divided by; zero: counts as silent."""
    one_sided: bool
    """Whether nothing that is left is negative. At last a token is divided by its largest value."""

    @classmethod
    def of(cls, seen: FloatArray, apart: int) -> "_Rounding":
        """The one that changes least of what was seen; so many channels are silent."""
        # What an activation function made has a floor, and most of it lies close above.
        floor = np.full_like(seen[0], seen.min())
        from_floor = cls._from(seen, floor, apart, one_sided=True)
        around_mean = cls._from(seen, seen.mean(axis=0), apart, one_sided=False)
        return min(around_mean, from_floor, key=lambda rounding: rounding.noise(seen))

    @classmethod
    def _from(
        cls, seen: FloatArray, middle: FloatArray, apart: int, one_sided: bool
    ) -> "_Rounding":
        ranges = np.abs(seen - middle).max(axis=0)
        factors = np.maximum(ranges, _LEAST_RANGE) ** -_MOVED
        factors[np.argsort(-ranges)[:apart]] = 0
        return cls(middle, factors, one_sided)

    @property
    def step(self) -> np.float32:
        """Of a token that is divided by its largest value."""
        return np.float32(1 / 255 if self.one_sided else 1 / 127)

    @property
    def zero(self) -> np.uint8:
        """The integer that stands for zero."""
        return np.uint8(0 if self.one_sided else 128)

    def noise(self, seen: FloatArray) -> float:
        """The square of a step, in what the channels were before, as it is on average."""
        steps = self.step * self.largest(self.divided(seen))
        heard = self.factors[self.factors > 0]
        return float((steps**2).mean() * (heard**-2).sum())

    @property
    def apart(self) -> IntArray:
        """The channels that are silent here."""
        return np.flatnonzero(self.factors == 0)

    def smoothed(self, weights: FloatArray) -> FloatArray:
        """The weights that belong to what is rounded."""
        heard = self.factors > 0
        return np.where(heard, 1 / np.where(heard, self.factors, 1), 0)[:, None] * weights

    def divided(self, seen: FloatArray) -> FloatArray:
        """Centred and smoothed."""
        return (seen - self.middle) * self.factors

    def largest(self, divided: FloatArray) -> FloatArray:
        """The largest value of each token."""
        sizes = divided if self.one_sided else np.abs(divided)
        return np.asarray(np.maximum(sizes.max(axis=1, keepdims=True), _LEAST_RANGE))

    def told(self, divided: FloatArray) -> FloatArray:
        """What the integers tell of it."""
        step = self.step * self.largest(divided)
        integers = np.clip(np.round(divided / step) + self.zero, 0, 255)
        return np.asarray((integers - self.zero) * step)


def _quantize_product(graph: Graph, node: onnx.NodeProto, seen: FloatArray) -> None:
    value, weights = node.input
    rows, rounded, leading = (f"{value}/{part}" for part in ("largest", "int8", "leading shape"))
    exact = graph.constants[weights]
    # A product that narrows reads what an activation function made: a few channels tower there.
    narrows = exact.shape[0] > exact.shape[1]
    rounding = _Rounding.of(seen, len(exact) // _ONE_APART_IN if narrows else 0)
    scale = graph.constant(f"{rounded}/scale", np.array(rounding.step))
    zero = graph.constant(f"{rounded}/zero", np.array(rounding.zero))
    if graph.maker(rounded) is None:  # Several products may read one value.
        divided = _insert_division(graph, node, rounding, rows)
        graph.insert(node, "Shape", [divided], [leading], end=-1)
        _insert_rounding(graph, node, [divided, rows, scale, zero], rounded)
    smoothed = rounding.smoothed(exact)
    small = rounding.divided(seen)
    told = rounding.told(small)
    columns, column_scales = _rounded(smoothed, told)
    # The name of the value belongs to it: layers that share weights don't share activations.
    matrix = graph.constant(f"{weights}/{value}/int8", columns)
    scales = graph.constant(f"{weights}/{value}/scale", column_scales)
    lost = small.mean(axis=0) @ smoothed - told.mean(axis=0) @ (columns * column_scales)
    middle = np.where(rounding.factors > 0, rounding.middle, 0)  # None is taken off others.
    bias, result = middle @ exact + lost, node.output[0]
    known = _bias_of(graph, result)
    if known is not None:
        bias = bias + graph.constants[known]
        result = graph.users(result)[0].output[0]
    made = f"{result}/of int8"
    added = graph.constant(f"{made}/bias", bias.astype(np.float32))
    inputs = [rounded, matrix, scale, scales, zero]
    graph.insert(node, "MatMulIntegerToFloat", inputs, [f"{made}/flat"], domain=MICROSOFT)
    shape = f"{leading} and {exact.shape[1]}"
    if graph.maker(shape) is None:
        width = graph.constant(f"{shape}/width", np.array([exact.shape[1]]))
        graph.insert(node, "Concat", [leading, width], [shape], axis=0)
    graph.insert(node, "Reshape", [f"{made}/flat", shape], [made])
    graph.insert(node, "Mul", [made, rows], [f"{made}/sized"])
    graph.insert(node, "Add", [f"{made}/sized", added], [f"{made}/moved"])
    made = f"{made}/moved"
    if len(rounding.apart):
        made = _insert_apart(graph, node, made, rounding.apart)
    graph.replace(result, made)


def _insert_division(graph: Graph, node: onnx.NodeProto, rounding: _Rounding, rows: str) -> str:
    """Centre and divide what a product reads, and find the largest value of each token.

    Gives the name of what is divided by channels, not yet by tokens.
    """
    value = node.input[0]
    centred, divided = (f"{value}/{part}" for part in ("centred", "divided"))
    middle = graph.constant(f"{centred}/middle", rounding.middle)
    factors = graph.constant(f"{divided}/factors", rounding.factors)
    graph.insert(node, "Sub", [value, middle], [centred])
    graph.insert(node, "Mul", [centred, factors], [divided])
    sizes = divided
    if not rounding.one_sided:
        sizes = f"{rows}/sizes"
        graph.insert(node, "Abs", [divided], [sizes])
    last = graph.constant("last axis", np.array([-1]))
    graph.insert(node, "ReduceMax", [sizes, last], [f"{rows}/any"], keepdims=1)
    tiny = graph.constant(f"{rows}/least", np.array(_LEAST_RANGE))
    graph.insert(node, "Max", [f"{rows}/any", tiny], [rows])
    return divided


def _insert_rounding(
    graph: Graph, node: onnx.NodeProto, given: Sequence[str], rounded: str
) -> None:
    """Round what is divided, each token by a step of its own: integers, a row a token."""
    divided, rows, scale, zero = given
    flat, step, steps, zeros = (f"{rounded}/{part}" for part in ("flat", "step", "steps", "zeros"))
    # The operator has a step for each index of one axis: all tokens must be on one.
    graph.insert(node, "Flatten", [divided], [flat], axis=-1)
    graph.insert(node, "Mul", [rows, scale], [step])
    graph.insert(node, "Reshape", [step, graph.constant("vector", np.array([-1]))], [steps])
    graph.insert(node, "Shape", [steps], [f"{steps}/count"])
    graph.insert(node, "Expand", [zero, f"{steps}/count"], [zeros])
    graph.insert(node, "QuantizeLinear", [flat, steps, zeros], [rounded], axis=0)


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


def _shorten_table(graph: Graph, node: onnx.NodeProto) -> None:
    """In 16 bits: rounding a word more coarsely is felt in all that is computed from it."""
    table, ids = node.input
    rounded, made = (f"{node.output[0]}/{part}" for part in ("float16", "of float16"))
    short = graph.constant(f"{table}/float16", graph.constants[table].astype(np.float16))
    graph.insert(node, "Gather", [short, ids], [rounded])
    graph.insert(node, "Cast", [rounded], [made], to=onnx.TensorProto.FLOAT)
    graph.replace(node.output[0], made)


def _rounded(matrix: FloatArray, inputs: FloatArray) -> tuple[NDArray[np.int8], FloatArray]:
    """The matrix in 8 bits, and a scale a column, such that products with the inputs change little.

    Its rows are rounded one after the other; those that follow make up for what that changes, as
    far as the inputs of their channels are alike.
    """
    largest = np.abs(matrix).max(axis=0)
    scales = (np.where(largest > 0, largest, 1) / 127).astype(np.float32)
    alike = (inputs.T @ inputs).astype(np.float64)
    # Of a few inputs, some channels are alike by chance, and some are silent.
    alone = _DAMPING * np.trace(alike) / len(alike) + float(_LEAST_RANGE) ** 2
    alike += alone * np.eye(len(alike))
    makes_up = np.linalg.cholesky(np.linalg.inv(alike)).T.astype(np.float32)
    left = matrix.astype(np.float32)
    rows = np.zeros(matrix.shape, np.int8)
    for start in range(0, len(left), _ROWS_AT_A_TIME):
        end = start + _ROWS_AT_A_TIME
        wrong = np.zeros_like(left[start:end])
        for row in range(start, min(end, len(left))):
            rows[row] = np.clip(np.round(left[row] / scales), -127, 127)
            wrong[row - start] = (left[row] - rows[row] * scales) / makes_up[row, row]
            left[row + 1 : end] -= np.outer(makes_up[row, row + 1 : end], wrong[row - start])
        left[end:] -= makes_up[start:end, end:].T @ wrong
    return rows, scales
