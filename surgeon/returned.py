"""Whether a graph is the one it began as, but for names of inner values, nodes and their order."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx

BACK = "rules undo one another here, and leave the model as it came"

Key = int
Scope = Mapping[str, Key]


def is_back(found: onnx.ModelProto, begun: onnx.ModelProto) -> bool:
    """Whether two models say the same, node by node, of the same inputs, outputs and constants.

    What stands beside the graph and its functions (claims of shapes, metadata) is not looked at.
    """
    one, other = found.graph, begun.graph
    # what was written anew may have a constant of its own, where one was shared; fewer is a change
    if len(one.node) != len(other.node) or len(one.initializer) < len(other.initializer):
        return False
    if found.ir_version != begun.ir_version or _opsets(found) != _opsets(begun):
        return False
    if [v.SerializeToString() for v in (*one.input, *one.output)] != [
        v.SerializeToString() for v in (*other.input, *other.output)
    ]:
        return False
    if Counter(f.SerializeToString() for f in found.functions) != Counter(
        f.SerializeToString() for f in begun.functions
    ):
        return False
    keys = Keys()
    return keys.of_graph(one, {}) == keys.of_graph(other, {})


def _digest(array: np.ndarray[Any, Any]) -> bytes:
    return hashlib.sha256(array.tobytes()).digest()  # weights are not held twice


def _opsets(model: onnx.ModelProto) -> set[tuple[str, int]]:
    return {(entry.domain, entry.version) for entry in model.opset_import}


class Keys:
    """A number for each value by what it is computed of: equal ones have the same number."""

    def __init__(self) -> None:
        self._numbers: dict[Any, Key] = {}

    def _number(self, *said: Any) -> Key:
        return self._numbers.setdefault(said, len(self._numbers))

    def of_graph(self, graph: onnx.GraphProto, outer: Scope, deep: int = 0) -> Key:
        """The number of a graph, or of a body in what is known around it."""
        known = dict(outer)
        held = [self._tensor(tensor) for tensor in graph.initializer]
        known.update((t.name, key) for t, key in zip(graph.initializer, held, strict=True))
        for tensor in graph.sparse_initializer:
            known[tensor.values.name] = self._number("sparse", tensor.SerializeToString())
        for place, value in enumerate(graph.input):  # of initializers too, the inputs are meant
            said = value.name if not deep else place
            key = self._number("input", deep, said, value.type.SerializeToString())
            known[value.name] = self._number("given", key, known.get(value.name, -1))
        nodes: Counter[Key] = Counter(held if deep else set(held))
        for node in graph.node:
            key = self._node(node, known, deep)
            nodes[key] += 1
            for place, name in enumerate(node.output):
                if name:
                    known[name] = self._number("output", key, place)
        ends = tuple(known.get(value.name, -1) for value in graph.output)
        return self._number("graph", ends, frozenset(nodes.items()))

    def _node(self, node: onnx.NodeProto, known: Scope, deep: int) -> Key:
        inputs = tuple(known.get(name, -1) if name else -2 for name in node.input)
        outputs = tuple(bool(name) for name in node.output)
        attributes = frozenset(self._attributes(node.attribute, known, deep))
        return self._number(node.domain, node.op_type, node.overload, inputs, outputs, attributes)

    def _attributes(
        self, attributes: Iterable[onnx.AttributeProto], known: Scope, deep: int
    ) -> Iterable[tuple[str, Any]]:
        for attribute in attributes:
            bodies = [attribute.g] if attribute.HasField("g") else [*attribute.graphs]
            if bodies:
                yield attribute.name, tuple(self.of_graph(b, known, deep + 1) for b in bodies)
            elif attribute.HasField("t"):
                yield attribute.name, self._tensor(attribute.t)
            else:
                yield attribute.name, attribute.SerializeToString()

    def _tensor(self, tensor: onnx.TensorProto) -> Key:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            said = sorted((entry.key, entry.value) for entry in tensor.external_data)
            return self._number("outside", tensor.data_type, tuple(tensor.dims), *said)
        array = onnx.numpy_helper.to_array(tensor)
        strings = array.dtype.kind == "O"
        value = tuple(array.ravel().tolist()) if strings else _digest(array)
        return self._number("tensor", tensor.data_type, tuple(tensor.dims), value)
