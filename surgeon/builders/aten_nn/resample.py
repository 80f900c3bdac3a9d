"""PyTorch's upsampling: Resize where it means the same, else Gather and interpolation matrices.

Coordinates are those of ATen/native/UpSample.h: a scale that was given is used as it is, without
one it is the quotient of the lengths, and corners aligned know no scale. Nearest neighbours are
floor(i * scale), which is computed in float32 as PyTorch computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.cubic import cubic_weight
from surgeon.builders.parts import Array, Length
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_CUBIC, _CUBIC_ANTIALIAS = -0.75, -0.5  # PyTorch's coefficients, the second that of Pillow
_RESIZED = frozenset({"float32", "float16"})


@dataclass(frozen=True, slots=True)
class _Axis:
    """One resized axis; `scale` is given or None."""

    source: Length
    target: Length
    scale: float | None

    @property
    def fixed(self) -> bool:
        return self.source.static is not None and self.target.static is not None

    @property
    def kept(self) -> bool:
        a, b = self.source.dim, self.target.dim
        return a is not None and b is not None and dims.equal(a, b) is True


@dataclass(frozen=True, slots=True)
class _Manner:
    kind: str  # nearest, exact, linear, cubic
    corners: bool
    antialias: bool


def upsample(draft: Draft, match: Match) -> Any:
    """`aten.upsample_*` and `aten._upsample_*` in the model's own opset."""
    node = match.root
    args = bind(node, draft.facts)
    name = node.op.lstrip("_").removeprefix("upsample_")
    spatial = int(name[name.index("d") - 1] if not name.endswith("aa") else 2)
    kind = _kind(name)
    x = node.inputs[0]
    corners = bool(args.value("align_corners")) if kind in ("linear", "cubic") else False
    manner = _Manner(kind, corners, name.endswith("_aa"))
    rank = draft.facts.of(x).rank
    if rank not in (None, spatial + 2):
        raise Refused(f"its input has rank {rank}, not {spatial + 2}")
    lengths = parts.lengths_of(draft, x, spatial + 2)
    axes = _axes(draft, args, lengths[2:], spatial)
    if manner.corners:
        axes = [_Axis(a.source, a.target, None) for a in axes]
    if any(a.static is not None and a.static < 1 for axis in axes for a in (axis.target,)):
        raise Refused("its output would be empty")
    if all(axis.kept and axis.scale in (None, 1.0) for axis in axes):
        return x
    dtype = parts.numpy_dtype(draft, x)
    if _resizes(draft, dtype, axes, manner):
        return _resize(draft, x, lengths[:2], axes, manner)
    for index, axis in enumerate(axes):
        if axis.kept and axis.scale in (None, 1.0):
            continue
        if kind in ("nearest", "exact"):
            x = draft.op("Gather", x, _nearest(draft, axis, kind), axis=index + 2)
        elif parts.is_float(dtype):
            matrix = _matrix(draft, axis, manner, dtype)
            x = parts.multiply_axis(draft, x, index + 2, spatial + 2, matrix)
        else:
            raise Refused(f"no standard form interpolates {dtype.name}")
    return x


def _kind(name: str) -> str:
    if name.startswith("nearest_exact"):
        return "exact"
    for word, kind in (("nearest", "nearest"), ("bicubic", "cubic"), ("linear", "linear")):
        if word in name:
            return kind
    raise Refused(f"no standard form of the filter of `{name}`")


def _axes(draft: Draft, args: Arguments, sources: list[Length], spatial: int) -> list[_Axis]:
    scales = _scales(args, spatial)
    if args.has("output_size"):
        targets = parts.lengths_given(draft, args, "output_size", spatial)
        return [_Axis(s, t, f) for s, t, f in zip(sources, targets, scales, strict=True)]
    found = []
    for source, scale in zip(sources, scales, strict=True):
        if scale is None:
            raise Refused("neither its output size nor its scale factors are given")
        found.append(_Axis(source, _scaled(draft, source, scale), scale))
    return found


def _scaled(draft: Draft, source: Length, scale: float) -> Length:
    """floor(length * scale), in double precision as PyTorch."""
    if source.static is not None:
        return parts.constant_length(draft, math.floor(source.static * scale))

    def make() -> gs.Tensor:
        if scale == int(scale):
            return draft.op("Mul", source.make(), draft.constant([int(scale)], "factor"))
        wide = parts.cast(draft, source.make(), parts.DOUBLE)
        product = draft.op("Mul", wide, draft.constant(np.array([scale], np.float64), "factor"))
        return draft.op("Cast", product, to=parts.INT64)

    dim = None
    if source.dim is not None and scale == int(scale):
        dim = source.dim * int(scale)
    return Length(dim, make)


