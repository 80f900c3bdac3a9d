"""How types, tensors and long texts are put into words that two models can be told apart by."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

Tensor = onnx.TensorProto | onnx.SparseTensorProto


def type_said(proto: onnx.TypeProto) -> str:
    """A type in words, with all that a file says of it; empty where it says nothing.

    `float32 [N, 3]`, `sequence of int64 of unknown rank`, `float32 [N (DATA_BATCH), 3] (IMAGE)`.
    """
    kind = proto.WhichOneof("value")
    if kind is None:
        said = ""
    elif kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        shape = f"[{', '.join(map(_dim, tensor.shape.dim))}]"
        said = (
            f"{_dtype(tensor.elem_type)} {shape if tensor.HasField('shape') else 'of unknown rank'}"
        )
        said = said if kind == "tensor_type" else f"sparse {said}"
    elif kind == "map_type":
        held = type_said(proto.map_type.value_type)
        said = f"map of {_dtype(proto.map_type.key_type)} to {held}"
    elif kind == "opaque_type":
        said = f"opaque {proto.opaque_type.domain}.{proto.opaque_type.name}"
    else:
        said = f"{kind.removesuffix('_type')} of {type_said(getattr(proto, kind).elem_type)}"
    return f"{said} ({proto.denotation})".lstrip() if proto.denotation else said


def tensor_said(tensor: Tensor) -> str:
    """A tensor's type and size, of a sparse one also how many values it holds."""
    if isinstance(tensor, onnx.SparseTensorProto):
        dense = _sized(tensor.values.data_type, tensor.dims)
        count = sum(tensor.values.dims[:1])
        return f"sparse {dense} of {count} value{'' if count == 1 else 's'}"
    return _sized(tensor.data_type, tensor.dims)


def apart(before: str, after: str, longest: int) -> tuple[str, str]:
    """Two long texts cut to where they begin to differ."""
    if max(len(before), len(after)) <= longest or not (before and after):
        return _cut(before, 0, longest), _cut(after, 0, longest)
    pairs = enumerate(zip(before, after, strict=False))
    same = next((index for index, (a, b) in pairs if a != b), min(len(before), len(after)))
    start = max(0, same - longest // 3)
    return _cut(before, start, longest), _cut(after, start, longest)


def _cut(text: str, start: int, longest: int) -> str:
    head, tail = "..." if start else "", "..." if len(text) > start + longest else ""
    return f"{head}{text[start : start + longest]}{tail}"


def _dim(dim: onnx.TensorShapeProto.Dimension) -> str:
    said = str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"
    if dim.dim_param and (said == "?" or said.isdigit()):
        said = f"'{said}'"  # a name that looks like a number
    return f"{said} ({dim.denotation})" if dim.denotation else said


def _dtype(number: int) -> str:
    if number == onnx.TensorProto.STRING:
        return "string"
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(number).name)
    except KeyError:  # a number that no onnx knows
        return f"dtype {number}"


def _sized(number: int, dims: Iterable[int]) -> str:
    return f"{onnx.TensorProto.DataType.Name(number).lower()} {list(dims)}"
