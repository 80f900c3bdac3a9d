"""What is computed in int64, in int32: accelerators and browsers have few operators of int64."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import standard
from surgeon.builders.aten_shape.lists import as_many
from surgeon.match import Match, producer_of
from surgeon.rewrite import Draft, Refused

_INT32, _INT64 = onnx.TensorProto.INT32, onnx.TensorProto.INT64
_AXES_OF_PAD = 3
_ENDS = np.iinfo(np.int32)
# what numbers of more than 32 bits go through: what moves them, by the first operand, and what
# computes with them; what Mod gives is small again
_MOVED = frozenset(
    "Compress Concat Expand Flatten Gather GatherElements GatherND Identity Reshape Slice Split"
    " Squeeze Tile TopK Transpose Unsqueeze".split()
)
_COMPUTED = frozenset(
    "Abs Add Clip CumSum Div Max Min Mul Neg Pad ReduceMax ReduceMin ReduceProd ReduceSum"
    " ScatterElements Sub Sum Where".split()
)


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
    for x in (x for x, cast in zip(node.inputs, wide, strict=True) if cast):
        _see_numbers(draft, x)
    operands = [
        draft.op("Cast", x, to=_INT32) if cast else x
        for x, cast in zip(node.inputs, wide, strict=True)
    ]
    made = draft.op(node.op, *operands, **node.attrs)
    cast = [place for place, it_is in enumerate(wide) if it_is]
    return (
        draft.op("Cast", made, to=_INT64) if standard.typed_by(node.op, facts.opset, cast) else made
    )


def inputs_in_int32(draft: Draft, match: Match, most: int = 1) -> Any:
    """What moves, joins or takes elements of int64 inputs: of these cast, and what it gives back.

    Args:
        draft: Where the nodes go.
        match: The operator.
        most: How many values the rule names.
    """
    node, facts = match.root, draft.facts
    if any(facts.of(x).value is not None for x in node.outputs):
        raise Refused("it gives sizes")
    count = len(node.inputs) if node.op == "Concat" else 1
    given = [x for x in node.inputs[:count] if _is_input(draft, x)]
    if not given:
        raise Refused("it reads no input of int64")
    narrow = [_narrow(draft, x) for x in node.inputs[:count]]
    said = {**node.attrs, "outputs": len(node.outputs)} if most > 1 else node.attrs
    made = draft.op(node.op, *narrow, *node.inputs[count:], **said)
    back = [
        draft.op("Cast", y, to=_INT64)
        if standard.typed_by(node.op, facts.opset, list(range(count)), place)
        else y
        for place, y in enumerate(made if isinstance(made, tuple) else (made,))
    ]
    if len(back) > most:
        raise Refused(f"it gives {len(back)} values")
    return as_many(back, most) if most > 1 else back[0]


def _is_input(draft: Draft, x: gs.Tensor) -> bool:
    """Whether a value is an input of the model, in int64."""
    given = any(x is each for each in draft.surgery.model.graph.inputs)
    return given and draft.facts.of(x).dtype == _INT64


def _see_numbers(draft: Draft, x: gs.Tensor) -> None:
    """See that no number is known to leave 32 bits in a value, or in what stayed int64 before it.

    Raises:
        Refused: A constant has such numbers, or the check refused what computes them.
    """
    within: dict[int, gs.Tensor] = draft.surgery.findings.setdefault("within 32 bits", {})
    stack, seen = [x], dict[int, gs.Tensor]()
    while stack:
        value = stack.pop()
        if id(value) in within or id(value) in seen:
            continue
        seen[id(value)] = value
        if id(value) in draft.surgery.unkept:
            raise Refused(f"numbers of more than 32 bits were seen in `{value.name}`")
        maker, numbers = producer_of(value), draft.facts.array(value)
        if numbers is not None:
            if numbers.size and (numbers.min() < _ENDS.min or numbers.max() > _ENDS.max):
                raise Refused(f"`{value.name}` has numbers of more than 32 bits")
        elif maker is not None and maker.op in _MOVED:
            stack += maker.inputs if maker.op == "Concat" else maker.inputs[:1]
        elif maker is not None and maker.op in _COMPUTED:
            stack += [
                each
                for place, each in enumerate(maker.inputs)
                if _may_be_int32(draft, maker, place)
            ]
    within |= seen


def _narrow(draft: Draft, x: gs.Tensor) -> gs.Tensor:
    """A value of int64 in int32: an input cast, what was cast to int64, or a constant."""
    maker, values = producer_of(x), draft.facts.array(x)
    if _is_input(draft, x):
        cast: gs.Tensor = draft.op("Cast", x, to=_INT32)
        return cast
    if values is not None:
        _see_numbers(draft, x)
        return draft.constant(values.astype(np.int32))
    if maker is None or maker.op != "Cast" or draft.facts.of(maker.inputs[0]).dtype != _INT32:
        raise Refused(f"`{x.name}` is computed in int64")
    draft.premises.append(x)
    wide: gs.Tensor = maker.inputs[0]
    return wide


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
