"""Where upsampling takes each element from, and by which weights: indices and matrices.

Coordinates are those of ATen/native/UpSample.h: a scale that was given is used as it is, without
one it is the quotient of the lengths, and corners aligned know no scale. Nearest neighbours are
floor(i * scale), which is computed in float32 as PyTorch computes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import parts
from surgeon.builders.cubic import cubic_weight
from surgeon.builders.parts import Array, Length
from surgeon.rewrite import Draft

_REACH = {"linear": 1.0, "cubic": 2.0, "lanczos": 3.0}  # of an antialiasing filter, in steps
CUBIC, CUBIC_ANTIALIAS = -0.75, -0.5  # PyTorch's coefficients, the second that of Pillow


@dataclass(frozen=True, slots=True)
class Axis:
    """One resized axis; `scale` is given or None."""

    source: Length
    target: Length
    scale: float | None

    @property
    def fixed(self) -> bool:
        """Whether both lengths are static."""
        return self.source.static is not None and self.target.static is not None

    @property
    def kept(self) -> bool:
        """Whether the length stays."""
        a, b = self.source.dim, self.target.dim
        return a is not None and b is not None and dims.equal(a, b) is True

    @property
    def moves(self) -> bool:
        """Whether elements come from anywhere but their own places."""
        return not self.kept or self.scale not in (None, 1.0)


@dataclass(frozen=True, slots=True)
class Manner:
    """How elements between others are had."""

    kind: str  # nearest, exact, linear, cubic, lanczos
    corners: bool
    antialias: bool

    @property
    def copies(self) -> bool:
        """Whether an axis whose length stays is copied, whatever factor was given."""
        return self.kind == "linear" or self.antialias


def _ratio(axis: Axis, manner: Manner) -> float:
    """How far the source moves for one step of a fixed target."""
    length, out = axis.source.static, axis.target.static
    assert length is not None
    assert out is not None
    if manner.corners:
        return (length - 1) / (out - 1) if out > 1 else 0.0
    return 1.0 / axis.scale if axis.scale is not None else length / out


def nearest_index(length: int, out: int, scale: float | None, kind: str) -> Array:
    """The source of every element: min(floor(i * scale), length - 1), in float32."""
    ratio = np.float32(length) / np.float32(out) if scale is None else np.float32(1.0 / scale)
    at = np.arange(out, dtype=np.float32)
    if kind == "exact":
        at = at + np.float32(0.5)
    index: Array = np.minimum(np.floor(at * ratio), length - 1).astype(np.int64)
    return index


def nearest(draft: Draft, axis: Axis, kind: str) -> gs.Tensor:
    """The index of every element's source, to gather by."""
    if axis.source.static is not None and axis.target.static is not None:
        index = nearest_index(axis.source.static, axis.target.static, axis.scale, kind)
        return draft.constant(index, "index")
    at = parts.cast(draft, parts.counting(draft, axis.target), parts.FLOAT)
    if kind == "exact":
        at = draft.op("Add", at, draft.constant(np.array([0.5], np.float32), "half"))
    source = parts.cast(draft, axis.source.make(), parts.FLOAT)
    if axis.scale is None:
        ratio = draft.op("Div", source, parts.cast(draft, axis.target.make(), parts.FLOAT))
    else:
        ratio = draft.constant(np.array([1.0 / axis.scale], np.float32), "ratio")
    place = draft.op("Floor", draft.op("Mul", at, ratio))
    last = draft.op("Sub", source, draft.constant(np.array([1], np.float32), "one"))
    return draft.op("Cast", draft.op("Min", place, last), to=parts.INT64)


def matrix_of(
    draft: Draft, axis: Axis, manner: Manner, dtype: np.dtype[Any]
) -> Callable[[bool], gs.Tensor]:
    """The matrix of an axis, made when it is known whether it is to be turned."""
    if axis.fixed:
        return parts.constant_matrix(draft, fixed_matrix(axis, manner), dtype)
    if manner.antialias:
        return lambda turned: _computed_filter(draft, axis, manner, dtype, turned=turned)
    return lambda turned: _computed_matrix(draft, axis, manner, dtype, turned=turned)


