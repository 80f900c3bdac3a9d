"""`com.microsoft.GroupQueryAttention`: attention of decoders, whose keys and values are a cache.

A sequence `b` has `T = seqlens_k[b] + 1` tokens after this step, of which `P = max(T - S, 0)` are
in the cache that comes, and the `S` of this step follow them; what is behind `T` is not defined by
onnxruntime's `ContribOperators.md`, and as its kernel for CPUs has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import Bench, Size, operand, whole_number
from surgeon.builders.rotary import turned_pairs
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_INT64, _FLOAT = int(onnx.TensorProto.INT64), int(onnx.TensorProto.FLOAT)
_NOT_WRITTEN = {  # operands for which nothing is written, and what they are
    12: "its cache is quantised",
    13: "its cache is quantised",
    14: "it normalises queries and keys",
    15: "it normalises queries and keys",
    16: "its tokens are padded on the right by lengths of their own",
}


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a decoder.

    Attributes:
        length: How many tokens each sequence is given.
        before: int64 [batch, 1], or of one number: how many it has in the cache.
        ends: int64 [batch, 1]: how many it has in all; None where that is all there are.
    """

    length: Size | int
    before: gs.Tensor
    ends: gs.Tensor | None


def group_query_attention(draft: Draft, match: Match, full: bool = False) -> Any:
    """The softmax of scores with what is cached, and the cache with the new tokens in it.

    Args:
        draft: Where the nodes go.
        match: The node.
        full: Whether the cache that comes is full in every sequence, and grows by the new tokens.
    """
    node, c = match.root, Bench(draft)
    _check(draft, node)
    heads, groups = whole_number(node, "num_heads"), whole_number(node, "kv_num_heads")
    query, key, value = _sides(c, node, heads, groups)
    past, length = [operand(node, 3), operand(node, 4)], c.size(query, 2)
    if full and any(map(_is_as_long, past, node.outputs[1:3])):
        raise Refused("its cache stays as long as it is: it is not full")
    cached = 0 if past[0] is None else c.size(past[0], 2)
    step = _full(c, length, cached) if full else _step(c, node, length)
    if node.attrs.get("do_rotary"):
        places = _places(c, node, step)
        query, key = (_turned(c, node, x, places) for x in (query, key))
    joined = [
        new if old is None else c.concat([old, new], 2)
        for old, new in zip(past, (key, value), strict=True)
    ]
    if not full and cached != 0:
        joined = _placed(c, node, joined, step, cached)
    y = _attended(c, node, query, joined, step, groups)
    return y, *joined


def _check(draft: Draft, node: gs.Node) -> None:
    for index, why in _NOT_WRITTEN.items():
        if operand(node, index) is not None:
            raise Refused(why)
    if node.attrs.get("sliding_window_cache"):
        raise Refused("its cache holds a window alone")
    if any(parts.is_read(draft, t) for t in node.outputs[3:]):
        raise Refused("its scores are read, which are not written here")
    if (operand(node, 3) is None) != (operand(node, 4) is None):
        raise Refused("it has a cache of one of keys and values alone")


def _is_as_long(past: gs.Tensor | None, present: gs.Tensor) -> bool:
    """Whether the file says of the cache that is given back that it has the length of the other.

    Both are one buffer then, of which `seqlens_k` says how much is taken.
    """
    if past is None:
        return False
    before, after = (list(t.shape or ())[2:3] for t in (past, present))
    return before == after and before not in ([], [None], [""])


def _sides(c: Bench, node: gs.Node, heads: int, groups: int) -> Sequence[gs.Tensor]:
    """Queries, keys and values as [batch, heads, length, width]."""
    query, key, value = (operand(node, i) for i in range(3))
    assert query is not None
    shape = c.shape(query)
    if shape is None or len(shape) != 3 or not isinstance(shape[2], int):
        raise Refused("how wide its queries are is not known")
    if key is None or value is None:
        width = shape[2] // (heads + 2 * groups)
        sizes = [heads * width, groups * width, groups * width]
        split = c.op("Split", query, c.ints(sizes, "sizes"), outputs=3, axis=2)
        query, key, value = split
    else:
        width = shape[2] // heads
    return [
        c.permute(c.op("Reshape", x, c.ints([0, 0, count, width], "heads")), [0, 2, 1, 3])
        for x, count in ((query, heads), (key, groups), (value, groups))
    ]


def _step(c: Bench, node: gs.Node, length: Size | int) -> _Step:
    """By the lengths that it is given."""
    lengths = c.cast(node.inputs[5], _INT64)
    ends = c.op("Add", c.op("Reshape", lengths, c.ints([-1, 1], "column")), c.ints([1]))
    before = c.op("Max", c.op("Sub", ends, c.vector([length])), c.ints([0]))
    return _Step(length, before, ends)


def _full(c: Bench, length: Size | int, cached: Size | int) -> _Step:
    """As long as the cache."""
    return _Step(length, c.op("Reshape", c.vector([cached]), c.ints([1, 1], "one")), None)


def _places(c: Bench, node: gs.Node, step: _Step) -> gs.Tensor:
    """The place of each new token, [batch or 1, length].

    Where some are given, of a first step the first counts alone, and the others follow it.
    """
    along = c.unsqueeze(c.count(step.length), [0])
    given = operand(node, 9)
    if given is None:
        return c.op("Add", step.before, along)
    start = c.slice(c.flat(given), 0, 0, 1)
    total = c.scalar(node.inputs[6])
    first = c.op("Equal", c.vector([total]), c.vector([step.length]))
    return c.where(first, c.op("Add", along, start), given)


