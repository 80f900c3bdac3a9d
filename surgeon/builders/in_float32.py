"""What is computed in another floating-point type, in float32, which every runtime has."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import standard
from surgeon.builders.aten_shape.lists import as_many
from surgeon.match import Match, producer_of
from surgeon.older import in_float32
from surgeon.rewrite import Draft, Refused

_MOST_PARTS = 8  # as the rule names
_OF_CLIP = 3  # a value and two bounds
_FLOAT = onnx.TensorProto.FLOAT
_TYPES = {  # by the names that recipes use
    "bfloat16": onnx.TensorProto.BFLOAT16,
    "float16": onnx.TensorProto.FLOAT16,
    "float64": onnx.TensorProto.DOUBLE,
    "int64": onnx.TensorProto.INT64,
}
_IN_PLACE_OF = {"int64": onnx.TensorProto.INT32}  # of others float32


def computed_in_float32(draft: Draft, match: Match, of: str = "bfloat16") -> Any:
    """An operator with an operand of another type: all of these cast, and what it gives cast back.

    Args:
        draft: Where the nodes go.
        match: The operator.
        of: The other type: `bfloat16`, `float16` or `float64`.
    """
    node = match.root
    _check(draft, node, of)
    return in_float32(draft, node.op, node.inputs, node.attrs, _TYPES[of])


def selected_in_float32(draft: Draft, match: Match, most: int = 1) -> Any:
    """An operator that selects or compares doubles which are all numbers of float32.

    Args:
        draft: Where the nodes go.
        match: The operator.
        most: How many values the rule names.
    """
    node, facts, count = match.root, draft.facts, len(match.root.outputs)
    _check(draft, node, "float64")
    if node.attrs.get("reduction", "none") != "none":
        raise Refused("it computes with what it selects")
    if node.op == "MaxPool" and max(node.attrs.get("dilations") or [1]) > 1:
        raise Refused("a window may see pads alone, of which it gives the lowest double")
    if node.op == "Clip" and len([x for x in node.inputs if not x.is_empty()]) < _OF_CLIP:
        raise Refused("a bound is left out, in whose place is the greatest double")
    narrow = [_as_float32(draft, x) for x in node.inputs]
    said = {**node.attrs, "outputs": count} if count > 1 else node.attrs
    made = draft.op(node.op, *narrow, **said)
    found = made if isinstance(made, tuple) else (made,)
    wide = _TYPES["float64"]
    doubles = [n for n, x in enumerate(node.inputs) if facts.of(x).dtype == wide]
    back = [
        draft.op("Cast", y, to=wide)
        if standard.typed_by(node.op, facts.opset, doubles, place)
        else y
        for place, y in enumerate(found)
    ]
    return _in_place(back, most) if most > 1 else back[0]


def several_in_float32(draft: Draft, match: Match, most: int, of: str = "bfloat16") -> Any:
    """The same of what gives several values.

    Args:
        draft: Where the nodes go.
        match: The operator.
        most: How many values the rule names.
        of: The other type.
    """
    node, count = match.root, len(match.root.outputs)
    if count == 1:
        raise Refused("it gives one value")
    _check(draft, node, of)
    said = {**node.attrs, "outputs": count}
    made = in_float32(draft, node.op, node.inputs, said, _TYPES[of])
    return _in_place(list(made), most)


def moved_before_cast(draft: Draft, match: Match, of: str = "bfloat16") -> gs.Tensor:
    """An operator that moves elements, and then the Cast that stands before it.

    Args:
        draft: Where the nodes go.
        match: The operator.
        of: What the Cast makes.
    """
    node = match.root
    moved = draft.op(node.op, match.values["w"], *node.inputs[1:], **node.attrs)
    made: gs.Tensor = draft.op("Cast", moved, to=_TYPES[of])
    return made


def parted_before_cast(draft: Draft, match: Match, of: str = "bfloat16") -> tuple[gs.Tensor, ...]:
    """A Split, and then a Cast of each part.

    Args:
        draft: Where the nodes go.
        match: The Split.
        of: What the Cast before it makes.
    """
    node = match.root
    wide, rest = match.values["w"], node.inputs[1:]
    made = draft.op("Split", wide, *rest, outputs=len(node.outputs), **node.attrs)
    found = made if isinstance(made, tuple) else (made,)
    return _in_place([draft.op("Cast", y, to=_TYPES[of]) for y in found], _MOST_PARTS)


def joined_before_cast(draft: Draft, match: Match, of: str = "bfloat16") -> gs.Tensor:
    """A Concat of values that are all cast from the narrower type, and then the Cast.

    Args:
        draft: Where the nodes go.
        match: The Concat.
        of: What the Casts make.
    """
    node = match.root
    makers = [producer_of(x) for x in node.inputs]
    wide = [m.inputs[0] for m in makers if m is not None and m.op == "Cast"]
    kinds = {draft.facts.of(x).dtype for x in wide}
    if (
        len(wide) != len(makers)
        or kinds != {_IN_PLACE_OF.get(of, _FLOAT)}
        or draft.facts.of(node.inputs[0]).dtype != _TYPES[of]
    ):
        raise Refused(f"not all that it joins is cast to {of}")
    made: gs.Tensor = draft.op("Cast", draft.op("Concat", *wide, **node.attrs), to=_TYPES[of])
    return made


def _as_float32(draft: Draft, x: gs.Tensor) -> gs.Tensor:
    """The float32 that an operand was made of, or is; what is no double stays."""
    if x.is_empty() or draft.facts.of(x).dtype != _TYPES["float64"]:
        return x
    maker = producer_of(x)
    if maker is not None and maker.op == "Cast" and draft.facts.of(maker.inputs[0]).dtype == _FLOAT:
        draft.premises.append(x)
        return maker.inputs[0]
    values = draft.facts.array(x)
    if values is None or not np.array_equal(values.astype(np.float32), values, equal_nan=True):
        raise Refused(f"`{x.name}` is no float32 that was made wider")
    return draft.constant(values.astype(np.float32))


def _check(draft: Draft, node: gs.Node, of: str) -> None:
    kinds = [draft.facts.of(x).dtype for x in node.inputs if not x.is_empty()]
    if _TYPES[of] not in kinds:
        raise Refused(f"it computes nothing in {of}")
    if not all(kinds):
        raise Refused("the element type of an operand is not known")


def _in_place(found: list[gs.Tensor], most: int) -> tuple[gs.Tensor, ...]:
    if len(found) > most:
        raise Refused(f"it gives {len(found)} values")
    return as_many(found, most)
