"""Constants of an 8-bit graph, moved to where adding and multiplying by them costs nothing.

Around each product of integers there are passes over all tokens that only add or multiply by a
constant, and next to a fast product they take time. Some can be left to a neighbour that does the
same anyway. Nothing else changes but the rounding of 32-bit numbers.
"""

from collections.abc import Sequence

import onnx

from cptuning.export.graph import ATTENTION, Array, Graph


def fold_constants(graph: Graph) -> None:
    """Drop the additions, subtractions and scalings that neighbours can take over."""
    graph.prune()  # A node that nothing needs would count as a consumer.
    for attention in [node for node in graph.nodes if node.op_type == ATTENTION]:
        _drop_key_bias(graph, attention)
        _scale_values(graph, attention)
    for norm in [node for node in graph.nodes if node.op_type == "LayerNormalization"]:
        _fold_bias_into_norm(graph, norm)
    graph.prune()


def _drop_key_bias(graph: Graph, attention: onnx.NodeProto) -> None:
    """A bias b of all keys changes nothing: softmax(q · (k + b)) = softmax(q · k + q · b).

    It adds the same to all similarities of a query, whatever bias attention adds to them itself.
    """
    bias = _bias_add(graph, attention.input[1])
    if bias is not None:
        attention.input[1] = bias.input[0]


def _scale_values(graph: Graph, attention: onnx.NodeProto) -> None:
    """Centre and scale the values instead of attention's result.

    The result is a mean of values, with weights a that add up to one:
    (Σ aᵢ vᵢ - c) f = Σ aᵢ ((vᵢ - c) f).
    """
    attended = attention.output[0]
    consumers = graph.consumers(attended)
    bias = _bias_add(graph, attention.input[2])
    if bias is None or [consumer.op_type for consumer in consumers] != ["Sub"]:
        return
    centring = consumers[0]
    scaling = graph.consumers(centring.output[0])
    product = _chain_start(graph, bias.input[0], ("Mul", "Reshape", "MatMulIntegerToFloat"))
    if product is None or len(scaling) != 1:
        return
    factors = graph.constants[scaling[0].input[1]]
    _set(graph, product, 3, graph.constants[product.input[3]] * factors)
    centre = graph.constants[centring.input[1]]
    _set(graph, bias, 1, (graph.constants[bias.input[1]] - centre) * factors)
    graph.replace(scaling[0].output[0], attended)


def _fold_bias_into_norm(graph: Graph, norm: onnx.NodeProto) -> None:
    """Let the norm before a block add the bias of the block's last product.

    The residual sum adds what the norm gives, n, and the block's result, f(n) + b. The norm can
    give n + b, if the block's first product, which subtracts its centre c, subtracts c + b.
    """
    normed = norm.output[0]
    consumers = {consumer.op_type: consumer for consumer in graph.consumers(normed)}
    if (
        len(graph.consumers(normed)) != 2
        or set(consumers) != {"Add", "Sub"}
        or len(norm.input) != 3
    ):
        return
    residual, centring = consumers["Add"], consumers["Sub"]
    (other,) = (value for value in residual.input if value != normed)
    bias = _bias_add(graph, other)
    if bias is None:
        return
    constant = graph.constants[bias.input[1]]
    _set(graph, norm, 2, graph.constants[norm.input[2]] + constant)
    _set(graph, centring, 1, graph.constants[centring.input[1]] + constant)
    graph.replace(bias.output[0], bias.input[0])


def _bias_add(graph: Graph, value: str) -> onnx.NodeProto | None:
    """The node that computes a value, for one consumer, by adding a constant vector."""
    node = graph.producer(value)
    if node is None or node.op_type != "Add" or len(graph.consumers(value)) != 1:
        return None
    constant = graph.constants.get(node.input[1])
    return node if constant is not None and constant.ndim == 1 else None


def _chain_start(graph: Graph, value: str, operations: Sequence[str]) -> onnx.NodeProto | None:
    """The first node of a chain that computes a value by these operations, the last one first."""
    node = None
    for operation in operations:
        node = graph.producer(value)
        if node is None or node.op_type != operation:
            return None
        value = node.input[0]
    return node


def _set(graph: Graph, node: onnx.NodeProto, place: int, array: Array) -> None:
    """Give a node a constant of its own: layers may share the one it had."""
    name = f"{node.input[place]} of {node.output[0]}"
    node.input[place] = graph.constant(name, array.astype("float32"))
