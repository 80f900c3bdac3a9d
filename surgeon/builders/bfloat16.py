"""What is computed in bfloat16, in float32: runtimes and opsets have few operators of it."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.lists import as_many
from surgeon.match import Match
from surgeon.older import in_float32
from surgeon.rewrite import Draft, Refused

_MOST_PARTS = 8  # as the rule names
_FLOAT, _BFLOAT16 = onnx.TensorProto.FLOAT, onnx.TensorProto.BFLOAT16


def computed_in_float32(draft: Draft, match: Match) -> Any:
    """An operator with an operand in bfloat16: all of these cast, and what it gives cast back."""
    node = match.root
    _check(draft, node)
    return in_float32(draft, node.op, node.inputs, node.attrs)


def several_in_float32(draft: Draft, match: Match, most: int) -> Any:
    """The same of what gives several values.

    Args:
        draft: Where the nodes go.
        match: The operator.
        most: How many values the rule names.
    """
    node, count = match.root, len(match.root.outputs)
    if count == 1:
        raise Refused("it gives one value")
    _check(draft, node)
    made = in_float32(draft, node.op, node.inputs, {**node.attrs, "outputs": count})
    return _in_place(list(made), most)


def moved_before_cast(draft: Draft, match: Match) -> gs.Tensor:
    """An operator that moves elements, and then the Cast that stands before it."""
    node = match.root
    moved = draft.op(node.op, match.values["w"], *node.inputs[1:], **node.attrs)
    made: gs.Tensor = draft.op("Cast", moved, to=_BFLOAT16)
    return made


def parted_before_cast(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """A Split, and then a Cast of each part."""
    node = match.root
    wide, rest = match.values["w"], node.inputs[1:]
    made = draft.op("Split", wide, *rest, outputs=len(node.outputs), **node.attrs)
    found = made if isinstance(made, tuple) else (made,)
    return _in_place([draft.op("Cast", y, to=_BFLOAT16) for y in found], _MOST_PARTS)


def joined_before_cast(draft: Draft, match: Match) -> gs.Tensor:
    """A Concat of values that are all cast from float32, and then the Cast."""
    node = match.root
    makers = [x.inputs[0] if x.inputs else None for x in node.inputs]
    wide = [m.inputs[0] for m in makers if m is not None and m.op == "Cast"]
    kinds = {draft.facts.of(x).dtype for x in wide}
    if (
        len(wide) != len(makers)
        or kinds != {_FLOAT}
        or draft.facts.of(node.inputs[0]).dtype != _BFLOAT16
    ):
        raise Refused("not all that it joins is rounded to bfloat16")
    made: gs.Tensor = draft.op("Cast", draft.op("Concat", *wide, **node.attrs), to=_BFLOAT16)
    return made


def _check(draft: Draft, node: gs.Node) -> None:
    if not any(draft.facts.of(x).dtype == _BFLOAT16 for x in node.inputs if not x.is_empty()):
        raise Refused("it computes nothing in bfloat16")


def _in_place(found: list[gs.Tensor], most: int) -> tuple[gs.Tensor, ...]:
    if len(found) > most:
        raise Refused(f"it gives {len(found)} values")
    return as_many(found, most)
