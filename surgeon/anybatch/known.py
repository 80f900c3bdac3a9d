"""What is known of a graph whose batch is fixed, before the batch is followed through it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from surgeon.dims import Dim
from surgeon.facts import Facts, walked
from surgeon.model import Model
from surgeon.nested import every_body, every_node
from surgeon.standard import opset_of
from surgeon.writer import FIRST_IR_WITH_FREE_INITIALIZERS


class Known:
    """What is read of a graph once, however often the batch is followed through it.

    Attributes:
        opset: Of ONNX's own operators.
        initializers: Those that nothing else may be fed for.
        shapes: For the batch of the file, by the value's name; of those whose rank is known.
        vectors: The sizes and places that the graph computes, by the value's name.
        given: The outputs.
        readers: Who reads a value, by its name.
        captured: What bodies give.
        names: Those that are taken.
    """

    def __init__(self, model: onnx.ModelProto, folder: Path | None) -> None:
        self.opset = opset_of(model) or 1
        free = model.ir_version >= FIRST_IR_WITH_FREE_INITIALIZERS
        given = {value.name for value in model.graph.input if free}  # others may be fed for them
        tensors = (tensor for tensor in model.graph.initializer if tensor.name not in given)
        self.initializers = {tensor.name: tensor for tensor in tensors}
        self.shapes, self.vectors = _facts(model, folder)
        self.given = {value.name for value in model.graph.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in every_node(model.graph.node):
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.captured = {v.name for body in every_body(model.graph.node) for v in body.output}
        self.names = {name for node in model.graph.node for name in (*node.input, *node.output)}
        self.names.update(tensor.name for tensor in model.graph.initializer)
        self.names.update(value.name for value in model.graph.input)


def _facts(
    proto: onnx.ModelProto, folder: Path | None
) -> tuple[dict[str, Sequence[Dim]], dict[str, Sequence[Dim]]]:
    """Shapes, and vectors that are computed; what the file claims of them is not looked at."""
    model = Model(proto, folder=folder)
    facts = Facts(model)
    shapes: dict[str, Sequence[Dim]] = {}
    vectors: dict[str, Sequence[Dim]] = {}
    for node in walked(facts, model.graph):  # others are refused where the batch comes by
        for tensor in node.outputs:
            value: Any = facts.of(tensor).value
            if value is not None and value.ndim == 1 and value.dtype.kind in "iO":
                vectors[tensor.name] = tuple(value.tolist())
    for name, tensor in model.graph.tensors().items():
        if (shape := facts.of(tensor).shape) is not None:
            shapes[name] = shape
    return shapes, vectors
