"""Builders of the recipes `tensorrt-plugins`, `openmmlab` and `caffe2`."""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.plugins.detections import (
    batched_nms,
    efficient_nms,
    mmcv_nms,
    trt_batched_nms,
)

TABLE: Mapping[str, Callable[..., Any]] = {
    "plugin_batched_nms": batched_nms,
    "plugin_efficient_nms": efficient_nms,
    "plugin_mmcv_nms": mmcv_nms,
    "plugin_trt_batched_nms": trt_batched_nms,
}
