"""A traced graph made faster: attention without detours, and one row where one row is enough."""

from dataclasses import dataclass

import numpy as np
import onnx

from cptuning.export.graph import ATTENTION, Array, Graph, attributes

_SWAP = [0, 2, 1, 3]
# Operators that treat the vectors of a text one by one, if all their inputs do.
_ROW_WISE = {"Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Erf", "Tanh", "Relu", "Sigmoid", "Cast"}


def straighten_attention(graph: Graph) -> None:
    """Give attention operators their inputs and outputs as (text, token, width).

    Models split the width into heads and swap axes around attention. The operator does that
    itself, so a split and a swap before it are taken back, and so is the join behind it.
    """
    for node in [node for node in graph.nodes if node.op_type == ATTENTION]:
        node.input[:3] = [_with_heads_joined(graph, node, value) for value in node.input[:3]]
        for user in graph.users(node.output[0]):
            if user.op_type == "Reshape":
                graph.replace(user.output[0], node.output[0])
    graph.prune()


def _with_heads_joined(graph: Graph, attention: onnx.NodeProto, value: str) -> str:
    swap = graph.maker(value)
    if swap is not None and swap.op_type == "Transpose" and attributes(swap)["perm"] == _SWAP:
        split = graph.maker(swap.input[0])
        if split is not None and split.op_type == "Reshape":
            return str(split.input[0])
    swapped, joined = f"{value}/swapped", f"{value}/joined"
    shape = graph.constant("joined heads", np.array([0, 0, -1]))
    graph.insert(attention, "Transpose", [value], [swapped], perm=_SWAP)
    graph.insert(attention, "Reshape", [swapped, shape], [joined])
    return joined


def take_row_early(graph: Graph, outputs: str) -> None:
    """Take the row of [OMSK] as early as the answer allows.

    What is computed of all rows between the last attention and the end, and the last attention's
    own queries, is needed at [OMSK] alone. Whatever the architecture: a node moves behind the
    choice of the row if it treats rows one by one and nobody needs its other rows.
    """
    (choice,) = graph.users(outputs)
    moved: list[onnx.NodeProto] = []
    behind = [choice]
    for node in reversed(graph.nodes[: graph.nodes.index(choice)]):
        users = graph.users(node.output[0])
        needs_one = all(
            user in behind and node.output[0] not in _read_whole(graph, user) for user in users
        )
        if users and needs_one and _is_row_wise(graph, node):
            moved.append(node)
            behind.append(node)
    made_here = {node.output[0] for node in moved}
    if choice.input[0] not in made_here:
        return
    graph.replace(choice.output[0], choice.input[0])
    for node in reversed(moved):
        whole = _read_whole(graph, node)
        for place, value in enumerate(node.input):
            if not value or value in whole or value in made_here or value in graph.constants:
                continue
            row = f"{value}/row"
            if graph.maker(row) is None:
                graph.insert(node, "GatherND", [value, outputs], [row], batch_dims=1)
            node.input[place] = row


def spare_keys_and_values(graph: Graph, outputs: str) -> None:
    """Where a text has one query, let it read the tokens as they are.

    A query times a key that is a product, q · (x W), is (q Wᵀ) · x, and a mean of values x W is the
    mean of x, times W. With one query a text these take one row through the matrices, where keys
    and values would take every token. A bias of keys changes nothing: softmax is blind to it.
    """
    one_row = graph.made_from(outputs)
    for attention in [node for node in graph.nodes if node.op_type == ATTENTION]:
        if len(attention.input) != 3 or attention.input[0] not in one_row:
            continue
        keys, values = (_projection(graph, value) for value in attention.input[1:])
        if keys is not None and values is not None and keys.tokens == values.tokens:
            _attend_to_tokens(graph, attention, keys, values)
    graph.prune()


@dataclass(frozen=True)
class _Projection:
    """A product of tokens with a constant matrix, and a vector that is added to it."""

    tokens: str
    weights: Array
    bias: Array


def _projection(graph: Graph, value: str) -> _Projection | None:
    maker = graph.maker(value)
    bias = np.zeros(1, np.float32)
    if maker is not None and maker.op_type == "Add":
        known = [graph.constants[name] for name in maker.input if name in graph.constants]
        rest = [name for name in maker.input if name not in graph.constants]
        if len(known) != 1 or known[0].ndim != 1:
            return None
        (bias,), maker = known, graph.maker(rest[0])
    if maker is None or maker.op_type != "MatMul":
        return None
    weights = graph.constants.get(maker.input[1])
    if weights is None or weights.ndim != 2:
        return None
    return _Projection(maker.input[0], weights, bias)


def _attend_to_tokens(
    graph: Graph, attention: onnx.NodeProto, keys: _Projection, values: _Projection
) -> None:
    query, result = attention.input[0], attention.output[0]
    settings = attributes(attention)
    heads, scale = settings["num_heads"], np.float32(settings["scale"])
    tokens = keys.tokens
    of_keys = keys.weights.T.reshape(heads, -1, len(keys.weights)) * scale
    of_values = values.weights.reshape(len(values.weights), heads, -1).swapaxes(0, 1)
    apart = graph.constant(f"{result}/heads apart", np.array([0, heads, -1]))
    joined = graph.constant(f"{result}/heads joined", np.array([0, 1, -1]))
    bias = graph.constant(f"{result}/bias", values.bias)

    def step(op: str, inputs: list[str], name: str, **more: object) -> str:
        graph.insert(attention, op, inputs, [f"{result}/{name}"], **more)
        return f"{result}/{name}"

    def through(matrices: Array, rows: str, name: str) -> str:
        """Rows of every head through that head's own matrix: heads first, then texts."""
        weights = graph.constant(f"{result}/{name}/weights", np.ascontiguousarray(matrices))
        first = step("Transpose", [rows], f"{name}/heads first", perm=[1, 0, 2])
        return step("MatMul", [first, weights], name)

    split = step("Reshape", [query, apart], "query")
    sought = through(of_keys, split, "sought")
    columns = step("Transpose", [sought], "columns", perm=[1, 2, 0])
    similar = step("MatMul", [tokens, columns], "similar")
    by_head = step("Transpose", [similar], "by head", perm=[0, 2, 1])
    shares = step("Softmax", [by_head], "shares", axis=-1)
    mean = step("MatMul", [shares, tokens], "mean")
    valued = through(of_values, mean, "valued")
    by_text = step("Transpose", [valued], "by text", perm=[1, 0, 2])
    row = step("Reshape", [by_text, joined], "row")
    graph.replace(result, step("Add", [row, bias], "attended"))


def _is_row_wise(graph: Graph, node: onnx.NodeProto) -> bool:
    if node.op_type in _ROW_WISE:
        return True
    if node.op_type == "MatMul":
        return node.input[1] in graph.constants
    if node.op_type == "LayerNormalization":
        return bool(attributes(node).get("axis", -1) == -1)
    # A bias has a row of its own for each query: such attention stays as it is.
    return node.op_type == ATTENTION and len(node.input) == 3


def _read_whole(graph: Graph, node: onnx.NodeProto) -> set[str]:
    """The inputs of which a node reads all rows, even to make only one."""
    return set(node.input[1:]) if node.op_type == ATTENTION else set()
