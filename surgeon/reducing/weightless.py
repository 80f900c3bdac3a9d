"""A model without its weights: one number in the place of each, which a node repeats.

It has the same nodes, types and shapes, and loads where ConstantOfShape does; what it computes is
something else. So it is no repair, and is given where nothing but a failure is to be shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx

from surgeon import standard
from surgeon.errors import few
from surgeon.external import values_of
from surgeon.model import Model
from surgeon.nested import every_body, every_node
from surgeon.provenance import WEIGHTLESS
from surgeon.stored import bytes_of
from surgeon.writer import set_property

_LEAST = 1 << 10  # bytes: what is smaller are axes, shapes and scales more often than weights
_KINDS = frozenset(  # whole numbers of many bits are places and sizes, which are no weights
    {
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.FLOAT16,
        onnx.TensorProto.BFLOAT16,
        onnx.TensorProto.DOUBLE,
        onnx.TensorProto.INT8,
        onnx.TensorProto.UINT8,
    }
)


def without_weights(model: Model) -> tuple[Model, int]:
    """The model with numbers in the place of its weights, and how many bytes these are.

    The number is the mean of the weight's absolute values: of the same size, and of no sign that a
    scale cannot have.

    Raises:
        ModelError: A data file is missing, or outside the model's folder.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(model.to_proto())
    names = set(_names(proto))
    stay = {value.name for value in proto.graph.input}
    for note in proto.graph.quantization_annotation:
        stay |= {note.tensor_name, *(each.value for each in note.quant_parameter_tensor_names)}
    gone = {}
    for graph in (proto.graph, *every_body(proto.graph.node)):
        weights = [t for t in graph.initializer if t.name not in stay and _is_weight(t, model)]
        nodes = []
        for tensor in weights:
            gone[tensor.name] = bytes_of(tensor)
            nodes.append(_repeating(tensor, model, graph, names))
            graph.initializer.remove(tensor)
        for node in reversed(nodes):
            graph.node.insert(0, node)
    if not gone:
        return model, 0
    total = sum(gone.values())
    said = f"{total} bytes were left out, and numbers stand in their place: {few([*gone])}"
    set_property(proto.metadata_props, WEIGHTLESS, f"{said}. It computes something else.")
    found = Model(proto, folder=model.folder)
    found.changed, found.stamps = True, dict(model.stamps)
    return found, total


def _is_weight(tensor: onnx.TensorProto, model: Model) -> bool:
    kind = tensor.data_type
    return (
        kind in _KINDS
        and bytes_of(tensor) >= _LEAST
        and standard.gives("ConstantOfShape", model.opset, kind)
    )


def _repeating(
    tensor: onnx.TensorProto, model: Model, graph: onnx.GraphProto, names: set[str]
) -> onnx.NodeProto:
    """The node that repeats a number in the shape of a weight; its shape is put into the graph."""
    array = values_of(tensor, model.folder)
    finite = np.abs(array.astype(np.float64))
    finite = finite[np.isfinite(finite)]
    most = 127 if tensor.data_type == onnx.TensorProto.INT8 else np.inf
    mean = np.minimum([finite.mean() if finite.size else 0.0], most).astype(array.dtype)
    stem = shape = f"{tensor.name}/shape"
    count = 1
    while shape in names:
        count += 1
        shape = f"{stem}_{count}"
    names.add(shape)
    sizes = np.array(tensor.dims, np.int64)
    graph.initializer.append(onnx.numpy_helper.from_array(sizes, shape))
    value = onnx.numpy_helper.from_array(mean)
    return onnx.helper.make_node("ConstantOfShape", [shape], [tensor.name], value=value)


def _names(proto: onnx.ModelProto) -> Iterator[str]:
    """All names of values, wherever they are."""
    for graph in (proto.graph, *every_body(proto.graph.node)):
        held: tuple[Any, ...] = (*graph.input, *graph.initializer)
        yield from (each.name for each in held)
        yield from (each.values.name for each in graph.sparse_initializer)
    for node in every_node(proto.graph.node):
        yield from (*node.input, *node.output)
