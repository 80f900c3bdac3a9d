"""Gradients of sampling by a grid: of what is sampled, and of the places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import onnx_graphsurgeon as gs

from surgeon.builders.aten_nn.gradients_of_layers import given, wanted
from surgeon.builders.aten_nn.grids import BEYOND, WITHIN, first_place, reflected
from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.aten_shape.combining import combined_elements
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_BICUBIC, _NEAREST = 2, 1
_ZEROS, _REFLECTION = 0, 2
_FAR = 2.0**30  # a place beyond is none that an index could name
_FIRST_ELEMENTS = 11  # the opset that gathers element by element


class _Side(NamedTuple):
    """One of the elements beside a place, or the nearest, along one axis; each [N, points].

    Attributes:
        index: Which it is, brought inside.
        share: What it has of the value.
        slope: How its share grows along the axis: -1 or 1, 0 of the nearest, computed of the cubic.
        there: Whether it lies inside; None where it always does.
    """

    index: gs.Tensor
    share: gs.Tensor
    slope: gs.Tensor | int
    there: gs.Tensor | None


def grid_sampler_backward(draft: Draft, match: Match) -> Any:
    """`aten.grid_sampler_2d_backward` and `3d`."""
    c = Call(draft, match.root)
    x, grid = c.tensor("input"), c.tensor("grid")
    mode = c.integer("interpolation_mode")
    if c.dtype(x) not in (TYPE.FLOAT, TYPE.DOUBLE):
        raise Refused("it is neither of single nor of double precision")
    spatial = c.rank(x) - 2
    if mode == _BICUBIC and spatial == 3:
        raise Refused("volumes are not sampled bicubically")
    points = c.op("Reshape", _numbers(c, grid), c.ints([0, -1, spatial], "points"))
    behind = c.op("Reshape", c.args.first(), c.ints([0, 0, -1], "behind"))
    sides, factors = [], []
    for axis in range(spatial):  # the last of the grid counts along the first of the input
        at = c.number(spatial - 1 - axis, TYPE.INT64)
        place, factor = _place(c, c.op("Gather", points, at, axis=2), c.size(x, axis + 2))
        sides.append(list(_SIDES[mode](c, place, c.size(x, axis + 2))))
        factors.append(factor)
    corners = list(product(*sides))
    asked = wanted(c) if c.args.schema.takes("output_mask") else [True, True]
    first = _of_input(c, x, behind, corners) if asked[0] else None
    second = None
    if asked[1] and mode == _NEAREST:  # which stays so for a while
        second = c.filled(c.sizes(grid), 0, c.dtype(grid))
    elif asked[1]:
        slopes = _of_places(c, x, behind, corners)
        turned = [c.op("Mul", *pair) for pair in zip(slopes, factors, strict=True)][::-1]
        joined = c.concat([c.unsqueeze(t, [2]) for t in turned], 2)
        second = c.reshape(joined, c.sizes(grid))
    return given(c, first, second)


def _numbers(c: Call, grid: gs.Tensor) -> gs.Tensor:
    """The grid, with -1 for what is no number or beyond all."""
    dtype = c.dtype(grid)
    near = c.op("Less", c.op("Abs", grid), c.number(_FAR, dtype))
    return c.where(near, grid, c.number(-1, dtype))


def _length(c: Call, size: Size | int, dtype: int, less: int = 0) -> gs.Tensor:
    if isinstance(size, int):
        return c.number(size - less, dtype)
    whole = c.op("Reshape", c.cast(size.tensor, dtype), c.ints([], "scalar"))
    made: gs.Tensor = c.op("Sub", whole, c.number(less, dtype))
    return made


def _place(c: Call, coordinate: gs.Tensor, size: Size | int) -> tuple[gs.Tensor, gs.Tensor]:
    """Where it lies among the elements, and how that grows with the coordinate."""
    dtype = c.dtype(coordinate)
    zero, half, one = (c.number(n, dtype) for n in (0, 0.5, 1))
    raised, last = c.op("Add", coordinate, one), _length(c, size, dtype, 1)
    if c.value("align_corners"):
        factor = c.op("Mul", last, half)
        place = c.op("Mul", raised, factor)
    else:
        factor = c.op("Mul", _length(c, size, dtype), half)
        place = c.op("Sub", c.op("Mul", raised, factor), half)
    padding = c.integer("padding_mode")
    if c.integer("interpolation_mode") == _BICUBIC:  # its elements are brought inside one by one
        return place, factor
    if padding == _REFLECTION:
        place, turned = _reflected(c, place, size)
        factor = c.op("Mul", turned, factor)
    if padding != _ZEROS:
        moves = c.op("And", c.op("Less", zero, place), c.op("Less", place, last))
        factor = c.op("Mul", c.cast(moves, dtype), factor)
        place = c.op("Min", c.op("Max", place, zero), last)
    return place, factor


def _reflected(c: Call, place: gs.Tensor, size: Size | int) -> tuple[gs.Tensor, gs.Tensor]:
    """The place within, and whether it moves as the one outside does: 1, or else -1."""
    dtype, corners = c.dtype(place), bool(c.value("align_corners"))
    inside, odd = reflected(c.draft, place, _length(c, size, dtype), corners=corners)
    before = c.op("Less", place, c.number(first_place(corners=corners), dtype))
    turned = c.op("Xor", c.op("Less", c.number(0.5, dtype), odd), before)
    return inside, c.where(turned, c.number(-1, dtype), c.number(1, dtype))


def _beside(c: Call, at: gs.Tensor, size: Size | int) -> tuple[gs.Tensor, gs.Tensor]:
    """Which element a whole place is, brought inside, and whether it lies there."""
    dtype = c.dtype(at)
    zero, last = c.number(0, dtype), _length(c, size, dtype, 1)
    outside = c.op("Or", c.op("Less", at, zero), c.op("Less", last, at))
    index = c.cast(c.op("Min", c.op("Max", at, zero), last), TYPE.INT64)
    return index, c.cast(c.op("Not", outside), dtype)


def _nearest_side(c: Call, place: gs.Tensor, size: Size | int) -> Iterator[_Side]:
    index, there = _beside(c, c.op("Round", place), size)
    yield _Side(index, there, 0, there)


def _linear_sides(c: Call, place: gs.Tensor, size: Size | int) -> Iterator[_Side]:
    low, one = c.op("Floor", place), c.number(1, c.dtype(place))
    part = c.op("Sub", place, low)
    for slope in (-1, 1):
        index, there = _beside(c, low if slope < 0 else c.op("Add", low, one), size)
        yield _Side(index, c.op("Sub", one, part) if slope < 0 else part, slope, there)


def _cubic_sides(c: Call, place: gs.Tensor, size: Size | int) -> Iterator[_Side]:
    """Two elements on either side; the padding brings each inside by itself."""
    dtype, padding = c.dtype(place), c.integer("padding_mode")
    low = c.op("Floor", place)
    part = c.op("Sub", place, low)
    for tap in range(-1, 3):
        at = c.op("Add", low, c.number(tap, dtype))
        if padding == _REFLECTION:
            at = _reflected(c, at, size)[0]
        index, there = _beside(c, at, size)
        before = tap < 1  # the place lies behind the element, and goes away from it
        offset = c.number(tap, dtype)
        apart = c.op("Sub", part, offset) if before else c.op("Sub", offset, part)
        cubic = WITHIN if tap in (0, 1) else BEYOND
        growth = [n * power for n, power in zip(cubic[:3], (3, 2, 1), strict=True)]
        slope = _polynomial(c, apart, growth)
        slope = slope if before else c.op("Neg", slope)
        found = there if padding == _ZEROS else None
        yield _Side(index, _polynomial(c, apart, cubic), slope, found)


def _polynomial(c: Call, x: gs.Tensor, coefficients: Sequence[float]) -> gs.Tensor:
    """By Horner's rule, from the highest power down."""
    numbers = [c.number(n, c.dtype(x)) for n in coefficients]
    return reduce(lambda y, number: c.op("Add", c.op("Mul", y, x), number), numbers)


