"""PyTorch's upsampling: Resize where it means the same, else Gather and matrices of weights."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind, text_of
from surgeon.builders import parts
from surgeon.builders.aten_nn.interpolation import (
    CUBIC,
    CUBIC_ANTIALIAS,
    Axis,
    Manner,
    matrix_of,
    may_stay,
    nearest,
    nearest_index,
)
from surgeon.builders.parts import Array, Length
from surgeon.builders.windows import digit_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused
from surgeon.schemas import overloads

_KINDS = (
    ("nearest", "nearest"),
    ("bicubic", "cubic"),
    ("linear", "linear"),
    ("lanczos", "lanczos"),
)
_RESIZED = frozenset({"float32", "float16"})
_MIDDLE_OF_ONE = (1, 10)  # the release from which on an axis of one element is the others' middle
_LONG = 4096  # elements of an axis whose nearest neighbours are compared


def upsample(draft: Draft, match: Match) -> Any:
    """`aten.upsample_*` and `aten._upsample_*` in the model's own opset."""
    node = match.root
    args = bind(node, draft.facts)
    spatial, manner = 2 if node.op.endswith("_aa") else digit_of(node.op), manner_of(args, node.op)
    lengths = _lengths(draft, node.inputs[0], spatial)
    axes = _axes(draft, args, lengths[2:], spatial)
    return _resampled(draft, node.inputs[0], lengths, axes, manner)


def manner_of(args: Arguments, operator: str) -> Manner:
    """How an operator of the name `upsample_*` or `_upsample_*` finds what lies between."""
    name = operator.lstrip("_").removeprefix("upsample_")
    kind = _kind(name)
    corners = bool(args.value("align_corners")) if kind in ("linear", "cubic", "lanczos") else False
    return Manner(kind, corners, name.endswith("_aa"))


_MODES = {
    "nearest": "nearest",
    "nearest-exact": "exact",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}
_MODES_OF = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}  # how many axes each is for
_BEHIND_THE_MODE = 2  # arguments before 1.5, the mode among them
_KEPT_FACTORS = (1, 6)  # the release from which on factors are used as given, if not told otherwise


def interpolate(draft: Draft, match: Match) -> Any:
    """`aten.__interpolate`, as scripted modules call torch.nn.functional.interpolate."""
    args, forgets = _called(draft, match.root)
    x, mode = args.tensor("input"), str(args.value("mode"))
    rank = parts.rank_of(draft, x)
    if mode == "area" and 3 <= rank <= 5:
        return _by_area(draft, args, x, rank - 2)
    if mode not in _MODES:
        raise Refused(f"no standard form of the mode `{mode}`")
    if not 3 <= rank <= 5 or _MODES_OF.get(mode, rank - 2) != rank - 2:
        raise Refused(f"its input has rank {rank}, which the mode `{mode}` lacks")
    anew = forgets or args.value("recompute_scale_factor")
    if anew is None and args.has("scale_factor") and draft.facts.model.is_before(*_KEPT_FACTORS):
        raise Refused("before PyTorch 1.6 the factors meant other things; say `size` instead")
    manner = Manner(
        _MODES[mode],
        bool(args.value("align_corners")) and _MODES[mode] in ("linear", "cubic"),
        bool(args.value("antialias")),
    )
    if manner.antialias and mode not in ("bilinear", "bicubic"):
        raise Refused(f"PyTorch has no filter for the mode `{mode}`")
    lengths = _lengths(draft, x, rank - 2)
    axes = _asked(draft, args, lengths[2:], anew=bool(anew))
    return _resampled(draft, x, lengths, axes, manner)


