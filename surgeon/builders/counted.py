"""Arithmetic of whole numbers, and of several operands, in operators of two."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.bounds import need_clip
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_WIDTHS: Mapping[int, int] = {TYPE.UINT32: 32, TYPE.UINT64: 64}
_LARGEST: Mapping[int, int] = {
    TYPE.INT32: 1 << 30,
    TYPE.INT64: 1 << 62,
}  # divisors that may be added to a remainder
_HALF = 0.5  # what `frexp` makes of each power of 2
_FIRST_EQUAL_OF_FLOATS = 11  # the opset
_MOST_SORTED = 64  # elements that are each compared with each
_SORTED = (TYPE.FLOAT, TYPE.DOUBLE, TYPE.INT32, TYPE.INT64)
_IN_PAIRS = {"Sum": "Add", "Mean": "Add", "Max": "Max", "Min": "Min"}


def mod_as_products(draft: Draft, match: Match) -> gs.Tensor:
    """Mod of whole numbers: x - x / b * b, and the divisor once more where the signs differ."""
    c, node = Bench(draft), match.root
    x, divisor = node.inputs
    divisors, dtype = draft.facts.array(divisor), c.dtype(x)
    if dtype not in _LARGEST:
        raise Refused("it is not of int32 or int64")
    if divisors is not None and not divisors.all():
        raise Refused("its divisor is 0, or 0 somewhere")
    rest = _rest(c, x, divisor)
    if attribute_of(node, "fmod"):
        return rest  # it has the sign of what is divided
    most = _LARGEST[dtype]
    if divisors is not None and divisors.size and 1 <= divisors.min() <= divisors.max() <= most:
        return _rest(c, c.op("Add", rest, divisor), divisor)
    zero = c.number(0, dtype)
    below = c.op("And", c.op("Less", rest, zero), c.op("Greater", divisor, zero))
    above = c.op("And", c.op("Greater", rest, zero), c.op("Less", divisor, zero))
    apart = c.cast(c.op("Or", below, above), dtype)
    made: gs.Tensor = c.op("Add", rest, c.op("Mul", apart, divisor))
    return made


def mod_of_floats(draft: Draft, match: Match, powers: bool = False) -> gs.Tensor:
    """Mod of floats with the sign of what is divided: x - b * (x / b without what is behind 1).

    Args:
        draft: Where the nodes go.
        match: The Mod.
        powers: Whether divisors of 1, 2, 4, ... are meant, by which no quotient is rounded.
    """
    c = Bench(draft)
    x, divisor = match.root.inputs
    divisors, dtype = draft.facts.array(divisor), c.dtype(x)
    if dtype not in FLOATS:
        raise Refused("it is not of floats")
    if powers:
        if divisors is None or not divisors.size:
            raise Refused("its divisor is not known")
        part, _ = np.frexp(divisors.astype(np.float64))
        if (part != _HALF).any() or (divisors < 1).any():
            raise Refused("its divisor is not 1, 2, 4, ... everywhere")
    times = c.op("Div", x, divisor)
    above = c.op("Relu", times)
    below = c.op("Sub", above, times)  # which is above 0 where the quotient is below
    whole = c.op("Sub", c.op("Floor", above), c.op("Floor", below))
    made: gs.Tensor = c.op("Sub", x, c.op("Mul", whole, divisor))
    return made


def _rest(c: Bench, x: gs.Tensor, divisor: gs.Tensor) -> gs.Tensor:
    """What a division leaves, with the sign of what is divided."""
    made: gs.Tensor = c.op("Sub", x, c.op("Mul", c.op("Div", x, divisor), divisor))
    return made


def bits_as_products(draft: Draft, match: Match) -> gs.Tensor:
    """BitShift by constants: a product with powers of 2, or a quotient."""
    c, node = Bench(draft), match.root
    x, by = node.inputs
    bits, width = draft.facts.array(by), _WIDTHS.get(c.dtype(x))
    if width is None:
        raise Refused("it is not of uint32 or uint64")
    if bits is None:
        raise Refused("by how many bits is computed at run time")
    if bits.size and bits.max() >= width:
        raise Refused("no bit is left")
    powers = np.left_shift(np.ones_like(bits), bits)
    op = "Mul" if attribute_of(node, "direction") == "LEFT" else "Div"
    y: gs.Tensor = c.op(op, x, draft.constant(powers, "powers"))
    return y


def several_two_by_two(draft: Draft, match: Match) -> gs.Tensor:
    """Sum, Mean, Max or Min of several, one after the other."""
    c, node = Bench(draft), match.root
    operands = list(node.inputs)
    if node.op in ("Max", "Min") and len(operands) <= 2:
        raise Refused("it has no more than two operands")
    if c.dtype(operands[0]) not in FLOATS:
        raise Refused("it is not of floats")
    made: gs.Tensor = operands[0]
    for operand in operands[1:]:
        made = c.op(_IN_PAIRS[node.op], made, operand)
    if node.op == "Mean" and len(operands) > 1:
        made = c.op("Div", made, c.number(len(operands), c.dtype(operands[0])))
    return made


def bound_as_clip(draft: Draft, match: Match) -> gs.Tensor:
    """Max or Min of a value and one number, as a Clip from below or from above."""
    c, node = Bench(draft), match.root
    if c.dtype(node.outputs[0]) not in FLOATS:
        raise Refused("it is not of floats")
    for x, other in (node.inputs, node.inputs[::-1]):
        array = draft.facts.array(other)
        if array is not None and array.size == 1 and array.ndim <= c.rank(x):
            break
    else:
        raise Refused("neither operand is one number")
    if np.isnan(array).any():
        raise Refused("its number is none")
    need_clip(c, c.dtype(x))
    bound = draft.constant(array.reshape(()), "bound")
    # a bound that is left out is the largest finite number, which an infinite x would become
    ends = (bound, c.number(np.inf, c.dtype(x)))
    if node.op == "Min":
        ends = (c.number(-np.inf, c.dtype(x)), bound)
    y: gs.Tensor = c.op("Clip", x, *ends)
    return y


def top_of_few(draft: Draft, match: Match) -> tuple[gs.Tensor, gs.Tensor]:
    """TopK of a few elements: each is where as many are in front of it as it is counted from 0.

    In front is what is greater, or equal and in front already; what is no number is behind all.
    """
    c, node = Bench(draft), match.root
    x, count = node.inputs[0], draft.facts.array(node.inputs[1])
    axis = attribute_of(node, "axis")
    axis = c.axis(-1 if axis is None else int(axis), c.rank(x))
    length, dtype = c.size(x, axis), c.dtype(x)
    if count is None or not isinstance(length, int):
        raise Refused("how many there are, or are taken, is known at run time only")
    if length > _MOST_SORTED or dtype not in _SORTED or c.opset < _FIRST_EQUAL_OF_FLOATS:
        raise Refused(f"there are more than {_MOST_SORTED}, or they cannot be compared")
    behind = [1] * (c.rank(x) - 1 - axis)
    places = np.arange(length, dtype=np.float32)
    each, others = c.unsqueeze(x, [axis + 1]), c.unsqueeze(x, [axis])
    before = c.op("Greater" if attribute_of(node, "largest") != 0 else "Less", others, each)
    ties = draft.constant(np.tri(length, k=-1, dtype=np.float32).reshape(length, length, *behind))
    same = c.op("Mul", c.cast(c.op("Equal", others, each), TYPE.FLOAT), ties)
    ahead = c.op("Add", c.cast(before, TYPE.FLOAT), same)
    if dtype in FLOATS:
        ahead = c.op("Add", ahead, _before_no_number(c, x, axis, ties))
    rank = c.op("ReduceSum", ahead, c.ints([axis + 1], "axes"), keepdims=0)
    taken = draft.constant(places[: int(count.reshape(-1)[0])].reshape(-1, 1, *behind), "taken")
    here = c.op("Equal", c.unsqueeze(rank, [axis]), taken)
    kept = c.op("Where", here, others, c.number(0, dtype))
    values = c.op("ReduceSum", kept, c.ints([axis + 1], "axes"), keepdims=0)
    at = c.op("Mul", c.cast(here, TYPE.FLOAT), draft.constant(places.reshape(-1, *behind), "at"))
    found = c.op("ReduceSum", at, c.ints([axis + 1], "axes"), keepdims=0)
    return values, c.cast(found, TYPE.INT64)


def _before_no_number(c: Bench, x: gs.Tensor, axis: int, ties: gs.Tensor) -> gs.Tensor:
    """What is in front of an element that is NaN: all numbers, and NaN that was so already."""
    number = c.cast(c.op("Equal", x, x), TYPE.FLOAT)
    none = c.op("Sub", c.number(1, TYPE.FLOAT), number)
    each, others = c.unsqueeze(none, [axis + 1]), c.unsqueeze(none, [axis])
    first = c.op("Add", c.unsqueeze(number, [axis]), c.op("Mul", others, ties))
    made: gs.Tensor = c.op("Mul", each, first)
    return made
