"""A traced graph made faster: attention without detours, and one row where one row is enough."""

import numpy as np
import onnx

from cptuning.export.graph import ATTENTION, Graph, attributes

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
