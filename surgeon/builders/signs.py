"""Levels of quantized values with a sign or without one: half their range lies between.

Source of the formulas: ONNX's documentation of QuantizeLinear and DequantizeLinear. A level and its
zero point that move alike stand for the same number, and the ends of the two types move too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import standard
from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.facts.fact import Array
from surgeon.links import maker_of
from surgeon.match import Match, is_one_of
from surgeon.rewrite import Draft, Refused

# What moves levels and computes nothing with them but which is greater; more by its first operand.
_MOVES = frozenset(
    "Expand Flatten Gather GatherElements GatherND Identity MaxPool Reshape Slice Squeeze Tile "
    "Transpose Unsqueeze".split()
)
_JOINS = frozenset({"Concat"})
_READS = "DequantizeLinear"
_MAKES = "QuantizeLinear"
_ZERO = 2  # the operand of both


class _Change(NamedTuple):
    """From one type of levels to the other of as many bits.

    Attributes:
        kind: The type that levels have.
        to: The type that they get.
        by: What is added to each level, and to each zero point.
    """

    kind: int
    to: int
    by: int


_PAIRS = (
    (TYPE.UINT8, TYPE.INT8, 128),
    (TYPE.UINT16, TYPE.INT16, 32768),
    (TYPE.UINT4, TYPE.INT4, 8),
)
_SIGNED: dict[int, _Change] = {
    plain: _Change(plain, signed, -half) for plain, signed, half in _PAIRS
}
_UNSIGNED: dict[int, _Change] = {
    signed: _Change(signed, plain, half) for plain, signed, half in _PAIRS
}


def levels_with_sign(draft: Draft, match: Match, signed: bool = True) -> gs.Tensor:
    """DequantizeLinear, and what gives its levels, in the type with a sign, or in that without.

    Args:
        draft: Where the nodes go.
        match: The DequantizeLinear.
        signed: Whether levels get a sign; else they lose it.
    """
    c, node = Bench(draft), match.root
    change = (_SIGNED if signed else _UNSIGNED).get(c.dtype(node.inputs[0]))
    if change is None:
        raise Refused(f"its levels are {_name(c.dtype(node.inputs[0]))}")
    x = _changed(c, node.inputs[0], change)
    made: gs.Tensor = c.op(_READS, x, node.inputs[1], _zero(c, node, change), **node.attrs)
    return made


def _changed(c: Bench, x: gs.Tensor, change: _Change) -> gs.Tensor:
    """Levels in the other type: a constant, what is quantized, or these moved and joined."""
    _check_readers(c, x, change)
    maker, values = maker_of(x), c.facts.array(x)
    if values is not None and maker is None:
        return c.draft.constant(_shifted(values, change), "levels")
    if maker is None:
        raise Refused(f"`{x.name}` comes in as {_name(change.kind)}")
    if not c.draft.holds(maker):
        raise Refused(f"`{x.name}` is made around the body that reads it")
    c.draft.leans.append(maker)
    attributes = dict(maker.attrs)
    if is_one_of(maker, {_MAKES}):
        attributes.pop("output_dtype", None)  # the zero point says it
        zero = _zero(c, maker, change)
        made: gs.Tensor = c.op(_MAKES, *maker.inputs[:2], zero, **attributes)
        return made
    if not is_one_of(maker, _MOVES | _JOINS) or len(maker.outputs) > 1:
        raise Refused(f"`{x.name}` is made by {maker.op}, which computes with levels")
    if not standard.takes(maker.op, c.opset, 0, change.to):
        raise Refused(f"{maker.op} takes no {_name(change.to)} at opset {c.opset}")
    moved = len(maker.inputs) if is_one_of(maker, _JOINS) else 1
    levels = [_changed(c, each, change) for each in maker.inputs[:moved]]
    joined: gs.Tensor = c.op(maker.op, *levels, *maker.inputs[moved:], **attributes)
    return joined


def _check_readers(c: Bench, x: gs.Tensor, change: _Change) -> None:
    """Everything that reads levels takes them in the other type: they would be made twice."""
    if c.draft.surgery.is_output(x):
        raise Refused(f"`{x.name}` is given out as {_name(change.kind)}")
    for reader in x.outputs:
        if is_one_of(reader, {_READS}) and reader.inputs[0] is x:
            _zero_array(c, reader, change)
        elif is_one_of(reader, _JOINS) or (is_one_of(reader, _MOVES) and reader.inputs[0] is x):
            for moved in reader.outputs:
                _check_readers(c, moved, change)
        else:
            raise Refused(f"{reader.op} `{reader.outputs[0].name}` reads `{x.name}`")


def _zero(c: Bench, node: gs.Node, change: _Change) -> gs.Tensor:
    return c.draft.constant(_shifted(_zero_array(c, node, change), change), "zero_point")


def _zero_array(c: Bench, node: gs.Node, change: _Change) -> Array:
    """The zero point of a node; of as many as there are scales where none is said."""
    zero = operand(node, _ZERO)
    if zero is not None:
        values = c.facts.array(zero)
        if values is None:
            raise Refused(f"the zero point of `{node.outputs[0].name}` is computed")
        return values
    shape = c.shape(node.inputs[1])
    if shape is None or not all(isinstance(size, int) for size in shape):
        raise Refused(f"how many scales `{node.outputs[0].name}` has is not known")
    return np.zeros([int(str(size)) for size in shape], _numpy(change.kind))


def _shifted(values: Array, change: _Change) -> Array:
    room = np.int32 if change.kind in {TYPE.INT16, TYPE.UINT16} else np.int16
    moved = np.asarray(np.add(values.astype(room), change.by, dtype=room))
    return moved.astype(_numpy(change.to))  # an array also where it is of no axes


def _numpy(kind: int) -> Any:
    return onnx.helper.tensor_dtype_to_np_dtype(kind)


def _name(kind: int) -> str:
    return str(TYPE.DataType.Name(kind)).lower()
