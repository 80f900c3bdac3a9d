"""What dynamic quantisation leaves, in floats: DynamicQuantizeLinear and products of integers.

Whole numbers below 2 ** 24 are floats of single precision, and so are their sums and products.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.facts.fact import Array
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_BYTES: dict[int, tuple[int, int]] = {TYPE.UINT8: (0, 255), TYPE.INT8: (-128, 127)}
_EXACT = 1 << 24  # the whole numbers below it are floats of single precision


def integer_product_in_floats(draft: Draft, match: Match, whole: bool = False) -> gs.Tensor:
    """ConvInteger or MatMulInteger of what lies above or below the zero points, in floats.

    Args:
        draft: Where the nodes go.
        match: With the product, or with its Cast to floats.
        whole: Whether the integers are asked for, which sums below 2 ** 24 give alone.
    """
    c, node = Bench(draft), _product_of(match)
    if whole and (most := _most(c, node)) >= _EXACT:
        reached = "without bound" if math.isinf(most) else f"up to {most:.0f}"
        raise Refused(f"its sums go {reached}, and floats hold whole numbers below {_EXACT} alone")
    x, w = _centred(c, node, 0), _centred(c, node, 1)
    if node.op == "ConvInteger":
        made: gs.Tensor = c.op("Conv", x, w, **node.attrs)
    else:
        made = c.op("MatMul", x, w)
    return c.cast(made, TYPE.INT32) if whole else made


def dynamic_product_in_floats(draft: Draft, match: Match) -> gs.Tensor:
    """The product of what was to be quantised as it runs, and of the weights times their scale."""
    c, node = Bench(draft), _product_of(match)
    x, scale = match.values["x"], c.facts.array(match.values["ws"])
    w = _constant(c, node, 1)
    if w is None or scale is None:
        raise Refused("its weights are known at run time only")
    axis = 0 if node.op == "ConvInteger" else w.ndim - 1
    if scale.size != 1:  # it multiplies the result, whose channels are behind the batch
        place = scale.ndim - (w.ndim - 1 if axis == 0 else 1)
        if place not in (0, 1) or scale.size != w.shape[axis] or scale.shape[place] != scale.size:
            raise Refused("its scales do not stand along the channels of its result")
        scale = scale.reshape([-1 if at == axis else 1 for at in range(w.ndim)])
    weight = draft.constant(np.asarray(w * scale.astype(np.float32), np.float32), "weight")
    if node.op == "ConvInteger":
        made: gs.Tensor = c.op("Conv", x, weight, **node.attrs)
    else:
        made = c.op("MatMul", x, weight)
    return made


def dynamic_quantize_in_floats(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """`DynamicQuantizeLinear (x)`: the least and the greatest, their steps, and what is rounded.

    Where all is 0 the scale is 1, as onnxruntime has it.
    """
    c, (x,) = Bench(draft), match.root.inputs
    zero, most = c.number(0, TYPE.FLOAT), c.number(255, TYPE.FLOAT)
    low = c.op("Min", c.op("ReduceMin", x, keepdims=0), zero)
    high = c.op("Max", c.op("ReduceMax", x, keepdims=0), zero)
    step = c.op("Div", c.op("Sub", high, low), most)
    scale = c.where(c.is_nought(step), c.number(1, TYPE.FLOAT), step)
    middle = c.op("Clip", c.op("Round", c.op("Neg", c.op("Div", low, scale))), zero, most)
    level = c.op("Add", c.op("Round", c.op("Div", x, scale)), middle)
    level = c.op("Clip", level, zero, most)
    return c.cast(level, TYPE.UINT8), scale, c.cast(middle, TYPE.UINT8)


def _product_of(match: Match) -> gs.Node:
    """The product itself, which may stand before its Cast."""
    (node,) = (n for n in match.nodes if n.op in ("ConvInteger", "MatMulInteger"))
    return node


def _column(c: Bench, node: gs.Node, at: int) -> bool:
    """Whether an operand has a zero point for each column, as a matrix of weights may.

    Raises:
        Refused: It has several along another axis, which no runtime takes.
    """
    zero = operand(node, at + 2)
    shape = () if zero is None else c.shape(zero)
    if shape is None:
        raise Refused("how many zero points it has is known at run time only")
    if all(size == 1 for size in shape):
        return False
    if at == 0 or node.op == "ConvInteger" or len(shape) != 1:
        raise Refused("its zero points stand along an axis, which no runtime takes")
    return True


def _constant(c: Bench, node: gs.Node, at: int) -> Array | None:
    """A constant operand less its zero point, in floats; None where it is no constant."""
    x, zero = operand(node, at), operand(node, at + 2)
    array = None if x is None else c.facts.array(x)
    shift = None if zero is None else c.facts.array(zero)
    if array is None or (zero is not None and shift is None):
        return None
    wide = np.asarray(array, np.float32)
    if shift is not None:
        target = [-1] if _column(c, node, at) else []
        wide = wide - np.asarray(shift, np.float32).reshape(target)
    return wide


def _centred(c: Bench, node: gs.Node, at: int) -> gs.Tensor:
    """An operand less its zero point, in floats."""
    x = operand(node, at)
    if x is None:
        raise Refused("an operand is missing")
    array = _constant(c, node, at)
    if array is not None:
        return c.draft.constant(array, "centred")
    wide, zero = c.cast(x, TYPE.FLOAT), operand(node, at + 2)
    if zero is None:
        return wide
    target, known = [-1] if _column(c, node, at) else [], c.facts.array(zero)
    if known is not None and not known.any():
        return wide
    shift = c.cast(zero, TYPE.FLOAT)
    if known is not None:
        shift = c.draft.constant(np.asarray(known, np.float32).reshape(target), "zero_point")
    elif not target and c.shape(zero) != ():
        shift = c.op("Reshape", shift, c.ints([], "scalar"))
    made: gs.Tensor = c.op("Sub", wide, shift)
    return made


def _most(c: Bench, node: gs.Node) -> float:
    """No sum of products that it adds up, at any point, is beyond this; infinite for unknown."""
    sides = []
    for at in (0, 1):
        x = operand(node, at)
        dtype = 0 if x is None else c.dtype(x)
        if dtype not in _BYTES:
            return math.inf
        sides.append(_BYTES[dtype])
    array = _constant(c, node, 1)
    if array is None:
        return math.inf
    low, high = sides[0]
    zero = operand(node, 2)
    shift = 0 if zero is None else c.facts.array(zero)
    if shift is None:
        reach = float(high - low)
    else:
        ends = np.asarray([low, high], np.float64)
        reach = float(np.abs(np.subtract.outer(np.asarray(shift, np.float64), ends)).max())
    axes = tuple(range(1, array.ndim)) if node.op == "ConvInteger" else (array.ndim - 2,)
    totals = np.abs(array).astype(np.float64).sum(axes)
    return float(np.max(totals, initial=0.0)) * reach
