"""If, Loop and Scan whose bodies hold foreign nodes: interpreted, by ONNX's specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import onnx

from surgeon.reference.errors import NoWitness

LookUp = Callable[[str, Mapping[str, Any]], Any]


class Body(Protocol):
    """A body that can run."""

    def run(
        self, feeds: Mapping[str, Any], around: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The body's outputs by name, in their order."""


def run(
    node: onnx.NodeProto,
    values: Mapping[str, Any],
    look_up: LookUp,
    body_of: Callable[[onnx.GraphProto], Body],
) -> list[Any]:
    """The outputs of a control node.

    Args:
        node: If, Loop or Scan.
        values: The values around it.
        look_up: A value by name, constants included.
        body_of: Makes a body ready to run.
    """
    operands = [look_up(name, values) for name in node.input]
    graphs = {a.name: a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH}
    if node.op_type == "If":
        graph = graphs["then_branch" if bool(np.asarray(operands[0]).item()) else "else_branch"]
        return _outputs(graph, body_of(graph), {}, values)
    if node.op_type == "Loop":
        return _loop(graphs["body"], operands, values, body_of(graphs["body"]))
    return _scan(node, graphs["body"], operands, values, body_of(graphs["body"]))


def _outputs(
    graph: onnx.GraphProto, body: Body, feeds: Mapping[str, Any], values: Mapping[str, Any]
) -> list[Any]:
    found = body.run(feeds, values)
    return [found[value.name] for value in graph.output]


def _loop(
    graph: onnx.GraphProto, operands: list[Any], values: Mapping[str, Any], body: Body
) -> list[Any]:
    trips = None if operands[0] is None else int(np.asarray(operands[0]).item())
    goes_on = operands[1] is None or bool(np.asarray(operands[1]).item())
    carried = operands[2:]
    collected: list[list[Any]] = [[] for _ in graph.output[1 + len(carried) :]]
    names = [value.name for value in graph.input]
    turn = 0
    while goes_on and (trips is None or turn < trips):
        first = [np.asarray(turn, np.int64), np.asarray(goes_on)]
        results = _outputs(graph, body, dict(zip(names, first + carried, strict=True)), values)
        goes_on = bool(np.asarray(results[0]).item())
        carried = results[1 : 1 + len(carried)]
        for kept, value in zip(collected, results[1 + len(carried) :], strict=True):
            kept.append(value)
        turn += 1
    declared = graph.output[1 + len(carried) :]
    stacked = [_stack(kept, 0, info) for kept, info in zip(collected, declared, strict=True)]
    return [*carried, *stacked]


def _scan(
    node: onnx.NodeProto,
    graph: onnx.GraphProto,
    operands: list[Any],
    values: Mapping[str, Any],
    body: Body,
) -> list[Any]:
    attributes = {
        a.name: onnx.helper.get_attribute_value(a) for a in node.attribute if a.name != "body"
    }
    count = attributes["num_scan_inputs"]
    carried, scanned = operands[: len(operands) - count], operands[len(operands) - count :]
    made = graph.output[len(carried) :]
    axes = attributes.get("scan_input_axes") or [0] * count
    backward = attributes.get("scan_input_directions") or [0] * count
    out_axes = attributes.get("scan_output_axes") or [0] * len(made)
    out_backward = attributes.get("scan_output_directions") or [0] * len(made)
    names = [value.name for value in graph.input]
    length = scanned[0].shape[axes[0]]
    collected: list[list[Any]] = [[] for _ in made]
    for turn in range(length):
        pieces = [
            np.take(x, length - 1 - turn if back else turn, axis=axis)
            for x, axis, back in zip(scanned, axes, backward, strict=True)
        ]
        results = _outputs(graph, body, dict(zip(names, carried + pieces, strict=True)), values)
        carried = results[: len(carried)]
        for kept, value in zip(collected, results[len(carried) :], strict=True):
            kept.append(value)
    stacked = [
        _stack(kept[::-1] if back else kept, axis, info)
        for kept, axis, back, info in zip(collected, out_axes, out_backward, made, strict=True)
    ]
    return [*carried, *stacked]


def _stack(kept: list[Any], axis: int, declared: onnx.ValueInfoProto) -> Any:
    """What the turns made, side by side; with no turn, empty in the declared dtype and shape."""
    if kept:
        return np.stack(kept, axis)
    tensor = declared.type.tensor_type
    dims = [d.dim_value for d in tensor.shape.dim]
    if not tensor.elem_type or not tensor.HasField("shape"):
        raise NoWitness("Loop", where=f"output `{declared.name}`", why="no turn, and no type")
    return np.zeros((0, *dims), onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
