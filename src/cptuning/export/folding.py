"""Steps of an 8-bit graph that need no time of their own: neighbours do their work as well.

Before a product in 8 bits each channel is moved and multiplied by constants. Attention is a mean of
values, so its values may be moved and multiplied in its place, where they have a bias and scales
already. A layer norm ends with such a step itself. And a vector that is added to all keys adds the
same to all similarities of a query, which the softmax does not notice.
"""

from typing import NamedTuple

import numpy as np
import onnx

from cptuning.export.graph import MICROSOFT, Array, Graph

_ATTENTION = "MultiHeadAttention"
_PRODUCT = "MatMulIntegerToFloat"


def with_fast_gelu(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with GELU by a tanh in place of the error function.

    They differ by less than 0.001, a small part of what 8 bits take away behind it.
    """
    graph = Graph(model)
    for erf in [node for node in graph.nodes if node.op_type == "Erf"]:
        divided = graph.maker(erf.input[0])
        last = _end_of_gelu(graph, erf)
        if divided is not None and last is not None:
            made = f"{last.output[0]}/fast"
            graph.insert(last, "FastGelu", [divided.input[0]], [made], domain=MICROSOFT)
            graph.replace(last.output[0], made)
    return graph.model()


def _end_of_gelu(graph: Graph, erf: onnx.NodeProto) -> onnx.NodeProto | None:
    """The last node of x · (1 + erf(x / √2)) · ½, if that is what an error function is for."""
    divided = graph.maker(erf.input[0])
    if divided is None or divided.op_type != "Div":
        return None
    root = graph.constants.get(divided.input[1])
    if root is None or not np.allclose(root, np.sqrt(2), atol=1e-5):
        return None
    node = erf
    for op, other in (("Add", 1.0), ("Mul", None), ("Mul", 0.5)):
        users = graph.users(node.output[0])
        if len(users) != 1 or users[0].op_type != op:
            return None
        (operand,) = (value for value in users[0].input if value != node.output[0])
        if other is None:
            fits = operand == divided.input[0]
        else:
            fits = operand in graph.constants and np.allclose(graph.constants[operand], other)
        if not fits:
            return None
        node = users[0]
    return node


class _Step(NamedTuple):
    """(value − middle) · factors."""

    middle: Array
    factors: Array
    result: str


def fold(graph: Graph) -> None:
    """Let attention's values and layer norms do what products ask of their results."""
    graph.prune()  # What has been replaced reads nothing any more.
    for attention in [node for node in graph.nodes if node.op_type == _ATTENTION]:
        _drop_key_bias(graph, attention)
        _fold_into_values(graph, attention)
    for norm in [node for node in graph.nodes if node.op_type == "LayerNormalization"]:
        _fold_into_norm(graph, norm)
    graph.prune()


def _step_of(graph: Graph, user: onnx.NodeProto) -> _Step | None:
    """The step that a node begins."""
    if user.op_type != "Sub" or user.input[1] not in graph.constants:
        return None
    users = graph.users(user.output[0])
    if len(users) != 1 or users[0].op_type != "Mul" or users[0].input[1] not in graph.constants:
        return None
    middle, factors = (graph.constants[node.input[1]] for node in (user, users[0]))
    return _Step(middle, factors, users[0].output[0]) if (factors > 0).all() else None


def _has_bias(graph: Graph, node: onnx.NodeProto | None) -> bool:
    return node is not None and node.op_type == "Add" and node.input[1] in graph.constants


def _drop_key_bias(graph: Graph, attention: onnx.NodeProto) -> None:
    biased = graph.maker(attention.input[1])
    if biased is not None and _has_bias(graph, biased):
        attention.input[1] = biased.input[0]


def _fold_into_values(graph: Graph, attention: onnx.NodeProto) -> None:
    users = graph.users(attention.output[0])
    step = _step_of(graph, users[0]) if len(users) == 1 else None
    biased = graph.maker(attention.input[2])
    if step is None or biased is None or not _has_bias(graph, biased):
        return
    sized = graph.maker(biased.input[0])
    product = None if sized is None else graph.maker(sized.input[0])
    readers = [graph.users(node.output[0]) for node in (biased, sized, product) if node is not None]
    if product is None or product.op_type != _PRODUCT or any(len(found) != 1 for found in readers):
        return
    _change(graph, product, 3, graph.constants[product.input[3]] * step.factors)
    _change(graph, biased, 1, (graph.constants[biased.input[1]] - step.middle) * step.factors)
    graph.replace(step.result, attention.output[0])


def _fold_into_norm(graph: Graph, norm: onnx.NodeProto) -> None:
    """The norm gives what the product reads; who adds it to something gets it back from there."""
    value = norm.output[0]
    users = graph.users(value)
    steps = [step for user in users if (step := _step_of(graph, user)) is not None]
    sums = [user for user in users if user.op_type == "Add"]
    if len(steps) != 1 or len(sums) > 1 or len(users) != 1 + len(sums):
        return
    (step,) = steps
    for node in sums:
        (other,) = (name for name in node.input if name != value)
        biased = graph.maker(other)
        while biased is not None and biased.op_type == "Add" and not _has_bias(graph, biased):
            biased = graph.maker(biased.input[0])
        if biased is None or not _has_bias(graph, biased):
            return
        _change(graph, biased, 1, graph.constants[biased.input[1]] + step.middle)
        back = graph.constant(f"{value}/back", (1 / step.factors).astype(np.float32))
        graph.insert(node, "Mul", [value, back], [f"{value}/whole"])
        node.input[:] = [f"{value}/whole" if name == value else name for name in node.input]
    weight, *bias = (graph.constants[name] for name in norm.input[1:])
    moved = (bias[0] if bias else np.float32(0)) - step.middle
    if not bias:
        norm.input.append("")
    _change(graph, norm, 1, weight * step.factors)
    _change(graph, norm, 2, moved * step.factors)
    graph.replace(step.result, value)


def _change(graph: Graph, node: onnx.NodeProto, place: int, array: Array) -> None:
    """Give a node a constant of its own: layers may share theirs."""
    name = f"{node.output[0]}/constant {place}"
    node.input[place] = graph.constant(name, array.astype(np.float32))
