"""Builders of the recipe `openvino`: operators of OpenVINO's own domain in ONNX's.

What they compute is told by OpenVINO's operation specifications.
"""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.openvino.layers import group_norm, normalize, swish
from surgeon.builders.openvino.quantized import constant, pair, steps

TABLE: Mapping[str, Callable[..., Any]] = {
    "openvino_group_norm": group_norm,
    "openvino_normalize": normalize,
    "openvino_quantized_constant": constant,
    "openvino_quantized_pair": pair,
    "openvino_quantized_steps": steps,
    "openvino_swish": swish,
}
