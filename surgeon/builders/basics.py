"""What almost every runtime has, in operators that are more basic still."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench, operand, whole_number
from surgeon.builders.views import View, as_shape
from surgeon.dims import constant_target
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_FIRST_BOUNDS_OF_INTEGERS = 12  # the opset
_MATRIX = 2  # the rank
_LARGEST_SUM = 1 << 22  # products of elements that are added up


def clip_as_bounds(draft: Draft, match: Match) -> gs.Tensor:
    """Clip as Max and Min, of the bounds that it has."""
    c, node = Bench(draft), match.root
    x, low, high = node.inputs[0], operand(node, 1), operand(node, 2)
    if low is None and high is None:
        raise Refused("it has no bounds")
    if c.dtype(x) not in FLOATS and c.opset < _FIRST_BOUNDS_OF_INTEGERS:
        raise Refused(f"Max and Min of whole numbers need opset {_FIRST_BOUNDS_OF_INTEGERS}")
    axes = max((c.facts.of(t).rank or 0 for t in (low, high) if t is not None), default=0)
    if axes and c.rank(x) < axes:  # ONNX has single numbers, and onnxruntime takes lists of one
        raise Refused("a bound has more axes than what it bounds")
    made: gs.Tensor = x if low is None else c.op("Max", x, low)
    return made if high is None else c.op("Min", made, high)


def gemm_as_product(draft: Draft, match: Match) -> gs.Tensor:
    """Gemm as MatMul, with what it is multiplied by and what is added, where these do something."""
    c, node = Bench(draft), match.root
    if c.dtype(node.inputs[0]) not in FLOATS:
        raise Refused("it is not of floats")
    sides = []
    for side, key in zip(node.inputs[:2], ("transA", "transB"), strict=True):
        turned = bool(attribute_of(node, key))
        sides.append(c.op("Transpose", side, perm=[1, 0]) if turned else side)
    made = _times(c, c.op("MatMul", *sides), attribute_of(node, "alpha"))
    more = operand(node, 2)
    return made if more is None else c.op("Add", made, _times(c, more, attribute_of(node, "beta")))


def _times(c: Bench, x: gs.Tensor, factor: Any) -> gs.Tensor:
    if factor is None or factor == 1:
        return x
    made: gs.Tensor = c.op("Mul", x, c.number(factor, c.dtype(x)))
    return made


def global_pool_as_reduction(draft: Draft, match: Match) -> gs.Tensor:
    """A global pool as ReduceMean or ReduceMax over all axes behind the second."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    axes = c.ints(list(range(2, c.rank(x))), "axes")
    op = "ReduceMean" if node.op == "GlobalAveragePool" else "ReduceMax"
    made: gs.Tensor = c.op(op, x, axes, keepdims=1)
    return made


def depth_to_space_as_views(draft: Draft, match: Match) -> gs.Tensor:
    """DepthToSpace as a Transpose between two Reshapes."""
    c, node = Bench(draft), match.root
    x, out = node.inputs[0], draft.facts.of(node.outputs[0]).shape
    shape, side = draft.facts.of(x).shape, whole_number(node, "blocksize")
    if shape is None or out is None or len(shape) != 4:
        raise Refused("its shape is not known")
    items, _, height, width = shape
    channels = out[1]
    first = attribute_of(node, "mode") in (None, "DCR")
    parts = (side, side, channels) if first else (channels, side, side)
    apart = as_shape(draft, x, (items, *parts, height, width))
    perm = [0, 3, 4, 1, 5, 2] if first else [0, 1, 4, 2, 5, 3]
    return as_shape(draft, c.op("Transpose", apart, perm=perm), out)


def ones_as_reshape(draft: Draft, match: Match) -> gs.Tensor:
    """Squeeze or Unsqueeze as a Reshape with a constant target."""
    x, y = match.root.inputs[0], match.root.outputs[0]
    before, wanted = draft.facts.of(x).shape, draft.facts.of(y).shape
    if before is None or wanted is None:
        raise Refused("its shape is not known")
    target = constant_target(before, wanted)
    if target is None:
        raise Refused("two of its dimensions are known at run time only, and move")
    return View("Reshape", target).draw(draft, x)


def small_power_as_products(draft: Draft, match: Match) -> gs.Tensor:
    """Pow by 2 or 3 as products, by a half as Sqrt, by minus 1 as a quotient."""
    c = Bench(draft)
    x, power = match.root.inputs
    array = draft.facts.array(power)
    if array is None or array.size != 1 or array.ndim > c.rank(x):
        raise Refused("its power is not one constant")
    by, dtype = float(array.reshape(())), c.dtype(x)
    made: gs.Tensor
    if by in (2, 3):
        made = c.op("Mul", x, x)
        return made if by == 2 else c.op("Mul", made, x)
    if dtype not in FLOATS or by not in (0.5, -1):
        raise Refused("its power is none of 2, 3, and of floats a half and minus 1")
    made = c.op("Sqrt", x) if by > 0 else c.op("Div", c.number(1.0, dtype), x)
    return made


def quotient_as_product(draft: Draft, match: Match) -> gs.Tensor:
    """Div by a constant as Mul by its reciprocal."""
    c = Bench(draft)
    x, divisor = match.root.inputs
    array = draft.facts.array(divisor)
    if c.dtype(x) not in FLOATS:
        raise Refused("it is not of floats")
    if array is None or draft.facts.array(x) is not None:
        raise Refused("its divisor is computed at run time, or all of it is constant")
    with np.errstate(all="ignore"):
        reciprocal = np.divide(1, array, dtype=array.dtype)
    if not (np.isfinite(reciprocal) & (reciprocal != 0)).all():
        raise Refused("a reciprocal is beyond the range of its type")
    made: gs.Tensor = c.op("Mul", x, draft.constant(reciprocal, "reciprocal"))
    return made


def whole_product_as_sum(draft: Draft, match: Match) -> gs.Tensor:
    """A MatMul of whole numbers as the sum of the products of their elements."""
    c, node = Bench(draft), match.root
    a, b = node.inputs
    ranks = c.rank(a), c.rank(b)
    if min(ranks) < _MATRIX:
        raise Refused("an operand is no matrix")
    known = [n for n in (*c.sizes(a), c.size(b, ranks[1] - 1)) if isinstance(n, int)]
    if np.prod(known) > _LARGEST_SUM:
        raise Refused("its products would be very many")
    terms = c.op("Mul", c.unsqueeze(a, [ranks[0]]), c.unsqueeze(b, [ranks[1] - 2]))
    total: gs.Tensor = c.op("ReduceSum", terms, c.ints([max(ranks) - 1], "axes"), keepdims=0)
    return total
