"""Plugins that are small layers: normalisations, running extremes, attention, copies."""

from __future__ import annotations

import math

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.aten_math.ordered import running_extreme
from surgeon.builders.bench import Bench, operand
from surgeon.builders.parts import numpy_dtype
from surgeon.builders.plugins import called
from surgeon.builders.plugins.called import Done
from surgeon.builders.standardising import column_of, in_groups, shaped_like, vector_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def instance_norm(draft: Draft, match: Match) -> gs.Tensor:
    """`InstanceNormalization_TRT (x)` with its factors as attributes, or as inputs."""
    node = match.root
    if called.said(node).get("relu", 0):
        raise Refused("a Relu behind it, which its documentation does not tell of")
    x = node.inputs[0]
    scale, bias = operand(node, 1), operand(node, 2)
    if scale is None or bias is None:
        kind = numpy_dtype(draft, x)
        said = [called.said(node).get(name) for name in ("scales", "biases")]
        if None in said:
            raise Refused("it has no scales, or no biases")
        scale, bias = (draft.constant(np.asarray(v).astype(kind), "factors") for v in said)
    eps = float(called.said(node).get("epsilon", 1e-5))
    made: gs.Tensor = draft.op("InstanceNormalization", x, scale, bias, epsilon=eps)
    return made


def group_norm(draft: Draft, match: Match) -> gs.Tensor:
    """`GroupNormalizationPlugin (x, scale, bias)`: instances of groups, and factors of channels."""
    x, scale, bias = match.root.inputs
    said = called.said(match.root)
    eps = float(said.get("eps", said.get("epsilon", 1e-5)))
    return in_groups_normalised(draft, match.root, x, scale, bias, eps)


def in_groups_normalised(
    draft: Draft, node: gs.Node, x: gs.Tensor, scale: gs.Tensor, bias: gs.Tensor, eps: float
) -> gs.Tensor:
    """As many groups of channels as a node's `num_groups` says, and factors of channels."""
    c, groups = Bench(draft), called.said(node).get("num_groups")
    if not isinstance(groups, int) or groups < 1:
        raise Refused("it has no `num_groups`")
    ones, zeros = (vector_of(draft, value, groups, numpy_dtype(draft, x)) for value in (1, 0))
    grouped = in_groups(draft, x, groups)
    y = draft.op("InstanceNormalization", grouped, ones, zeros, epsilon=eps)
    y, rank = shaped_like(draft, y, x), c.rank(x)
    y = c.op("Mul", y, column_of(draft, scale, rank))
    made: gs.Tensor = c.op("Add", y, column_of(draft, bias, rank))
    return made


def corner_pool(draft: Draft, match: Match) -> gs.Tensor:
    """`MMCVCornerPool (x)`: a window from each place to the border, as long as the axis."""
    node, c = match.root, Bench(draft)
    (x,), mode = node.inputs, called.said(node).get("mode")
    if not isinstance(mode, int) or mode not in range(4):
        raise Refused(f"its `mode` is {mode}, not 0 to 3")
    called.of_rank(c, 4, x)
    axis = 2 if mode < 2 else 3
    length = c.size(x, axis)
    if not isinstance(length, int):
        raise Refused(f"how long axis {axis} is is known at run time only; fix it with `--shape`")
    kernel, pads = [1, 1], [0, 0, 0, 0]
    kernel[axis - 2] = length
    pads[axis - 2 + (2 if mode in (0, 2) else 0)] = length - 1
    made: gs.Tensor = c.op("MaxPool", x, kernel_shape=kernel, pads=pads, strides=[1, 1])
    return made


def running(draft: Draft, match: Match) -> tuple[gs.Tensor, gs.Tensor]:
    """`mmcv.cummax (x)` and `cummin`, which are PyTorch's."""
    node = match.root
    dim = called.said(node).get("dim")
    if not isinstance(dim, int):
        raise Refused("it has no `dim`")
    return running_extreme(Done(draft, node, {"self": node.inputs[0], "dim": dim}))


def attention(draft: Draft, match: Match) -> tuple[gs.Tensor, gs.Tensor]:
    """`mmdeploy.ScaledDotProductAttentionTRT (q, k, v, mask?)`, and its weights."""
    node, c = match.root, Bench(draft)
    q, k, v = node.inputs[:3]
    called.of_rank(c, 3, q, k, v)
    dtype, width = c.dtype(q), c.size(q, 2)
    if isinstance(width, int):
        factor = c.number(1 / math.sqrt(width), dtype)
    else:
        factor = c.op("Reciprocal", c.op("Sqrt", c.cast(width.tensor, dtype)))
    scores = c.op("MatMul", c.op("Mul", q, factor), c.permute(k, [0, 2, 1]))
    mask = operand(node, 3)
    if mask is not None:
        scores = c.op("Add", scores, mask)
    weights = c.op("Softmax", scores, axis=2)
    return c.op("MatMul", weights, v), weights


def grid_priors(draft: Draft, match: Match) -> gs.Tensor:
    """`mmdeploy.GridPriorsTRT (anchors, rows, columns)`: the anchors at every place."""
    node, c = match.root, Bench(draft)
    base, rows, columns = node.inputs
    called.of_rank(c, 2, base)
    called.of_rank(c, 1, rows, columns)
    dtype = c.dtype(base)
    moved = []
    for x, axis, name in ((rows, 1, "stride_h"), (columns, 0, "stride_w")):
        stride = called.said(node).get(name)
        if not isinstance(stride, int):
            raise Refused(f"it has no `{name}`")
        step = np.zeros(4, np.int64)
        step[[axis, axis + 2]] = stride
        each = c.column(c.count(c.size(x, 0)), 4 if axis == 1 else 3)
        moved.append(c.cast(c.op("Mul", each, c.ints_of(step, "step")), dtype))
    every = c.op("Add", c.op("Add", *moved), base)
    made: gs.Tensor = c.op("Reshape", every, c.ints([-1, 4], "anchors"))
    return made


def resized(draft: Draft, match: Match) -> gs.Tensor:
    """Caffe2's `ResizeNearest` and `UpsampleNearest`: element i is that at floor(i / scale)."""
    node = match.root
    if called.said(node).get("order", "NCHW") != "NCHW":
        raise Refused("its channels come last")
    if len(node.inputs) > 1:
        raise Refused("its scales are computed")
    both = called.said(node).get("scale", 1)
    scales = [float(called.said(node).get(f"{axis}_scale", both)) for axis in ("height", "width")]
    where = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return parts.resized(draft, node.inputs[0], [1, 1, *scales], mode="nearest", **where)
