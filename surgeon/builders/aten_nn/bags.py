"""Sums, means and maxima of rows of a table, bag by bag."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_SUM, _MEAN, _MAX = 0, 1, 2  # torch.nn.functional.embedding_bag's modes, as its operator counts


def embedding_bag(draft: Draft, match: Match) -> Any:
    """`aten.embedding_bag (weight, indices, offsets, ...)`, of which only the bags are read."""
    args = bind(match.root, draft.facts)
    weight, indices = args.tensor("weight"), args.tensor("indices")
    mode = int(args.value("mode"))
    if parts.rank_of(draft, indices) != 1:
        raise Refused("its indices are not in one row")
    factors = args.optional("per_sample_weights")
    if factors is not None and mode != _SUM:
        raise Refused("only sums have weights of their own")
    padding = _padding(draft, args, weight)
    rows = draft.op("Gather", weight, indices, axis=0)  # [N, D]
    length = None if padding is not None else _even(draft, args)
    if length is not None:
        return _of_one_length(draft, rows, factors, mode, length)
    belongs = _membership(draft, args, indices)
    if padding is not None:
        pad = draft.op("Equal", parts.as_int64(draft, indices), draft.constant([padding], "pad"))
        belongs = draft.op("And", belongs, draft.op("Not", pad))
    number = draft.facts.of(weight).dtype
    shares = draft.op("Cast", belongs, to=number)  # [bags, N]
    if mode == _MAX:
        return _largest(draft, rows, belongs, shares)
    if factors is not None:
        shares = draft.op("Mul", shares, parts.cast(draft, factors, number))
    total = draft.op("MatMul", shares, rows)
    if mode == _SUM:
        return total
    count = draft.op("ReduceSum", shares, draft.constant([1], "axes"), keepdims=1)
    return draft.op("Div", total, draft.op("Max", count, _number(draft, 1, weight)))


def _number(draft: Draft, value: float, like: gs.Tensor) -> gs.Tensor:
    return draft.constant(np.array(value, parts.numpy_dtype(draft, like)), "number")


def _padding(draft: Draft, args: Arguments, weight: gs.Tensor) -> int | None:
    """The row that does not count; `_embedding_bag` says -1 for none, `embedding_bag` None."""
    if not args.schema.takes("padding_idx"):
        return None
    found = args.value("padding_idx")
    if found is None or (found == -1 and args.schema.name != "embedding_bag"):
        return None
    if found >= 0:
        return int(found)
    rows = parts.lengths_of(draft, weight, 2)[0].static
    if rows is None:
        raise Refused("how many rows its table has is not known, from whose end the padding counts")
    return int(found) + rows


def _even(draft: Draft, args: Arguments) -> int | None:
    """How long every bag is, where the offsets are known and all bags are equally long."""
    offsets = draft.facts.array(args.tensor("offsets"))
    shape = draft.facts.of(args.tensor("indices")).shape
    total = None if shape is None else shape[0]
    if offsets is None or not isinstance(total, int) or not offsets.size:
        return None
    ends = offsets[1:] if _ends_given(args) else np.append(offsets[1:], total)
    sizes = ends - offsets[: len(ends)]
    if not sizes.size or (sizes != sizes[0]).any() or sizes[0] <= 0 or sizes.sum() != total:
        return None
    return int(sizes[0])


def _ends_given(args: Arguments) -> bool:
    known = args.schema.takes("include_last_offset")
    return known and bool(args.value("include_last_offset"))


def _of_one_length(
    draft: Draft, rows: gs.Tensor, factors: gs.Tensor | None, mode: int, length: int
) -> gs.Tensor:
    if factors is not None:
        factors = parts.cast(draft, factors, draft.facts.of(rows).dtype)
        rows = draft.op("Mul", rows, parts.unsqueeze(draft, factors, 1))
    width = parts.lengths_of(draft, rows, 2)[1]
    bags = parts.reshape(draft, rows, [-1, length, width])
    operator = {_SUM: "ReduceSum", _MEAN: "ReduceMean", _MAX: "ReduceMax"}[mode]
    return draft.op(operator, bags, draft.constant([1], "axes"), keepdims=0)


def _membership(draft: Draft, args: Arguments, indices: gs.Tensor) -> gs.Tensor:
    """[bags, N]: whether a place stands at or behind the bag's offset, and before the next."""
    offsets = parts.as_int64(draft, args.tensor("offsets"))
    axis, one = draft.constant([0], "axis"), draft.constant([1], "one")
    later = draft.op("Slice", offsets, one, draft.constant([np.iinfo(np.int64).max], "end"), axis)
    count = parts.lengths_of(draft, indices, 1)[0]
    if _ends_given(args):
        starts = draft.op("Slice", offsets, axis, draft.constant([-1], "end"), axis)
        ends = later
    else:
        starts, ends = offsets, draft.op("Concat", later, count.make(), axis=0)
    places = parts.unsqueeze(draft, parts.counting(draft, count), 0)
    before = draft.op("Less", places, parts.unsqueeze(draft, starts, 1))
    inside = draft.op("Less", places, parts.unsqueeze(draft, ends, 1))
    return draft.op("And", draft.op("Not", before), inside)


def _largest(draft: Draft, rows: gs.Tensor, belongs: gs.Tensor, shares: gs.Tensor) -> gs.Tensor:
    """The maximum of each bag, 0 for an empty one."""
    inside = parts.unsqueeze(draft, belongs, 2)
    each = parts.choose(
        draft, inside, parts.unsqueeze(draft, rows, 0), _number(draft, -np.inf, rows)
    )
    most = draft.op("ReduceMax", each, draft.constant([1], "axes"), keepdims=0)
    some = draft.op("ReduceMax", shares, draft.constant([1], "axes"), keepdims=1)
    empty = draft.op("Less", some, _number(draft, 0.5, rows))
    return parts.choose(draft, empty, _number(draft, 0, rows), most)
