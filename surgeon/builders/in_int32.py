"""What is computed in int64, in int32: accelerators and browsers have few operators of int64."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_graphsurgeon as gs

from surgeon import standard
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_INT32, _INT64 = onnx.TensorProto.INT32, onnx.TensorProto.INT64
_AXES_OF_PAD = 3


def computed_in_int32(draft: Draft, match: Match) -> Any:
    """An operator with operands in int64 that may be of int32: these cast, and what it gives back.

    Sizes stay: what takes a shape takes int64 alone.
    """
    node, facts = match.root, draft.facts
    if any(facts.of(x).value is not None for x in node.outputs):
        raise Refused("it computes sizes")
    wide = [_may_be_int32(draft, node, place) for place in range(len(node.inputs))]
    if not any(wide):
        raise Refused("it computes nothing in int64 that may be int32")
    if not all(facts.of(x).dtype for x in node.inputs if not x.is_empty()):
        raise Refused("the element type of an operand is not known")
    operands = [
        draft.op("Cast", x, to=_INT32) if cast else x
        for x, cast in zip(node.inputs, wide, strict=True)
    ]
    made = draft.op(node.op, *operands, **node.attrs)
    cast = [place for place, it_is in enumerate(wide) if it_is]
    return (
        draft.op("Cast", made, to=_INT64) if standard.typed_by(node.op, facts.opset, cast) else made
    )


def _may_be_int32(draft: Draft, node: gs.Node, place: int) -> bool:
    x, opset = node.inputs[place], draft.facts.opset
    if x.is_empty() or draft.facts.of(x).dtype != _INT64:
        return False
    if node.op == "Pad" and place == _AXES_OF_PAD:
        return False  # onnx's inference reads constant ones as int64, though int32 is legal
    own = standard.schema(node.op, opset)
    if own is not None and place >= own.max_input:
        return False  # an attribute of this opset
    last = len(own.inputs) - 1 if own is not None else place
    return standard.takes(node.op, opset, min(place, last), _INT32)
