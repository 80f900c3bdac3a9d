"""What onnx infers of a whole model and makes of it: native code, in the worker where there is one.

Of a model that cannot be it may end the process: where a kernel is larger than what it is moved
over, onnx infers a size below zero, and a Slice of that fails an assertion of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnx.checker
import onnx.shape_inference

from surgeon.errors import ForeignError
from surgeon.isolation import asked


class NotInferred(Exception):
    """Nothing was inferred; says why in onnx's own words."""


class NotConverted(Exception):
    """The model was not converted; says why in onnx's own words."""


def inferred(
    model: onnx.ModelProto,
    *,
    check_type: bool = False,
    strict: bool = False,
    data_prop: bool = False,
) -> onnx.ModelProto:
    """A model with the types and shapes that onnx infers of its values.

    Args:
        model: Left as it is.
        check_type: Whether an operand of a type that its node does not take is an error.
        strict: Whether a node of which nothing is inferred is one.
        data_prop: Whether values of shapes are followed.

    Raises:
        NotInferred: onnx refuses the model, or ends the worker at it.
    """
    found = _made(_inferred, model, check_type, strict, data_prop)
    if isinstance(found, str):
        raise NotInferred(found)
    return found


def converted(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """A model as onnx's version converter brings it to an opset.

    Raises:
        NotConverted: It does not, or ends the worker.
    """
    found = _made(_converted, model, opset)
    if isinstance(found, str):
        raise NotConverted(found)
    return found


def _made(
    function: Callable[..., onnx.ModelProto | str], model: onnx.ModelProto, *args: Any
) -> onnx.ModelProto | str:
    """What a function of this module returns: a model, or why there is none."""
    if model.ByteSize() >= onnx.checker.MAXIMUM_PROTOBUF:
        return "the model is too large to be handed over"
    try:
        return asked(function, model, *args, called="onnx")
    except ForeignError as error:
        return error.what


def _inferred(
    model: onnx.ModelProto, check_type: bool, strict: bool, data_prop: bool
) -> onnx.ModelProto | str:
    try:
        return onnx.shape_inference.infer_shapes(
            model, check_type=check_type, strict_mode=strict, data_prop=data_prop
        )
    except Exception as error:  # onnx's own kinds, which are not sent from process to process
        return str(error).strip() or type(error).__name__


def _converted(model: onnx.ModelProto, opset: int) -> onnx.ModelProto | str:
    import onnx.version_converter

    try:
        return onnx.version_converter.convert_version(model, opset)
    except Exception as error:  # RuntimeError and the converter's own kinds
        return str(error).strip() or type(error).__name__
