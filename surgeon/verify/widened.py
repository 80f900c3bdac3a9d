"""What a model computes in double precision: how far rounding alone takes the original from it.

Where large numbers cancel, an original in single precision is itself as far from what it means as
another order of its operations is from it: `(sqrt(1 + 0.004 * x) - 1) / 0.002`. Moving its inputs
by rounding does not show that, as what is added to them is larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from surgeon.declared import tensor_of
from surgeon.nested import every_body
from surgeon.verify.compare import compare_arrays
from surgeon.verify.verdict import OutputCheck
from surgeon.weights import weights_of

MOST = 1e-2  # of its spread: what is farther off is no rounding, but a choice that rounding turns
TIMES = 2.0  # as far as the original a result may be
_LARGEST = 1 << 28  # bytes of a model that is copied
_KINDS = frozenset({"to", "dtype"})  # attributes that are an element type


def is_near(check: OutputCheck) -> bool:
    """Whether an output of single precision differs by so little that rounding may be why."""
    near = 0 < check.tolerance < check.max_relative <= MOST
    return check.dtype == "float32" and not check.agrees and not check.fault and near


def beside(check: OutputCheck, before: Any, after: Any, exact: Any) -> OutputCheck:
    """The check, where the result is about as far from double precision as the original is.

    Args:
        check: That says that they differ.
        before: What the original computes.
        after: What the result does.
        exact: What the original computes in double precision.
    """
    own, other = (compare_arrays(check.name, exact, each) for each in (before, after))
    if own.fault or other.fault or own.max_relative > MOST:
        return check
    if other.max_relative > TIMES * own.max_relative:
        return check
    weak = f"in single precision the original itself is {own.max_relative:.2g} of its spread off"
    return replace(check, agrees=True, weak=weak, doubted=True)


def narrowed(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs of double precision, rounded to single."""
    with np.errstate(over="ignore"):
        return {
            n: v.astype(np.float32) if isinstance(v, np.ndarray) and v.dtype == np.float64 else v
            for n, v in outputs.items()
        }


def wide_feeds(feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs of single precision in double."""
    return {
        n: v.astype(np.float64) if isinstance(v, np.ndarray) and v.dtype == np.float32 else v
        for n, v in feeds.items()
    }


def widened(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """The model with all that is float32 in double precision; None where it is not to be said.

    A runtime that lacks an operator of doubles refuses it.
    """
    if model.functions or weights_of(model.graph).size > _LARGEST:
        return None
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for graph in (wide.graph, *every_body(wide.graph.node)):
        del graph.value_info[:]
        for value in (*graph.input, *graph.output):
            tensor = tensor_of(value.type)
            if tensor is not None and tensor.elem_type == TensorProto.FLOAT:
                tensor.elem_type = TensorProto.DOUBLE
        for tensor in _tensors(graph):
            if tensor.data_location == TensorProto.EXTERNAL:
                return None
            if tensor.data_type == TensorProto.FLOAT:
                array = numpy_helper.to_array(tensor).astype(np.float64)
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        for node in graph.node:
            _widen(node)
    return wide


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for attribute in (each for node in graph.node for each in node.attribute):
        if attribute.HasField("t"):
            yield attribute.t


def _widen(node: onnx.NodeProto) -> None:
    """What an attribute says of the types that a node gives, or gives itself."""
    for attribute in node.attribute:
        if attribute.name in _KINDS and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
        if node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            plain = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            array = np.asarray(plain, np.float64)
            attribute.CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(array)))
    if node.op_type == "ConstantOfShape" and not node.attribute:  # zeros of float32
        zero = numpy_helper.from_array(np.zeros(1, np.float64))
        node.attribute.append(onnx.helper.make_attribute("value", zero))
