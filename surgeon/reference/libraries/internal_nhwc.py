"""onnxruntime's operators of `com.ms.internal.nhwc`: those of ONNX, channels last.

Source: onnxruntime's `layout_transformation.cc`: the first operand and the output are turned, and
the scales and sizes of a Resize.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.libraries.activations import activated
from surgeon.reference.libraries.standard import standard
from surgeon.reference.operators.precision import Array, narrow, wide

DOMAINS = ("com.ms.internal.nhwc",)
Said = Mapping[str, Any]
OPERATORS = (
    "AveragePool BatchNormalization Conv ConvTranspose DepthToSpace GlobalAveragePool "
    "GlobalLpPool GlobalMaxPool GridSample InstanceNormalization LRN LpPool MaxPool QLinearConv "
    "Resize SpaceToDepth"
).split()


def _turned(operator: str) -> Callable[..., Array]:
    def function(said: Said, x: Array, *others: Array | None) -> Array:
        own = {k: v for k, v in said.items() if not k.startswith("activation")}
        rest = list(others)
        if operator == "Resize":
            rest = [o if o is None or o.size == 0 else _first(o) for o in rest]
        y = standard(operator, own, np.moveaxis(x, -1, 1), *rest)
        if "activation" in said:
            numbers = said.get("activation_params", ())
            y = narrow(activated(said["activation"], wide(y), numbers), y)
        return np.moveaxis(y, 1, -1)

    return function


def _first(sizes: Array) -> Array:
    """Numbers of N, H, W, C as those of N, C, H, W."""
    if sizes.size != 4:
        raise Unsuited(f"its sizes are {sizes.size} numbers")
    return sizes[[0, 3, 1, 2]]


TABLE: Mapping[str, Callable[..., Array]] = {name: _turned(name) for name in OPERATORS}
