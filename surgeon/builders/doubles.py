"""What is computed in double precision, in single: few runtimes have operators of doubles."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.lists import as_many
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT, _DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE


def doubles_in_float32(draft: Draft, match: Match) -> Any:
    """An operator with an operand in doubles: all of these cast, and what it gives cast back."""
    return _computed(draft, match.root, {})


def several_doubles_in_float32(draft: Draft, match: Match, most: int) -> Any:
    """The same of what gives several values.

    Args:
        draft: Where the nodes go.
        match: The operator.
        most: How many values the rule names.
    """
    node, count = match.root, len(match.root.outputs)
    if not 1 < count <= most:
        raise Refused(f"it gives {count} values")
    return as_many(list(_computed(draft, node, {"outputs": count})), most)


def doubles_moved_before_cast(draft: Draft, match: Match) -> gs.Tensor:
    """An operator that moves elements, and then the Cast that stands before it."""
    node = match.root
    moved = draft.op(node.op, match.values["w"], *node.inputs[1:], **node.attrs)
    made: gs.Tensor = draft.op("Cast", moved, to=_DOUBLE)
    return made


def doubles_joined_before_cast(draft: Draft, match: Match) -> gs.Tensor:
    """A Concat of doubles, some of which were floats, of floats; and then the Cast."""
    node = match.root
    makers = [x.inputs[0] if x.inputs else None for x in node.inputs]
    if not any(m is not None and m.op == "Cast" for m in makers):
        raise Refused("nothing that it joins was cast to doubles")
    return _computed(draft, node, {})


def _computed(draft: Draft, node: gs.Node, more: dict[str, Any]) -> Any:
    """The operator in single precision, between Casts."""
    doubles = [not x.is_empty() and draft.facts.of(x).dtype == _DOUBLE for x in node.inputs]
    if not any(doubles):
        raise Refused("it computes nothing in double precision")
    operands = [
        draft.op("Cast", x, to=_FLOAT) if is_double else x
        for x, is_double in zip(node.inputs, doubles, strict=True)
    ]
    made = draft.op(node.op, *operands, **node.attrs, **more)
    found = made if isinstance(made, tuple) else (made,)
    back = [
        draft.op("Cast", y, to=_DOUBLE) if draft.facts.of(old).dtype == _DOUBLE else y
        for y, old in zip(found, node.outputs, strict=True)
    ]
    return tuple(back) if isinstance(made, tuple) else back[0]
