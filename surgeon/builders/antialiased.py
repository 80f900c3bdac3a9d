"""Resize that filters against aliasing, which it does from opset 18 on, as products."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.aten_nn.interpolation import CUBIC_ANTIALIAS, Axis, Manner, matrix_of
from surgeon.builders.resizing import resized_axes, scales_of
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def antialiased_as_products(draft: Draft, match: Match) -> gs.Tensor:
    """A Resize whose filter is as wide as a step, cut off at the border: a matrix for each axis."""
    node = match.root
    x, mode = node.inputs[0], attribute_of(node, "mode")
    dtype = parts.numpy_dtype(draft, x)
    if mode not in ("linear", "cubic") or not parts.is_float(dtype):
        raise Refused("it filters linear and cubic interpolation of floats alone")
    if not attribute_of(node, "exclude_outside"):
        raise Refused("its filter reaches beyond the border, which is not written here")
    if attribute_of(node, "coordinate_transformation_mode") != "half_pixel":
        raise Refused("its coordinates are not `half_pixel`")
    if mode == "cubic" and float(attribute_of(node, "cubic_coeff_a")) != CUBIC_ANTIALIAS:
        raise Refused(f"its cubic kernel is not that of {CUBIC_ANTIALIAS}")
    if (attribute_of(node, "keep_aspect_ratio_policy") or "stretch") != "stretch":
        raise Refused("it keeps the aspect ratio")
    scaled = scales_of(draft, node) is not None
    rank = parts.rank_of(draft, x)
    lengths, manner = parts.lengths_of(draft, x, rank), Manner(mode, corners=False, antialias=True)
    for axis in resized_axes(draft, node):
        if not isinstance(axis.target, int) or axis.target < 1:
            raise Refused("what it resizes to is known at run time only")
        scale = float(axis.scale) if scaled and axis.scale is not None else None
        target = parts.constant_length(draft, axis.target)
        matrix = matrix_of(draft, Axis(lengths[axis.index], target, scale), manner, dtype)
        x = parts.multiply_axis(draft, x, axis.index, rank, matrix)
    return x
