"""What a file computes of its sizes, where that is folded to the numbers of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from onnx import numpy_helper

from surgeon import dialect
from surgeon.anysize.sizes import Sizes
from surgeon.errors import SurgeonError
from surgeon.facts import Facts, walked
from surgeon.fold import DEFAULT_LIMIT
from surgeon.frozen import Frozen
from surgeon.model import Model
from surgeon.report import Notes
from surgeon.rewrite import Surgery
from surgeon.sweep import Sweep

_FEW = 16  # elements of what is no grid of places
_OTHERS = (2, 3)  # how many times as large a model is looked at
# Operators that are told sizes, and from which operand on.
_TOLD = {
    "Reshape": 1,
    "Expand": 1,
    "Tile": 1,
    "Resize": 1,
    "Upsample": 1,
    "Slice": 1,
    "Pad": 1,
    "ConstantOfShape": 0,
}


def folded(proto: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """The model for its own sizes, with all that depends on them alone as constants."""
    model = Model(proto, folder=folder)
    dialect.strip_initializer_inputs(model, keep=False)
    facts = Facts(model)
    Sweep(model, facts, Surgery(model, facts), Notes(), (), fold=DEFAULT_LIMIT).run()
    model.changed = True
    return model.to_proto()


def asked_of(
    proto: onnx.ModelProto, dynamic: onnx.ModelProto, folder: Path | None
) -> frozenset[str]:
    """The values that a model computes of its sizes alone, but for those that are always the same.

    Args:
        proto: The model, for one size.
        dynamic: With names in place of the sizes.
        folder: Where external data lie.
    """
    found = _computed_of(Model(dynamic, folder=folder))
    if not found:
        return found
    mine = _numbers(proto, found, folder)
    for times in _OTHERS:
        larger = onnx.ModelProto()
        larger.CopyFrom(proto)
        for value, named in zip(larger.graph.input, dynamic.graph.input, strict=True):
            pairs = zip(
                value.type.tensor_type.shape.dim, named.type.tensor_type.shape.dim, strict=True
            )
            for dim, other in pairs:
                if dim.dim_value and other.dim_param:
                    dim.dim_value *= times
        del larger.graph.value_info[:]
        its = _numbers(larger, found, folder)
        mine = {k: v for k, v in mine.items() if k in its and np.array_equal(v, its[k])}
    return found - mine.keys()


def _numbers(
    proto: onnx.ModelProto, names: frozenset[str], folder: Path | None
) -> dict[str, np.ndarray[Any, Any]]:
    """What these values are, where they are folded."""
    try:
        graph = folded(proto, folder).graph
    except (SurgeonError, LookupError, TypeError, ValueError):
        return {}  # it is for the sizes of the file
    return {t.name: numpy_helper.to_array(t) for t in graph.initializer if t.name in names}


def _computed_of(model: Model) -> frozenset[str]:
    """The values that a model of dynamic sizes computes of these, and of constants, alone."""
    facts = Facts(model)
    found: set[str] = set()
    for node in walked(facts, model.graph):  # others are for the sizes of the file
        read = [tensor for tensor in node.inputs if tensor.name]
        of_these = any(tensor.name in found for tensor in read) and all(
            isinstance(tensor, gs.Constant) or tensor.name in found for tensor in read
        )
        for tensor in node.outputs:
            value = facts.of(tensor).value
            if value is None:
                is_asked = of_these or node.op in ("Shape", "Size")
            else:
                numbers = value.reshape(-1).tolist()
                is_asked = any(not isinstance(each, (int, float)) for each in numbers)
            if is_asked and tensor.name:
                found.add(tensor.name)
    return frozenset(found)


def of_sizes(sizes: Sizes, node: gs.Node) -> None:
    """See that no number that the file computed of its sizes is beside data.

    Sizes that are asked for are told of the values at hand; of numbers nobody knows the formula.

    Raises:
        Frozen: One is.
    """
    for place, tensor in enumerate(node.inputs):
        if tensor.name not in sizes.asked_before or place >= _TOLD.get(node.op, len(node.inputs)):
            continue
        array = sizes.array(tensor)
        if array is not None and array.size <= _FEW:
            raise Frozen(f"`{tensor.name}` is computed of the sizes, by more than is followed here")
