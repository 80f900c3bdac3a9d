"""Gradients of averages, pads and resampling: products with their matrices turned, by axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.aten_nn.interpolation import Axis, fixed_matrix
from surgeon.builders.aten_nn.resample import manner_of, scales_of
from surgeon.builders.parts import Array
from surgeon.builders.windows import adaptive_bins, digit_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

# A matrix [out, in] of what an operator does along an axis, by the axis and its lengths.
_Forward = Callable[[int, int, int], Array]


def turned(draft: Draft, match: Match) -> Any:
    """The gradient of what is linear along each of its last axes, whose lengths are fixed."""
    args = bind(match.root, draft.facts)
    name = match.root.op.lstrip("_")
    spatial = 2 if name.endswith("_aa_backward") else digit_of(name)
    gradient = args.tensor("grad_output")
    shape = draft.facts.of(gradient).shape
    if shape is None:
        raise Refused(f"the rank of `{gradient.name}` is not known")
    rank = len(shape)
    if args.has("self"):
        lengths = list(draft.facts.of(args.tensor("self")).shape or (None,) * rank)[-spatial:]
    else:
        given = parts.lengths_given(draft, args, "input_size", spatial + 2)
        lengths = [each.dim for each in given][-spatial:]
    forward = _forward(draft, args, name, spatial)
    dtype = parts.numpy_dtype(draft, gradient)
    made = gradient
    for axis, (source, target) in enumerate(zip(lengths, shape[-spatial:], strict=True)):
        if not isinstance(source, int) or not isinstance(target, int):
            raise Refused("a length is known at run time only; fix it with `--shape`")
        values = np.ascontiguousarray(forward(axis, source, target).T)
        matrix = parts.constant_matrix(draft, values, dtype)
        made = parts.multiply_axis(draft, made, rank - spatial + axis, rank, matrix)
    return made


def _forward(draft: Draft, args: Arguments, name: str, spatial: int) -> _Forward:
    if name.startswith("adaptive_avg_pool"):
        return lambda _axis, source, target: _shares(adaptive_bins(source, target), source)
    if name.startswith("avg_pool"):
        return _averages(args, spatial)
    if "_pad" in name:
        return _pads(args, mirrored=name.startswith("reflection"))
    return _resampling(draft, args, name, spatial)


def _shares(bins: list[tuple[int, int]], length: int) -> Array:
    """Means of ranges."""
    matrix = np.zeros((len(bins), length))
    for row, (start, end) in zip(matrix, bins, strict=True):
        row[start:end] = 1 / (end - start)
    return matrix


def _averages(args: Arguments, spatial: int) -> _Forward:
    """`avg_pool2d` and `avg_pool3d` (ATen/native/AvgPool2d.cpp); each axis has its divisor."""
    kernel = parts.per_axis(parts.numbers(args, "kernel_size"), spatial, "kernel_size")
    given = parts.numbers(args, "stride")
    stride = kernel if not np.size(given) else parts.per_axis(given, spatial, "stride")
    padding = parts.per_axis(parts.numbers(args, "padding"), spatial, "padding")
    whole, divisor = bool(args.value("count_include_pad")), args.value("divisor_override")

    def matrix(axis: int, source: int, target: int) -> Array:
        values = np.zeros((target, source))
        for place, row in enumerate(values):
            first = place * stride[axis] - padding[axis]
            last = min(first + kernel[axis], source + padding[axis])
            inside = slice(max(first, 0), min(last, source))
            count = last - first if whole else inside.stop - inside.start
            if divisor is not None:
                count = int(divisor) if axis == 0 else 1
            row[inside] = 1 / count
        return values

    return matrix


def _pads(args: Arguments, *, mirrored: bool) -> _Forward:
    """Each element of the result is one of the input; `padding` begins with the last axis."""
    padding = [int(n) for n in np.asarray(parts.numbers(args, "padding")).reshape(-1)]

    def matrix(axis: int, source: int, target: int) -> Array:
        place = np.arange(target) - padding[len(padding) - 2 - 2 * axis]
        if mirrored:
            place = np.abs(place)
            place = np.where(place >= source, 2 * (source - 1) - place, place)
        values = np.zeros((target, source))
        values[np.arange(target), np.clip(place, 0, source - 1)] = 1
        return values

    return matrix


def _resampling(draft: Draft, args: Arguments, name: str, spatial: int) -> _Forward:
    manner = manner_of(args, name.removesuffix("_backward"))
    scales = scales_of(args, spatial)

    def matrix(axis: int, source: int, target: int) -> Array:
        before, behind = (parts.constant_length(draft, n) for n in (source, target))
        return fixed_matrix(Axis(before, behind, scales[axis]), manner)

    return matrix
