"""A traced graph made faster: one row where one row is enough."""

import onnx

from cptuning.export.graph import ATTENTION, Graph, attributes

# Operators that treat the vectors of a text one by one, if all their inputs do.
_ROW_WISE = {"Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Erf", "Tanh", "Relu", "Sigmoid", "Cast"}


def drop_idle_reshapes(graph: Graph) -> None:
    """Drop reshapes in a row that end in the shape they began with.

    Models split the width into heads, and the attention operator wants it whole. As such they cost
    next to nothing, but the other passes do not look behind them.
    """
    for node in [node for node in graph.nodes if node.op_type == "Reshape"]:
        source: onnx.NodeProto | None = node
        while source is not None and source.op_type == "Reshape":
            value = source.input[0]
            source = graph.producer(value)
        shape = graph.shape(value)
        if shape is not None and shape == graph.shape(node.output[0]):
            graph.replace(node.output[0], value)
    graph.prune()


def gather_early(graph: Graph, outputs: str) -> None:
    """Take the row of [OMSK] as early as the answer allows.

    What is computed for all rows between the last attention and the end, and the last attention's
    own queries, is needed at [OMSK] alone. Whatever the architecture: a node moves behind the
    gather if it treats rows one by one and nothing needs its other rows.
    """
    if not graph.consumers(outputs):
        return
    (gather,) = graph.consumers(outputs)
    moved: list[onnx.NodeProto] = []
    behind = [gather]
    for node in reversed(graph.nodes[: graph.nodes.index(gather)]):
        consumers = graph.consumers(node.output[0])
        needs_one_row = all(
            consumer in behind and node.output[0] not in _read_whole(consumer)
            for consumer in consumers
        )
        if consumers and needs_one_row and _is_row_wise(graph, node):
            moved.append(node)
            behind.append(node)
    of_one_row = {node.output[0] for node in moved}
    if gather.input[0] not in of_one_row:
        return
    graph.replace(gather.output[0], gather.input[0])
    for node in reversed(moved):
        whole = _read_whole(node)
        for place, value in enumerate(node.input):
            if not value or value in whole or value in of_one_row or value in graph.constants:
                continue
            row = f"{value}/row"
            if graph.producer(row) is None:
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


def _read_whole(node: onnx.NodeProto) -> set[str]:
    """The inputs of which a node reads all rows, even to compute only one."""
    return set(node.input[1:]) if node.op_type == ATTENTION else set()
