"""A model without its weights: one number in the place of each, which a node repeats.

It has the same nodes, types and shapes, and loads where ConstantOfShape does; what it computes is
something else. So it is no repair, and is given where nothing but a failure is to be shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

from surgeon import standard
from surgeon.errors import few
from surgeon.external import values_of
from surgeon.model import Model
from surgeon.nested import every_body
from surgeon.provenance import WEIGHTLESS
from surgeon.renaming import unused
from surgeon.standard import STANDARD, opset_of
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


class Weightless(NamedTuple):
    """A model without its weights.

    Attributes:
        model: The model; the one that was given where it has none that could be left out.
        left_out: Bytes of the weights in whose place numbers stand.
        kept: What else of some size stays in it: by its name, or that of what its node gives.
    """

    model: Model
    left_out: int
    kept: tuple[str, ...]


class _Scope(NamedTuple):
    """A graph, a function or a body, and the operator set that its nodes are of."""

    top: onnx.GraphProto | onnx.FunctionProto
    opset: int


def without_weights(model: Model) -> Weightless:
    """The model with numbers in the place of its weights, initializers and constants.

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
    gone: list[tuple[str, int]] = []
    for scope in [*_scopes(proto)]:
        taken = _take_weights(scope, stay)
        gone += [(name, bytes_of(tensor)) for name, tensor in taken]
        for name, tensor in reversed(taken):
            _repeat(tensor, name, scope.top, model.folder, names)
    if not gone:
        return Weightless(model, 0, kept_in(model))
    total = sum(size for _, size in gone)
    which = few([name for name, _ in gone])
    said = f"{total} bytes were left out, and numbers stand in their place: {which}"
    set_property(proto.metadata_props, WEIGHTLESS, f"{said}. It computes something else.")
    found = Model(proto, folder=model.folder)
    found.changed, found.stamps = True, dict(model.stamps)
    return Weightless(found, total, kept_in(found))


def _scopes(proto: onnx.ModelProto) -> Iterator[_Scope]:
    for top in (proto.graph, *proto.functions):
        own = proto if isinstance(top, onnx.GraphProto) else top
        opset = opset_of(own) or 1
        yield _Scope(top, opset)
        yield from (_Scope(body, opset) for body in every_body(top.node))


def _take_weights(scope: _Scope, stay: Collection[str]) -> list[tuple[str, onnx.TensorProto]]:
    """Take the weights out of a scope: initializers, and the values of constants."""
    found = []
    if isinstance(scope.top, onnx.GraphProto):
        initializers = scope.top.initializer
        for at, tensor in reversed([*enumerate(initializers)]):
            if tensor.name not in stay and _is_weight(tensor, scope.opset):
                found.append((tensor.name, tensor))
                del initializers[at]
    for at, node in reversed([*enumerate(scope.top.node)]):
        if node.op_type == "Constant" and node.domain in STANDARD:
            held = next((each.t for each in node.attribute if each.HasField("t")), None)
            if held is not None and _is_weight(held, scope.opset):
                found.append((node.output[0], held))
                del scope.top.node[at]
    return found[::-1]


def _is_weight(tensor: onnx.TensorProto, opset: int) -> bool:
    kind = tensor.data_type
    return (
        kind in _KINDS
        and bytes_of(tensor) >= _LEAST
        and standard.gives("ConstantOfShape", opset, kind)
    )


def _repeat(
    tensor: onnx.TensorProto,
    name: str,
    top: onnx.GraphProto | onnx.FunctionProto,
    folder: Path | None,
    names: set[str],
) -> None:
    """Let a node give a number in the shape of a weight, in front of all others."""
    array = values_of(tensor, folder)
    finite = np.abs(array.astype(np.float64))
    finite = finite[np.isfinite(finite)]
    most = 127 if tensor.data_type == onnx.TensorProto.INT8 else np.inf
    mean = np.minimum([finite.mean() if finite.size else 0.0], most).astype(array.dtype)
    shape = unused(f"{name}/shape", names)
    names.add(shape)
    sizes = onnx.numpy_helper.from_array(np.array(tensor.dims, np.int64), shape)
    value = onnx.numpy_helper.from_array(mean)
    top.node.insert(0, onnx.helper.make_node("ConstantOfShape", [shape], [name], value=value))
    if isinstance(top, onnx.GraphProto):
        top.initializer.append(sizes)
    else:
        top.node.insert(0, onnx.helper.make_node("Constant", [], [shape], value=sizes))


def kept_in(model: Model) -> tuple[str, ...]:
    """What of some size is in a model: inputs' defaults, kinds that nothing gives, attributes."""
    found: dict[str, None] = {}
    for top, _ in _scopes(model.to_proto()):
        if isinstance(top, onnx.GraphProto):
            held = [*top.initializer, *(each.values for each in top.sparse_initializer)]
            found |= dict.fromkeys(t.name for t in held if _size(t) >= _LEAST)
        for node in top.node:
            if any(_held(attribute) >= _LEAST for attribute in node.attribute):
                found[next(filter(None, node.output), node.name)] = None
    return tuple(found)


def _held(attribute: onnx.AttributeProto) -> int:
    """Bytes of an attribute's own values."""
    sparse = [attribute.sparse_tensor, *attribute.sparse_tensors]
    tensors = [attribute.t, *attribute.tensors, *(each.values for each in sparse)]
    lists = 4 * len(attribute.floats) + 8 * len(attribute.ints)
    return len(attribute.s) + lists + sum(map(_size, tensors)) + sum(map(len, attribute.strings))


def _size(tensor: onnx.TensorProto) -> int:
    """Bytes of a tensor's values, of texts too."""
    return bytes_of(tensor) + sum(map(len, tensor.string_data))


def _names(proto: onnx.ModelProto) -> Iterator[str]:
    """All names of values, wherever they are."""
    for top, _ in _scopes(proto):
        if isinstance(top, onnx.GraphProto):
            held: tuple[Any, ...] = (*top.input, *top.initializer)
            yield from (each.name for each in held)
            yield from (each.values.name for each in top.sparse_initializer)
        else:
            yield from top.input
        for node in top.node:
            yield from (*node.input, *node.output)
