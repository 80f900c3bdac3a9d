"""Constant factors of values with several readers, each of which takes the factor into its weights.

c * x is read by products with constant weights alone: all of them take c. Or x = W u + b itself is
read elsewhere too: W takes c, and what else reads x takes 1 / c.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.factors import (
    MOVES,
    factor_in_front,
    is_positive,
    lone_producer,
    maker_here,
    product_of,
    times_linear,
    with_factor,
)
from surgeon.builders.jointly import handed_out
from surgeon.facts.fact import Array, same_dims
from surgeon.match import Match, producer_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_LINEAR = frozenset({"Conv", "ConvTranspose", "Gemm"})
_POOLS = frozenset({"AveragePool", "GlobalAveragePool"})  # of each channel, and linear
_BENT = frozenset({"Relu", "LeakyRelu", "MaxPool", "GlobalMaxPool"})  # what is positive passes
_MEANS = frozenset({"ReduceMean", "ReduceSum"})
_MOST = 16  # readers and what stands between, of one factor
_FARTHEST = 4  # steps between the factor and a weight
_LARGEST = 2.0**20  # of a factor and its reciprocal


def factor_before_all(draft: Draft, match: Match) -> gs.Tensor:
    """y = Conv, ConvTranspose or Gemm of c * x that others read, too: c in the weights of all."""
    root, tensor = match.root, match.root.inputs[0]
    node = maker_here(draft, tensor)
    for _ in range(_FARTHEST):
        if node.op not in _POOLS | _BENT | _MEANS | MOVES:
            break
        tensor = node.inputs[0]
        node = maker_here(draft, tensor)
    x, factor = factor_in_front(draft, node)
    pairs = list(_taken(draft, tensor, x, factor, skip=None))
    return handed_out(draft, root, [n for n, _ in pairs], [t for _, t in pairs])


def factor_of_forked(draft: Draft, match: Match) -> gs.Tensor:
    """y = c * p, or c * (p * g), with c in the weight of p, and 1 / c in those that read p, too."""
    tensor, factor = product_of(draft, match.root)
    maker = maker_here(draft, tensor)
    if maker.op in _LINEAR:
        return _compensated(draft, match.root, match.root, maker, factor)
    gated = lone_producer(draft, tensor)
    for operand in gated.inputs if gated.op == "Mul" else ():
        node = producer_of(operand)
        if node is None or node.op not in _LINEAR or not draft.holds(node):
            continue
        if same_dims(draft.facts.of(operand).shape, draft.facts.of(tensor).shape):
            return _compensated(draft, match.root, gated, node, factor)
    raise Refused("no product with a constant weight stands in front of it")


def _compensated(
    draft: Draft, root: gs.Node, gated: gs.Node, node: gs.Node, factor: Array
) -> gs.Tensor:
    tensor = node.outputs[0]
    sizes = np.abs(factor)
    if not ((sizes > 1 / _LARGEST) & (sizes < _LARGEST)).all():
        raise Refused("its constant is too large or too small to be divided by elsewhere")
    if sum(operand is tensor for operand in gated.inputs) != 1 or len(tensor.outputs) < 2:
        raise Refused("it is multiplied with itself, or nothing else reads it")
    made = times_linear(draft, node, factor)
    for other, new in _taken(draft, tensor, made, 1.0 / factor, skip=gated):
        draft.also.append((other, [(other.outputs[0], new)]))
    if gated is root:
        return made
    operands = [made if operand is tensor else operand for operand in gated.inputs]
    y: gs.Tensor = draft.op("Mul", *operands)
    return y


def _taken(
    draft: Draft, old: gs.Tensor, new: gs.Tensor, factor: Array, *, skip: gs.Node | None
) -> Iterator[tuple[gs.Node, gs.Tensor]]:
    """Each product that reads a value, and what takes its place, of a value without the factor.

    Args:
        draft: Where the nodes go.
        old: The value, of which nothing else may be read.
        new: What `old` is the factor times.
        factor: A number, or an array with as many axes as the value.
        skip: A reader that is seen to otherwise.

    Raises:
        Refused: A reader has no weight for the factor.
    """
    waiting, count = [(old, new)], 0
    while waiting:
        old, new = waiting.pop()
        if draft.surgery.is_output(old):
            raise Refused(f"the model gives {old.name!r} out")
        for node in old.outputs:
            count += 1
            if node is skip:
                continue
            if count > _MOST or not draft.holds(node) or (node.domain or "") not in STANDARD:
                raise Refused(f"{old.name!r} is read in a body, or by too many")
            if any(tensor is old for tensor in node.inputs[1:]):
                raise Refused(f"{node.op} reads it otherwise")
            if node.op in _LINEAR:
                yield node, with_factor(draft, node, new, factor)
            else:
                _may_pass(node, factor)
                moved = draft.op(node.op, new, *node.inputs[1:], **node.attrs)
                waiting.append((node.outputs[0], moved))


def _may_pass(node: gs.Node, factor: Array) -> None:
    """Refuse what a factor does not pass on its way to a weight."""
    passes = node.op in _POOLS or (node.op in _BENT and is_positive(factor))
    if not passes and (factor.ndim or node.op not in _MEANS | MOVES):
        raise Refused(f"{node.op} reads it too, and has no weight for the factor")
    if len([tensor for tensor in node.outputs if not tensor.is_empty()]) > 1:
        raise Refused(f"{node.op} gives more than one value")
