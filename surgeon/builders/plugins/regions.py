"""Plugins that read regions and moved taps: RoiAlign, and convolutions that are deformed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.deformed import deform_conv2d
from surgeon.builders.aten_shape.regions import aligned_regions
from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.builders.plugins import called
from surgeon.builders.plugins.called import Called
from surgeon.builders.plugins.chosen import just_below
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_OF_THE_LARGEST = "the largest of samples: runtimes do not agree on what ONNX means by it"


def mmcv_roi_align(draft: Draft, match: Match) -> gs.Tensor:
    """`MMCVRoiAlign (x, rois)`."""
    node = match.root
    if called.said(node).get("mode", "avg") != "avg":
        raise Refused(_OF_THE_LARGEST)
    scale = float(called.said(node).get("spatial_scale", 1.0))
    c = _call(draft, node, node.inputs[0], node.inputs[1], scale)
    return aligned_regions(c, aligned=bool(called.said(node).get("aligned", 1)))


def _call(draft: Draft, node: gs.Node, x: gs.Tensor, rois: gs.Tensor, scale: float) -> Called:
    given = {
        "input": x,
        "rois": rois,
        "spatial_scale": scale,
        "pooled_height": _whole(node, "output_height"),
        "pooled_width": _whole(node, "output_width"),
        "sampling_ratio": int(called.said(node).get("sampling_ratio", 0)),
    }
    return Called(draft, node, "roi_align", given)


def _whole(node: gs.Node, name: str) -> int:
    value = called.said(node).get(name)
    if not isinstance(value, int):
        raise Refused(f"it has no `{name}`")
    return value


def caffe2_roi_align(draft: Draft, match: Match) -> gs.Tensor:
    """`caffe2.RoIAlign (x, rois)`; regions of four numbers are of the first image."""
    node = match.root
    if called.said(node).get("order", "NCHW") != "NCHW":
        raise Refused("its channels come last")
    x, rois = node.inputs[:2]
    given = {
        "input": x,
        "rois": rois,
        "spatial_scale": float(called.said(node).get("spatial_scale", 1.0)),
        "pooled_height": int(called.said(node).get("pooled_h", 1)),
        "pooled_width": int(called.said(node).get("pooled_w", 1)),
        "sampling_ratio": int(called.said(node).get("sampling_ratio", -1)),
    }
    c = Called(draft, node, "roi_align", given)
    called.of_rank(c, 2, rois)
    shape = c.shape(rois)
    if shape is None or shape[1] not in (4, 5):
        raise Refused("whether its regions name an image is not known")
    return aligned_regions(
        c, aligned=bool(called.said(node).get("aligned", 0)), first=shape[1] == 4
    )


def tensorrt_roi_align(draft: Draft, match: Match) -> gs.Tensor:
    """`ROIAlign_TRT (x, rois, images)`, which is ONNX's RoiAlign with numbers for words."""
    node = match.root
    if int(called.said(node).get("mode", 1)) != 1:
        raise Refused(_OF_THE_LARGEST)
    c = Bench(draft)
    x, rois, images = node.inputs
    attributes: dict[str, Any] = {
        "mode": "avg",
        "output_height": int(called.said(node).get("output_height", 1)),
        "output_width": int(called.said(node).get("output_width", 1)),
        "sampling_ratio": int(called.said(node).get("sampling_ratio", 0)),
        "spatial_scale": float(called.said(node).get("spatial_scale", 1.0)),
    }
    half = bool(called.said(node).get("coordinate_transformation_mode", 1))
    if c.opset >= 16:
        way = "half_pixel" if half else "output_half_pixel"
        attributes["coordinate_transformation_mode"] = way
    elif half:
        raise Refused("`RoiAlign` with aligned pixels needs opset 16")
    dtype = c.dtype(x)
    read = (c.cast(x, TYPE.FLOAT), c.cast(rois, TYPE.FLOAT), c.cast(images, TYPE.INT64))
    return c.cast(c.op("RoiAlign", *read, **attributes), dtype)


