"""Products of batches that are viewed with other leading axes of length 1, and back."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts.fact import same_dims
from surgeon.match import Match, producer_of
from surgeon.rewrite import Draft, Refused

_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze"})
_MATRIX = 2  # axes of a product that no batch has


def product_without_ones(draft: Draft, match: Match) -> gs.Tensor:
    """y = a view of the product of views, where all they do is to put axes of length 1 in front."""
    facts, product = draft.facts, match.nodes[1]
    operands = [_before_ones(draft, tensor) for tensor in product.inputs]
    if all(own is tensor for own, tensor in zip(operands, product.inputs, strict=True)):
        raise Refused("no operand is viewed with axes of length 1 in front")
    shapes = [facts.of(tensor).shape for tensor in operands]
    (left, right), target = shapes, facts.of(match.root.outputs[0]).shape
    if left is None or right is None or min(len(left), len(right)) < _MATRIX:
        raise Refused("an operand is no matrix, or its shape is not known")
    lead = _together(left[:-_MATRIX], right[:-_MATRIX])
    if lead is None or not same_dims((*lead, left[-2], right[-1]), target):
        raise Refused("its own result would have another shape")
    y: gs.Tensor = draft.op("MatMul", *operands)
    return y


def _before_ones(draft: Draft, tensor: gs.Tensor) -> gs.Tensor:
    """What a view puts leading axes of length 1 before, or takes them from; or the value."""
    node = producer_of(tensor)
    if node is None or node.op not in _VIEWS or not draft.holds(node):
        return tensor
    x: gs.Tensor = node.inputs[0]
    own, seen = (_stripped(draft.facts.of(t).shape) for t in (x, tensor))
    return x if own is not None and same_dims(own, seen) else tensor


def _stripped(shape: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    """A shape of at least a matrix without leading ones."""
    if shape is None or len(shape) < _MATRIX:
        return None
    while len(shape) > _MATRIX and shape[0] == 1:
        shape = shape[1:]
    return shape


def _together(one: tuple[Dim, ...], other: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    """What two batches broadcast to; None where it is not known."""
    count = max(len(one), len(other))
    made: list[Dim] = []
    pairs = zip(*((*[1] * (count - len(d)), *d) for d in (one, other)), strict=True)
    for a, b in pairs:
        if a != 1 and b != 1 and not dims.equal(a, b):
            return None
        made.append(b if a == 1 else a)
    return tuple(made)
