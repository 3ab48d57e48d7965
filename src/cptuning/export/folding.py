"""Constants of a graph, moved to where adding and multiplying by them costs nothing.

A product comes with passes over all tokens that only add a constant, and in 8 bits with more that
multiply by one; next to a fast product they are no trifle. Some can be left to a neighbour that
does the same anyway. None changes what is computed, but for the rounding of 32-bit numbers.
"""

from collections.abc import Sequence

import numpy as np
import onnx

from cptuning.export.graph import ATTENTION, Array, Graph


def fold_biases(graph: Graph) -> None:
    """Drop the biases that attention is blind to, or that a norm before them can add."""
    for node in graph.nodes:
        if node.op_type == "Add" and node.input[0] in graph.constants:
            node.input[:] = node.input[::-1]
    for attention in [node for node in graph.nodes if node.op_type == ATTENTION]:
        _drop_bias_of_keys(graph, attention)
        _pass_bias_of_values_on(graph, attention)
    for norm in [node for node in graph.nodes if node.op_type == "LayerNormalization"]:
        _let_norm_add_bias_of_block(graph, norm)
    graph.prune()


def _pass_bias_of_values_on(graph: Graph, attention: onnx.NodeProto) -> None:
    """What is added to all values alike is added to their mean: let the next product add it."""
    bias = _biased(graph, attention.input[2])
    product = _only_user(graph, attention.output[0])
    weights = _weights(graph, product)
    if bias is None or product is None or weights is None:
        return
    after = _addition(graph, _output_of_only_user(graph, product.output[0]))
    if after is not None:
        passed_on = graph.constants[bias.input[1]] @ weights
        _set(graph, after, 1, graph.constants[after.input[1]] + passed_on)
        attention.input[2] = bias.input[0]


def _let_norm_add_bias_of_block(graph: Graph, norm: onnx.NodeProto) -> None:
    """The bias of a block's last product is added to what the block read: its norm can add it.

    The block then reads what it did and the bias. Its first products take off what that makes of
    theirs; and values, which have none left, pass it on to the last product, so that what the norm
    adds, c, is such that c and what comes of it are the bias, b: c + c V W = b.
    """
    whole = norm.output[0]
    users = graph.users(whole)
    sums = [user for user in users if user.op_type == "Add"]
    firsts = [user for user in users if user.op_type != "Add"]
    if len(sums) != 1 or len(norm.input) != 3:
        return
    (other,) = (value for value in sums[0].input if value != whole)
    bias = _biased(graph, other)
    last = None if bias is None else graph.maker(bias.input[0])
    weights = _weights(graph, last)
    if bias is None or last is None or weights is None:
        return
    added: Array = graph.constants[bias.input[1]].astype(np.float64)
    attention = graph.maker(last.input[0])
    if attention is not None and attention.op_type == ATTENTION:
        keys, values = (graph.maker(value) for value in attention.input[1:3])
        of_values = _weights(graph, values)
        if keys not in firsts or values not in firsts or of_values is None:
            return
        firsts = [first for first in firsts if first not in (keys, values)]
        around = np.eye(len(added)) + of_values.astype(np.float64) @ weights
        added = np.linalg.solve(around.T, added)
    known = []
    for first in firsts:
        matrix = _weights(graph, first)
        own = _addition(graph, _output_of_only_user(graph, first.output[0]))
        if matrix is None or own is None:
            return
        known.append((own, matrix))
    for own, matrix in known:
        _set(graph, own, 1, graph.constants[own.input[1]] - added @ matrix)
    _set(graph, norm, 2, graph.constants[norm.input[2]] + added)
    graph.replace(bias.output[0], bias.input[0])


def _only_user(graph: Graph, value: str) -> onnx.NodeProto | None:
    users = graph.users(value)
    return users[0] if len(users) == 1 else None


def _output_of_only_user(graph: Graph, value: str) -> str:
    user = _only_user(graph, value)
    return "" if user is None else str(user.output[0])


def _weights(graph: Graph, node: onnx.NodeProto | None) -> Array | None:
    """The constant matrix that a node multiplies by."""
    if node is None or node.op_type != "MatMul":
        return None
    weights = graph.constants.get(node.input[1])
    return weights if weights is not None and weights.ndim == 2 else None


