"""Layers of diffusion models, as onnxruntime's optimizer puts them together for GPUs.

What they compute is told by `ContribOperators.md` and by the fusions that write them
(`onnxruntime/transformers/fusion_*.py`); onnxruntime has no kernels for CPUs, so the witness has
functions of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import TYPE, Bench, operand, whole_number
from surgeon.builders.contrib.fused import behind_conv
from surgeon.builders.contrib.settings import settings
from surgeon.builders.layouts import channels_first, channels_last
from surgeon.builders.standardising import column_of, groups_normalised
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
_SILU = 1
_GROUPS = {"groups": None, "activation": None, "channels_last": 1, "epsilon": 1e-5}


def group_norm(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.GroupNorm (x, gamma, beta)`: in float32, whatever the type of x is."""
    node, c = match.root, Bench(draft)
    return _groups_normalised(c, node, node.inputs[0])


def skip_group_norm(draft: Draft, match: Match) -> Any:
    """`com.microsoft.SkipGroupNorm (x, gamma, beta, skip, bias)`: of the sum, and the sum."""
    node, c = match.root, Bench(draft)
    x, skip, bias = node.inputs[0], node.inputs[3], operand(node, 4)
    if not node.attrs.get("channels_last", 1):
        raise Refused("its channels do not come last, and where they do what is added has a form")
    if c.rank(skip) == 2:
        skip = c.unsqueeze(skip, [1, 2])
    total = c.op("Add", x, skip)
    if bias is not None:
        total = c.op("Add", total, bias)
    return _groups_normalised(c, node, total), total


def _groups_normalised(c: Bench, node: gs.Node, x: gs.Tensor) -> gs.Tensor:
    """gamma (x - mean) / sqrt (variance + eps) + beta by group, and SiLU behind it."""
    given = settings(node, 3, 5, _GROUPS)
    groups, activation = whole_number(node, "groups"), whole_number(node, "activation")
    if activation not in (0, _SILU):
        raise Refused(f"nothing is known of its activation {activation}")
    last, dtype = bool(given["channels_last"]), c.dtype(x)
    wide = c.cast(channels_first(c, x) if last else x, _FLOAT)
    eps, rank = float(given["epsilon"]), c.rank(x)
    y = groups_normalised(c.draft, wide, groups, eps, np.dtype(np.float32))
    for operator, vector in zip(("Mul", "Add"), node.inputs[1:3], strict=True):
        y = c.op(operator, y, column_of(c.draft, c.cast(vector, _FLOAT), rank))
    if activation == _SILU:
        y = c.op("Mul", y, c.op("Sigmoid", y))
    y = c.cast(y, dtype)
    return channels_last(c, y) if last else y


def bias_add(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.BiasAdd (x, bias, skip)`: the sum of the three."""
    settings(match.root, 3, 3)
    x, bias, skip = match.root.inputs[:3]
    made: gs.Tensor = draft.op("Add", draft.op("Add", x, bias), skip)
    return made


def bias_split_gelu(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.BiasSplitGelu (x, bias)`: left times GELU (right) of the halves of the sum."""
    c = Bench(draft)
    settings(match.root, 2, 2)
    x, bias = match.root.inputs[:2]
    width = (c.shape(x) or c.shape(bias) or (None,))[-1]
    if not isinstance(width, int):
        raise Refused("how wide its input is is not known")
    total = c.op("Add", x, bias)
    left, right = (c.slice(total, 2, *ends) for ends in ((0, width // 2), (width // 2, width)))
    made: gs.Tensor = c.op("Mul", left, parts.gelu(draft, right))
    return made


def conv_channels_last(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.NhwcConv (x, w, b)`: a Conv; channels come last, those of the weight too."""
    node, c = match.root, Bench(draft)
    x, weight = (channels_first(c, t) for t in node.inputs[:2])
    return channels_last(c, c.op("Conv", x, weight, operand(node, 2), **node.attrs))


def fused_conv_channels_last(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.NhwcFusedConv (x, w, b, z)`: the same with what is added and an activation.

    Channels come last, but for those of the weight.
    """
    node, c = match.root, Bench(draft)
    said = {k: v for k, v in node.attrs.items() if not k.startswith("activation")}
    y = c.op("Conv", channels_first(c, node.inputs[0]), node.inputs[1], operand(node, 2), **said)
    z = operand(node, 3)
    return channels_last(
        c, behind_conv(draft, node, y, None if z is None else channels_first(c, z))
    )


def gemm_fast_gelu(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.GemmFastGelu (x, w, bias)`: a product, and GELU by a tangent."""
    node = match.root
    y, bias = draft.op("MatMul", *node.inputs[:2]), operand(node, 2)
    return parts.tanh_gelu(draft, y if bias is None else draft.op("Add", y, bias))


def bias_softmax(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.BiasSoftmax (x, bias)`: a Softmax of the sum over all axes from `axis` on."""
    node, c = match.root, Bench(draft)
    given = settings(node, 2, 2, {"axis": 1, "is_inner_broadcast": None})
    x, bias = node.inputs[:2]
    rank = c.rank(x)
    axis = c.axis(int(given["axis"]), rank)
    total = c.op("Add", x, bias)
    if axis == rank - 1:
        return c.op("Softmax", total, axis=axis)
    flat = c.op("Softmax", c.op("Flatten", total, axis=axis), axis=1)
    return c.op("Reshape", flat, c.op("Shape", x))