def _scales(args: Arguments, spatial: int) -> list[float | None]:
    if args.schema.position("scale_factors") is not None:
        values = args.value("scale_factors")
        if values is None:
            return [None] * spatial
        numbers = [_as_given(float(v)) for v in np.asarray(values).reshape(-1)]
        numbers = numbers * spatial if len(numbers) == 1 else numbers
        if len(numbers) != spatial:
            raise Refused(f"{len(numbers)} scale factors for {spatial} axes")
        return list(numbers)
    names = ["scales"] if spatial == 1 else ["scales_d", "scales_h", "scales_w"][-spatial:]
    found: list[float | None] = []
    for name in names:
        value = args.value(name) if args.schema.position(name) is not None else None
        found.append(None if value is None or value <= 0 else float(value))
    return found


def _as_given(scale: float) -> float:
    """The factor PyTorch was given, where the exporter rounded it to single precision.

    The size is a floor in double precision: of 20 elements 0.9 makes 18, and what float32 has for
    it 17. A decimal of up to six digits or a fraction of small numbers is what people give.
    """
    single = np.float32(scale)
    if float(single) != scale:
        return scale
    decimal = float(f"{scale:.6g}")
    fraction = float(Fraction(scale).limit_denominator(1000))
    return next((f for f in (decimal, fraction) if np.float32(f) == single), scale)


# ------------------------------------------------------------------------------------- Resize


def _resizes(draft: Draft, dtype: np.dtype[Any], axes: list[_Axis], manner: _Manner) -> bool:
    """Whether ONNX's Resize of this opset says the same, as far as is known."""
    opset = draft.facts.opset
    if dtype.name not in _RESIZED or opset < 11 or len(axes) > 2:
        return False
    static = all(axis.fixed for axis in axes)
    if manner.antialias:
        return not static and opset >= 18
    given = [axis.scale is not None for axis in axes]
    if any(given) and not all(given):
        return False
    for axis in axes:
        if not axis.fixed:
            continue
        length, out = axis.source.static, axis.target.static
        assert length is not None
        assert out is not None
        factor = np.float32(out) / np.float32(length)
        if axis.scale is not None:
            factor = np.float32(axis.scale)
            if {int(factor * np.float32(length)), int(float(factor) * length)} != {out}:
                return False  # what onnxruntime computes, and what it infers
        if manner.kind in ("nearest", "exact"):
            theirs = _resize_index(length, out, factor, manner.kind)
            if not np.array_equal(theirs, nearest_index(length, out, axis.scale, manner.kind)):
                return False
    return True


def _resize_index(length: int, out: int, factor: Any, kind: str) -> Array:
    """The index onnxruntime takes."""
    at = np.arange(out, dtype=np.float32)
    if kind == "nearest":
        found = np.floor(at / factor)
    else:
        found = np.floor((at + np.float32(0.5)) / factor - np.float32(0.5) + np.float32(0.5))
    index: Array = np.clip(found, 0, length - 1).astype(np.int64)
    return index


