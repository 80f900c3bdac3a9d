"""Builders of the recipe `aten-nn`: PyTorch's layers that fell back, as standard operators."""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.aten_nn.fold import col2im, im2col
from surgeon.builders.aten_nn.norms import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    native_layer_norm,
    rms_norm,
    weight_norm,
)
from surgeon.builders.aten_nn.pools import (
    adaptive_avg_pool_computed,
    adaptive_max_pool_computed,
    adaptive_max_pool_indices,
    avg_pool,
    max_pool,
)
from surgeon.builders.aten_nn.resample import upsample

TABLE: Mapping[str, Callable[..., Any]] = {
    "adaptive_avg_pool_computed": adaptive_avg_pool_computed,
    "adaptive_max_pool_computed": adaptive_max_pool_computed,
    "adaptive_max_pool_indices": adaptive_max_pool_indices,
    "avg_pool": avg_pool,
    "batch_norm": batch_norm,
    "col2im": col2im,
    "group_norm": group_norm,
    "im2col": im2col,
    "instance_norm": instance_norm,
    "layer_norm": layer_norm,
    "max_pool": max_pool,
    "native_layer_norm": native_layer_norm,
    "rms_norm": rms_norm,
    "upsample": upsample,
    "weight_norm": weight_norm,
}
