"""QuantizeLinear and DequantizeLinear without levels: networks that were quantized, in floats.

Source of the formulas: ONNX's documentation of both operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.facts.kinds import HALVES
from surgeon.match import Match
from surgeon.opsets import PRECISION
from surgeon.rewrite import Draft, Refused

_ENDS: dict[int, tuple[int, int]] = {
    TYPE.UINT8: (0, 255),
    TYPE.INT8: (-128, 127),
    TYPE.UINT16: (0, 65535),
    TYPE.INT16: (-32768, 32767),
    TYPE.UINT4: (0, 15),
    TYPE.INT4: (-8, 7),
    TYPE.INT32: (-(2**31), 2**31 - 1),
}
_OF_EIGHT_BITS = {TYPE.UINT8, TYPE.INT8, TYPE.UINT4, TYPE.INT4}
_WHERE = {"axis": 1, "block_size": 0}  # attributes of both, with their defaults
_WITHOUT_ATTRIBUTES = 11  # the opset from which the bounds of Clip are operands
Array = np.ndarray[Any, Any]


def constant_of_levels(draft: Draft, match: Match) -> gs.Tensor:
    """DequantizeLinear of constants: (x - zero) scale, in the type that it gives."""
    c, node = Bench(draft), match.root
    levels, scale, zero = (_array(c, node, index) for index in range(3))
    if levels is None or scale is None or (zero is None and operand(node, 2) is not None):
        raise Refused("its levels, their scale or their zero point are computed")
    _check_whole(c, node.inputs[0])
    size, level = (_spread(node, each, levels.shape) for each in (scale, zero))
    whole = levels.astype(np.int64) - (0 if level is None else level.astype(np.int64))
    assert size is not None
    with np.errstate(all="ignore"):
        floats = (whole * size.astype(np.float64)).astype(parts.numpy_dtype(draft, node.outputs[0]))
    return draft.constant(floats, "floats")


def pair_as_bounds(draft: Draft, match: Match) -> gs.Tensor:
    """QuantizeLinear and its DequantizeLinear: the value between the ends of the levels."""
    c = Bench(draft)
    wide = match.root
    narrow = wide.inputs[0].inputs[0]
    x = narrow.inputs[0]
    for index in (1, 2):
        if not _same(c, operand(narrow, index), operand(wide, index)):
            raise Refused("the scales or zero points of both differ, or are computed")
    if any(narrow.attrs.get(key, d) != wide.attrs.get(key, d) for key, d in _WHERE.items()):
        raise Refused("the scales of both stand along different axes")
    scale, zero = _array(c, wide, 1), _array(c, wide, 2)
    shape = c.shape(x)
    if scale is None or (zero is None and operand(wide, 2) is not None):
        raise Refused("its scale or its zero point is computed")
    if shape is None:
        raise Refused("the rank of what is quantized is unknown")
    if not (scale > 0).all():
        raise Refused("a scale of it is not above 0")
    if c.dtype(x) != c.dtype(wide.outputs[0]):
        raise Refused("it gives another type than it is given")
    low, high = _ENDS[_check_whole(c, wide.inputs[0])]
    level = np.float64(0) if zero is None else zero.astype(np.float64)
    kind = parts.numpy_dtype(draft, x)
    ends = [((end - level) * scale.astype(np.float64)).astype(kind) for end in (low, high)]
    if wide.attrs.get("block_size"):
        raise Refused("it has a scale for each block")
    if scale.size > 1:
        axis = c.axis(int(wide.attrs.get("axis", 1)), len(shape))
        ends = [end.reshape(-1, *[1] * (len(shape) - axis - 1)) for end in ends]
        above = c.op("Max", x, draft.constant(ends[0], "low"))
        made: gs.Tensor = c.op("Min", above, draft.constant(ends[1], "high"))
        return made
    ends = [end.reshape(()) for end in ends]
    if c.opset < _WITHOUT_ATTRIBUTES:
        cut: gs.Tensor = draft.op("Clip", x, min=float(ends[0]), max=float(ends[1]))
        return cut
    bounds = [draft.constant(end, name) for end, name in zip(ends, ("low", "high"), strict=True)]
    clipped: gs.Tensor = draft.op("Clip", x, *bounds)
    return clipped


def moved_levels(draft: Draft, match: Match) -> gs.Tensor:
    """DequantizeLinear behind what moves levels: moved behind it, where all have one scale."""
    c, wide = Bench(draft), match.root
    move = wide.inputs[0].inputs[0]
    if c.facts.of(wide.inputs[1]).shape not in ((), (1,)):
        raise Refused("its scales stand along an axis")
    if move.op == "MaxPool":
        scale = _array(c, wide, 1)
        if scale is None or not (scale > 0).all():
            raise Refused(
                "its scale is not known to be above 0: the greatest level may be the least"
            )
    floats = draft.op("DequantizeLinear", move.inputs[0], *wide.inputs[1:], **wide.attrs)
    made: gs.Tensor = draft.op(move.op, floats, *move.inputs[1:], **move.attrs)
    return made


def levels_in_floats(draft: Draft, match: Match) -> gs.Tensor:
    """DequantizeLinear of what is computed, in arithmetic: (x - zero) scale."""
    c, node = Bench(draft), match.root
    x, (scale, zero) = node.inputs[0], _operands(c, node)
    levels, kind, wanted = _check_whole(c, x), c.dtype(scale), c.dtype(node.outputs[0])
    if kind in HALVES and wanted not in HALVES:  # as `output_dtype` asks for from opset 23 on
        kind = wanted
    if kind in HALVES and levels not in _OF_EIGHT_BITS:
        kind = int(TYPE.FLOAT)  # halves do not have as many numbers
    y = c.cast(x, kind)
    if zero is not None:
        y = c.op("Sub", y, c.cast(zero, kind))
    return c.cast(c.op("Mul", y, c.cast(scale, kind)), wanted)


def rounded_to_levels(draft: Draft, match: Match) -> gs.Tensor:
    """QuantizeLinear in arithmetic: x / scale, rounded to even, and zero, between the ends."""
    c, node = Bench(draft), match.root
    if c.opset < _WITHOUT_ATTRIBUTES:
        raise Refused(f"Round is an operator from opset {_WITHOUT_ATTRIBUTES} on")
    x, (scale, zero) = node.inputs[0], _operands(c, node)
    to, divided = _check_whole(c, node.outputs[0]), _divided_in(c, node)
    kind = int(TYPE.FLOAT) if divided in HALVES else divided
    y, step = (c.cast(c.cast(each, divided), kind) for each in (x, scale))
    y = c.op("Round", c.cast(c.cast(c.op("Div", y, step), divided), kind))
    if zero is not None:
        y = c.op("Add", y, c.cast(zero, kind))
    low, high = _ENDS[to]
    y = c.op("Clip", y, c.number(low, kind), c.number(high, kind))
    return c.cast(y, to)


def _divided_in(c: Bench, node: gs.Node) -> int:
    """The type in which a QuantizeLinear divides: as it says or its scale is, from opset 23 on.

    Before, onnxruntime divides halves in float32, and ONNX says nothing of it.
    """
    if c.opset >= PRECISION:
        return int(node.attrs.get("precision", 0)) or c.dtype(node.inputs[1])
    kind = c.dtype(node.inputs[0])
    return int(TYPE.FLOAT) if kind in HALVES else kind


def _array(c: Bench, node: gs.Node, index: int) -> Array | None:
    """An operand's values; None where they are computed, or there is none."""
    x = operand(node, index)
    return None if x is None else c.facts.array(x)


