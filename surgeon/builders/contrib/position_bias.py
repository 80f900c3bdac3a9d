"""What is added to the scores of attention by how far a key is from a query.

As T5 has it (https://arxiv.org/abs/1910.10683, Hugging Face's `modeling_t5.py`), and as WavLM gates
it (https://arxiv.org/abs/2110.13900).
"""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand, whole_number
from surgeon.builders.contrib.settings import settings
from surgeon.facts.fact import Array
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_WHOLE = int(TYPE.INT64)


def relative_position_bias(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.RelativePositionBias (table, queries, keys)`: [1, heads, queries, keys].

    Beyond `max_distance` all distances have one bucket, so a row for each distance up to it is all
    that is needed. The table says [buckets, heads], and holds the numbers of [heads, buckets].
    """
    node, c = match.root, Bench(draft)
    given = settings(node, 3, 3, {"max_distance": None, "is_bidirectional": 0})
    table, *lengths = node.inputs[:3]
    shape, most = c.shape(table), whole_number(node, "max_distance")
    if shape is None or len(shape) != 2 or not isinstance(shape[0], int):
        raise Refused("how many buckets its table has is not known")
    buckets = shape[0]
    both = bool(given["is_bidirectional"])
    exact = buckets // (4 if both else 2)  # distances with a bucket of their own
    if exact < 1 or most <= exact:
        raise Refused(f"its {buckets} buckets for distances up to {most} have no form")
    queries, keys = (c.count(c.scalar(t)) for t in lengths)
    away = c.op("Sub", c.unsqueeze(keys, [0]), c.unsqueeze(queries, [1]))
    low, high = (c.number(bound, _WHOLE) for bound in (-most, most))
    near = c.op("Add", c.op("Min", c.op("Max", away, low), high), high)
    rows = c.ints_of(_buckets(np.arange(-most, most + 1), buckets, most, both=both), "buckets")
    by_head = c.op("Reshape", table, c.ints([-1, buckets], "heads"))
    chosen = c.op("Gather", c.op("Gather", by_head, rows, axis=1), near, axis=1)
    return c.unsqueeze(chosen, [0])


def _buckets(away: Array, buckets: int, most: int, *, both: bool) -> Array:
    """The bucket of each distance of a key from its query, as T5 counts it in float32."""
    if both:
        buckets //= 2
        first, far = np.where(away > 0, buckets, 0), np.abs(away)
    else:
        first, far = np.zeros_like(away), -np.minimum(away, 0)
    exact = buckets // 2
    parts = np.log(np.maximum(far, 1).astype(np.float32) / np.float32(exact))
    parts = parts / np.float32(np.log(most / exact)) * np.float32(buckets - exact)
    beyond = np.minimum(exact + parts.astype(np.int64), buckets - 1)
    found: Array = first + np.where(far < exact, far, beyond)
    return found


def gated_relative_position_bias(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.GatedRelativePositionBias`: what is added, times a gate of each query."""
    node, c = match.root, Bench(draft)
    settings(node, 6, 7, {"num_heads": None})
    x, x_bias, added, weight, bias, scale = node.inputs[:6]
    if operand(node, 6) is not None:
        raise Refused("its batch is packed, which is not written here")
    heads, (width, both) = whole_number(node, "num_heads"), c.shape(weight) or (None, None)
    if not isinstance(width, int) or not isinstance(both, int):
        raise Refused("how wide its weight is is not known")
    query = c.op("Add", x, x_bias)
    query = c.permute(c.op("Reshape", query, c.ints([0, 0, heads, width], "heads")), [0, 2, 1, 3])
    gates = c.op("Add", c.op("MatMul", query, weight), bias)
    gates = c.op("Reshape", gates, c.ints([0, 0, 0, 2, both // 2], "gates"))
    gates = c.op("Sigmoid", c.op("ReduceSum", gates, c.ints([4], "axes"), keepdims=0))
    update, reset = (c.slice(gates, 3, at, at + 1) for at in (0, 1))
    one, two = (c.number(n, c.dtype(x)) for n in (1.0, 2.0))
    kept = c.op("Sub", c.op("Mul", reset, scale), one)
    gate = c.op("Add", c.op("Mul", update, kept), two)
    return c.op("Mul", gate, added)
