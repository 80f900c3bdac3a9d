"""ONNX's own Attention, in products and a softmax.

A query at place `i` has the position `offset + i`: `offset` is how many keys were there before, in
`past_key` or, of a cache that is kept outside, by `nonpad_kv_seqlen`. A row of which every key is
hidden gives zeros, as the operator's text has it since onnx 1.23 for each of its opsets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import Bench, Size, dim_of, operand, same_length
from surgeon.builders.scalar_types import finfo
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_BOOL = int(onnx.TensorProto.BOOL)
_RAW, _CAPPED, _BIASED, _SHARES = range(4)  # `qk_matmul_output_mode`


@dataclass(frozen=True, slots=True)
class _Sides:
    """Queries, keys and values, `[batch, heads, length, width]`, and what is known of the keys.

    Attributes:
        new: How many keys this call brings.
        before: How many there were before; None where `valid` says how many there are.
        valid: `nonpad_kv_seqlen`.
    """

    query: gs.Tensor
    key: gs.Tensor
    value: gs.Tensor
    new: Size | int
    before: Size | int | None
    valid: gs.Tensor | None


def attention_as_products(draft: Draft, match: Match) -> Any:
    """softmax(Q K^T scale + masks) V, the keys and values that there are now, and the scores."""
    node, c = match.root, Bench(draft)
    sides = _sides(c, node)
    present = sides.key, sides.value
    sides = _shared(c, sides)
    scores = raw = _scores(c, node, sides)
    if (cap := float(attribute_of(node, "softcap") or 0)) != 0:
        if cap < 0:
            raise Refused("its `softcap` is below 0, which means nothing")
        number = c.number(cap, c.dtype(scores))
        scores = c.op("Mul", c.op("Tanh", c.op("Div", scores, number)), number)
    capped = scores
    bias, may_be_empty = _bias(c, node, sides)
    if bias is not None:
        scores = c.op("Add", scores, bias)
    mode = int(attribute_of(node, "qk_matmul_output_mode") or 0)
    if mode not in (_RAW, _CAPPED, _BIASED, _SHARES):
        raise Refused(f"`qk_matmul_output_mode` is {mode}, which means nothing")
    shares = _softmax(c, node, scores)
    told = len(node.outputs) > 3 and parts.is_read(draft, node.outputs[3])
    empty = _empty(c, bias) if bias is not None and may_be_empty else None
    if empty is not None and told and mode == _SHARES:
        shares, empty = c.where(empty, c.number(0, c.dtype(shares)), shares), None
    y = c.op("MatMul", shares, sides.value)
    if empty is not None:
        y = c.where(empty, c.number(0, c.dtype(y)), y)
    if c.rank(node.inputs[0]) == 3:
        y = c.permute(y, [0, 2, 1, 3])
        y = c.reshape(y, [*(c.size(y, n) for n in (0, 1)), c.mul(c.size(y, 2), c.size(y, 3))])
    seen = {_RAW: raw, _CAPPED: capped, _BIASED: scores, _SHARES: shares}
    return y, *present, seen[mode]


def _sides(c: Bench, node: gs.Node) -> _Sides:
    """Queries, keys and values by heads, with those of before in front."""
    query, key, value = node.inputs[:3]
    ranks = {c.rank(t) for t in (query, key, value)}
    if ranks not in ({3}, {4}):
        raise Refused("its queries, keys and values do not all have three axes, or all four")
    if ranks == {3}:
        heads = [attribute_of(node, name) for name in ("q_num_heads", "kv_num_heads")]
        if not all(isinstance(n, int) and n > 0 for n in heads):
            raise Refused("how many heads it has is not said")
        query = _by_heads(c, query, heads[0])
        key, value = (_by_heads(c, t, heads[1]) for t in (key, value))
    new, before = c.size(key, 2), [operand(node, i) for i in (4, 5)]
    valid = operand(node, 6)
    if (before[0] is None) != (before[1] is None) or (valid is not None and before[0] is not None):
        raise Refused("it has one of `past_key` and `past_value`, or `nonpad_kv_seqlen` as well")
    if before[0] is None or before[1] is None:
        return _Sides(query, key, value, new, 0 if valid is None else None, valid)
    length = c.size(before[0], 2)
    key, value = c.concat([before[0], key], 2), c.concat([before[1], value], 2)
    return _Sides(query, key, value, new, length, None)


def _by_heads(c: Bench, t: gs.Tensor, heads: int) -> gs.Tensor:
    batch, length, width = c.sizes(t)
    return c.permute(c.reshape(t, [batch, length, heads, c.div(width, heads)]), [0, 2, 1, 3])


def _shared(c: Bench, sides: _Sides) -> _Sides:
    """With the keys and values of a head as often as it has queries."""
    mine, its, other = (c.size(t, 1) for t in (sides.query, sides.key, sides.value))
    if same_length(mine, its) and same_length(mine, other):
        return sides
    if not isinstance(mine, int) or not isinstance(its, int) or its != other or mine % its:
        raise Refused("how many heads of queries share one of keys is not known")
    places = c.ints_of(np.repeat(np.arange(its), mine // its), "heads")
    key, value = (c.op("Gather", t, places, axis=1) for t in (sides.key, sides.value))
    return replace(sides, key=key, value=value)


def _scores(c: Bench, node: gs.Node, sides: _Sides) -> gs.Tensor:
    """Q K^T scale; of halves the queries are scaled, since products may grow out of their range."""
    scale, width = attribute_of(node, "scale"), c.size(sides.query, 3)
    if scale is not None and not 0 < float(scale) < math.inf:
        raise Refused("its `scale` has no root, or is 0, which is read in more than one way")
    query, key = sides.query, c.permute(sides.key, [0, 1, 3, 2])
    dtype = c.dtype(query)
    if scale is None and isinstance(width, int):
        scale = 1 / math.sqrt(max(width, 1))
    if scale is not None:
        factor = None if float(scale) == 1 else c.number(float(scale), dtype)
    else:
        factor = c.op("Reciprocal", c.op("Sqrt", c.cast(c.vector([width]), dtype)))
    if factor is not None and dtype in HALVES:
        query, factor = c.op("Mul", query, factor), None
    made: gs.Tensor = c.op("MatMul", query, key)
    if factor is not None:
        made = c.op("Mul", made, factor)
    return made


def _softmax(c: Bench, node: gs.Node, scores: gs.Tensor) -> gs.Tensor:
    dtype = c.dtype(scores)
    precision = attribute_of(node, "softmax_precision")
    if precision and precision not in FLOATS:
        raise Refused("its softmax is of no floats")
    wide = c.cast(scores, int(precision)) if precision else scores
    return c.cast(c.op("Softmax", wide, axis=3), dtype)


def _bias(c: Bench, node: gs.Node, sides: _Sides) -> tuple[gs.Tensor | None, bool]:
    """What is added to scores, and whether it can hide a whole row."""
    dtype = c.dtype(sides.query)
    total, mask = c.size(sides.key, 2), operand(node, 3)
    seen, may_be_empty = _seen(c, node, sides, total)
    if mask is None:
        return (None if seen is None else _hidden(c, seen, dtype)), may_be_empty
    may_be_empty = may_be_empty or seen is not None or _hides_a_row(c, mask)
    short = _shortness(c, mask, total)
    if c.dtype(mask) == _BOOL and short == 0:
        return _hidden(c, mask if seen is None else c.op("And", mask, seen), dtype), may_be_empty
    bias = _hidden(c, mask, dtype) if c.dtype(mask) == _BOOL else c.cast(mask, dtype)
    if short != 0:
        pads = c.vector([*[0] * (2 * c.rank(mask) - 1), short], "pads")
        bias = c.op("Pad", bias, pads, c.number(-np.inf, dtype))
    if seen is not None:
        bias = c.op("Add", bias, _hidden(c, seen, dtype))
    return bias, may_be_empty


def _shortness(c: Bench, mask: gs.Tensor, total: Size | int) -> Size | int:
    """How many keys the mask is short of."""
    if c.rank(mask) == 0:
        raise Refused("its mask has no axes")
    length = c.size(mask, c.rank(mask) - 1)
    if same_length(length, total):
        return 0
    if length == 1:
        raise Refused("its mask has one column, which may stand for all keys or for the first")
    return c.sub(total, length)


def _hides_a_row(c: Bench, mask: gs.Tensor) -> bool:
    """Whether a row of a mask may hide every key."""
    array = c.facts.array(mask)
    if array is None or array.dtype == object:
        return True
    shown = array if array.dtype == bool else ~np.isneginf(array.astype(np.float64))
    return not bool(shown.any(axis=-1).all())


def _hidden(c: Bench, seen: gs.Tensor, dtype: int) -> gs.Tensor:
    """Nothing where a key is seen, minus infinity where not."""
    return c.where(seen, c.number(0, dtype), c.number(-np.inf, dtype))


def _seen(
    c: Bench, node: gs.Node, sides: _Sides, total: Size | int
) -> tuple[gs.Tensor | None, bool]:
    """Where places let a query see a key, and whether one may see none; None where all are seen."""
    left, right = (
        int(-1 if (n := attribute_of(node, f"{side}_window_size")) is None else n)
        for side in ("left", "right")
    )
    if attribute_of(node, "is_causal"):
        right = 0
    bounds: list[gs.Tensor] = []
    columns = c.count(total)
    if right >= 0:
        bounds.append(c.op("Less", columns, _positions(c, sides, right + 1)))
    if left >= 0:
        bounds.append(c.op("Less", _positions(c, sides, -left - 1), columns))
    if sides.valid is not None and right != 0:  # what is behind the query is valid anyway
        bounds.append(c.op("Less", columns, c.unsqueeze(sides.valid, [1, 2, 3])))
    if not bounds:
        return None, False
    seen = bounds[0]
    for bound in bounds[1:]:
        seen = c.op("And", seen, bound)
    return seen, sides.valid is not None or (left >= 0 and not _reaches(c, sides, left))


def _reaches(c: Bench, sides: _Sides, left: int) -> bool:
    """Whether the last query is known to have a key in a window that begins `left` before it."""
    queries = c.size(sides.query, 2)
    length, new = dim_of(queries), dim_of(sides.new)
    if isinstance(length, int) and isinstance(new, int):
        return length <= new + left
    return same_length(queries, sides.new)


def _positions(c: Bench, sides: _Sides, more: int) -> gs.Tensor:
    """The position of each query and some more: [length, 1], or [batch, 1, length, 1]."""
    length = c.size(sides.query, 2)
    places = c.count(length)
    if sides.before is not None:
        shift = c.add(sides.before, more)
        if shift != 0:
            places = c.op("Add", places, c.vector([shift], "shift"))
        return c.unsqueeze(places, [1])
    shift = c.sub(more, length)
    if shift != 0:
        places = c.op("Add", places, c.vector([shift], "shift"))
    assert sides.valid is not None
    places = c.op("Add", places, c.unsqueeze(sides.valid, [1]))
    return c.unsqueeze(places, [1, 3])


def _empty(c: Bench, bias: gs.Tensor) -> gs.Tensor:
    """Where the bias hides every key of a row."""
    most = c.op("ReduceMax", bias, c.ints([-1], "axes"), keepdims=1)
    dtype = c.dtype(bias)
    lowest = finfo(onnx.helper.tensor_dtype_to_np_dtype(dtype)).min
    made: gs.Tensor = c.op("Less", most, c.number(lowest, dtype))
    return made