def _called(draft: Draft, node: gs.Node) -> tuple[Arguments, bool]:
    """The arguments, and whether factors are forgotten, as PyTorch before 1.5 did always.

    It wrote five arguments, and a list of factors as one beside the other.
    """
    mode = next((i for i, t in enumerate(node.inputs) if text_of(t) is not None), 3)
    forgets = len(node.inputs) - mode == _BEHIND_THE_MODE
    if mode <= 3:
        return bind(node, draft.facts), forgets
    arrays = [draft.facts.array(t) for t in node.inputs[2:mode]]
    factors = [float(a.reshape(())) for a in arrays if a is not None and a.size == 1]
    if len(factors) != len(arrays):
        raise Refused("its scale factors are known at run time only")
    listed = draft.constant(np.array(factors), "factors")
    schema = next(s for s in overloads(node.op) if s.overload == "size_list_scale_list")
    inputs = [*node.inputs[:2], listed, *node.inputs[mode:]]
    named = zip(schema.parameters, inputs, strict=False)
    given = {p.name: None if t.is_empty() else t for p, t in named}
    return Arguments(schema, given, draft.facts), forgets


def _by_area(draft: Draft, args: Arguments, x: gs.Tensor, spatial: int) -> gs.Tensor:
    """The means of an adaptive pooling to the size that is asked for."""
    axes = _asked(draft, args, _lengths(draft, x, spatial)[2:], anew=True)
    size = parts.shape_from(draft, [axis.target for axis in axes])
    pooled: gs.Tensor = draft.op(f"adaptive_avg_pool{spatial}d", x, size, domain="aten")
    return pooled


def _asked(draft: Draft, args: Arguments, sources: list[Length], *, anew: bool) -> list[Axis]:
    """By a size, or by factors, which are forgotten once they gave a size where `anew` says so."""
    count = len(sources)
    if args.has("size"):
        targets = parts.lengths_given(draft, args, "size", count)
        return [Axis(s, t, None) for s, t in zip(sources, targets, strict=True)]
    if not args.has("scale_factor"):
        raise Refused("neither its size nor its scale factors are given")
    numbers = np.asarray(args.value("scale_factor"), np.float64).reshape(-1)
    factors = [_as_given(float(n)) for n in numbers] * (count if len(numbers) == 1 else 1)
    if len(factors) != count:
        raise Refused(f"{len(factors)} scale factors for {count} axes")
    return [
        Axis(source, _scaled(draft, source, factor), None if anew else factor)
        for source, factor in zip(sources, factors, strict=True)
    ]


def _lengths(draft: Draft, x: gs.Tensor, spatial: int) -> list[Length]:
    rank = draft.facts.of(x).rank
    if rank not in (None, spatial + 2):
        raise Refused(f"its input has rank {rank}, not {spatial + 2}")
    return parts.lengths_of(draft, x, spatial + 2)


def _resampled(
    draft: Draft, x: gs.Tensor, lengths: list[Length], axes: list[Axis], manner: Manner
) -> Any:
    """The axes behind the first two in their new lengths."""
    kind = manner.kind
    if manner.corners:
        axes = [Axis(a.source, a.target, None) for a in axes]
    if manner.copies:
        axes = [Axis(a.source, a.target, None) if a.kept else a for a in axes]
    if any(a.target.static is not None and a.target.static < 1 for a in axes):
        raise Refused("its output would be empty")
    if not any(axis.moves for axis in axes):
        return x
    if kind in ("linear", "cubic") and not manner.corners:
        _not_to_one(draft, axes)
    dtype = parts.numpy_dtype(draft, x)
    if _resizes(draft, dtype, axes, manner):
        return _resize(draft, x, lengths[:2], axes, manner)
    for index, axis in enumerate(axes):
        if not axis.moves:
            continue
        if kind in ("nearest", "exact"):
            x = draft.op("Gather", x, nearest(draft, axis, kind), axis=index + 2)
        elif parts.is_float(dtype):
            matrix = matrix_of(draft, axis, manner, dtype)
            x = parts.multiply_axis(draft, x, index + 2, len(axes) + 2, matrix)
        else:
            raise Refused(f"no standard form interpolates {dtype.name}")
    return x


def _not_to_one(draft: Draft, axes: list[Axis]) -> None:
    """Raises Refused where an axis becomes one element of a PyTorch that took its first for it."""
    for axis in axes:
        to_one = axis.target.static == 1 and axis.source.static != 1
        if to_one and draft.facts.model.is_before(*_MIDDLE_OF_ONE):
            first = ".".join(map(str, _MIDDLE_OF_ONE))
            raise Refused(
                f"before PyTorch {first} a length of 1 was the first element, not the middle; "
                "take it by a slice"
            )


