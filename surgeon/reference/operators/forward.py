"""PyTorch's `*_forward` operators: a result, and what training keeps besides, which is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.operators.elements import (
    OBSERVED,
    fake_quantize,
    fake_quantize_channels,
    fake_quantize_observed,
    fake_quantize_where_enabled,
)
from surgeon.reference.operators.math_types import cut, real
from surgeon.reference.operators.precision import Array, Row


def _log_sigmoid(self: Array) -> Array:
    x, dtype = real(self)
    return cut(-np.logaddexp(0, -x), dtype)


def _with_rest(function: Callable[..., Array]) -> Callable[..., Any]:
    return lambda **arguments: (function(**arguments), None)


_RANGE = "int quant_min, int quant_max)"
_PLAIN: tuple[Row, ...] = (
    ("log_sigmoid_forward(Tensor self)", _log_sigmoid),
    (
        "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, "
        f"{_RANGE}",
        fake_quantize,
    ),
    (
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, "
        f"Tensor zero_point, Tensor fake_quant_enabled, {_RANGE}",
        fake_quantize_where_enabled,
    ),
    (
        "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, "
        f"Tensor zero_point, int axis, {_RANGE}",
        fake_quantize_channels,
    ),
    (f"_fused_moving_avg_obs_fq_helper{OBSERVED}", fake_quantize_observed),
)
TABLE: tuple[Row, ...] = tuple(
    (f"{schema} -> (Tensor, Tensor)", _with_rest(function)) for schema, function in _PLAIN
)