def _resize(
    draft: Draft, x: gs.Tensor, outer: list[Length], axes: list[_Axis], manner: _Manner
) -> Any:
    manners: dict[str, dict[str, Any]] = {
        "nearest": {
            "mode": "nearest",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        },
        "exact": {
            "mode": "nearest",
            "coordinate_transformation_mode": "half_pixel",
            "nearest_mode": "round_prefer_ceil",
        },
        "linear": {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
        "cubic": {
            "mode": "cubic",
            "coordinate_transformation_mode": "half_pixel",
            "cubic_coeff_a": _CUBIC_ANTIALIAS if manner.antialias else _CUBIC,
        },
    }
    attributes = manners[manner.kind]
    if manner.corners:
        attributes["coordinate_transformation_mode"] = "align_corners"
    if manner.antialias:
        attributes["antialias"] = 1
    roi = None
    if draft.facts.opset < 13:
        roi = draft.constant(np.zeros(0, np.float32), "roi")
    scales = [axis.scale for axis in axes]
    if all(scale is not None for scale in scales):
        factors = np.array([1.0, 1.0, *scales], np.float32)
        return draft.op("Resize", x, roi, draft.constant(factors, "scales"), **attributes)
    sizes = parts.shape_from(draft, [*outer, *(axis.target for axis in axes)])
    empty = None if draft.facts.opset >= 13 else draft.constant(np.zeros(0, np.float32), "scales")
    return draft.op("Resize", x, roi, empty, sizes, **attributes)


# -------------------------------------------------------------------------- indices, matrices


def _ratio(axis: _Axis, manner: _Manner) -> float:
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


def _nearest(draft: Draft, axis: _Axis, kind: str) -> gs.Tensor:
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


def _matrix(
    draft: Draft, axis: _Axis, manner: _Manner, dtype: np.dtype[Any]
) -> Callable[[bool], gs.Tensor]:
    if axis.fixed:
        return parts.constant_matrix(draft, interpolation(axis, manner), dtype)
    if manner.antialias:
        raise Refused("antialiasing of computed sizes needs opset 18; or fix them with `--shape`")
    return lambda turned: _computed_matrix(draft, axis, manner, dtype, turned=turned)


def interpolation(axis: _Axis, manner: _Manner) -> Array:
    """The matrix [out, in] of an axis of fixed lengths."""
    length, out = axis.source.static, axis.target.static
    assert length is not None
    assert out is not None
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
        weight = cubic_weight(np.abs(place - low - tap), _CUBIC)
        np.add.at(matrix, (rows, np.clip(low + tap, 0, length - 1)), weight)
    return matrix


def _antialiased(length: int, out: int, ratio: float, kind: str) -> Array:
    """As `_upsample_bilinear2d_aa`: the filter grows with the step, and is cut at the border."""
    reach = (1.0 if kind == "linear" else 2.0) * max(ratio, 1.0)
    inverse = 1.0 / max(ratio, 1.0)
    matrix = np.zeros((out, length))
    for row in range(out):
        centre = ratio * (row + 0.5)
        first = max(int(centre - reach + 0.5), 0)
        last = min(int(centre + reach + 0.5), length)
        distance = np.abs((np.arange(first, last) - centre + 0.5) * inverse)
        if kind == "linear":
            weight = np.maximum(0.0, 1.0 - distance)
        else:
            weight = cubic_weight(distance, _CUBIC_ANTIALIAS)
        matrix[row, first:last] = weight / weight.sum()
    return matrix


def _computed_matrix(
    draft: Draft, axis: _Axis, manner: _Manner, dtype: np.dtype[Any], *, turned: bool
) -> gs.Tensor:
    """The matrix of lengths that are known at run time, in float32."""

    def number(value: float) -> gs.Tensor:
        return draft.constant(np.array([value], np.float32), "number")

    at = parts.cast(draft, parts.counting(draft, axis.target), parts.FLOAT)
    source = parts.cast(draft, axis.source.make(), parts.FLOAT)
    target = parts.cast(draft, axis.target.make(), parts.FLOAT)
    last = draft.op("Sub", source, number(1))
    if manner.corners:
        gaps = draft.op("Max", draft.op("Sub", target, number(1)), number(1))
        place = draft.op("Mul", at, draft.op("Div", last, gaps))
    else:
        given = axis.scale
        ratio = draft.op("Div", source, target) if given is None else number(1.0 / given)
        half = number(0.5)
        place = draft.op("Sub", draft.op("Mul", draft.op("Add", at, half), ratio), half)
    elements = parts.cast(draft, parts.counting(draft, axis.source), parts.FLOAT)
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


def _cubic_weights(
    draft: Draft, part: gs.Tensor, number: Callable[[float], gs.Tensor]
) -> list[gs.Tensor]:
    a = _CUBIC

    def polynomial(d: gs.Tensor, coefficients: list[float]) -> gs.Tensor:
        value = number(coefficients[0])
        for coefficient in coefficients[1:]:
            value = draft.op("Add", draft.op("Mul", value, d), number(coefficient))
        return value

    near, far = [a + 2, -(a + 3), 0.0, 1.0], [a, -5 * a, 8 * a, -4 * a]
    rest = draft.op("Sub", number(1), part)
    return [
        polynomial(draft.op("Add", part, number(1)), far),
        polynomial(part, near),
        polynomial(rest, near),
        polynomial(draft.op("Add", rest, number(1)), far),
    ]


def _number_of(dtype: np.dtype[Any]) -> int:
    import onnx

    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))
