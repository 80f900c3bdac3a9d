"""torchvision's operators on regions of images: what overlaps, lies inside, or is shifted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call
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
    x, rois = c.tensor("input"), c.tensor("rois")
    dtype = c.dtype(x)
    kind = TYPE.FLOAT if dtype in (TYPE.FLOAT16, TYPE.BFLOAT16) else dtype
    rois = c.cast(rois, kind)
    image = c.cast(c.op("Gather", rois, c.number(0, TYPE.INT64), axis=1), TYPE.INT64)
    attributes: dict[str, Any] = {
        "mode": "avg",
        "output_height": c.integer("pooled_height"),
        "output_width": c.integer("pooled_width"),
        "sampling_ratio": max(c.integer("sampling_ratio"), 0),
        "spatial_scale": float(c.value("spatial_scale")),
    }
    aligned = bool(c.value("aligned"))
    if c.opset >= 16:
        way = "half_pixel" if aligned else "output_half_pixel"
        attributes["coordinate_transformation_mode"] = way
    elif aligned:
        raise Refused("`RoiAlign` with aligned pixels needs opset 16")
    y = c.op("RoiAlign", c.cast(x, kind), c.slice(rois, 1, 1, 5), image, **attributes)
    return c.cast(y, dtype)


def _deform_conv(c: Call) -> gs.Tensor:
    x, weight, offset = (c.tensor(n) for n in ("input", "weight", "offset"))
    shape = c.shape(weight)
    kernel = list(shape[2:]) if shape is not None else [None]
    if len(kernel) != 2 or not all(isinstance(n, int) for n in kernel):
        raise Refused("the size of its kernel is known at run time only")
    mask = c.tensor("mask") if bool(c.value("use_mask")) else None
    pads = [c.integer(n) for n in ("pad_h", "pad_w")]
    y: gs.Tensor = c.op(
        "DeformConv",
        x,
        weight,
        offset,
        c.tensor("bias"),
        *([] if mask is None else [mask]),
        kernel_shape=kernel,
        strides=[c.integer(n) for n in ("stride_h", "stride_w")],
        pads=pads * 2,
        dilations=[c.integer(n) for n in ("dilation_h", "dilation_w")],
        group=c.integer("groups"),
        offset_group=c.integer("offset_groups"),
    )
    return y


def _without_operator(c: Call) -> gs.Tensor:
    raise Refused(
        f"ONNX has no `{c.node.op}`: its regions have borders of whole pixels or channels of their "
        "own; `roi_align` does nearly the same, and ONNX has it"
    )


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "nms": _nms,
    "roi_align": _roi_align,
    "deform_conv2d": _deform_conv,
    **dict.fromkeys(("roi_pool", "ps_roi_align", "ps_roi_pool"), _without_operator),
}
