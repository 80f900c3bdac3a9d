"""What an operator computes from each line of its first input by itself, of several such lines.

The lines lie along an axis in front; the same operator serves where that axis becomes several.
"""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench
from surgeon.facts.elementwise import REDUCTIONS
from surgeon.match import attribute_of

_ALONG = frozenset("Softmax LogSoftmax Hardmax LayerNormalization RMSNormalization".split())
_VIEWS = frozenset({"Squeeze", "Unsqueeze"})


def is_by_lines(node: gs.Node) -> bool:
    """Whether the operator may be one of these; `apart` says whether the node is."""
    known = node.op in REDUCTIONS | _ALONG | _VIEWS | {"MatMul", "Gemm"}
    return known and len(node.outputs) == 1


def apart(c: Bench, node: gs.Node, axis: int) -> str | None:
    """Why lines along `axis` are not provably computed each by itself; None where they are."""
    rank = c.facts.of(node.inputs[0]).rank
    if rank is None:
        return f"the rank of `{node.inputs[0].name}` is not known"
    if node.op in _ALONG:
        last = int(attribute_of(node, "axis")) % rank == rank - 1 > axis
        return None if last else f"`{node.op}` works along other axes than the last"
    if node.op in ("MatMul", "Gemm"):
        return _product(c, node, axis, rank)
    axes = _axes(c, node, rank)
    if axes is None or min(axes) <= axis:
        return f"`{node.op}` has other axes than those behind the places"
    return None


def by_lines(c: Bench, node: gs.Node, x: gs.Tensor, extra: int) -> gs.Tensor:
    """The operator on `x`, in which the axis of the lines has become `extra` axes more."""
    rank = c.rank(node.inputs[0])
    attributes = {k: v for k, v in node.attrs.items() if k not in ("axis", "axes")}
    if node.op in _ALONG:
        return c.op(node.op, x, *node.inputs[1:], **attributes, axis=rank - 1 + extra)
    if node.op == "MatMul":
        return c.op("MatMul", x, node.inputs[1])
    if node.op == "Gemm":
        return _gemm(c, node, x)
    axes = _axes(c, node, rank)
    assert axes is not None
    return c.op(node.op, x, c.ints([a + extra for a in axes], "axes"), **attributes)


def _product(c: Bench, node: gs.Node, axis: int, rank: int) -> str | None:
    if axis >= rank - 1 or c.facts.of(node.inputs[1]).rank != 2:
        return f"`{node.op}` is not with one matrix for all places"
    if node.op == "MatMul":
        return None
    if attribute_of(node, "transA") or float(attribute_of(node, "alpha")) != 1:
        return "Gemm has a factor, or its first operand turned"
    if len(node.inputs) > 2 and not node.inputs[2].is_empty():
        shape = c.shape(node.inputs[2])
        if shape is None or (len(shape) == 2 and shape[0] != 1):
            return "the summand of Gemm is not one for all places"
        if float(attribute_of(node, "beta")) != 1:
            return "Gemm has a factor, or its first operand turned"
    return None


def _gemm(c: Bench, node: gs.Node, x: gs.Tensor) -> gs.Tensor:
    weight = node.inputs[1]
    if c.rank(x) == 2:
        return c.op("Gemm", x, *node.inputs[1:], **node.attrs)
    if attribute_of(node, "transB"):
        weight = c.permute(weight, [1, 0])
    y = c.op("MatMul", x, weight)
    if len(node.inputs) < 3 or node.inputs[2].is_empty():
        return y
    summand, shape = node.inputs[2], c.shape(node.inputs[2])
    return c.op("Add", y, c.squeeze(summand, [0]) if shape and len(shape) == 2 else summand)


def _axes(c: Bench, node: gs.Node, rank: int) -> list[int] | None:
    """Its axes from the front, those of the result for Unsqueeze; None where they are not known."""
    if len(node.inputs) < 2 or node.inputs[1].is_empty():
        return None
    array = c.facts.array(node.inputs[1])
    if array is None or array.dtype == object or not array.size:
        return None
    room = rank + (array.size if node.op == "Unsqueeze" else 0)
    return sorted(int(a) % room for a in array.reshape(-1))
