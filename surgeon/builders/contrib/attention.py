"""Attention as onnxruntime's optimizer puts it together, in products and a softmax.

What masks and lengths mean is that of onnxruntime's kernels for CPUs (`attention_helper.h`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import parts
from surgeon.builders.bench import Bench, operand, whole_number
from surgeon.builders.contrib.settings import width_of
from surgeon.builders.rotary import turned_pairs
from surgeon.builders.scalar_types import finfo
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_WHOLE = int(onnx.TensorProto.INT64)
_SHARED = "its past and present share one buffer, which only the caller knows the length of"


@dataclass(frozen=True, slots=True)
class _Sides:
    """Queries, keys and values by heads: `[batch, heads, length, width]`."""

    query: gs.Tensor
    key: gs.Tensor
    value: gs.Tensor


def attention(draft: Draft, match: Match) -> Any:
    """`com.microsoft.Attention`: of one input, by weights that are merged; and its state."""
    node, c = match.root, Bench(draft)
    x, weights, bias, mask, past, added = (operand(node, i) for i in range(6))
    if node.attrs.get("past_present_share_buffer") or operand(node, 6) is not None:
        raise Refused(_SHARED)
    if node.attrs.get("do_rotary"):
        raise Refused("it turns queries and keys by their places, which is not written here")
    if x is None or weights is None:
        raise Refused("its keys and values come from elsewhere than its input")
    whole = draft.op("MatMul", x, weights)
    if bias is not None:
        whole = draft.op("Add", whole, bias)
    return merged_attention(c, node, whole, weights, mask=mask, past=past, added=added)


def merged_attention(
    c: Bench,
    node: gs.Node,
    whole: gs.Tensor,
    weights: gs.Tensor,
    *,
    mask: gs.Tensor | None,
    past: gs.Tensor | None,
    added: gs.Tensor | None = None,
) -> Any:
    """Attention of queries, keys and values that stand side by side, and its state.

    Args:
        c: Where it is written.
        node: `Attention` or `QAttention`, whose attributes say how.
        whole: What the merged weights give, `[batch, length, channels]`.
        weights: These weights, `[width, channels]`.
        mask: Which keys are seen.
        past: Keys and values before, `[2, batch, heads, length, width]`.
        added: What is added to the scores.
    """
    heads, sizes = whole_number(node, "num_heads"), _widths(c, node, weights)
    split = c.op("Split", whole, c.ints(sizes, "sizes"), outputs=3, axis=2)
    sides = _Sides(*(_by_heads(c, t, heads, n) for t, n in zip(split, sizes, strict=True)))
    if past is not None:
        before = [c.op("Gather", past, c.number(which, _WHOLE), axis=0) for which in (0, 1)]
        sides = _continued(c, sides, before)
    y = _attended(c, node, sides, mask, added)
    if len(node.outputs) < 2 or not parts.is_read(c.draft, node.outputs[1]):
        return y, y
    return y, c.concat([c.unsqueeze(sides.key, [0]), c.unsqueeze(sides.value, [0])], 0)


def multi_head_attention(draft: Draft, match: Match) -> Any:
    """`com.microsoft.MultiHeadAttention`: of queries, keys and values; and its state."""
    node, c = match.root, Bench(draft)
    given = [operand(node, i) for i in range(3)]
    bias, mask, added = (operand(node, i) for i in (3, 4, 5))
    past = [t for i in (6, 7) if (t := operand(node, i)) is not None]
    if operand(node, 8) is not None or operand(node, 9) is not None:
        raise Refused(_SHARED)
    if any(parts.is_read(draft, t) for t in node.outputs[3:]):
        raise Refused("its scores are read, which are not written here")
    inputs = _apart(c, [t for t in given if t is not None])
    if [c.rank(t) for t in inputs] not in ([3, 3, 3], [3, 4, 4]):
        raise Refused("its queries, keys and values have ranks that have no form")
    heads = whole_number(node, "num_heads")
    sizes = [_width(c, t, heads) for t in inputs]
    if bias is not None:
        shares = draft.op("Split", bias, c.ints(sizes, "sizes"), outputs=3, axis=0)
        pairs = zip(inputs, shares, strict=True)
        inputs = [draft.op("Add", t, b) if c.rank(t) == 3 else t for t, b in pairs]
    sides = _Sides(
        *(
            _by_heads(c, t, heads, n) if c.rank(t) == 3 else t
            for t, n in zip(inputs, sizes, strict=True)
        )
    )
    if past:
        sides = _continued(c, sides, past)
    return _attended(c, node, sides, mask, added), sides.key, sides.value


def _apart(c: Bench, inputs: list[gs.Tensor]) -> list[gs.Tensor]:
    """Queries, keys and values each by themselves, where the last of them are packed into one.

    The packed are `[batch, length, heads, how many, width]`.
    """
    if len(inputs) == 3:
        return inputs
    *alone, packed = inputs
    shape, count = c.shape(packed), 4 - len(inputs)
    if shape is None or len(shape) != 5 or shape[3] != count:
        raise Refused("how its queries, keys and values are packed into one is not known")
    heads, width = shape[2], shape[4]
    if not isinstance(heads, int) or not isinstance(width, int):
        raise Refused(f"how wide `{packed.name}` is is not known")
    split = c.op("Split", packed, c.ints([1] * count, "sizes"), outputs=count, axis=3)
    together = c.ints([0, 0, heads * width], "channels")
    return [*alone, *(c.op("Reshape", t, together) for t in split)]


def _widths(c: Bench, node: gs.Node, weights: gs.Tensor) -> list[int]:
    """How many of the merged channels are queries, keys and values."""
    sizes = [int(n) for n in node.attrs.get("qkv_hidden_sizes", ())]
    shape = c.shape(weights)
    if not sizes and shape is not None and isinstance(shape[-1], int):
        sizes = [shape[-1] // 3] * 3
    if len(sizes) != 3:
        raise Refused("how wide its queries, keys and values are is not known")
    return sizes


def _width(c: Bench, t: gs.Tensor, heads: int) -> int:
    shape = c.shape(t)
    if shape is None or not isinstance(shape[-1], int):
        raise Refused(f"how wide `{t.name}` is is not known")
    return shape[-1] if len(shape) == 3 else shape[-1] * heads


def _by_heads(c: Bench, t: gs.Tensor, heads: int, width: int) -> gs.Tensor:
    split = c.op("Reshape", t, c.ints([0, 0, heads, width // heads], "heads"))
    return c.permute(split, [0, 2, 1, 3])


def _continued(c: Bench, sides: _Sides, past: Sequence[gs.Tensor]) -> _Sides:
    key, value = (c.concat(list(p), 2) for p in zip(past, (sides.key, sides.value), strict=True))
    return _Sides(sides.query, key, value)


def _attended(
    c: Bench, node: gs.Node, sides: _Sides, mask: gs.Tensor | None, added: gs.Tensor | None
) -> gs.Tensor:
    """softmax (scale Q K^T + masks) V, with the heads side by side again."""
    own, other = (_width(c, t, 1) for t in (sides.query, sides.value))
    dtype = c.dtype(sides.query)
    scale = c.number(float(node.attrs.get("scale") or 1 / math.sqrt(own)), dtype)
    turned = c.permute(sides.key, [0, 1, 3, 2])
    scores = c.op("Mul", c.op("MatMul", sides.query, turned), scale)
    filler = float(node.attrs.get("mask_filter_value", -10000.0))
    hidden = None if mask is None else _padding(c, sides, mask, filler)
    if node.attrs.get("unidirectional"):
        hidden = _causal(c, sides, hidden)
    for summand in (added, hidden):
        if summand is not None:
            scores = c.op("Add", scores, summand)
    y = c.op("MatMul", c.op("Softmax", scores, axis=3), sides.value)
    heads = whole_number(node, "num_heads")
    together = c.permute(y, [0, 2, 1, 3])
    return c.op("Reshape", together, c.ints([0, 0, heads * other], "channels"))


def _padding(c: Bench, sides: _Sides, mask: gs.Tensor, filler: float) -> gs.Tensor:
    """What is added to scores: nothing where the mask is more than 0, else the filler.

    A mask of one axis has the length of each sequence; with twice as many, where each begins too.
    """
    shape, rank = c.shape(mask), c.rank(mask)
    dtype = c.dtype(sides.query)
    if rank in (2, 3):
        seen = c.op("Greater", mask, c.number(0, c.dtype(mask)))
        seen = c.unsqueeze(seen, [1, 2] if rank == 2 else [1])
    else:
        batch = (c.shape(sides.query) or (None,))[0]
        if rank != 1 or shape is None or batch is None:
            raise Refused(f"what a mask of rank {rank} stands for is not written here")
        places = c.cast(c.count(c.size(sides.key, 2)), c.dtype(mask))
        if dims.equal(shape[0], batch) is True:
            seen = c.op("Less", places, c.unsqueeze(mask, [1, 2, 3]))
        elif dims.equal(shape[0], 2 * batch) is True:
            ends, starts = (c.slice(mask, 0, *b) for b in _halves(c, sides))
            inside = c.op("Less", places, c.unsqueeze(ends, [1, 2, 3]))
            begun = c.op("Not", c.op("Less", places, c.unsqueeze(starts, [1, 2, 3])))
            seen = c.op("And", inside, begun)
        else:
            raise Refused("whether its mask has one or two numbers a sequence is not known")
    return c.where(seen, c.number(0, dtype), c.number(filler, dtype))


def _halves(c: Bench, sides: _Sides) -> Sequence[tuple[Any, Any]]:
    batch = c.size(sides.query, 0)
    return (0, batch), (batch, c.mul(batch, 2))


def _causal(c: Bench, sides: _Sides, hidden: gs.Tensor | None) -> gs.Tensor:
    """What is added to scores: the lowest number where a key stands behind the query.

    It stands in place of what else hides the key: twice the lowest number would be infinite, and a
    query that sees no key would tell those apart that are hidden twice.
    """
    length, total = c.size(sides.query, 2), c.size(sides.key, 2)
    dtype = c.dtype(sides.query)
    rows, columns = c.count(length), c.count(total)
    before = c.sub(total, length)
    if not isinstance(before, int):
        rows = c.op("Add", rows, before.tensor)
    elif before:
        rows = c.op("Add", rows, c.ints([before]))
    ahead = c.op("Less", c.unsqueeze(rows, [1]), columns)
    lowest = finfo(onnx.helper.tensor_dtype_to_np_dtype(dtype)).min
    return c.where(ahead, c.number(lowest, dtype), c.number(0, dtype) if hidden is None else hidden)


def rotary_embedding(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.RotaryEmbedding (x, places, cos, sin)`: pairs of channels turned by angles.

    The pairs are a channel and the one half the width further on, or two neighbours.
    """
    node, c = match.root, Bench(draft)
    x, places, cosines, sines = node.inputs
    if node.attrs.get("is_packed_batching") or float(node.attrs.get("scale", 1.0)) != 1:
        raise Refused("it is scaled, or its batch is packed, which is not written here")
    rank, half = c.rank(x), width_of(draft, cosines, sines, what="its tables are")
    if rank not in (3, 4):
        raise Refused("its input is no batch of sequences")
    if c.rank(places) == 1:  # of one number, where sequences begin
        length = c.size(x, rank - 2)
        along = places if length == 1 else c.op("Add", c.count(length), places)
        places = c.unsqueeze(along, [0])
    cosine, sine = (c.op("Gather", table, places, axis=0) for table in (cosines, sines))
    return turned_heads(c, node, cosine, sine, half)


def turned_heads(
    c: Bench, node: gs.Node, cosine: gs.Tensor, sine: gs.Tensor, half: int
) -> gs.Tensor:
    """What the first operand holds, turned by tables of `[batch, length, half]`.

    It is `[batch, heads, length, width]`, or `[batch, length, channels]` of heads side by side.
    """
    x, interleaved = node.inputs[0], bool(node.attrs.get("interleaved"))
    channels, by_axis = _width(c, x, 1), c.rank(x) == 4
    heads = 1 if by_axis else int(node.attrs.get("num_heads", 0)) or channels // (2 * half)
    width = channels // heads
    split = x if by_axis else c.op("Reshape", x, c.ints([0, 0, heads, width], "heads"))
    cosine, sine = (c.unsqueeze(table, [1 if by_axis else 2]) for table in (cosine, sine))
    y = turned_pairs(c, split, cosine, sine, half, width=width, interleaved=interleaved)
    return y if by_axis else c.op("Reshape", y, c.ints([0, 0, channels], "channels"))
