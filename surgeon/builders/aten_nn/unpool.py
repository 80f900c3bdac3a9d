"""What max pooling found is put back in its place."""

from __future__ import annotations

import math
from typing import Any

from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def max_unpool(draft: Draft, match: Match) -> Any:
    """`aten.max_unpool2d` and `max_unpool3d`: indices count within each plane; the rest is 0."""
    args = bind(match.root, draft.facts)
    x, indices = args.tensor("self"), args.tensor("indices")
    spatial = 2 if match.root.op == "max_unpool2d" else 3
    rank = parts.rank_of(draft, x)
    lead = rank - spatial
    if lead not in (1, 2):
        raise Refused(f"its input has rank {rank}")
    sizes = parts.lengths_given(draft, args, "output_size", spatial)
    flat = [0] * lead + [-1]
    values, places = (parts.reshape(draft, t, flat) for t in (x, parts.as_int64(draft, indices)))
    known = [size.static for size in sizes]
    if None not in known:
        plane = parts.constant_length(draft, math.prod(n for n in known if n is not None))
    else:
        whole = sizes[0].make()
        for size in sizes[1:]:
            whole = draft.op("Mul", whole, size.make())
        plane = parts.Length(None, lambda: whole)
    shape = parts.shape_from(draft, [*parts.lengths_of(draft, x, rank)[:lead], plane])
    zeros = parts.filled(draft, shape, parts.numpy_dtype(draft, x).type(0))
    operator = "ScatterElements" if draft.facts.opset >= 11 else "Scatter"
    y = draft.op(operator, zeros, places, values, axis=lead)
    return draft.op("Reshape", y, parts.shape_from(draft, [*[0] * lead, *sizes]))