def _turned(c: Bench, node: gs.Node, x: gs.Tensor, places: gs.Tensor) -> gs.Tensor:
    cosines, sines = operand(node, 7), operand(node, 8)
    if cosines is None or sines is None:
        raise Refused("it has no tables of the angles by which it turns")
    half, width = (c.shape(cosines) or (None,))[-1], (c.shape(x) or (None,))[-1]
    if not isinstance(half, int) or not isinstance(width, int):
        raise Refused("how wide its tables are is not known")
    cosine, sine = (c.unsqueeze(c.op("Gather", t, places, axis=0), [1]) for t in (cosines, sines))
    interleaved = bool(node.attrs.get("rotary_interleaved"))
    return turned_pairs(c, x, cosine, sine, half, width=width, interleaved=interleaved)


def _placed(
    c: Bench, node: gs.Node, joined: Sequence[gs.Tensor], step: _Step, cached: Size | int
) -> list[gs.Tensor]:
    """The new tokens right behind those that each sequence has; nothing behind them."""
    total = c.op("Max", c.vector([cached]), c.vector([c.scalar(node.inputs[6])]))
    places = c.unsqueeze(c.count(Size(None, lambda: total)), [0])
    behind = c.op("Sub", places, step.before)  # how far behind the cached ones
    new = c.op("Add", behind, c.vector([cached]))
    rows = c.where(c.op("Less", behind, c.ints([0])), places, new)
    last = c.vector([c.sub(c.add(cached, step.length), 1)])
    rows = c.unsqueeze(c.op("Min", rows, last), [1, 3])
    there = c.unsqueeze(c.op("Less", behind, c.vector([step.length])), [1, 3])
    found = []
    for x in joined:
        wanted = c.vector([c.size(x, 0), c.size(x, 1), Size(None, lambda: total), c.size(x, 3)])
        taken = c.op("GatherElements", x, c.op("Expand", rows, wanted), axis=2)
        found.append(c.where(there, taken, c.number(0, c.dtype(x))))
    return found


def _attended(
    c: Bench,
    node: gs.Node,
    query: gs.Tensor,
    cache: Sequence[gs.Tensor],
    step: _Step,
    groups: int,
) -> gs.Tensor:
    """softmax (scale Q K^T) V; queries that share a head of keys lie behind one another."""
    heads, dtype = whole_number(node, "num_heads"), c.dtype(query)
    width = (c.shape(query) or (0,))[-1]
    assert isinstance(width, int)
    batch, total = c.size(query, 0), c.size(cache[0], 2)
    rows = c.mul(step.length, heads // groups)
    scale = float(node.attrs.get("scale") or 1 / math.sqrt(width))
    together = c.reshape(query, [batch, groups, rows, width])
    product = c.op("MatMul", together, c.permute(cache[0], [0, 1, 3, 2]))
    scores = c.op("Mul", product, c.number(scale, dtype))
    scores = c.reshape(scores, [batch, heads, step.length, total])
    if cap := float(node.attrs.get("softcap", 0)):
        bound = c.number(cap, dtype)
        scores = c.op("Mul", c.op("Tanh", c.op("Div", scores, bound)), bound)
    if (bias := operand(node, 10)) is not None:
        scores = c.op("Add", scores, bias)
    seen = _seen(c, node, step, total)
    if seen is not None:
        scores = c.where(seen, scores, c.number(-np.inf, dtype))
    shares = _shares(c, node, scores)
    shares = c.reshape(shares, [batch, groups, rows, total])
    y = c.reshape(c.op("MatMul", shares, cache[1]), [batch, heads, step.length, width])
    return c.reshape(c.permute(y, [0, 2, 1, 3]), [batch, step.length, heads * width])


def _seen(c: Bench, node: gs.Node, step: _Step, total: Size | int) -> gs.Tensor | None:
    """Which keys a query sees, [batch or 1, 1, length, total]; None for all."""
    columns = c.unsqueeze(c.count(total), [0, 1])
    conditions = []
    if node.attrs.get("causal", 1):
        places = c.op("Add", step.before, c.unsqueeze(c.count(step.length), [0]))
        rows = c.unsqueeze(places, [2])
        conditions.append(c.op("Not", c.op("Greater", columns, rows)))
        window = int(node.attrs.get("local_window_size", -1))
        if window > 0:
            conditions.append(c.op("Greater", columns, c.op("Sub", rows, c.ints([window]))))
    if step.ends is not None:
        conditions.append(c.op("Less", columns, c.unsqueeze(step.ends, [2])))
    if not conditions:
        return None
    seen = conditions[0]
    for each in conditions[1:]:
        seen = c.op("And", seen, each)
    return c.unsqueeze(seen, [1])


def _shares(c: Bench, node: gs.Node, scores: gs.Tensor) -> gs.Tensor:
    """The softmax; with a sink, which takes a share that goes to no key."""
    sink = operand(node, 11)
    if sink is None and not node.attrs.get("smooth_softmax"):
        return c.op("Softmax", scores, axis=3)
    batch, heads, length, total = c.sizes(scores)
    dtype = c.dtype(scores)
    if sink is None:
        column = c.filled([batch, heads, length, 1], 0, dtype)
    else:
        own = c.op("Reshape", c.cast(sink, dtype), c.ints([1, -1, 1, 1], "heads"))
        column = c.op("Expand", own, c.vector([batch, heads, length, 1]))
    return c.slice(c.op("Softmax", c.concat([scores, column], 3), axis=3), 3, 0, total)
