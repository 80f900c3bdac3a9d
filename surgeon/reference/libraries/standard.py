"""One standard operator as onnxruntime computes it, for what other tools have of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import onnx

from surgeon.reference.operators.precision import Array
from surgeon.runtime import Session

_OPSET = 19


def standard(operator: str, said: Mapping[str, Any], *operands: Array | None) -> Array:
    """The first output of the operator at opset 19.

    Args:
        operator: Its name.
        said: Its attributes.
        operands: Its inputs, None for one left out.

    Raises:
        RunFailed: onnxruntime refuses the operands.
        NotRunnable: It has no such operator of these types.
    """
    kinds = tuple(None if x is None else (str(x.dtype), x.ndim) for x in operands)
    names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
    node = onnx.helper.make_node(operator, names, ["y"], **said)
    session = _session(node.SerializeToString(), kinds)
    feeds = {f"x{i}": np.ascontiguousarray(x) for i, x in enumerate(operands) if x is not None}
    made: Array = session.run(feeds)["y"]
    return made


@lru_cache(maxsize=256)
def _session(node: bytes, kinds: tuple[tuple[str, int] | None, ...]) -> Session:
    inputs = [
        onnx.helper.make_tensor_value_info(
            f"x{i}", onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind[0])), [None] * kind[1]
        )
        for i, kind in enumerate(kinds)
        if kind is not None
    ]
    y = onnx.ValueInfoProto(name="y")
    graph = onnx.helper.make_graph([onnx.NodeProto.FromString(node)], "one", inputs, [y])
    opsets = [onnx.helper.make_opsetid("", _OPSET)]
    return Session(onnx.helper.make_model(graph, ir_version=9, opset_imports=opsets))
