"""ONNX's Resize and Upsample as operators that every runtime has, exactly.

Coordinates are those of ONNX's specification as onnxruntime computes them, in float32. Before opset
11 there was one kind of them: asymmetric, and nearest is the element before, or behind where the
axis shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import parts
from surgeon.builders.cubic import cubic_weight
from surgeon.builders.parts import Array
from surgeon.dims import Dim
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_HALF = np.float32(0.5)
_LARGEST_STRETCH = 64  # copies of an element; more is Gather's business


@dataclass(frozen=True, slots=True)
class Manner:
    """How a Resize finds its elements.

    Attributes:
        mode: nearest, linear or cubic.
        places: The coordinate transformation.
        rounding: What nearest means.
        cubic: The coefficient of the cubic kernel.
        inside: Whether weights beyond the border are left out.
    """

    mode: str
    places: str
    rounding: str
    cubic: float
    inside: bool


@dataclass(frozen=True, slots=True)
class Axis:
    """One resized axis; `scale` is as the node has it, or the quotient of the lengths."""

    index: int
    source: Dim
    target: Dim
    scale: np.float32 | None
    times: int | None  # target = times * source, for every source

    @property
    def lengths(self) -> tuple[int, int] | None:
        """Both lengths where they are numbers."""
        if isinstance(self.source, int) and isinstance(self.target, int):
            return self.source, self.target
        return None


# ------------------------------------------------------------------------------------ the node


def manner_of(node: gs.Node, opset: int) -> Manner:
    """What the attributes say, or the opset where there are none.

    Raises:
        Refused: It filters, or keeps the aspect ratio.
    """
    mode = attribute_of(node, "mode") or "nearest"
    mode = {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
    if node.op == "Upsample" or opset < 11:
        return Manner(mode, "asymmetric", "simple", 0.0, inside=False)
    if attribute_of(node, "antialias"):
        raise Refused("it filters against aliasing")
    if (attribute_of(node, "keep_aspect_ratio_policy") or "stretch") != "stretch":
        raise Refused("it keeps the aspect ratio")
    return Manner(
        mode,
        attribute_of(node, "coordinate_transformation_mode") or "half_pixel",
        attribute_of(node, "nearest_mode") or "round_prefer_floor",
        float(attribute_of(node, "cubic_coeff_a")),
        inside=bool(attribute_of(node, "exclude_outside")),
    )


def resized_axes(draft: Draft, node: gs.Node) -> list[Axis]:
    """The axes that change.

    Raises:
        Refused: The rank or what the axes become is not known.
    """
    facts = draft.facts
    shape = facts.of(node.inputs[0]).shape
    if shape is None:
        raise Refused("the rank of its input is not known")
    named = attribute_of(node, "axes") if node.op == "Resize" else None
    axes = [axis % len(shape) for axis in named] if named else list(range(len(shape)))
    scales = scales_of(draft, node)
    given: Sequence[Any] | None = scales if scales is not None else _sizes(draft, node)
    if given is None or len(given) != len(axes):
        raise Refused("neither its scales nor its sizes are known")
    if node.op == "Upsample" and min(given) < 1:
        raise Refused("a scale is below 1, which Upsample does not mean")
    found = []
    for axis, value in zip(axes, given, strict=True):
        source = shape[axis]
        made = _by_size(axis, source, value) if scales is None else _by_scale(axis, source, value)
        if made.scale != 1:  # lengths may be equal where the scale is 1.1
            found.append(made)
    if found and all(dims.equal(axis.source, axis.target) is True for axis in found):
        raise Refused("its scales change no length: onnxruntime copies, the specification moves")
    return found


def resized_axis(index: int, source: int, target: int, scale: np.float32 | None) -> Axis:
    """An axis between two numbers."""
    quotient = np.float32(target) / np.float32(source)
    return Axis(index, source, target, quotient if scale is None else scale, None)


def _by_scale(axis: int, source: Dim, value: float) -> Axis:
    scale = np.float32(value)
    times = int(scale) if scale == int(scale) else None
    if times is not None:
        return Axis(axis, source, source * times, scale, times)
    if not isinstance(source, int):
        raise Refused(f"axis {axis} is {source}, and its scale {value} is no whole number")
    return Axis(axis, source, int(np.floor(np.float32(source) * scale)), scale, None)


def _by_size(axis: int, source: Dim, target: Dim) -> Axis:
    times = dims.exact_quotient(target, source) if source != 0 else None
    whole = times if isinstance(times, int) else None
    scale = None if whole is None else np.float32(whole)
    if isinstance(source, int) and isinstance(target, int) and source:
        scale = np.float32(target) / np.float32(source)
    return Axis(axis, source, target, scale, whole)


def scales_of(draft: Draft, node: gs.Node) -> list[float] | None:
    """The scales; None where the node has sizes.

    Raises:
        Refused: They are computed.
    """
    if node.op == "Upsample" and len(node.inputs) < 2:
        listed = node.attrs.get("scales")
        return None if listed is None else [float(v) for v in listed]
    index = 1 if node.op == "Upsample" or draft.facts.opset < 11 else 2
    if len(node.inputs) <= index or node.inputs[index].is_empty():
        return None
    array = draft.facts.array(node.inputs[index])
    if array is None:
        raise Refused("its scales are computed at run time")
    return [float(v) for v in array.reshape(-1)] or None


def _sizes(draft: Draft, node: gs.Node) -> list[Dim] | None:
    if len(node.inputs) < 4 or node.inputs[3].is_empty():
        return None
    known = parts.dims_in(draft, node.inputs[3])
    if known is None:
        raise Refused("its sizes are computed at run time, and nothing is known of them")
    return known


# ------------------------------------------------------------------------------------- nearest


def nearest_as_copies(draft: Draft, match: Match) -> gs.Tensor:
    """Nearest neighbours: elements repeated a whole number of times, or gathered by an index."""
    node = match.root
    manner = manner_of(node, draft.facts.opset)
    if manner.mode != "nearest":
        raise Refused(f"its mode is `{manner.mode}`, not `nearest`")
    x: gs.Tensor = node.inputs[0]
    axes = resized_axes(draft, node)
    repeated = [a for a in axes if _repeats(a, manner)]
    if repeated:
        x = _repeat(draft, x, repeated)
    for axis in axes:
        if axis in repeated:
            continue
        if axis.lengths is None:
            raise Refused(f"axis {axis.index} is {axis.source} and becomes {axis.target}")
        index = draft.constant(nearest_index(axis, manner), "index")
        x = draft.op("Gather", x, index, axis=axis.index)
    return x


def _repeats(axis: Axis, manner: Manner) -> bool:
    """Whether element i becomes elements i * times to (i + 1) * times - 1, at every length.

    With half pixels the place (i + 0.5) / times - 0.5 is never halfway, so both roundings agree.
    """
    if axis.times is None or not 1 < axis.times <= _LARGEST_STRETCH:
        return False
    if manner.places == "asymmetric":
        return manner.rounding in ("floor", "simple")
    halves = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
    return manner.places in halves and manner.rounding.startswith("round_prefer")


def _repeat(draft: Draft, x: gs.Tensor, axes: list[Axis]) -> gs.Tensor:
    """Unsqueeze, Expand by a constant, Reshape back."""
    rank = parts.rank_of(draft, x)
    times = {axis.index: axis.times or 1 for axis in axes}
    lengths = parts.lengths_of(draft, x, rank)
    spread: list[int] = []
    for index in range(rank):
        spread += [1, times[index]] if index in times else [1]
    at = [i for i, n in enumerate(spread) if n != 1]
    wide = draft.op("Expand", parts.unsqueeze(draft, x, *at), draft.constant(spread, "times"))
    wanted: list[parts.Length | int] = []
    for index, length in enumerate(lengths):
        if index in times:
            wanted.append(_multiple(draft, length, times[index]))
        else:
            wanted.append(0 if index < min(times) else length)
    return parts.reshape(draft, wide, wanted)


def _multiple(draft: Draft, length: parts.Length, times: int) -> parts.Length:
    if length.static is not None:
        return parts.constant_length(draft, length.static * times)
    dim = None if length.dim is None else length.dim * times
    factor = draft.constant([times], "times")
    return parts.Length(dim, lambda: draft.op("Mul", length.make(), factor))


def nearest_index(axis: Axis, manner: Manner) -> Array:
    """The source of every element."""
    assert axis.lengths is not None
    assert axis.scale is not None
    length, shrinks = axis.lengths[0], axis.scale < 1
    place = _places(axis, manner)
    rounded: dict[str, Callable[[], Array]] = {
        "floor": lambda: np.floor(place),
        "ceil": lambda: np.ceil(place),
        "simple": lambda: np.ceil(place) if shrinks else np.trunc(place),
        "round_prefer_floor": lambda: np.ceil(place - _HALF),
        "round_prefer_ceil": lambda: np.floor(place + _HALF),
    }
    if manner.rounding not in rounded:
        raise Refused(f"its nearest_mode `{manner.rounding}` is not known")
    index: Array = np.clip(rounded[manner.rounding](), 0, length - 1).astype(np.int64)
    return index


def _places(axis: Axis, manner: Manner) -> Array:
    """Where every element comes from, in float32 as onnxruntime computes it."""
    assert axis.lengths is not None
    assert axis.scale is not None
    (length, out), scale = axis.lengths, axis.scale
    at = np.arange(out, dtype=np.float32)
    if manner.places == "asymmetric":
        return at / scale
    if manner.places == "align_corners":
        return at * np.float32(length - 1) / np.float32(out - 1) if out > 1 else at * 0
    if manner.places == "half_pixel" or (manner.places == "pytorch_half_pixel" and out > 1):
        return (at + _HALF) / scale - _HALF
    if manner.places == "pytorch_half_pixel":
        return at * 0
    if manner.places == "half_pixel_symmetric":  # centred where the length was rounded down
        adjusted = np.float32(out) / (scale * np.float32(length))
        offset = np.float32(length) / np.float32(2) * (np.float32(1) - adjusted)
        return offset + (at + _HALF) / scale - _HALF
    raise Refused(f"its coordinates are `{manner.places}`")


# ------------------------------------------------------------------------------- interpolation


def interpolation_as_products(draft: Draft, match: Match) -> gs.Tensor:
    """Linear and cubic interpolation of static lengths: a product along each axis."""
    node = match.root
    manner = manner_of(node, draft.facts.opset)
    if manner.mode not in ("linear", "cubic"):
        raise Refused(f"its mode is `{manner.mode}`, not `linear` or `cubic`")
    x: gs.Tensor = node.inputs[0]
    rank, dtype = parts.rank_of(draft, x), parts.numpy_dtype(draft, x)
    if not parts.is_float(dtype):
        raise Refused(f"{dtype.name} is rounded after interpolation, and products are not")
    for axis in resized_axes(draft, node):
        if axis.lengths is None:
            text = f"axis {axis.index} is {axis.source} and becomes {axis.target}"
            raise Refused(f"{text}: the matrix needs both; see `--shape`")
        matrix = parts.constant_matrix(draft, interpolation_matrix(axis, manner), dtype)
        x = parts.multiply_axis(draft, x, axis.index, rank, matrix)
    return x


def interpolation_matrix(axis: Axis, manner: Manner) -> Array:
    """The weights, [out, in]."""
    assert axis.lengths is not None
    length, out = axis.lengths
    place = _places(axis, manner).astype(np.float64)
    matrix = np.zeros((out, length))
    rows = np.arange(out)
    if manner.mode == "linear":
        place = np.clip(place, 0, length - 1)
    low = np.floor(place).astype(np.int64)
    for tap in (0, 1) if manner.mode == "linear" else range(-1, 3):
        distance = np.abs(place - low - tap)
        linear = manner.mode == "linear"
        weight = 1 - distance if linear else cubic_weight(distance, manner.cubic)
        if manner.inside and manner.mode == "cubic":
            weight = np.where((low + tap >= 0) & (low + tap < length), weight, 0.0)
        np.add.at(matrix, (rows, np.clip(low + tap, 0, length - 1)), weight)
    if manner.inside and manner.mode == "cubic":
        matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix


# --------------------------------------------------------------------------------------- sizes


def sizes_as_scales(draft: Draft, match: Match, constant: bool = False) -> gs.Tensor:
    """Sizes that are exact multiples of the input's become constant scales.

    Args:
        draft: Where the nodes go.
        match: The Resize.
        constant: Whether sizes that are constant are meant, and not those that are computed.
    """
    node, facts = match.root, draft.facts
    if facts.opset < 11:
        raise Refused("`sizes` are an input from opset 11 on")
    sizes, shape = parts.dims_in(draft, node.inputs[3]), facts.of(node.inputs[0]).shape
    if sizes is None or shape is None:
        raise Refused("its sizes are computed at run time, and nothing is known of them")
    if not constant and all(isinstance(n, int) for n in sizes):
        raise Refused("its sizes are constant")
    if (attribute_of(node, "keep_aspect_ratio_policy") or "stretch") != "stretch":
        raise Refused("it keeps the aspect ratio")
    if attribute_of(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
        raise Refused("its scales are those of a region")
    named = attribute_of(node, "axes")
    axes = [axis % len(shape) for axis in named] if named else list(range(len(shape)))
    factors = [
        _exact_scale(axis, shape[axis], size, fractions=constant)
        for axis, size in zip(axes, sizes, strict=True)
    ]
    scales = draft.constant(np.array(factors, np.float32), "scales")
    roi = node.inputs[1]
    region = None if roi.is_empty() else roi
    return draft.op("Resize", node.inputs[0], region, scales, **node.attrs)


def _exact_scale(axis: int, source: Dim, size: Dim, *, fractions: bool) -> float:
    """What a length is multiplied by, exactly: another scale might floor to another length."""
    times = dims.exact_quotient(size, source)
    if isinstance(times, int) and times >= 1:
        return times
    if fractions and isinstance(size, int) and isinstance(source, int) and size and source:
        scale = float(np.float32(size / source))
        if Fraction(scale) == Fraction(size, source):
            return scale
        raise Refused(f"axis {axis} of {source} becomes {size}, and no float32 is their quotient")
    raise Refused(f"axis {axis} of {source} becomes {size}, no whole multiple of it")