def _same(c: Bench, one: gs.Tensor | None, other: gs.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    if one is other:
        return True
    mine, others = c.facts.array(one), c.facts.array(other)
    return mine is not None and others is not None and np.array_equal(mine, others)


def _check_whole(c: Bench, x: gs.Tensor) -> int:
    """The type of levels, which are whole numbers."""
    kind = c.dtype(x)
    if kind not in _ENDS:
        raise Refused(f"its levels are {TYPE.DataType.Name(kind).lower()}, no whole numbers")
    return kind


def _spread(node: gs.Node, operand: Array | None, shape: tuple[int, ...]) -> Array | None:
    """A scale or zero point for each level: of all, of the places of an axis, or of blocks."""
    if operand is None or operand.size == 1:
        return None if operand is None else operand.reshape(())
    axis = int(node.attrs.get("axis", 1)) % len(shape)
    if block := int(node.attrs.get("block_size", 0)):
        return np.repeat(operand, block, axis)[tuple(map(slice, shape))]
    return operand.reshape(-1, *[1] * (len(shape) - axis - 1))


def _operands(c: Bench, node: gs.Node) -> tuple[gs.Tensor, gs.Tensor | None]:
    """The scale and the zero point, as they meet what is quantized."""
    found = []
    for index in (1, 2):
        x = operand(node, index)
        if x is not None and c.rank(x) and c.shape(x) != (1,):
            if node.attrs.get("block_size"):
                raise Refused("it has a scale for each block")
            rank = c.rank(node.inputs[0])
            behind = rank - c.axis(int(node.attrs.get("axis", 1)), rank) - 1
            x = c.unsqueeze(x, range(1, behind + 1))
        elif x is not None and c.rank(x):
            x = c.squeeze(x, [0])
        found.append(x)
    if found[0] is None:
        raise Refused("its scale is missing")
    return found[0], found[1]
