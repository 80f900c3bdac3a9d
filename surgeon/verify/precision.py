"""How fine the numbers of an output can be: no finer than what they are computed from."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from surgeon.chance import operator_of
from surgeon.declared import tensor_of
from surgeon.verify.compare import TOLERANCES

_HALVES = {
    int(onnx.TensorProto.FLOAT16): "float16",
    int(onnx.TensorProto.BFLOAT16): "bfloat16",
}
_OF_SIZES = frozenset({"Shape", "Size", "size"})


def coarsest_tolerance(model: onnx.ModelProto) -> float:
    """The tolerance of the coarsest floats that go in: no output can be finer than they are.

    Of the weights and casts only float32 counts: it is what most doubles are computed from.
    """
    tensors = [tensor_of(value.type) for value in model.graph.input]
    kinds = {tensor.elem_type for tensor in tensors if tensor is not None}
    inner = {tensor.data_type for tensor in model.graph.initializer}
    inner |= {to for node in model.graph.node if (to := _cast_to(node))}
    kinds |= inner & {int(onnx.TensorProto.FLOAT)}
    known = kinds.intersection(onnx.TensorProto.DataType.values()) - {0}
    names = [onnx.helper.tensor_dtype_to_np_dtype(kind).name for kind in known]
    return max((TOLERANCES[name][0] for name in names if name in TOLERANCES), default=0.0)


def coarse_outputs(model: onnx.ModelProto) -> dict[str, str]:
    """The outputs of a whole model that are computed by way of halves, and the dtype of those."""
    found = coarse_values(model)
    return {v.name: found[v.name] for v in model.graph.output if v.name in found}


def coarse_values(model: onnx.ModelProto) -> dict[str, str]:
    """The values of the main graph that are computed by way of halves, and the dtype of those.

    What is computed of float32 goes to halves by a Cast alone, and what a table of halves holds is
    halves. A Cast of a constant is weights that are kept so, and says nothing of what is computed.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    halves = {
        t.name: _HALVES[t.data_type] for t in model.graph.initializer if t.data_type in _HALVES
    }
    constants.update(n.output[0] for n in model.graph.node if n.op_type == "Constant")
    found: dict[str, str] = {}
    known = -1
    while len(found) > known:  # once, unless nodes stand before what they read
        known = len(found)
        for node in model.graph.node:
            if operator_of(node) in _OF_SIZES:
                continue
            kinds = [found[name] for name in node.input if name in found]
            if (half := _HALVES.get(_cast_to(node))) and node.input[0] not in constants:
                kinds.append(half)
            if node.op_type != "Cast":
                kinds.extend(halves[name] for name in node.input if name in halves)
            if kinds:
                coarsest = max(kinds, key=lambda kind: TOLERANCES[kind])
                found.update(dict.fromkeys(node.output, coarsest))
    return found


def _cast_to(node: onnx.NodeProto) -> int:
    """The element type of a Cast; 0 of other nodes."""
    if node.op_type != "Cast":
        return 0
    return next((int(a.i) for a in node.attribute if a.name == "to"), 0)


def allowed(expected: Any, coarse: str, least: float) -> float | None:
    """The tolerance of an output; None where its dtype is compared exactly.

    Args:
        expected: The reference's array, or a list of them.
        coarse: The dtype that it was computed in on the way, or "".
        least: Allowed whatever the table says.
    """
    kind = np.asarray(expected[0] if isinstance(expected, list) and expected else expected)
    kinds = [kind.dtype.name, coarse]
    if kinds[0] not in TOLERANCES:
        return None
    return max(least, *(TOLERANCES[each][0] for each in kinds if each in TOLERANCES))
