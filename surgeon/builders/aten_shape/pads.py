"""Padding: constant, reflected, repeated at the edge, and around; negative amounts cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders import padding
from surgeon.builders.aten_shape.call import LARGEST, TYPE, Call
from surgeon.builders.bench import Size, nameless
from surgeon.builders.parts import Length, constant_length
from surgeon.facts.fact import INTEGERS, Array
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

# As the enumeration of PyTorch's `_pad_enum` has them (aten/src/ATen/native/PadNd.h).
_NUMBERED = ("reflect", "edge", "wrap", "constant")
_FIRST_OF_COMPUTED = 11  # the opset whose Pad takes computed amounts
_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad(c: Call) -> gs.Tensor:
    kind = c.node.op
    mode, value = "constant", 0
    if kind.startswith("reflection"):
        mode = "reflect"
    elif kind.startswith("replication"):
        mode = "edge"
    elif kind == "_pad_circular":
        mode = "wrap"
    elif kind == "pad":
        mode = _MODES[str(c.value("mode"))]
        value = c.value("value") or 0
    elif kind == "_pad_enum":
        number = c.integer("mode")
        if not 0 <= number < len(_NUMBERED):
            raise Refused(f"PyTorch has no padding of the mode {number}")
        mode, value = _NUMBERED[number], c.value("value") or 0
    elif c.has("value"):
        value = c.value("value")
    x = c.tensor()
    rank = c.rank(x)
    name = "pad" if c.args.schema.takes("pad") else "padding"
    amounts = c.listed(name)
    if not all(isinstance(a, int) for a in amounts):
        return _computed(c, x, name, len(amounts), mode, value)
    numbers = [a for a in amounts if isinstance(a, int)]
    if kind[-2:] in ("1d", "2d", "3d") and len(numbers) == 1:
        numbers *= 2 * int(kind[-2])
    axes = [rank - 1 - i for i in range(len(numbers) // 2)]
    sides = {axis: (numbers[2 * i], numbers[2 * i + 1]) for i, axis in enumerate(axes) if axis >= 0}
    if len(sides) < len(axes):
        raise Refused(f"{len(numbers)} amounts for an input of rank {rank}")
    grown = {a: (max(b, 0), max(e, 0)) for a, (b, e) in sides.items()}
    cut = {a: (min(b, 0), min(e, 0)) for a, (b, e) in sides.items()}
    if mode in ("constant", "wrap"):  # cut first, so that less is made; wrapping sees what is left
        return _grown(c, _cut(c, x, cut), grown, mode, value)
    return _cut(c, _grown(c, x, grown, mode, value), cut)


def _cut(c: Call, x: gs.Tensor, sides: Mapping[int, tuple[int, int]]) -> gs.Tensor:
    some = {a: s for a, s in sorted(sides.items()) if s != (0, 0)}
    if not some:
        return x
    starts = [-b for b, _ in some.values()]
    ends = [e if e else LARGEST for _, e in some.values()]
    x = nameless(c.draft, x, list(some))
    return c.op("Slice", x, c.ints(starts), c.ints(ends), c.ints(list(some)))


def _grown(
    c: Call, x: gs.Tensor, sides: Mapping[int, tuple[int, int]], mode: str, value: Any
) -> gs.Tensor:
    some = {a: s for a, s in sorted(sides.items()) if s != (0, 0)}
    if not some:
        return x
    if mode == "wrap":
        for axis, (before, after) in some.items():
            x = _wrapped(c, x, axis, before, after)
        return x
    rank, dtype = c.rank(x), c.dtype(x)
    easy = dtype in (TYPE.FLOAT, TYPE.DOUBLE) or (
        c.opset >= 13 and dtype in (TYPE.INT32, TYPE.INT64)
    )
    if easy:
        begins = [some.get(a, (0, 0))[0] for a in range(rank)]
        ends = [some.get(a, (0, 0))[1] for a in range(rank)]
        extra = [c.number(value, dtype)] if mode == "constant" and value != 0 else []
        return c.op("Pad", x, c.ints([*begins, *ends], "pads"), *extra, mode=mode)
    for axis, (before, after) in some.items():
        x = (
            _bordered(c, x, axis, before, after, value)
            if mode == "constant"
            else _gathered(c, x, axis, before, after, mode)
        )
    return x


def _bordered(c: Call, x: gs.Tensor, axis: int, before: int, after: int, value: Any) -> gs.Tensor:
    parts = [x]
    for amount, at in ((before, 0), (after, len(parts) + 1)):
        if amount:
            lengths = c.sizes(x)
            lengths[axis] = amount
            parts.insert(at, c.filled(lengths, value, c.dtype(x)))
    return c.concat(parts, axis)


def _gathered(c: Call, x: gs.Tensor, axis: int, before: int, after: int, mode: str) -> gs.Tensor:
    length = c.size(x, axis)
    if not isinstance(length, int):
        ends = (constant_length(c.draft, before), constant_length(c.draft, after))
        return padding.padded(c.draft, x, {axis: ends}, mode, None)
    order = np.pad(np.arange(length), (before, after), mode=mode)  # type: ignore[call-overload]
    return c.op("Gather", x, c.draft.constant(order.astype(np.int64), "order"), axis=axis)


def _wrapped(c: Call, x: gs.Tensor, axis: int, before: int, after: int) -> gs.Tensor:
    parts = [x]
    if before:
        parts.insert(0, c.slice(x, axis, -before, LARGEST))
    if after:
        parts.append(c.slice(x, axis, 0, after))
    return c.concat(parts, axis)


def _computed(c: Call, x: gs.Tensor, name: str, count: int, mode: str, value: Any) -> gs.Tensor:
    """Amounts known at run time: put in ONNX's order there, or joined on axis by axis."""
    dtype, rank = c.dtype(x), c.rank(x)
    if mode == "wrap":
        return _around(c, x, c.listed(name))
    takes = dtype in FLOATS or (c.opset >= 13 and dtype in INTEGERS)
    if not takes or c.opset < _FIRST_OF_COMPUTED:
        ends = [_length(c, amount) for amount in c.listed(name)]
        sides = {rank - 1 - i: (ends[2 * i], ends[2 * i + 1]) for i in range(count // 2)}
        fill = _fill(dtype, mode, value)
        return padding.padded(c.draft, x, sides, mode, fill, crops=True)
    given = c.vector(c.listed(name), "amounts")
    padded = c.concat([given, c.ints([0] * (2 * rank - count), "rest")], 0)
    order = [2 * (rank - 1 - a) for a in range(rank)]
    pads = c.op("Gather", padded, c.ints([*order, *[o + 1 for o in order]], "order"), axis=0)
    extra = [c.number(value, dtype)] if mode == "constant" and value != 0 else []
    return c.op("Pad", x, pads, *extra, mode=mode)


def _around(c: Call, x: gs.Tensor, amounts: Sequence[Size | int]) -> gs.Tensor:
    """Axis by axis; wrapping sees what crops leave."""
    rank = c.rank(x)
    for i in range(len(amounts) // 2):
        axis, before, after = rank - 1 - i, *amounts[2 * i : 2 * i + 2]
        if isinstance(before, int) and isinstance(after, int):
            x = _cut(c, x, {axis: (min(before, 0), min(after, 0))})
            x = _wrapped(c, x, axis, max(before, 0), max(after, 0))
        else:
            x = padding.wrapped(c.draft, x, axis, (_length(c, before), _length(c, after)))
    return x


def _length(c: Call, amount: Size | int) -> Length:
    if isinstance(amount, int):
        return constant_length(c.draft, amount)
    return Length(amount.dim, lambda: amount.tensor)


def _fill(dtype: int, mode: str, value: Any) -> Array | None:
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    return np.asarray(value).astype(kind) if mode == "constant" else None


def _names(stem: str) -> Sequence[str]:
    return [f"{stem}_pad{n}d" for n in (1, 2, 3)]


LOWERINGS: Mapping[str, Callable[[Call], Any]] = dict.fromkeys(
    (
        "constant_pad_nd",
        "pad",
        "_pad_enum",
        "_pad_circular",
        *_names("reflection"),
        *_names("replication"),
    ),
    _pad,
)
