"""Resize and Upsample between lengths known at run time only: where elements come from is computed.

Coordinates are computed in single precision, step by step as onnxruntime does, and the elements
gathered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import LARGEST, TYPE, Bench, Size, same_length
from surgeon.builders.parts import Array
from surgeon.builders.resizing import (
    Manner,
    interpolation_matrix,
    manner_of,
    nearest_index,
    resized_axes,
    resized_axis,
    scales_of,
)
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_HALF = 0.5
_HALVES = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")  # alike for whole factors
_LARGEST_STRETCH = 16  # beyond, the triangles cost more than gathered elements
_ALL_COPIED = 1.5  # from this factor on, a length that stays is 1, and one element is copied anyway


@dataclass(frozen=True, slots=True)
class _Axis:
    """One resized axis.

    Attributes:
        index: The axis.
        source: Its length.
        target: What it becomes.
        scale: As the node has it; None for the quotient of the lengths.
    """

    index: int
    source: Size | int
    target: Size | int
    scale: np.float32 | None


def resize_as_gathers(draft: Draft, match: Match) -> gs.Tensor:
    """Nearest, linear and cubic, at lengths known at run time: gathered elements, weighted."""
    c, node = Bench(draft), match.root
    manner = manner_of(node, c.opset)
    x: gs.Tensor = node.inputs[0]
    dtype = c.dtype(x)
    if manner.mode not in ("nearest", "linear", "cubic"):
        raise Refused(f"its mode is `{manner.mode}`")
    if manner.mode != "nearest" and dtype not in FLOATS:
        raise Refused("integers are rounded after interpolation, and sums of products are not")
    axes = _axes(c, node)
    if all(isinstance(a.source, int) and isinstance(a.target, int) for a in axes):
        raise Refused("its lengths are known beforehand, or none changes")
    narrow = manner.mode != "nearest" and dtype in (TYPE.FLOAT16, TYPE.BFLOAT16)
    x = c.cast(x, TYPE.FLOAT) if narrow else x
    for axis in axes:
        x = _resized(c, x, axis, manner)
    return c.cast(x, dtype)


def stretch_as_conv_transpose(draft: Draft, match: Match) -> gs.Tensor:
    """Linear by whole factors: a triangle for each element, wider at the border."""
    c, node = Bench(draft), match.root
    manner = manner_of(node, c.opset)
    x: gs.Tensor = node.inputs[0]
    rank, shape = c.rank(x), c.shape(x)
    if manner.mode != "linear" or manner.places not in (*_HALVES, "asymmetric"):
        raise Refused(f"its mode is `{manner.mode}`, its coordinates `{manner.places}`")
    if c.dtype(x) not in (TYPE.FLOAT, TYPE.FLOAT16):
        raise Refused("runtimes have ConvTranspose in single and half precision")
    axes = resized_axes(draft, node)
    if all(axis.lengths is not None for axis in axes):
        raise Refused("its lengths are known beforehand, or none changes")
    times = {axis.index: axis.times for axis in axes if axis.times is not None}
    if len(times) < len(axes) or min(times) < 2 or max(times.values()) > _LARGEST_STRETCH:
        raise Refused("its factors are not whole numbers, or not those of spatial axes")
    if not 3 <= rank <= 5 or shape is None or not isinstance(shape[1], int):
        raise Refused(
            "its input does not have a known number of channels and one to three axes behind"
        )
    kernel, pads = np.ones([shape[1], 1, *[1] * (rank - 2)]), np.zeros((2, rank - 2), np.int64)
    for index, stretch in times.items():
        line, pads[:, index - 2] = _triangle(stretch, halves=manner.places in _HALVES)
        kernel = kernel * line.reshape([-1, *[1] * (rank - 1 - index)])
        x = _with_border(c, x, index, before=manner.places in _HALVES)
    weight = draft.constant(kernel.astype(parts.numpy_dtype(draft, x)), "triangles")
    return c.op(
        "ConvTranspose",
        x,
        weight,
        group=shape[1],
        kernel_shape=list(kernel.shape[2:]),
        strides=[times.get(i, 1) for i in range(2, rank)],
        pads=[int(n) for n in pads.reshape(-1)],
    )


def _triangle(stretch: int, *, halves: bool) -> tuple[Array, tuple[int, int]]:
    """The weights that one element has at the places around it, and what is cut off the ends.

    With half pixels an element more stands on either side, else one behind; no weight is 0.
    """
    if not halves:
        return 1 - np.abs(np.arange(1 - stretch, stretch)) / stretch, (stretch - 1, stretch)
    middle = stretch - 0.5 if stretch % 2 == 0 else stretch - 1
    count = 2 * stretch - stretch % 2
    cut = (3 * stretch - stretch % 2) // 2
    return 1 - np.abs(np.arange(count) - middle) / stretch, (cut, cut)


def _with_border(c: Bench, x: gs.Tensor, axis: int, *, before: bool) -> gs.Tensor:
    """The first and the last element once more; the last alone where none is wanted before."""
    last = c.slice(x, axis, -1, LARGEST)
    return c.concat([*([c.slice(x, axis, 0, 1)] if before else []), x, last], axis)


# ------------------------------------------------------------------ the axes


def _axes(c: Bench, node: gs.Node) -> list[_Axis]:
    """The axes that change, or may."""
    x = node.inputs[0]
    rank = c.rank(x)
    named = attribute_of(node, "axes") if node.op == "Resize" else None
    indices = [axis % rank for axis in named] if named else list(range(rank))
    scales = scales_of(c.draft, node)
    if scales is None:
        return _by_sizes(c, node, indices)
    if len(scales) != len(indices):
        raise Refused("it does not have one scale for each axis")
    if node.op == "Upsample" and min(scales) < 1:
        raise Refused("a scale is below 1, which Upsample does not mean")
    factors = {i: np.float32(s) for i, s in zip(indices, scales, strict=True) if s != 1}
    found = [_scaled(c, x, axis, scale) for axis, scale in factors.items()]
    if found and not any(_changes(axis) for axis in found):
        raise Refused(
            "whether its scales change a length is known at run time only: where none changes, "
            "onnxruntime copies and the specification moves"
        )
    return found


def _scaled(c: Bench, x: gs.Tensor, axis: int, scale: np.float32) -> _Axis:
    source = c.size(x, axis)
    if isinstance(source, int):
        return _Axis(axis, source, int(np.floor(np.float32(source) * scale)), scale)
    if scale == int(scale):
        return _Axis(axis, source, c.mul(source, int(scale)), scale)
    length = source

    def make() -> gs.Tensor:
        exact = c.op("Mul", c.cast(length.tensor, TYPE.FLOAT), c.number(scale, TYPE.FLOAT))
        return c.cast(c.op("Floor", exact), TYPE.INT64)

    return _Axis(axis, source, Size(None, make), scale)


def _changes(axis: _Axis) -> bool:
    """Whether the axis gets another length, or copies where it keeps its own."""
    assert axis.scale is not None
    if isinstance(axis.source, int):
        return axis.source != axis.target
    return bool(axis.scale < 1 or axis.scale >= _ALL_COPIED)


def _by_sizes(c: Bench, node: gs.Node, indices: list[int]) -> list[_Axis]:
    if len(node.inputs) < 4 or node.inputs[3].is_empty():
        raise Refused("neither its scales nor its sizes are known")
    sizes = _sizes(c, node.inputs[3], len(indices))
    found = []
    for axis, target in zip(indices, sizes, strict=True):
        source = c.size(node.inputs[0], axis)
        if not same_length(source, target):
            found.append(_Axis(axis, source, target, None))
    return found


def _sizes(c: Bench, given: gs.Tensor, count: int) -> list[Size | int]:
    """The elements of a computed list, each from the part of a Concat that gives it."""
    known, node = parts.dims_in(c.draft, given), producer_of(given)
    if known is None and node is not None and node.op == "Concat":
        lengths = [s[0] for t in node.inputs if (s := c.shape(t))]
        known_lengths = [n for n in lengths if isinstance(n, int)]
        # one that is joined of itself is longer than there are axes
        if len(known_lengths) == len(node.inputs) and sum(known_lengths) == count:
            pairs = zip(node.inputs, known_lengths, strict=True)
            return [size for t, n in pairs if n for size in _sizes(c, t, n)]
    if known is not None and len(known) != count:
        raise Refused("it does not have one size for each axis")

    def element(i: int) -> Size | int:
        dim = None if known is None else known[i]
        if isinstance(dim, int):
            return dim
        wide = c.cast(given, TYPE.INT64)
        return Size(dim, lambda: c.op("Gather", wide, c.ints([i], "axis"), axis=0))

    return [element(i) for i in range(count)]


# ------------------------------------------------------------------ one axis


def _resized(c: Bench, x: gs.Tensor, axis: _Axis, manner: Manner) -> gs.Tensor:
    if isinstance(axis.source, int) and isinstance(axis.target, int):
        return _beforehand(c, x, axis, manner)
    place = _places(c, axis, manner)
    if manner.mode == "nearest":
        return c.op(
            "Gather", x, _within(c, _rounded(c, place, axis, manner), axis), axis=axis.index
        )
    if manner.mode == "linear":
        last = c.op("Sub", _float(c, axis.source), _one(c))
        place = c.op("Min", c.op("Max", place, c.number(0, TYPE.FLOAT)), last)
    low = c.op("Floor", place)
    past = c.op("Sub", place, low)
    weights = _linear(c, past) if manner.mode == "linear" else _cubic(c, past, low, axis, manner)
    behind = range(1, c.rank(x) - axis.index)
    terms = []
    for tap, weight in weights.items():
        at = c.op("Add", low, c.number(tap, TYPE.FLOAT)) if tap else low
        inside = manner.mode == "linear" and tap == 0
        index = c.cast(at, TYPE.INT64) if inside else _within(c, at, axis)
        taken = c.op("Gather", x, index, axis=axis.index)
        factor = c.cast(c.unsqueeze(weight, list(behind)), c.dtype(x))
        terms.append(c.op("Mul", taken, factor))
    total = terms[0]
    for term in terms[1:]:
        total = c.op("Add", total, term)
    return total


def _beforehand(c: Bench, x: gs.Tensor, axis: _Axis, manner: Manner) -> gs.Tensor:
    """An axis of which both lengths are numbers, beside others of which they are not."""
    assert isinstance(axis.source, int)
    assert isinstance(axis.target, int)
    known = resized_axis(axis.index, axis.source, axis.target, axis.scale)
    if manner.mode == "nearest":
        index = c.draft.constant(nearest_index(known, manner), "index")
        return c.op("Gather", x, index, axis=axis.index)
    dtype = parts.numpy_dtype(c.draft, x)
    matrix = parts.constant_matrix(c.draft, interpolation_matrix(known, manner), dtype)
    return parts.multiply_axis(c.draft, x, axis.index, c.rank(x), matrix)


def _places(c: Bench, axis: _Axis, manner: Manner) -> gs.Tensor:
    """Where every element comes from, in float32[target]."""
    at = c.cast(c.count(axis.target), TYPE.FLOAT)
    one, half = _one(c), c.number(_HALF, TYPE.FLOAT)
    if manner.places == "align_corners":  # one element comes from place 0
        room = c.op("Max", c.op("Sub", _float(c, axis.target), one), one)
        return c.op("Div", c.op("Mul", at, c.op("Sub", _float(c, axis.source), one)), room)
    scale = _scale(c, axis)
    if manner.places == "asymmetric":
        return c.op("Div", at, scale)
    place = c.op("Sub", c.op("Div", c.op("Add", at, half), scale), half)
    if manner.places == "half_pixel":
        return place
    if manner.places == "pytorch_half_pixel":
        several = c.cast(c.op("Greater", _float(c, axis.target), one), TYPE.FLOAT)
        return c.op("Mul", place, several)
    if manner.places == "half_pixel_symmetric":  # centred where the length was rounded down
        source = _float(c, axis.source)
        adjusted = c.op("Div", _float(c, axis.target), c.op("Mul", source, scale))
        offset = c.op("Mul", c.op("Mul", source, half), c.op("Sub", one, adjusted))
        first = c.op("Div", c.op("Add", at, half), scale)
        return c.op("Sub", c.op("Add", offset, first), half)
    raise Refused(f"its coordinates are `{manner.places}`")


def _scale(c: Bench, axis: _Axis) -> gs.Tensor:
    if axis.scale is not None:
        return c.number(axis.scale, TYPE.FLOAT)
    return c.op("Div", _float(c, axis.target), _float(c, axis.source))


def _float(c: Bench, length: Size | int) -> gs.Tensor:
    """A length as float32[1]."""
    return c.cast(c.vector([length], "length"), TYPE.FLOAT)


def _one(c: Bench) -> gs.Tensor:
    return c.number(1, TYPE.FLOAT)


def _within(c: Bench, place: gs.Tensor, axis: _Axis) -> gs.Tensor:
    """Whole places as indices, none beyond the border."""
    last = c.op("Sub", _float(c, axis.source), _one(c))
    inside = c.op("Min", c.op("Max", place, c.number(0, TYPE.FLOAT)), last)
    return c.cast(inside, TYPE.INT64)


# ------------------------------------------------------------------ nearest


def _rounded(c: Bench, place: gs.Tensor, axis: _Axis, manner: Manner) -> gs.Tensor:
    half = c.number(_HALF, TYPE.FLOAT)
    if manner.rounding == "round_prefer_floor":
        return c.op("Ceil", c.op("Sub", place, half))
    if manner.rounding == "round_prefer_ceil":
        return c.op("Floor", c.op("Add", place, half))
    if manner.rounding == "simple":  # before opset 11, where there are scales alone
        return c.op("Ceil" if axis.scale is not None and axis.scale < 1 else "Floor", place)
    if manner.rounding not in ("floor", "ceil"):
        raise Refused(f"its nearest_mode `{manner.rounding}` is not known")
    return c.op(manner.rounding.capitalize(), place)


# ------------------------------------------------------------------ interpolation


def _linear(c: Bench, past: gs.Tensor) -> dict[int, gs.Tensor]:
    """The weights of the element before and of the one behind, by the distance past the first."""
    return {0: c.op("Sub", _one(c), past), 1: past}


def _cubic(
    c: Bench, past: gs.Tensor, low: gs.Tensor, axis: _Axis, manner: Manner
) -> dict[int, gs.Tensor]:
    """The weights of two elements before and two behind: Keys' kernel, as polynomials."""
    a = manner.cubic
    near, far = (a + 2, -(a + 3), 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a)
    one = _one(c)
    rest = c.op("Sub", one, past)
    weights = {
        -1: _polynomial(c, c.op("Add", past, one), far),
        0: _polynomial(c, past, near),
        1: _polynomial(c, rest, near),
        2: _polynomial(c, c.op("Add", rest, one), far),
    }
    if not manner.inside:
        return weights
    zero, length = c.number(0, TYPE.FLOAT), _float(c, axis.source)
    total = None
    for tap, weight in weights.items():
        at = c.op("Add", low, c.number(tap, TYPE.FLOAT))
        held = c.op("And", c.op("Less", at, length), c.op("Not", c.op("Less", at, zero)))
        weights[tap] = c.op("Mul", weight, c.cast(held, TYPE.FLOAT))
        total = weights[tap] if total is None else c.op("Add", total, weights[tap])
    return {tap: c.op("Div", weight, total) for tap, weight in weights.items()}


def _polynomial(c: Bench, t: gs.Tensor, factors: tuple[float, ...]) -> gs.Tensor:
    """By Horner's rule, the highest power first."""
    total = c.number(factors[0], TYPE.FLOAT)
    for factor in factors[1:]:
        total = c.op("Mul", total, t)
        total = c.op("Add", total, c.number(factor, TYPE.FLOAT)) if factor else total
    return total
