"""A model's inputs and outputs, as the file declares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from surgeon.declared import size_of
from surgeon.writer import FIRST_IR_WITH_FREE_INITIALIZERS


@dataclass(frozen=True, slots=True)
class Value:
    """A graph input or output as the file declares it.

    Attributes:
        name: Its name.
        kind: The element type, `float32` say; for what is no tensor `sequence`, `optional`, `map`.
        shape: Numbers, names, None for a size nobody names; None where no rank is declared.
    """

    name: str
    kind: str
    shape: tuple[int | str | None, ...] | None


def inputs_of(graph: onnx.GraphProto) -> tuple[Value, ...]:
    """What a graph has to be given: its inputs but for weights that stand among them."""
    weights = {tensor.name for tensor in graph.initializer}
    return tuple(value_of(value) for value in graph.input if value.name not in weights)


def defaults_of(proto: onnx.ModelProto) -> tuple[Value, ...]:
    """Inputs that have a value in the file, by which they need not be given.

    None before IR version 4, where no runtime takes another, and none where every weight is listed
    among the inputs, as old converters did.
    """
    weights = {tensor.name for tensor in proto.graph.initializer}
    listed = [value for value in proto.graph.input if value.name in weights]
    if proto.ir_version < FIRST_IR_WITH_FREE_INITIALIZERS or len(listed) == len(weights):
        return ()
    return tuple(map(value_of, listed))


def value_of(value: onnx.ValueInfoProto) -> Value:
    """A graph's input or output as it is declared."""
    kind = value.type.WhichOneof("value") or "unknown"
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return Value(value.name, kind.removesuffix("_type"), None)
    tensor = getattr(value.type, kind)
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    except KeyError:  # a number that no onnx knows
        dtype = f"dtype {tensor.elem_type}"
    if tensor.elem_type == onnx.TensorProto.STRING:
        dtype = "string"
    if not tensor.HasField("shape"):
        return Value(value.name, dtype, None)
    return Value(value.name, dtype, tuple(map(size_of, tensor.shape.dim)))


def dynamic_of(inputs: Sequence[Value]) -> tuple[str, ...]:
    """The dynamic dims of inputs by name, an unnamed one as `input.axis`."""
    names = (
        dim or f"{value.name}.{axis}"
        for value in inputs
        for axis, dim in enumerate(value.shape or ())
        if not isinstance(dim, int)
    )
    return tuple(dict.fromkeys(names))
