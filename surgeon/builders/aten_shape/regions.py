"""torchvision's operators on regions of images: what overlaps, lies inside, or is shifted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.builders.aten_shape.deformed import deform_conv2d
from surgeon.facts.kinds import HALVES
from surgeon.rewrite import Refused

_MOST = (1 << 31) - 1  # boxes


def _nms(c: Call) -> gs.Tensor:
    """The boxes that no better one overlaps too much, the best first."""
    boxes, scores = c.tensor("dets"), c.tensor("scores")
    for x in (boxes, scores):
        if c.dtype(x) == TYPE.DOUBLE:
            raise Refused("ONNX compares boxes in single precision alone")
    boxes = c.unsqueeze(c.cast(boxes, TYPE.FLOAT), [0])
    scores = c.unsqueeze(c.cast(scores, TYPE.FLOAT), [0, 1])
    bound = c.draft.constant(np.asarray([c.value("iou_threshold")], np.float32), "threshold")
    found = c.op("NonMaxSuppression", boxes, scores, c.ints([_MOST], "most"), bound)
    return c.op("Gather", found, c.number(2, TYPE.INT64), axis=1)


def _roi_align(c: Call) -> gs.Tensor:
    return aligned_regions(c, aligned=bool(c.value("aligned")))


def aligned_regions(c: Call, *, aligned: bool, first: bool = False) -> gs.Tensor:
    """The mean of samples in each bin of each region.

    Args:
        c: The call.
        aligned: Whether pixels are where their middles are, and regions as small as they say.
        first: Whether all regions are of the first image, and do not say so.
    """
    x, rois = c.tensor("input"), c.tensor("rois")
    dtype = c.dtype(x)
    kind = TYPE.FLOAT if dtype in HALVES else dtype
    rois = c.cast(rois, kind)
    if first:
        image = c.filled([c.size(rois, 0)], 0, TYPE.INT64)
    else:
        image = c.cast(c.op("Gather", rois, c.number(0, TYPE.INT64), axis=1), TYPE.INT64)
        rois = c.slice(rois, 1, 1, 5)
    attributes: dict[str, Any] = {
        "mode": "avg",
        "output_height": c.integer("pooled_height"),
        "output_width": c.integer("pooled_width"),
        "sampling_ratio": max(c.integer("sampling_ratio"), 0),
        "spatial_scale": float(c.value("spatial_scale")),
    }
    if c.opset >= 16:
        way = "half_pixel" if aligned else "output_half_pixel"
        attributes["coordinate_transformation_mode"] = way
    elif aligned:
        raise Refused("`RoiAlign` with aligned pixels needs opset 16")
    y = c.op("RoiAlign", c.cast(x, kind), rois, image, **attributes)
    return c.cast(y, dtype)


def _roi_pool(c: Call) -> gs.Tensor:
    """The largest of the whole pixels that each bin covers."""
    if any(output.outputs for output in c.node.outputs[1:]):
        raise Refused("ONNX gives no places of the largest")
    x = c.tensor("input")
    dtype = c.dtype(x)
    kind = TYPE.FLOAT if dtype in HALVES else dtype
    y = c.op(
        "MaxRoiPool",
        c.cast(x, kind),
        c.cast(c.tensor("rois"), kind),
        pooled_shape=[c.integer("pooled_height"), c.integer("pooled_width")],
        spatial_scale=float(c.value("spatial_scale")),
    )
    return c.cast(y, dtype)


def _ps_roi_align(c: Call) -> gs.Tensor:
    """Of every channel all bins are made, and of those the one that is the channel's own."""
    if any(output.outputs for output in c.node.outputs[1:]):
        raise Refused("ONNX has no use for the channels that bins are read from")
    height, width = c.integer("pooled_height"), c.integer("pooled_width")
    bins, shape = height * width, c.shape(c.tensor("input"))
    channels = None if shape is None else shape[1]
    if not isinstance(channels, int):
        raise Refused("the number of its channels is known at run time only")
    found = aligned_regions(c, aligned=True)
    own = c.op("Reshape", found, c.ints([0, channels // bins, bins * bins], "pairs"))
    own = c.op("Gather", own, c.ints_of(np.arange(bins) * (bins + 1), "own"), axis=2)
    return c.op("Reshape", own, c.ints([0, channels // bins, height, width], "bins"))


def _without_operator(c: Call) -> gs.Tensor:
    raise Refused(
        f"ONNX has no `{c.node.op}`: its bins have borders of whole pixels and channels of their "
        "own; `ps_roi_align` does nearly the same, and has a form"
    )


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "nms": _nms,
    "roi_align": _roi_align,
    "deform_conv2d": deform_conv2d,
    "roi_pool": _roi_pool,
    "ps_roi_align": _ps_roi_align,
    "ps_roi_pool": _without_operator,
}