def multi_level_roi_align(draft: Draft, match: Match) -> gs.Tensor:
    """`MMCVMultiLevelRoiAlign (rois, x0, x1, ...)`: of each level all regions, and each its own."""
    node = match.root
    rois, features = node.inputs[0], node.inputs[1:]
    if float(called.said(node).get("roi_scale_factor", -1.0)) > 0:
        raise Refused("its regions are scaled: kernel and MMDetection differ in a pixel there")
    if int(called.said(node).get("pool_mode", 1)) != 1:
        raise Refused(_OF_THE_LARGEST)
    strides = np.asarray(called.said(node).get("featmap_strides", ())).reshape(-1).tolist()
    if len(strides) != len(features) or not features:
        raise Refused(f"{len(features)} levels with {len(strides)} strides")
    calls = [_call(draft, node, x, rois, 1 / s) for x, s in zip(features, strides, strict=True)]
    aligned = bool(called.said(node).get("aligned", 1))
    found = [aligned_regions(c, aligned=aligned) for c in calls]
    c, y = calls[0], found[0]
    sides = c.op("Sub", c.slice(rois, 1, 3, 5), c.slice(rois, 1, 1, 3))
    area = c.op("Mul", c.slice(sides, 1, 0, 1), c.slice(sides, 1, 1, 2))
    finest = c.number(float(called.said(node).get("finest_scale", 56)), c.dtype(rois))
    share = c.op("Div", c.op("Sqrt", area), finest)
    share = c.unsqueeze(c.op("Add", share, c.number(1e-6, c.dtype(rois))), [2, 3])
    for level, other in enumerate(found[1:], 1):
        least = c.number(just_below(math.pow(2, level)), c.dtype(rois))
        y = c.where(c.op("Greater", share, least), other, y)
    return y


def modulated_deform_conv(draft: Draft, match: Match) -> gs.Tensor:
    """`MMCVModulatedDeformConv2d (x, offset, mask, weight, bias?)`."""
    node = match.root
    x, offset, mask, weight = node.inputs[:4]
    said = called.said(node)
    return deformed(draft, node, said, x, offset, weight, bias=operand(node, 4), mask=mask)


def deform_conv(draft: Draft, match: Match) -> gs.Tensor:
    """`MMCVDeformConv2d (x, offset, weight)`."""
    node = match.root
    x, offset, weight = node.inputs[:3]
    said = called.said(node)
    return deformed(draft, node, said, x, offset, weight, bias=operand(node, 3))


def deformed(
    draft: Draft,
    node: gs.Node,
    said: Mapping[str, Any],
    x: gs.Tensor,
    offset: gs.Tensor,
    weight: gs.Tensor,
    *,
    bias: gs.Tensor | None = None,
    mask: gs.Tensor | None = None,
) -> gs.Tensor:
    """A deformable convolution, with its attributes by any of the names that plugins have."""
    sizes: dict[str, int] = {}
    for name, key, default in (
        ("stride", "stride", 1),
        ("padding", "pad", 0),
        ("dilation", "dilation", 1),
    ):
        sizes[f"{key}_h"], sizes[f"{key}_w"] = _pair(said, name, default)
    given = {
        "input": x,
        "weight": weight,
        "offset": offset,
        "mask": offset if mask is None else mask,
        "bias": bias,
        **sizes,
        "groups": _first(said, "groups", "group"),
        "offset_groups": _first(
            said, "deform_groups", "deformable_groups", "deform_group", "deformable_group"
        ),
        "use_mask": mask is not None,
    }
    return deform_conv2d(Called(draft, node, "deform_conv2d", given))


def _pair(said: Mapping[str, Any], name: str, default: int) -> tuple[int, int]:
    value = np.asarray(said.get(name, default)).reshape(-1).tolist()
    if len(value) not in (1, 2):
        raise Refused(f"its `{name}` is {value}, not two numbers")
    return int(value[0]), int(value[-1])


def _first(said: Mapping[str, Any], *names: str) -> int:
    """The attribute, which versions of the plugin call differently; 1 by default."""
    return int(next((said[name] for name in names if name in said), 1))
