"""An ONNX graph that can be rewritten: what produces a value, what consumes it, what is unused."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
MICROSOFT = "com.microsoft"
"""The domain of the operators that only ONNX Runtime has."""
ATTENTION = "MultiHeadAttention"
"""One of them: softmax(QKᵀ · scale) V for all heads."""


class Graph:
    """The nodes of a model in the order in which they run, and its constants by name."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self.constants: dict[str, Array] = {
            tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer
        }
        self._shapes = {
            value.name: tuple(axis.dim_param or axis.dim_value for axis in _axes(value))
            for value in model.graph.value_info
        }
        self.nodes: list[onnx.NodeProto] = []
        for node in map(deepcopy, model.graph.node):
            if node.op_type == "Constant":
                self.constants[node.output[0]] = numpy_helper.to_array(attributes(node)["value"])
            else:
                self.nodes.append(node)
        outputs = {output.name for output in model.graph.output}
        for node in self.nodes:  # Exporters name one weight twice where layers share it.
            if node.op_type == "Identity" and node.output[0] not in outputs:
                self.replace(node.output[0], node.input[0])
        self.prune()

    def producer(self, value: str) -> onnx.NodeProto | None:
        """The node that computes a value; None for constants and the graph's inputs."""
        return next((node for node in self.nodes if value in node.output), None)

    def consumers(self, value: str) -> list[onnx.NodeProto]:
        """The nodes that read a value."""
        return [node for node in self.nodes if value in node.input]

    def shape(self, value: str) -> tuple[int | str, ...] | None:
        """The lengths of a value's axes, or the names of those that vary; None if not known."""
        return self._shapes.get(value)

    def constant(self, name: str, array: Array) -> str:
        """Add a constant and return its name."""
        self.constants[name] = array
        return name

    def insert(
        self,
        before: onnx.NodeProto,
        op: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        **more: Any,
    ) -> None:
        """Add a node in front of another."""
        node = helper.make_node(op, inputs, outputs, name=outputs[0], **more)
        self.nodes.insert(self.nodes.index(before), node)

    def append(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **more: Any) -> None:
        """Add a node at the end."""
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], **more))

    def replace(self, value: str, other: str) -> None:
        """Let everything that reads a value read another one."""
        for node in self.consumers(value):
            node.input[:] = [other if name == value else name for name in node.input]

    def prune(self) -> None:
        """Drop the nodes and constants that nothing reads."""
        used = {output.name for output in self._model.graph.output}
        kept = []
        for node in reversed(self.nodes):
            if used & set(node.output):
                kept.append(node)
                used.update(node.input)
        self.nodes = kept[::-1]
        self.constants = {name: a for name, a in self.constants.items() if name in used}

    def model(self) -> onnx.ModelProto:
        """The rewritten model."""
        self.prune()
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        del model.graph.node[:], model.graph.initializer[:], model.graph.value_info[:]
        model.graph.node.extend(self.nodes)
        model.graph.initializer.extend(
            numpy_helper.from_array(array, name) for name, array in self.constants.items()
        )
        if MICROSOFT not in {known.domain for known in model.opset_import}:
            model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
        return model


def _axes(value: onnx.ValueInfoProto) -> Any:
    return value.type.tensor_type.shape.dim


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """A node's attributes by name."""
    return {given.name: helper.get_attribute_value(given) for given in node.attribute}