def fixed_matrix(axis: Axis, manner: Manner) -> Array:
    """The matrix [out, in] of an axis of fixed lengths."""
    length, out = axis.source.static, axis.target.static
    assert length is not None
    assert out is not None
    if manner.kind in ("nearest", "exact"):
        chosen = nearest_index(length, out, axis.scale, manner.kind)
        return np.asarray(chosen[:, None] == np.arange(length), np.float64)
    if length == out and manner.copies:
        return np.eye(length)
    ratio = _ratio(axis, manner)
    if manner.antialias:
        return _antialiased(length, out, ratio, manner.kind)
    at = np.arange(out, dtype=np.float64)
    place = at * ratio if manner.corners else (at + 0.5) * ratio - 0.5
    matrix = np.zeros((out, length))
    rows = np.arange(out)
    if manner.kind == "linear":
        place = np.clip(place, 0, length - 1)
        low = np.floor(place).astype(np.int64)
        part = place - low
        np.add.at(matrix, (rows, low), 1 - part)
        np.add.at(matrix, (rows, np.minimum(low + 1, length - 1)), part)
        return matrix
    low = np.floor(place).astype(np.int64)
    for tap in range(-1, 3):
        weight = cubic_weight(np.abs(place - low - tap), CUBIC)
        np.add.at(matrix, (rows, np.clip(low + tap, 0, length - 1)), weight)
    return matrix


def _antialiased(length: int, out: int, ratio: float, kind: str) -> Array:
    """As `_upsample_bilinear2d_aa`: the filter grows with the step, and is cut at the border."""
    reach = _REACH[kind] * max(ratio, 1.0)
    inverse = 1.0 / max(ratio, 1.0)
    matrix = np.zeros((out, length))
    for row in range(out):
        centre = ratio * (row + 0.5)
        first = max(int(centre - reach + 0.5), 0)
        last = min(int(centre + reach + 0.5), length)
        distance = np.abs((np.arange(first, last) - centre + 0.5) * inverse)
        if kind == "linear":
            weight = np.maximum(0.0, 1.0 - distance)
        elif kind == "lanczos":
            weight = np.where(distance < 3, np.sinc(distance) * np.sinc(distance / 3), 0.0)
        else:
            weight = cubic_weight(distance, CUBIC_ANTIALIAS)
        matrix[row, first:last] = weight / weight.sum()
    return matrix


def _computed_matrix(
    draft: Draft, axis: Axis, manner: Manner, dtype: np.dtype[Any], *, turned: bool
) -> gs.Tensor:
    """The matrix of lengths that are known at run time, as precise as PyTorch has it."""
    number = _numbers(draft, dtype)
    wide = _number_of(_computed_in(dtype))

    at = parts.cast(draft, parts.counting(draft, axis.target), wide)
    source = parts.cast(draft, axis.source.make(), wide)
    target = parts.cast(draft, axis.target.make(), wide)
    last = draft.op("Sub", source, number(1))
    if manner.corners:
        gaps = draft.op("Max", draft.op("Sub", target, number(1)), number(1))
        place = draft.op("Mul", at, draft.op("Div", last, gaps))
    else:
        ratio, half = _computed_ratio(draft, axis, manner, source, target, number), number(0.5)
        place = draft.op("Sub", draft.op("Mul", draft.op("Add", at, half), ratio), half)
    elements = parts.cast(draft, parts.counting(draft, axis.source), wide)
    elements = parts.unsqueeze(draft, elements, 1 if turned else 0)
    across = 0 if turned else 1
    zero, one = number(0), number(1)
    if manner.kind == "linear":
        place = draft.op("Min", draft.op("Max", place, zero), last)
        gap = draft.op("Abs", draft.op("Sub", parts.unsqueeze(draft, place, across), elements))
        matrix = draft.op("Max", draft.op("Sub", one, gap), zero)
        return parts.cast(draft, matrix, _number_of(dtype))
    low = draft.op("Floor", place)
    part = draft.op("Sub", place, low)
    terms = []
    for tap, weight in zip(range(-1, 3), _cubic_weights(draft, part, number), strict=True):
        taken = draft.op("Min", draft.op("Max", draft.op("Add", low, number(tap)), zero), last)
        gap = draft.op("Abs", draft.op("Sub", parts.unsqueeze(draft, taken, across), elements))
        there = draft.op("Max", draft.op("Sub", one, gap), zero)
        terms.append(draft.op("Mul", there, parts.unsqueeze(draft, weight, across)))
    matrix = draft.op("Sum", *terms)
    return parts.cast(draft, matrix, _number_of(dtype))


def _computed_ratio(
    draft: Draft,
    axis: Axis,
    manner: Manner,
    source: gs.Tensor,
    target: gs.Tensor,
    number: Callable[[float], gs.Tensor],
) -> Any:
    """How far the source moves for one step, at lengths that are known at run time."""
    if axis.scale is None:
        return draft.op("Div", source, target)
    ratio = number(1.0 / axis.scale)
    given = axis.target.static is not None  # which the input may have by chance
    if not (manner.copies and (given or may_stay(axis.scale))):
        return ratio
    return draft.op("Where", draft.op("Equal", source, target), number(1), ratio)


