"""Windows over one line of places, which TensorFlow puts into a plane of one row first.

Its Conv1D is Unsqueeze, Transpose to channels first, Conv with a kernel of 1 along the new axis,
and Squeeze. The operators of ONNX take the line itself; the Transposes that are left meet others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.builders.cleaning import order_of
from surgeon.builders.parts import own_weight
from surgeon.builders.selections import producer_of
from surgeon.facts.fact import same_dims
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_POOLS = frozenset({"MaxPool", "AveragePool"})
_MOST = 8  # operators between the views


def windows_of_line(draft: Draft, match: Match) -> gs.Tensor:
    """Squeeze of Convs and pools of a Transpose of an Unsqueeze, all of one more axis."""
    root = match.root
    chain: list[gs.Node] = []
    value: gs.Tensor = root.inputs[0]
    node = producer_of(value)
    while _is(node, "Conv", *_POOLS):
        assert node is not None
        if len(chain) == _MOST or len(node.outputs) > 1:
            raise Refused("more than one value of an operator is read, or there are too many")
        if chain and (len(value.outputs) > 1 or draft.surgery.is_output(value)):
            raise Refused("a value between the views is read elsewhere too")
        chain.append(node)
        value = node.inputs[0]
        node = producer_of(value)
    inner = producer_of(node.inputs[0]) if node is not None and _is(node, "Transpose") else None
    if node is not None and inner is not None and _is(inner, "Unsqueeze"):
        order = order_of(node, 4)
        new = _one_axis(draft, inner, 4)
        axis, line = order.index(new), inner.inputs[0]
        left = [place - (place > new) for place in order if place != new]
    elif node is not None and _is(node, "Reshape") and all(each.op in _POOLS for each in chain):
        axis, line, left = _one_axis(draft, root, 4), node.inputs[0], [0, 1, 2]
        wide, narrow = (draft.facts.of(t).shape for t in (value, line))
        if wide is None or not same_dims((*wide[:axis], *wide[axis + 1 :]), narrow):
            raise Refused("the view before them does more than to add an axis")
    else:
        raise Refused("what the first of them reads is no Transpose of an Unsqueeze")
    if draft.facts.of(line).rank != 3 or draft.facts.of(value).rank != 4:
        raise Refused("it is no line that becomes a plane")
    if axis < 2 or _one_axis(draft, root, 4) != axis:
        raise Refused("the axis that goes is not the one that came, or is none of places")
    y = line if left == [0, 1, 2] else draft.op("Transpose", line, perm=left)
    for each in reversed(chain):
        y = _along(draft, each, y, axis)
    return y


def _is(node: gs.Node | None, *operators: str) -> bool:
    return node is not None and (node.domain or "") in opsets.STANDARD and node.op in operators


def _one_axis(draft: Draft, node: gs.Node, rank: int) -> int:
    axes = draft.facts.array(node.inputs[1]) if len(node.inputs) > 1 else None
    if axes is None or axes.size != 1:
        raise Refused(f"the axis of the {node.op} is not one that is known")
    return int(axes.reshape(-1)[0]) % rank


def _along(draft: Draft, node: gs.Node, x: gs.Tensor, axis: int) -> gs.Tensor:
    """The operator without the axis, along which it must do nothing."""
    place = axis - 2
    attributes: dict[str, Any] = dict(node.attrs)
    kernel = attributes.get("kernel_shape")
    weight = None if node.op in _POOLS else own_weight(draft, node)
    size = (kernel or (0, 0))[place] if weight is None else weight.shape[axis]
    pads = attributes.get("pads")
    if size != 1 or (pads is not None and (pads[place] or pads[place + 2])):
        raise Refused(f"the {node.op} has a kernel or pads along the axis that goes")
    for name in ("kernel_shape", "strides", "dilations", "pads"):
        values = attributes.get(name)
        if values is not None:
            attributes[name] = [v for i, v in enumerate(values) if i % 2 != place]
    operands = list(node.inputs[1:])
    if weight is not None:
        operands[0] = draft.constant(np.squeeze(weight, axis), "weight")
    made: gs.Tensor = draft.op(node.op, x, *operands, **attributes)
    return made
