"""Products of groups of rows (mixtures of experts), and with weights in eight bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def _wide(c: Call, x: gs.Tensor) -> gs.Tensor:
    """In single precision, where the products of halves are added up."""
    dtype = c.dtype(x)
    if dtype not in FLOATS:
        raise Refused("it is of integers, which PyTorch does not multiply so")
    return x if dtype == TYPE.DOUBLE else c.cast(x, TYPE.FLOAT)


def _grouped(c: Call) -> gs.Tensor:
    """`_grouped_mm`: every group by every matrix, and of the products those that are meant.

    What lies behind the last group PyTorch leaves as its memory was; here it is 0.
    """
    x, w, offsets = c.tensor(), c.tensor("mat2"), c.args.optional("offs")
    dtype = c.wanted_dtype(c.dtype(x), "out_dtype")
    if c.args.optional("bias") is not None:
        raise Refused("it has a bias, which PyTorch 2.13 does not add")
    ranks = c.rank(x), c.rank(w)
    x, w = _wide(c, x), _wide(c, w)
    if offsets is None:
        if ranks != (3, 3):
            raise Refused("it has no limits of its groups")
        return c.cast(c.op("MatMul", x, w), dtype)
    ends = c.cast(offsets, TYPE.INT64)
    begins = c.concat([c.ints([0], "zero"), c.slice(ends, 0, 0, -1)], 0)
    if ranks == (2, 2):  # each group has some of what is summed over
        inside = _inside(c, begins, ends, c.size(x, 1))
        first = _where(c, c.unsqueeze(inside, [1]), c.unsqueeze(x, [0]))
        second = _where(c, c.unsqueeze(inside, [2]), c.unsqueeze(w, [0]))
        return c.cast(c.op("MatMul", first, second), dtype)
    if ranks == (2, 3):  # some rows
        inside = c.unsqueeze(_inside(c, begins, ends, c.size(x, 0)), [2])
        each = c.op("MatMul", c.unsqueeze(x, [0]), w)
    elif ranks == (3, 2):  # some columns
        inside = c.unsqueeze(_inside(c, begins, ends, c.size(w, 1)), [1])
        each = c.op("MatMul", x, c.unsqueeze(w, [0]))
    else:
        raise Refused(f"its operands have the ranks {ranks[0]} and {ranks[1]}, and limits")
    found = c.op("ReduceSum", _where(c, inside, each), c.ints([0], "axes"), keepdims=0)
    return c.cast(found, dtype)


def _inside(c: Call, begins: gs.Tensor, ends: gs.Tensor, length: Any) -> gs.Tensor:
    """[groups, length], which places are of which group."""
    places = c.unsqueeze(c.count(length), [0])
    reached = c.op("Not", c.op("Less", places, c.unsqueeze(begins, [1])))
    made: gs.Tensor = c.op("And", reached, c.op("Less", places, c.unsqueeze(ends, [1])))
    return made


def _where(c: Call, inside: gs.Tensor, x: gs.Tensor) -> gs.Tensor:
    return c.where(inside, x, c.number(0, c.dtype(x)))


def _with_bytes(c: Call) -> gs.Tensor:
    """`_weight_int8pack_mm`: rows of bytes, each with a factor of its own."""
    x, weight, scales = c.tensor(), c.tensor("mat2"), c.tensor("scales")
    if c.dtype(weight) != TYPE.INT8 or c.rank(weight) != 2:
        raise Refused("its weight is no matrix of int8")
    dtype = c.dtype(x)
    turned = c.op("Transpose", c.cast(weight, c.dtype(_wide(c, x))), perm=[1, 0])
    product = c.op("MatMul", _wide(c, x), turned)
    return c.cast(c.op("Mul", product, _wide(c, scales)), dtype)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "_grouped_mm": _grouped,
    "_weight_int8pack_mm": _with_bytes,
}