_SIDES = {0: _linear_sides, _NEAREST: _nearest_side, _BICUBIC: _cubic_sides}


def _product(c: Call, *factors: gs.Tensor) -> gs.Tensor:
    return reduce(lambda a, b: c.op("Mul", a, b), factors)


def _index(c: Call, x: gs.Tensor, corner: tuple[_Side, ...]) -> gs.Tensor:
    """Of an element within its image, all axes in one."""
    found = corner[0].index
    for axis, side in enumerate(corner[1:], 3):
        size = c.size(x, axis)
        length = c.number(size, TYPE.INT64) if isinstance(size, int) else size.tensor
        found = c.op("Add", c.op("Mul", found, length), side.index)
    return found


def _of_input(
    c: Call, x: gs.Tensor, behind: gs.Tensor, corners: list[tuple[_Side, ...]]
) -> gs.Tensor:
    """Each corner gets by its share of what comes from behind."""
    samples, channels, *lengths = c.sizes(x)
    index = c.concat([_index(c, x, corner) for corner in corners], 1)
    parts = [
        c.op(
            "Mul",
            behind,
            c.unsqueeze(
                _product(c, *(f for s in corner for f in (s.share, s.there) if f is not None)), [1]
            ),
        )
        for corner in corners
    ]
    source = c.concat(parts, 2)
    index = c.op("Expand", c.unsqueeze(index, [1]), c.op("Shape", source))
    zeros = c.filled([samples, channels, c.product(lengths)], 0, c.dtype(x))
    return c.reshape(combined_elements(c, zeros, index, source, 2, "add"), c.sizes(x))


def _of_places(
    c: Call, x: gs.Tensor, behind: gs.Tensor, corners: list[tuple[_Side, ...]]
) -> list[gs.Tensor]:
    """Along each axis: each corner's value, by what comes from behind and its share's slope."""
    if c.opset < _FIRST_ELEMENTS:
        raise Refused("the gradient of its grid needs opset 11")
    flat = c.op("Reshape", x, c.ints([0, 0, -1], "flat"))
    totals: list[gs.Tensor | None] = [None] * len(corners[0])
    for corner in corners:
        index = c.op("Expand", c.unsqueeze(_index(c, x, corner), [1]), c.op("Shape", behind))
        value = c.op("Mul", c.op("GatherElements", flat, index, axis=2), behind)
        value = c.op("ReduceSum", value, c.ints([1], "axes"), keepdims=0)
        value = _product(c, value, *(side.there for side in corner if side.there is not None))
        for axis, mine in enumerate(corner):
            others = [side.share for side in corner if side is not mine]
            if isinstance(mine.slope, gs.Tensor):
                others.append(mine.slope)
            falls = isinstance(mine.slope, int) and mine.slope < 0
            term = _product(c, value, *others)
            total = totals[axis]
            if total is None:
                totals[axis] = c.op("Neg", term) if falls else term
            else:
                totals[axis] = c.op("Sub" if falls else "Add", total, term)
    return [total for total in totals if total is not None]
