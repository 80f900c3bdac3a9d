"""Builders of the recipe `qonnx`: the quantisers of QONNX, Brevitas and FINN in ONNX's operators.

What they compute is told by QONNX's documents, `docs/qonnx-custom-ops`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.qonnx.minifloat import float_pair, float_steps
from surgeon.builders.qonnx.pairs import constant, pair
from surgeon.builders.qonnx.steps import bipolar, steps, trunc

TABLE: Mapping[str, Callable[..., Any]] = {
    "qonnx_bipolar": bipolar,
    "qonnx_constant": constant,
    "qonnx_float_pair": float_pair,
    "qonnx_float_steps": float_steps,
    "qonnx_pair": pair,
    "qonnx_steps": steps,
    "qonnx_trunc": trunc,
}
