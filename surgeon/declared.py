"""What a value is declared to be made of: tensors, whether one or many, there or not."""

from __future__ import annotations

import onnx


def is_sequence(type_: onnx.TypeProto) -> bool:
    """Whether it is a sequence, or may be one where it may be nothing."""
    return bool(_present(type_).HasField("sequence_type"))


def tensor_of(type_: onnx.TypeProto) -> onnx.TypeProto.Tensor | None:
    """The type of a tensor, of each in a sequence, or of what may be there; None of all else."""
    type_ = _present(type_)
    if type_.HasField("sequence_type"):
        type_ = type_.sequence_type.elem_type
    return type_.tensor_type if type_.HasField("tensor_type") else None


def length_of(dim: onnx.TensorShapeProto.Dimension) -> int | None:
    """The number that a size is declared to be; None where there is none, or one below 0.

    Scripts write -1 for what they do not know, and onnxruntime reads any such number so.
    """
    return dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None


def size_of(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    """What a size is declared to be: a number, a name, or nothing that anybody knows."""
    length = length_of(dim)
    return dim.dim_param or None if length is None else length


def _present(type_: onnx.TypeProto) -> onnx.TypeProto:
    return type_.optional_type.elem_type if type_.HasField("optional_type") else type_
