"""Operators that onnxruntime had before ONNX had them, or has beside ONNX's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand, whole_number
from surgeon.builders.contrib.settings import settings
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_WHOLE = int(TYPE.INT64)


def older_form(draft: Draft, match: Match) -> gs.Tensor:
    """ONNX's operator in place of one of `_LIKE`."""
    return _LIKE[match.root.op](draft, match.root)


def _expand_dims(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.ExpandDims (x, axis)`: an Unsqueeze; an axis below 0 counts from behind."""
    c = Bench(draft)
    settings(node, 2, 2)
    known = c.facts.array(node.inputs[1])
    if known is None or known.size != 1:
        raise Refused("its axis is computed where it runs")
    return c.unsqueeze(node.inputs[0], [c.axis(int(known.reshape(())), c.rank(node.inputs[0]) + 1)])


def _pad(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.Pad (data, pads, value)`, whose pads may be a row, and its value a vector."""
    c = Bench(draft)
    settings(node, 2, 3, {"mode": "constant"})
    data, pads, value = node.inputs[0], c.flat(node.inputs[1]), operand(node, 2)
    operands = [data, pads, *([] if value is None else [_scalar(c, value)])]
    return c.op("Pad", *operands, **node.attrs)


def _range(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.Range (start, limit, delta)`, of numbers or vectors of one; the step is 1."""
    c = Bench(draft)
    settings(node, 2, 3)
    step = operand(node, 2)
    start, limit = (_scalar(c, t) for t in node.inputs[:2])
    by = c.number(1, c.dtype(start)) if step is None else _scalar(c, step)
    return c.op("Range", start, limit, by)


def _gather_nd(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.GatherND (data, indices)`, of int32 as well."""
    c = Bench(draft)
    settings(node, 2, 2)
    data, indices = node.inputs[:2]
    return c.op("GatherND", data, c.cast(indices, _WHOLE))


def unique(draft: Draft, match: Match) -> Any:
    """`com.microsoft.Unique (x)`: what there is in the order it comes, its places, its counts."""
    y, _, places, counts = draft.op("Unique", match.root.inputs[0], outputs=4, sorted=0)
    return y, places, counts


def _unfold(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.UnfoldTensor (x)`: slices of `size` along an axis, which comes last.

    Of whole steps only, since slices that reach beyond the end are not taken.
    """
    c = Bench(draft)
    given = settings(node, 1, 1, {"size": None, "step": 1, "dim": -1})
    x, size, step = node.inputs[0], whole_number(node, "size"), int(given["step"])
    rank = c.rank(x)
    axis = c.axis(int(given["dim"]), rank)
    length = (c.shape(x) or ())[axis]
    if not isinstance(length, int):
        raise Refused("how long the axis is that it goes along is not known")
    if size < 1 or step < 1 or length < size:
        raise Refused(f"slices of {size} by {step} have no form in {length} elements")
    count = (length - size) // step + 1
    places = c.ints([at * step + i for at in range(count) for i in range(size)], "places")
    shape = c.sizes(x)
    shape[axis : axis + 1] = [count, size]
    apart = c.reshape(c.op("Gather", x, places, axis=axis), shape)
    return c.permute(apart, [*(i for i in range(rank + 1) if i != axis + 1), axis + 1])


def _conv_transpose(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.ConvTransposeWithDynamicPads (x, w, pads, bias)`: pads as an operand."""
    c, pads = Bench(draft), operand(node, 2)
    known = None if pads is None else c.facts.array(pads)
    if known is None:
        raise Refused("its pads are computed where it runs")
    said = {**node.attrs, "pads": [int(n) for n in known.reshape(-1)]}
    return c.op("ConvTranspose", *node.inputs[:2], operand(node, 3), **said)


def _embedding(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.TorchEmbedding (weight, indices)`; what else it says counts in training."""
    settings(node, 2, 4)
    return Bench(draft).op("Gather", *node.inputs[:2], axis=0)


def _matmul_integer_16(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.MatMulInteger16 (a, b)`: a product in int32."""
    c = Bench(draft)
    settings(node, 2, 2)
    if any(c.dtype(t) != TYPE.INT16 for t in node.inputs):
        raise Refused("onnxruntime has it for int16 only")
    return c.op("MatMul", *(c.cast(t, TYPE.INT32) for t in node.inputs))


def _scalar(c: Bench, x: gs.Tensor) -> gs.Tensor:
    if c.rank(x) == 0:
        return x
    made: gs.Tensor = c.op("Reshape", x, c.ints([], "scalar"))
    return made


_LIKE: Mapping[str, Callable[[Draft, gs.Node], gs.Tensor]] = {
    "ConvTransposeWithDynamicPads": _conv_transpose,
    "ExpandDims": _expand_dims,
    "GatherND": _gather_nd,
    "MatMulInteger16": _matmul_integer_16,
    "Pad": _pad,
    "Range": _range,
    "TorchEmbedding": _embedding,
    "UnfoldTensor": _unfold,
}