def may_stay(scale: float) -> bool:
    """Whether a factor leaves some length of two and more as it is."""
    return 1 < scale < 1.5


def _computed_filter(
    draft: Draft, axis: Axis, manner: Manner, dtype: np.dtype[Any], *, turned: bool
) -> gs.Tensor:
    """As `_antialiased` for lengths that are known at run time: what it cuts off weighs nothing."""
    number = _numbers(draft, dtype)
    wide = _number_of(_computed_in(dtype))
    source, target = (parts.cast(draft, t.make(), wide) for t in (axis.source, axis.target))
    one, half = number(1), number(0.5)
    if manner.corners:  # and of a single element the step is 0
        gaps = draft.op("Sub", target, one)
        ratio = draft.op("Div", draft.op("Sub", source, one), draft.op("Max", gaps, one))
        ratio = draft.op("Mul", ratio, draft.op("Min", gaps, one))
    else:
        ratio = _computed_ratio(draft, axis, manner, source, target, number)
    at = parts.cast(draft, parts.counting(draft, axis.target), wide)
    centre = draft.op("Mul", draft.op("Add", at, half), ratio)
    elements = parts.cast(draft, parts.counting(draft, axis.source), wide)
    elements = draft.op("Add", parts.unsqueeze(draft, elements, 1 if turned else 0), half)
    gap = draft.op("Sub", elements, parts.unsqueeze(draft, centre, 0 if turned else 1))
    far = draft.op("Div", draft.op("Abs", gap), draft.op("Max", ratio, one))
    weight = draft.op("Sub", one, draft.op("Min", far, one))
    if manner.kind == "cubic":
        a, rest = CUBIC_ANTIALIAS, draft.op("Min", far, number(2))
        near = _polynomial(draft, far, [a + 2, -(a + 3), 0.0, 1.0], number)
        outer = _polynomial(draft, rest, [a, -5 * a, 8 * a, -4 * a], number)
        weight = draft.op("Where", draft.op("Less", far, one), near, outer)
    elif manner.kind == "lanczos":
        far = draft.op("Min", far, number(3))  # where it is 0
        weight = draft.op("Mul", _sinc(draft, far, 1, number), _sinc(draft, far, 3, number))
    axes = draft.constant([0 if turned else 1], "axes")
    total = draft.op("ReduceSum", weight, axes, keepdims=1)
    return parts.cast(draft, draft.op("Div", weight, total), _number_of(dtype))


def _computed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What PyTorch computes coordinates in."""
    return dtype if dtype == np.float64 else np.dtype(np.float32)


def _numbers(draft: Draft, dtype: np.dtype[Any]) -> Callable[[float], gs.Tensor]:
    """What makes constants beside coordinates."""
    return lambda value: draft.constant(np.array([value], _computed_in(dtype)), "number")


def _sinc(
    draft: Draft, d: gs.Tensor, width: float, number: Callable[[float], gs.Tensor]
) -> gs.Tensor:
    """sin(pi d / width) / (pi d / width); so near to 0 that it is 1, of a number that is not 0."""
    angle = draft.op("Max", draft.op("Mul", d, number(np.pi / width)), number(1e-6))
    made: gs.Tensor = draft.op("Div", draft.op("Sin", angle), angle)
    return made


def _polynomial(
    draft: Draft, d: gs.Tensor, coefficients: list[float], number: Callable[[float], gs.Tensor]
) -> gs.Tensor:
    value = number(coefficients[0])
    for coefficient in coefficients[1:]:
        value = draft.op("Add", draft.op("Mul", value, d), number(coefficient))
    return value


def _cubic_weights(
    draft: Draft, part: gs.Tensor, number: Callable[[float], gs.Tensor]
) -> list[gs.Tensor]:
    a = CUBIC
    near, far = [a + 2, -(a + 3), 0.0, 1.0], [a, -5 * a, 8 * a, -4 * a]
    rest = draft.op("Sub", number(1), part)
    return [
        _polynomial(draft, draft.op("Add", part, number(1)), far, number),
        _polynomial(draft, part, near, number),
        _polynomial(draft, rest, near, number),
        _polynomial(draft, draft.op("Add", rest, number(1)), far, number),
    ]


def _number_of(dtype: np.dtype[Any]) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))