def _kind(name: str) -> str:
    if name.startswith("nearest_exact"):
        return "exact"
    for word, kind in _KINDS:
        if word in name:
            return kind
    raise Refused(f"no standard form of the filter of `{name}`")


def _axes(draft: Draft, args: Arguments, sources: list[Length], spatial: int) -> list[Axis]:
    scales = scales_of(args, spatial)
    if args.has("output_size"):
        targets = parts.lengths_given(draft, args, "output_size", spatial)
        return [Axis(s, t, f) for s, t, f in zip(sources, targets, scales, strict=True)]
    found = []
    for source, scale in zip(sources, scales, strict=True):
        if scale is None:
            raise Refused("neither its output size nor its scale factors are given")
        found.append(Axis(source, _scaled(draft, source, scale), scale))
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


def scales_of(args: Arguments, spatial: int) -> list[float | None]:
    """The scale of each axis; None where it is the quotient of the lengths."""
    if args.schema.takes("scale_factors"):
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
        value = args.value(name) if args.schema.takes(name) else None
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


def _resizes(draft: Draft, dtype: np.dtype[Any], axes: list[Axis], manner: Manner) -> bool:
    """Whether ONNX's Resize of this opset says the same, as far as is known."""
    opset = draft.facts.opset
    if dtype.name not in _RESIZED or opset < 11 or len(axes) > 2:
        return False
    open_axes = [axis for axis in axes if not axis.fixed]
    if any(a.scale is not None and not _is_plain(a.scale, manner) for a in open_axes):
        return False
    if any(a.scale is not None and a.target.static is not None for a in open_axes):
        return False  # a size that was given beside the factor does not follow the input
    if manner.antialias:
        fixed = all(axis.fixed for axis in axes)
        usual = manner.kind != "lanczos" and not manner.corners  # PyTorch centres windows otherwise
        return not fixed and opset >= 18 and usual
    given = [axis.scale is not None for axis in axes if axis.moves]
    if any(given) and not all(given):
        return False
    if all(axis.kept for axis in axes):  # onnxruntime copies
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


def _is_plain(scale: float, manner: Manner) -> bool:
    """Whether Resize makes the same of every length by this factor.

    It multiplies lengths in single precision, where PyTorch does in double, and scales or copies a
    length that stays as PyTorch does not: of 45 elements 1.4 makes 62, not 63.
    """
    fraction = Fraction(scale)
    if fraction.denominator > 64 or fraction.numerator > 4096 or may_stay(scale):
        return False
    if manner.kind not in ("nearest", "exact"):
        return True
    theirs = _resize_index(_LONG, _LONG, np.float32(scale), manner.kind)
    return np.array_equal(theirs, nearest_index(_LONG, _LONG, scale, manner.kind))


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
    draft: Draft, x: gs.Tensor, outer: list[Length], axes: list[Axis], manner: Manner
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
            "cubic_coeff_a": CUBIC_ANTIALIAS if manner.antialias else CUBIC,
        },
    }
    attributes = manners[manner.kind]
    if manner.corners:
        attributes["coordinate_transformation_mode"] = "align_corners"
    if manner.antialias:
        attributes |= {"antialias": 1, "exclude_outside": 1}  # windows are cut at the border
    scales = [axis.scale if axis.moves else 1.0 for axis in axes]
    factors = [scale for scale in scales if scale is not None]
    if len(factors) == len(scales):
        return parts.resized(draft, x, [1.0, 1.0, *factors], **attributes)
    sizes = parts.shape_from(draft, [*outer, *(axis.target for axis in axes)])
    empty = [None] * 2
    if draft.facts.opset < 13:
        empty = [draft.constant(np.zeros(0, np.float32), name) for name in ("roi", "scales")]
    return draft.op("Resize", x, *empty, sizes, **attributes)
