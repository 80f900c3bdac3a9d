"""What lies on one side of a diagonal; parts of shapes, and lengths that are not 0."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench, Size, operand
from surgeon.dims import Dim
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_FARTHEST = 1 << 31


def triangle(c: Bench, x: gs.Tensor, offset: Size | int, *, upper: bool) -> gs.Tensor:
    """What is on a diagonal and above or below it, of the last two axes; zeros elsewhere."""
    rank, dtype = c.rank(x), c.dtype(x)
    rows, columns = c.size(x, rank - 2), c.size(x, rank - 1)
    if isinstance(offset, int):  # beyond every length it is all or nothing, and adds up to no more
        offset = max(-_FARTHEST, min(offset, _FARTHEST))
    if isinstance(rows, int) and isinstance(columns, int) and isinstance(offset, int):
        ones = np.ones((rows, columns), np.bool_)
        mask = np.triu(ones, offset) if upper else np.tril(ones, offset)
        keep: gs.Tensor = c.draft.constant(mask, "mask")
    else:
        limit = c.op("Add", c.unsqueeze(c.count(rows), [1]), c.vector([offset], "offset"))
        place = c.unsqueeze(c.count(columns), [0])
        keep = c.op("Not", c.op("Less", place, limit))
        if not upper:
            keep = c.op("Not", c.op("Less", limit, place))
    if dtype == TYPE.BOOL:
        made: gs.Tensor = c.op("And", keep, x)
        return made
    return c.where(keep, x, c.number(0, dtype))


def trilu_as_where(draft: Draft, match: Match) -> gs.Tensor:
    """Trilu, by the places of rows and columns."""
    node, c = match.root, Bench(draft)
    given = operand(node, 1)
    offset = 0 if given is None else c.scalar(given)
    return triangle(c, node.inputs[0], offset, upper=bool(attribute_of(node, "upper")))


def shape_of_some_axes(draft: Draft, match: Match) -> gs.Tensor:
    """Shape of some axes as a part of that of all."""
    node, c = match.root, Bench(draft)
    x, start, end = node.inputs[0], attribute_of(node, "start"), attribute_of(node, "end")
    rank = c.rank(x)
    first, last, _ = slice(start, end).indices(rank)
    whole: gs.Tensor = c.op("Shape", x)
    return whole if (first, last) == (0, rank) else c.slice(whole, 0, first, max(first, last))


def reshape_without_zeros(draft: Draft, match: Match) -> gs.Tensor:
    """A Reshape that takes 0 for a length as one that takes it for a copy, where that is one."""
    node, facts = match.root, draft.facts
    x, target = node.inputs
    if not attribute_of(node, "allowzero"):
        raise Refused("it copies lengths already")
    value, shape = facts.of(target).value, facts.of(x).shape or ()
    if value is None:
        value = facts.array(target)
    if value is None:
        raise Refused("where its target may be 0 is not known")
    wanted = value.reshape(-1).tolist()
    constant = dims.constant_target(shape, wanted) if shape else None
    if constant is not None and -1 not in wanted:
        told: gs.Tensor = draft.op("Reshape", x, draft.constant(constant, "target"), allowzero=0)
        return told
    for place, dim in enumerate(wanted):
        kept = place < len(shape) and _is_nought_with(shape[place], dim)
        if not kept and (dim == 0 or (not isinstance(dim, int) and (dims.bounds(dim)[0] or 0) < 1)):
            raise Refused(
                f"length {place} of its target may be 0, which is no copy; "
                f"`--assume '{dim} >= 1'` if it is not"
            )
    made: gs.Tensor = draft.op("Reshape", x, target, allowzero=0)
    return made


def _is_nought_with(length: Dim, target: Dim) -> bool:
    """Whether a length is 0 where that of the target is: one is some times the other."""
    if isinstance(target, int):
        return target == length
    times = dims.exact_quotient(target, length) if not isinstance(length, int) else None
    if isinstance(times, int) and times > 0:
        return True
    return length == 0 or dims.exact_quotient(length, target) is not None