def fold_constants(graph: Graph) -> None:
    """Drop the additions, subtractions and scalings that neighbours can take over."""
    graph.prune()  # What is used no more would count as a reader.
    for attention in [node for node in graph.nodes if node.op_type == ATTENTION]:
        _drop_bias_of_keys(graph, attention)
        _scale_values(graph, attention)
    for norm in [node for node in graph.nodes if node.op_type == "LayerNormalization"]:
        _let_norm_add_bias(graph, norm)
    graph.prune()


def _drop_bias_of_keys(graph: Graph, attention: onnx.NodeProto) -> None:
    """What is added to all keys alike changes all similarities of a query alike: softmax is blind.

    So it is with whatever bias attention adds to the similarities itself.
    """
    bias = _biased(graph, attention.input[1])
    if bias is not None:
        attention.input[1] = bias.input[0]


def _scale_values(graph: Graph, attention: onnx.NodeProto) -> None:
    """Centre and scale the values, not the mean of values that attention makes.

    The weights of the mean add up to one, so it is centred and scaled then.
    """
    attended = attention.output[0]
    users = graph.users(attended)
    bias = _biased(graph, attention.input[2])
    if bias is None or [user.op_type for user in users] != ["Sub"]:
        return
    centring = users[0]
    scaling = graph.users(centring.output[0])
    product = _first_of(graph, bias.input[0], ("Mul", "Reshape", "MatMulIntegerToFloat"))
    if product is None or len(scaling) != 1:
        return
    factors = graph.constants[scaling[0].input[1]]
    _set(graph, product, 3, graph.constants[product.input[3]] * factors)
    middle = graph.constants[centring.input[1]]
    _set(graph, bias, 1, (graph.constants[bias.input[1]] - middle) * factors)
    graph.replace(scaling[0].output[0], attended)


def _let_norm_add_bias(graph: Graph, norm: onnx.NodeProto) -> None:
    """A residual sum adds a product's bias; the norm that the rest of it comes from has its own.

    What else reads the norm's result is a product in 8 bits, which takes a constant off it first.
    """
    whole = norm.output[0]
    users = {user.op_type: user for user in graph.users(whole)}
    if len(graph.users(whole)) != 2 or set(users) != {"Add", "Sub"} or len(norm.input) != 3:
        return
    (other,) = (value for value in users["Add"].input if value != whole)
    bias = _bias_within(graph, other)
    if bias is None:
        return
    constant = graph.constants[bias.input[1]]
    _set(graph, norm, 2, graph.constants[norm.input[2]] + constant)
    _set(graph, users["Sub"], 1, graph.constants[users["Sub"].input[1]] + constant)
    graph.replace(bias.output[0], bias.input[0])


def _bias_within(graph: Graph, value: str) -> onnx.NodeProto | None:
    """The addition of a constant vector among those that make up a sum which nobody else reads."""
    maker = graph.maker(value)
    if maker is None or maker.op_type != "Add" or len(graph.users(value)) != 1:
        return None
    if _biased(graph, value) is not None:
        return maker
    return _bias_within(graph, maker.input[0])


def _first_of(graph: Graph, value: str, operations: Sequence[str]) -> onnx.NodeProto | None:
    """The first of several operations that make a value, if they are these, told from the last."""
    maker = None
    for operation in operations:
        maker = graph.maker(value)
        if maker is None or maker.op_type != operation:
            return None
        value = maker.input[0]
    return maker


def _biased(graph: Graph, value: str) -> onnx.NodeProto | None:
    """The node that makes a value, for one reader, by adding a constant vector to something."""
    return _addition(graph, value) if len(graph.users(value)) == 1 else None


def _addition(graph: Graph, value: str) -> onnx.NodeProto | None:
    """The same, for any number of readers."""
    maker = graph.maker(value)
    if maker is None or maker.op_type != "Add":
        return None
    constant = graph.constants.get(maker.input[1])
    return maker if constant is not None and constant.ndim == 1 else None


def _set(graph: Graph, node: onnx.NodeProto, place: int, array: Array) -> None:
    """Give a node a constant of its own: layers may share what it had."""
    name = f"{node.input[place]} of {node.output[0]}"
    node.input[place] = graph.constant(name, array.astype("float32"))
