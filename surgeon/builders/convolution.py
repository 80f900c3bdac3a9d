"""PyTorch's convolutions with constant arguments as Conv and ConvTranspose."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

# Positions of the arguments behind (input, weight, bias), as PyTorch's schemas have them
# (aten/src/ATen/native/native_functions.yaml).
_ARGUMENTS = {
    "_convolution": ("stride", "padding", "dilation", "transposed", "output_padding", "groups"),
    "convolution": ("stride", "padding", "dilation", "transposed", "output_padding", "groups"),
    "conv1d": ("stride", "padding", "dilation", "groups"),
    "conv2d": ("stride", "padding", "dilation", "groups"),
    "conv3d": ("stride", "padding", "dilation", "groups"),
    "conv_transpose1d": ("stride", "padding", "output_padding", "groups", "dilation"),
    "conv_transpose2d": ("stride", "padding", "output_padding", "groups", "dilation"),
    "conv_transpose3d": ("stride", "padding", "output_padding", "groups", "dilation"),
}


def aten_convolution(draft: Draft, match: Match) -> gs.Tensor:
    """`aten.*conv*` (input, weight, bias, ...) as Conv, or ConvTranspose where it is transposed."""
    node, facts = match.root, draft.facts
    x, weight = node.inputs[0], node.inputs[1]
    bias = node.inputs[2] if len(node.inputs) > 2 and not node.inputs[2].is_empty() else None
    names = _ARGUMENTS[node.op]
    given: dict[str, Any] = {}
    for name, tensor in zip(names, node.inputs[3:], strict=False):
        if tensor.is_empty():
            continue
        array = facts.array(tensor)
        if array is None:
            raise Refused(f"`{name}` is computed at run time")
        given[name] = array.reshape(-1).tolist()
    rank = _rank(draft, node, given)
    weight_shape = facts.of(weight).shape
    strides = _per_axis(given.get("stride") or [1], rank)
    dilations = _per_axis(given.get("dilation") or [1], rank)
    padding = _per_axis(given.get("padding") or [0], rank)
    extra = _per_axis(given.get("output_padding") or [0], rank)
    groups = int((given.get("groups") or [1])[0])
    transposed = node.op.startswith("conv_transpose") or bool((given.get("transposed") or [0])[0])
    attributes: dict[str, Any] = {
        "dilations": dilations,
        "group": groups,
        "pads": [*padding, *padding],
        "strides": strides,
    }
    if weight_shape is not None and all(isinstance(d, int) for d in weight_shape[2:]):
        attributes["kernel_shape"] = list(weight_shape[2:])
    if transposed and any(extra):
        attributes["output_padding"] = extra
    operator = "ConvTranspose" if transposed else "Conv"
    batched = facts.of(x).rank == rank + 2 or facts.of(x).rank is None
    if not batched:
        x = draft.op("Unsqueeze", x, draft.constant([0], "axes"))
    operands = [x, weight] if bias is None else [x, weight, bias]
    y: gs.Tensor = draft.op(operator, *operands, **attributes)
    return y if batched else draft.op("Squeeze", y, draft.constant([0], "axes"))


def _rank(draft: Draft, node: gs.Node, given: dict[str, Any]) -> int:
    """The number of spatial dimensions, from the weight, the input or the arguments."""
    weight, x = draft.facts.of(node.inputs[1]).rank, draft.facts.of(node.inputs[0]).rank
    if weight is not None:
        return weight - 2
    named = node.op[-2:]
    if named in ("1d", "2d", "3d"):
        return int(named[0])
    for name in ("stride", "padding", "dilation"):
        if len(given.get(name, ())) > 1:
            return len(given[name])
    if x is not None:
        return x - 2
    raise Refused("neither the rank of its input nor that of its weight is known")


def _per_axis(values: list[Any], rank: int) -> list[int]:
    """One number an axis; a single one holds for all, as in PyTorch."""
    if any(isinstance(v, (str, bytes)) for v in values):
        raise Refused(f"padding {values[0]!r} is not a number")
    numbers = [int(v) for v in np.asarray(values).reshape(-1)]
    return numbers * rank if len(numbers) == 1 else numbers
