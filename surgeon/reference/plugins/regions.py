"""Plugins that read regions and moved taps; torchvision documents the same operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgeon.reference.errors import NoWitness
from surgeon.reference.operators.regions import deform_conv2d, roi_align

Array = NDArray[Any]
Said = Mapping[str, Any]


def mmcv_roi_align(values: list[Any], said: Said) -> Array:
    """mmcv's docs/en/deployment/mmcv_ops_definition.md."""
    mode = said.get("mode", "avg")
    if mode != "avg":
        raise NoWitness("MMCVRoiAlign", where="", why=f"its mode is `{mode}`")
    sizes = said["output_height"], said["output_width"]
    scale, ratio = said.get("spatial_scale", 1.0), said.get("sampling_ratio", 0)
    aligned = bool(said.get("aligned", 1))
    return roi_align(values[0], values[1], scale, *sizes, ratio, aligned)


def multi_level_roi_align(values: list[Any], said: Said) -> Array:
    """`MMCVMultiLevelRoiAlign` of mmdeploy's docs/en/06-custom-ops/tensorrt.md.

    The level is that of MMDetection's SingleRoIExtractor: floor(log2(side / finest_scale + 1e-6)).
    """
    rois, features = np.asarray(values[0], np.float32), values[1:]
    if said.get("roi_scale_factor", -1.0) > 0 or said.get("pool_mode", 1) != 1:
        raise NoWitness("MMCVMultiLevelRoiAlign", where="", why="scaled regions, or the largest")
    aligned = bool(said.get("aligned", 1))
    sizes = said["output_height"], said["output_width"]
    found = np.zeros((len(rois), features[0].shape[1], *sizes), features[0].dtype)
    for n, roi in enumerate(rois):
        side = np.sqrt((roi[3] - roi[1]) * (roi[4] - roi[2]), dtype=np.float32)
        share = side / np.float32(said.get("finest_scale", 56)) + np.float32(1e-6)
        level = math.floor(np.log2(share)) if share > 0 else 0
        level = min(max(level, 0), len(features) - 1)
        scale = 1 / np.atleast_1d(said["featmap_strides"])[level]
        ratio = said.get("sampling_ratio", 0)
        found[n] = roi_align(features[level], rois[n : n + 1], scale, *sizes, ratio, aligned)[0]
    return found


def tensorrt_roi_align(values: list[Any], said: Said) -> Array:
    """TensorRT's plugin/roiAlignPlugin/README.md."""
    if said.get("mode", 1) != 1:
        raise NoWitness("ROIAlign_TRT", where="", why="the largest of samples")
    x, corners, image = values
    rois = np.concatenate([image.astype(corners.dtype).reshape(-1, 1), corners], 1)
    sizes = said.get("output_height", 1), said.get("output_width", 1)
    scale, ratio = said.get("spatial_scale", 1.0), said.get("sampling_ratio", 0)
    aligned = bool(said.get("coordinate_transformation_mode", 1))
    return roi_align(x, rois, scale, *sizes, ratio, aligned)


def caffe2_roi_align(values: list[Any], said: Said) -> Array:
    """Caffe2's RoIAlign; regions of four numbers are of the first image."""
    x, rois = values
    if said.get("order", "NCHW") != "NCHW":
        raise NoWitness("RoIAlign", where="", why="channels come last")
    if rois.shape[1] == 4:
        rois = np.concatenate([np.zeros((len(rois), 1), rois.dtype), rois], 1)
    sizes = said.get("pooled_h", 1), said.get("pooled_w", 1)
    scale, ratio = said.get("spatial_scale", 1.0), said.get("sampling_ratio", -1)
    aligned = bool(said.get("aligned", 0))
    return roi_align(x, rois, scale, *sizes, ratio, aligned)


def _pair(said: Said, name: str, default: int) -> tuple[int, int]:
    value = said.get(name, default)
    first, second = (
        value
        if isinstance(value, (list, tuple)) and len(value) == 2
        else [value[0] if isinstance(value, (list, tuple)) else value] * 2
    )
    return int(first), int(second)


def _deformed(values: list[Any], mask: Any, weight: Array, bias: Any, said: Said) -> Array:
    x, offset = values[:2]
    sizes: dict[str, int] = {}
    for name, default in (("stride", 1), ("padding", 0), ("dilation", 1)):
        key = "pad" if name == "padding" else name
        sizes[f"{key}_h"], sizes[f"{key}_w"] = _pair(said, name, default)
    groups = next((said[n] for n in ("groups", "group") if n in said), 1)
    names = ("deform_groups", "deformable_groups", "deform_group", "deformable_group")
    parts = next((said[n] for n in names if n in said), 1)
    bias = np.zeros(len(weight), x.dtype) if bias is None else bias
    sizes |= {"groups": groups, "offset_groups": parts, "use_mask": mask is not None}
    return deform_conv2d(x, weight, offset, offset if mask is None else mask, bias, **sizes)


def modulated_deform_conv(values: list[Any], said: Said) -> Array:
    """mmcv's `MMCVModulatedDeformConv2d (x, offset, mask, weight, bias?)`."""
    bias = values[4] if len(values) > 4 else None
    return _deformed(values, values[2], values[3], bias, said)


def deform_conv(values: list[Any], said: Said) -> Array:
    """mmcv's `MMCVDeformConv2d (x, offset, weight)`."""
    return _deformed(values, None, values[2], values[3] if len(values) > 3 else None, said)


TABLE: Mapping[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "MMCVRoiAlign": mmcv_roi_align,
    "MMCVRoIAlign": mmcv_roi_align,
    "MMCVMultiLevelRoiAlign": multi_level_roi_align,
    "ROIAlign_TRT": tensorrt_roi_align,
    "RoIAlign": caffe2_roi_align,
    "MMCVModulatedDeformConv2d": modulated_deform_conv,
    "ModulatedDeformConv2d": modulated_deform_conv,
    "MMCVDeformConv2d": deform_conv,
    "DeformConv2d": deform_conv,
}
