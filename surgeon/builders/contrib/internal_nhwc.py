"""Operators that onnxruntime turned to channels last for a device (`com.ms.internal.nhwc`).

Each is the operator of ONNX of that name, whose first operand and result have their channels last;
weights and all else are as they were. Source: onnxruntime's `layout_transformation.cc`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench, operand
from surgeon.builders.contrib.fused import behind_conv
from surgeon.builders.contrib.settings import refuse_read
from surgeon.builders.layouts import channels_first, channels_last
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_OPERANDS_OF_CONV = 3  # a fourth one would be added, in an order that nothing tells


def internal_nhwc(draft: Draft, match: Match) -> Any:
    """The operator between two Transposes; of what was fused into a Conv the activation too."""
    node, c = match.root, Bench(draft)
    refuse_read(draft, node, 1, "a second output")
    if node.attrs.get("channels_last"):
        raise Refused("nothing is written for its `channels_last`")
    said = {k: v for k, v in node.attrs.items() if not k.startswith("activation")}
    if len(said) < len(node.attrs) and node.op != "Conv":
        raise Refused("nothing is written for its activation")
    if node.op == "Conv" and operand(node, _OPERANDS_OF_CONV) is not None:
        raise Refused("what is added to it may have its channels anywhere")
    x, others = node.inputs[0], [operand(node, at) for at in range(1, len(node.inputs))]
    if node.op == "Resize":
        others = _sizes(c, x, others)
    y = c.op(node.op, channels_first(c, x), *others, **said)
    y = behind_conv(draft, node, y, None) if node.op == "Conv" else y
    return (channels_last(c, y),) + (y,) * (len(node.outputs) - 1)  # which are read by nobody


def _sizes(c: Bench, x: gs.Tensor, others: list[gs.Tensor | None]) -> list[gs.Tensor | None]:
    """The scales and sizes of a Resize, which are turned where they are constants of four."""
    roi, *rest = (*others, None)
    if roi is not None and not _is_empty(c, roi):
        raise Refused("it has a region")
    turned: list[gs.Tensor | None] = [roi]
    for each in rest[:-1]:
        array = None if each is None else c.facts.array(each)
        if each is None or (array is not None and array.size == 0):
            turned.append(each)
        elif array is None or array.size != 4 or c.rank(x) != 4:
            raise Refused("its sizes are not four numbers that are known")
        else:
            turned.append(c.draft.constant(np.ascontiguousarray(array[[0, 3, 1, 2]]), "sizes"))
    return turned


def _is_empty(c: Bench, tensor: gs.Tensor) -> bool:
    array = c.facts.array(tensor)
    return array is not None and array.size == 0
