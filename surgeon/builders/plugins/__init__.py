"""Builders of the recipes `tensorrt-plugins`, `openmmlab` and `caffe2`.

What plugins compute is told by the documentation beside them; the witness of each is written from
the same, by other steps.
"""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.plugins import bev
from surgeon.builders.plugins.detections import (
    batched_nms,
    efficient_nms,
    mmcv_nms,
    trt_batched_nms,
)
from surgeon.builders.plugins.layers import (
    attention,
    corner_pool,
    grid_priors,
    group_norm,
    instance_norm,
    resized,
    running,
)
from surgeon.builders.plugins.reading import deformable_attention, gather_topk, grid_sampler
from surgeon.builders.plugins.refused import refused
from surgeon.builders.plugins.regions import (
    caffe2_roi_align,
    deform_conv,
    mmcv_roi_align,
    modulated_deform_conv,
    multi_level_roi_align,
    tensorrt_roi_align,
)
from surgeon.builders.plugins.rotated import nms_rotated, roi_align_rotated

TABLE: Mapping[str, Callable[..., Any]] = {
    "plugin_attention": attention,
    "plugin_batched_nms": batched_nms,
    "plugin_bev_grid_sampler": bev.grid_sampler,
    "plugin_bev_inverse": bev.inverse,
    "plugin_bev_rotate": bev.rotate,
    "plugin_caffe2_roi_align": caffe2_roi_align,
    "plugin_corner_pool": corner_pool,
    "plugin_deform_conv": deform_conv,
    "plugin_deformable_attention": deformable_attention,
    "plugin_efficient_nms": efficient_nms,
    "plugin_gather_topk": gather_topk,
    "plugin_grid_priors": grid_priors,
    "plugin_grid_sampler": grid_sampler,
    "plugin_group_norm": group_norm,
    "plugin_instance_norm": instance_norm,
    "plugin_mmcv_nms": mmcv_nms,
    "plugin_mmcv_roi_align": mmcv_roi_align,
    "plugin_modulated_deform_conv": modulated_deform_conv,
    "plugin_multi_level_roi_align": multi_level_roi_align,
    "plugin_nms_rotated": nms_rotated,
    "plugin_refused": refused,
    "plugin_resized": resized,
    "plugin_roi_align_rotated": roi_align_rotated,
    "plugin_running": running,
    "plugin_tensorrt_roi_align": tensorrt_roi_align,
    "plugin_trt_batched_nms": trt_batched_nms,
}
