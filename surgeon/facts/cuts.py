"""Output shapes of the operators that cut, join and repeat, from ONNX's specification."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts.question import Function, Question, Shape, broadcast
from surgeon.facts.values import is_to_the_end, slice_bounds

HELD = "held"  # the axis of a length that counts how often something holds
_THE_END = 1_000_000_000  # tf2onnx writes it where a slice has no end; no axis is as long
_WHOLE_FLOATS = 1 << 23  # float, the narrowest dtype of a Range, holds these and their differences
_ROUNDING = 1_000_000  # a part of it is more than it rounds a difference by, and then a quotient


def _concat(question: Question) -> Sequence[Shape | None] | None:
    shapes = [question.shape(i) for i in range(len(question.inputs))]
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    axis = question.attributes["axis"] % len(known[0])
    out: list[Dim] = []
    for index in range(len(known[0])):
        column = [shape[index] for shape in known]
        if index == axis:
            whole = len(known) == len(shapes)  # of the others the operator asks the same rank
            out.append(sum(column[1:], column[0]) if whole else question.fresh(index))
        else:
            out.append(next((d for d in column if isinstance(d, int)), column[0]))
    return [tuple(out)]


def _split(question: Question) -> Sequence[Shape | None] | None:
    shape, parts = question.shape(0), question.value(1)
    if shape is None:
        return None
    axis = question.attributes.get("axis", 0) % len(shape)
    if parts is None:
        if question.has(1):
            return None
        size, count = shape[axis], question.attributes.get("num_outputs", question.outputs)
        each = (size + count - 1) // count
        last = size - each * (count - 1)
        parts = [each] * (count - 1) + [last]
    return [(*shape[:axis], part, *shape[axis + 1 :]) for part in parts]


def _slice(question: Question) -> Sequence[Shape | None] | None:
    shape, starts, ends = question.shape(0), question.value(1), question.value(2)
    if shape is None:
        return None
    length = question.shape(1)
    axes = question.value(3) if question.has(3) else None
    if axes is None and not question.has(3) and length and isinstance(length[0], int):
        axes = list(range(length[0]))
    if axes is None:
        return [tuple(question.fresh(i) for i in range(len(shape)))]
    steps = question.value(4) if question.has(4) else [1] * len(axes)
    out = list(shape)
    for index, axis in enumerate(axes):
        axis %= len(shape)
        known = starts is not None and ends is not None and steps is not None
        size = (
            sliced(shape[axis], starts[index], ends[index], steps[index])  # type: ignore[index]
            if known
            else None
        )
        out[axis] = question.fresh(axis) if size is None else size
    return [tuple(out)]


def sliced(size: Dim, start: Dim, end: Dim, step: Dim) -> Dim | None:
    """How many elements a Slice keeps of an axis of `size`; None where it is not provable."""
    if not isinstance(step, int) or step == 0 or is_to_the_end(end, step):
        return None
    if all(isinstance(v, int) for v in (size, start, end)):
        first, last = slice_bounds(start, end, step, size)  # type: ignore[arg-type]
        return max(0, -((first - last) // step))
    low = clamp(start, size)
    high = clamp(end, size)
    if low is None or high is None or step < 0:
        return None
    extent = high - low
    if not dims.not_negative(extent):
        extent = dims.maximum(extent, 0)
    return extent if step == 1 else (extent + step - 1) // step


def clamp(index: Dim, size: Dim) -> Dim | None:
    """An index into an axis, counted from its end if negative, clamped to [0, size]."""
    if isinstance(index, int):
        if index >= _THE_END:
            return size
        if index < 0:
            return dims.maximum(size + index, 0)
    elif dims.not_negative(-1 - index):
        return dims.maximum(size + index, 0)
    elif not dims.not_negative(index):
        return None
    return dims.minimum(index, size)


def _gather(question: Question) -> Sequence[Shape | None] | None:
    data, indices = question.shape(0), question.shape(1)
    if not data or indices is None:
        return None
    axis = question.attributes.get("axis", 0) % len(data)
    return [(*data[:axis], *indices, *data[axis + 1 :])]


def _expand(question: Question) -> Sequence[Shape | None] | None:
    shape, target = question.shape(0), question.value(1)
    if shape is None or target is None:
        return None
    if any(not isinstance(d, int) and not dims.not_negative(d) for d in target):
        return None
    return [broadcast([shape, tuple(target)], question.fresh)]


def _tile(question: Question) -> Sequence[Shape | None] | None:
    shape, repeats = question.shape(0), question.value(1)
    if shape is None or repeats is None or len(repeats) != len(shape):
        return None
    return [tuple(d * n for d, n in zip(shape, repeats, strict=True))]


def _pad(question: Question) -> Sequence[Shape | None] | None:
    shape, pads = question.shape(0), question.value(1)
    if shape is None:
        return None
    axes = question.value(3) if question.has(3) else list(range(len(shape)))
    if axes is None or pads is None or len(pads) != 2 * len(axes):
        return [tuple(question.fresh(i) for i in range(len(shape)))]
    out = list(shape)
    for index, axis in enumerate(axes):
        out[axis % len(shape)] = shape[axis % len(shape)] + pads[index] + pads[index + len(axes)]
    return [tuple(out)]


def _constant_of_shape(question: Question) -> Sequence[Shape | None] | None:
    target = question.value(0)
    if target is None:
        return None
    return [tuple(d if dims.not_negative(d) else question.fresh(i) for i, d in enumerate(target))]


def _steps(ends: Sequence[Any]) -> int | None:
    """How many floats a Range gives; None where rounding may decide it."""
    if not all(isinstance(end, (int, float)) and math.isfinite(end) for end in ends) or not ends[2]:
        return None
    from fractions import Fraction  # seldom wanted, and with the decimals that it imports dear

    start, limit, delta = map(Fraction, ends)
    exact = (limit - start) / delta
    whole = all(end.denominator == 1 and abs(end) < _WHOLE_FLOATS for end in (start, limit, delta))
    if not whole and abs(exact - round(exact)) * _ROUNDING <= 1 + abs(exact):
        return None
    return max(math.ceil(exact), 0)


def _range(question: Question) -> Sequence[Shape | None] | None:
    ends = [question.value(i) for i in range(3)]
    if any(value is None for value in ends):
        return [(question.fresh(0),)]
    if any(isinstance(value[0], float) for value in ends if value is not None):
        steps = _steps([value[0] for value in ends if value is not None])
        return [(question.fresh(0) if steps is None else steps,)]
    start, limit, delta = (value[0] for value in ends if value is not None)
    if not isinstance(delta, int) or delta == 0:
        return [(question.fresh(0),)]
    extent = limit - start if delta > 0 else start - limit
    count = (extent + abs(delta) - 1) // abs(delta)
    return [(count if dims.not_negative(count) else dims.maximum(count, 0),)]


def _compress(question: Question) -> Sequence[Shape | None] | None:
    """Some of an axis, or of all elements in a line: how many, the condition says."""
    shape, axis = question.shape(0), question.attributes.get("axis")
    if axis is None:
        return [(question.fresh(0),)]
    if shape is None:
        return None
    axis %= len(shape)
    return [(*shape[:axis], question.fresh(axis), *shape[axis + 1 :])]


def _non_zero(question: Question) -> Sequence[Shape | None] | None:
    """A column for each element that holds."""
    shape, mask = question.shape(0), question.inputs[0]
    if shape is None:
        return None
    if not shape:  # of one number: onnx has no row, and onnxruntime one
        return [(question.fresh(0), question.fresh(1))]
    whole = mask is not None and mask.not_zero  # as exporters count below opset 11, without Range
    return [(len(shape), dims.product(shape) if whole else question.fresh(1))]


def _boxes(question: Question) -> Sequence[Shape | None] | None:
    """Batch, class and box of each that is kept."""
    return [(question.fresh(0), 3)]


def _one_hot(question: Question) -> Sequence[Shape | None] | None:
    shape, depth = question.shape(0), question.value(1)
    if shape is None:
        return None
    axis = question.attributes.get("axis", -1) % (len(shape) + 1)
    known = depth and not isinstance(depth[0], float) and dims.not_negative(depth[0])
    length = depth[0] if depth and known else question.fresh(axis)
    return [(*shape[:axis], length, *shape[axis:])]


def source(node: gs.Node, axis: int) -> tuple[str, int | str]:
    """What an unknown length is named after: the value and the axis, or the mask that decides it.

    A mask holds equally often wherever it selects, so what it selects is equally long.
    """
    mask = {"Compress": 1, "NonZero": 0}.get(node.op)
    if mask is not None and (node.op, axis) != ("NonZero", 0):
        return node.inputs[mask].name, HELD
    return node.outputs[0].name, HELD if node.op == "NonMaxSuppression" else axis


def _top_k(question: Question) -> Sequence[Shape | None] | None:
    """It does not run where an axis has fewer than `k` elements."""
    shape, wanted = question.shape(0), question.value(1)
    if shape is None:
        return None
    axis = question.attributes.get("axis", -1) % len(shape)
    count = wanted[0] if wanted and dims.not_negative(wanted[0]) else question.fresh(axis)
    return [(*shape[:axis], count, *shape[axis + 1 :])] * 2


FUNCTIONS: Mapping[str, Function] = {
    "Compress": _compress,
    "NonZero": _non_zero,
    "NonMaxSuppression": _boxes,
    "OneHot": _one_hot,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
    "Expand": _expand,
    "Tile": _tile,
    "Pad": _pad,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "TopK": _top_k,
}
