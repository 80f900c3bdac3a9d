"""Products, convolutions and GELUs, with what onnxruntime's optimizer put into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import operand
from surgeon.builders.contrib.settings import settings
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

# The functions that may stand behind a Conv or Gemm, and their numbers in the order of
# `activation_params`. Source: onnxruntime's `fused_activation.cc` and `activations.h`.
_ACTIVATIONS: Mapping[str, Sequence[str]] = {
    "Celu": ("alpha",),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}


_TURNED = {"transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0, "alpha": 1.0}


def fused_conv(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.FusedConv (x, w, b, z)`: activation (Conv (x, w, b) + z)."""
    node = match.root
    attributes = {k: v for k, v in node.attrs.items() if not k.startswith("activation")}
    y = draft.op("Conv", *(operand(node, index) for index in range(3)), **attributes)
    return behind_conv(draft, node, y, operand(node, 3))


def behind_conv(draft: Draft, node: gs.Node, y: gs.Tensor, z: gs.Tensor | None) -> gs.Tensor:
    """activation (y + z) of a convolution into which both are fused."""
    if z is not None:
        y = draft.op("Add", y, z)
    name = node.attrs.get("activation", "")
    numbers = [float(v) for v in node.attrs.get("activation_params", ())]
    if name == "Clip":
        if len(numbers) != 2:
            raise Refused(f"its Clip has {len(numbers)} bounds")
        dtype = parts.numpy_dtype(draft, y)
        low, high = (draft.constant(np.array(v, dtype), "bound") for v in numbers)
        clipped: gs.Tensor = draft.op("Clip", y, low, high)
        return clipped
    return _activated(draft, y, name, dict(zip(_ACTIVATIONS.get(name, ()), numbers, strict=False)))


def fused_gemm(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.FusedGemm (a, b, c)`: activation (Gemm (a, b, c))."""
    node = match.root
    attributes = {k: v for k, v in node.attrs.items() if not k.startswith("activation")}
    y = draft.op("Gemm", *(operand(node, index) for index in range(3)), **attributes)
    name = node.attrs.get("activation", "")
    given = {key: node.attrs.get(f"activation_{key}") for key in _ACTIVATIONS.get(name, ())}
    return _activated(draft, y, name, {k: v for k, v in given.items() if v is not None})


def _activated(draft: Draft, y: gs.Tensor, name: str, numbers: Mapping[str, Any]) -> gs.Tensor:
    if not name:
        return y
    if name not in _ACTIVATIONS:
        raise Refused(f"no operator is known for its activation {name!r}")
    made: gs.Tensor = draft.op(name, y, **numbers)
    return made


def fused_matmul(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.FusedMatMul (a, b)`: alpha times a product of what may be transposed."""
    return _turned_product(draft, match.root, settings(match.root, 2, 2, _TURNED))


def fused_matmul_activation(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.FusedMatMulActivation (a, b)`: activation (FusedMatMul (a, b))."""
    node = match.root
    numbers = {f"activation_{key}": None for key in ("alpha", "beta", "gamma", "axis")}
    given = settings(node, 2, 2, {**_TURNED, "activation": "", **numbers})
    y, name = _turned_product(draft, node, given), given["activation"]
    if name == "Softmax":
        axis = given["activation_axis"]
        made: gs.Tensor = draft.op("Softmax", y, axis=-1 if axis is None else int(axis))
        return made
    known = {key: given[f"activation_{key}"] for key in _ACTIVATIONS.get(name, ())}
    return _activated(draft, y, name, {k: v for k, v in known.items() if v is not None})


def _turned_product(draft: Draft, node: gs.Node, given: Mapping[str, Any]) -> gs.Tensor:
    sides = []
    for x, side in zip(node.inputs[:2], "AB", strict=True):
        rank = parts.rank_of(draft, x)
        order = list(range(rank))
        if rank > 1 and given[f"transBatch{side}"]:
            order = [*order[1:-1], 0, order[-1]]  # the rows stand in front of the batch
        if rank > 1 and given[f"trans{side}"]:
            order[-2:] = order[:-3:-1]
        sides.append(x if order == sorted(order) else draft.op("Transpose", x, perm=order))
    y: gs.Tensor = draft.op("MatMul", *sides)
    alpha = float(given["alpha"])
    if alpha != 1:
        factor = np.array(alpha, parts.numpy_dtype(draft, node.inputs[0]))
        y = draft.op("Mul", y, draft.constant(factor, "alpha"))
    return y


def gelu(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.Gelu (x)` and `BiasGelu (x, bias)`: x (1 + erf (x / sqrt 2)) / 2."""
    x = _biased(draft, match.root)
    return parts.gelu(draft, x)


def fast_gelu(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.FastGelu (x, bias)`: x (1 + tanh (0.797885 x + 0.035677 x^3)) / 2."""
    return parts.tanh_gelu(draft, _biased(draft, match.root))


def quick_gelu(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.QuickGelu (x)`: x sigmoid (alpha x)."""
    node = match.root
    (x,) = node.inputs
    alpha = float(node.attrs.get("alpha", 1.702))
    inner = x
    if alpha != 1:
        inner = draft.op("Mul", x, *_numbers(draft, x, alpha))
    return draft.op("Mul", x, draft.op("Sigmoid", inner))


def _biased(draft: Draft, node: gs.Node) -> Any:
    bias = operand(node, 1)
    return node.inputs[0] if bias is None else draft.op("Add", node.inputs[0], bias)


def _numbers(draft: Draft, x: gs.Tensor, *values: float) -> list[gs.Tensor]:
    dtype = parts.numpy_dtype(draft, x)
    return [draft.constant(np.array(value, dtype), "number") for value in values]
