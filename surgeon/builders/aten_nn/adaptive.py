"""PyTorch's adaptive pooling beyond windows of one size: computed lengths, and indices.

Bin o of O over I elements is [o * I // O, ((o + 1) * I + O - 1) // O) (ATen AdaptivePooling.h).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.builders.aten_nn.fitted import is_same
from surgeon.builders.aten_nn.pools import looked_up
from surgeon.builders.parts import Array, Length
from surgeon.builders.windows import adaptive_bins, digit_of, with_batch
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def adaptive_avg_pool_computed(draft: Draft, match: Match) -> Any:
    """`aten.adaptive_avg_pool{1,2,3}d` over lengths that are known at run time.

    A product with a matrix that the graph computes: bin o of O over I elements is
    [o * I // O, ((o + 1) * I + O - 1) // O).
    """
    args = bind(match.root, draft.facts)
    spatial = digit_of(match.root.op)
    x, batched = with_batch(draft, match.root.inputs[0], spatial)
    dtype = parts.numpy_dtype(draft, x)
    if not parts.is_float(dtype):
        raise Refused(f"no standard form averages {dtype.name}")
    lengths = parts.lengths_of(draft, x, spatial + 2)[2:]
    outs = parts.lengths_given(draft, args, "output_size", spatial)
    for index, (length, out) in enumerate(zip(lengths, outs, strict=True)):
        if is_same(length, out):
            continue
        if length.static is not None and out.static is not None:
            make = parts.constant_matrix(draft, _bins(length.static, out.static), dtype)
        elif out.static == 1:
            x = draft.op("ReduceMean", x, draft.constant([index + 2], "axes"), keepdims=1)
            continue
        else:
            number = draft.facts.of(x).dtype

            def make(
                turned: bool, length: Length = length, out: Length = out, number: int = number
            ) -> gs.Tensor:
                return _computed_bins(draft, length, out, number, turned=turned)

        x = parts.multiply_axis(draft, x, index + 2, spatial + 2, make)
    return x if batched else parts.squeeze(draft, x, 0)


def _bins(length: int, out: int) -> Array:
    matrix = np.zeros((out, length))
    for row, (start, end) in enumerate(adaptive_bins(length, out)):
        matrix[row, start:end] = 1.0 / (end - start)
    return matrix


def adaptive_max_pool_computed(draft: Draft, match: Match) -> Any:
    """`aten.adaptive_max_pool{1,2,3}d` over lengths that are known at run time, indices unread.

    Bins are gathered axis by axis, short ones filled up with their last element.
    """
    args = bind(match.root, draft.facts)
    spatial = digit_of(match.root.op)
    x, batched = with_batch(draft, match.root.inputs[0], spatial)
    lengths = parts.lengths_of(draft, x, spatial + 2)[2:]
    outs = parts.lengths_given(draft, args, "output_size", spatial)
    for axis, (length, out) in enumerate(zip(lengths, outs, strict=True), 2):
        if is_same(length, out):
            continue
        if out.static == 1:
            x = draft.op("ReduceMax", x, draft.constant([axis], "axes"), keepdims=1)
            continue
        at, _, _ = _computed_places(draft, length, out)
        x = draft.op("Gather", x, at, axis=axis)
        x = draft.op("ReduceMax", x, draft.constant([axis + 1], "axes"), keepdims=0)
    return x if batched else parts.squeeze(draft, x, 0)


def _computed_places(
    draft: Draft, length: Length, out: Length
) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
    """The places of every bin, int64[O, K], short ones filled up with their last one.

    And the first of each, int64[O], and 0 to K - 1.
    """
    start, end = _computed_edges(draft, length, out)
    widest = draft.op(
        "ReduceMax", parts.cast(draft, draft.op("Sub", end, start), parts.FLOAT), keepdims=1
    )
    steps = parts.counting(draft, Length(None, lambda: parts.as_int64(draft, widest)))
    at = draft.op("Add", parts.unsqueeze(draft, start, 1), parts.unsqueeze(draft, steps, 0))
    last = parts.unsqueeze(draft, draft.op("Sub", end, draft.constant([1], "one")), 1)
    return parts.smaller_place(draft, at, last), start, steps


def _computed_edges(draft: Draft, length: Length, out: Length) -> tuple[gs.Tensor, gs.Tensor]:
    """First and last-plus-one place of every bin, int64[O]."""
    one = draft.constant([1], "one")
    row = parts.counting(draft, out)
    size, bins = length.make(), out.make()
    if out.dim is None or dims.at_most(1, out.dim) is not True:
        # no bins at all is an empty result, and onnxruntime divides by nothing all the same
        none = draft.op("Equal", bins, draft.constant([0], "zero"))
        bins = draft.op("Add", bins, draft.op("Cast", none, to=parts.INT64))
    start = draft.op("Div", draft.op("Mul", row, size), bins)
    next_row = draft.op("Mul", draft.op("Add", row, one), size)
    end = draft.op("Div", draft.op("Sub", draft.op("Add", next_row, bins), one), bins)
    return start, end


def _computed_bins(
    draft: Draft, length: Length, out: Length, number: int, *, turned: bool
) -> gs.Tensor:
    start, end = _computed_edges(draft, length, out)
    at = parts.unsqueeze(draft, parts.counting(draft, length), 1 if turned else 0)
    across = 0 if turned else 1
    first, last = parts.unsqueeze(draft, start, across), parts.unsqueeze(draft, end, across)
    inside = draft.op(
        "And", draft.op("Not", draft.op("Less", at, first)), draft.op("Less", at, last)
    )
    count = draft.op("Cast", draft.op("Sub", last, first), to=number)
    return draft.op("Div", draft.op("Cast", inside, to=number), count)


def adaptive_max_pool_indices(draft: Draft, match: Match) -> Any:
    """`aten.adaptive_max_pool{1,2,3}d` whose indices are read: every bin is gathered.

    Over lengths known at run time axis by axis from the last on, each time the first of the
    greatest: so the greatest of a bin that comes first in the plane stays, as in PyTorch.
    """
    args = bind(match.root, draft.facts)
    spatial = digit_of(match.root.op)
    x, batched = with_batch(draft, match.root.inputs[0], spatial)
    lengths = parts.lengths_of(draft, x, spatial + 2)[2:]
    outs = parts.lengths_given(draft, args, "output_size", spatial)
    fixed = [n.static for n in (*lengths, *outs)]
    if fixed[spatial:] == [1] * spatial and None in fixed[:spatial]:
        return _greatest_of_all(draft, x, spatial, batched=batched)
    if any(n is None for n in fixed):
        values, places = _greatest_of_bins(draft, x, lengths, outs)
        if batched:
            return values, places
        return parts.squeeze(draft, values, 0), parts.squeeze(draft, places, 0)
    plane = [n for n in fixed[:spatial] if n is not None]
    bins = [n for n in fixed[spatial:] if n is not None]
    return looked_up(draft, x, _bin_places(plane, bins), plane, bins, batched=batched)


def _greatest_of_all(
    draft: Draft, x: gs.Tensor, spatial: int, *, batched: bool
) -> tuple[gs.Tensor, gs.Tensor]:
    """The greatest element of a plane of any size, and its place: one bin."""
    flat = draft.op("Reshape", x, draft.constant([0, 0, -1], "flat"))
    values = draft.op("ReduceMax", flat, draft.constant([2], "axes"), keepdims=1)
    places = draft.op("ArgMax", flat, axis=2, keepdims=1)
    shape = [0, 0, *[1] * spatial] if batched else [-1, *[1] * spatial]
    return parts.reshape(draft, values, shape), parts.reshape(draft, places, shape)


def _greatest_of_bins(
    draft: Draft, x: gs.Tensor, lengths: list[Length], outs: list[Length]
) -> tuple[gs.Tensor, gs.Tensor]:
    """The greatest element of every bin of a plane of any size, and its place in the plane."""
    places, stride = None, None
    for index in reversed(range(len(lengths))):
        axis, behind = index + 2, len(lengths) - index - 1
        at, start, steps = _computed_places(draft, lengths[index], outs[index])
        inside = draft.op("Gather", x, at, axis=axis)
        best = draft.op("ArgMax", inside, axis=axis + 1, keepdims=1)
        x = draft.op("ReduceMax", inside, draft.constant([axis + 1], "axes"), keepdims=0)
        within = parts.squeeze(draft, best, axis + 1)
        own = draft.op("Add", within, _along(draft, start, behind))
        if places is not None:
            others = draft.op("Gather", places, at, axis=axis)
            hit = draft.op(
                "Cast", draft.op("Equal", _along(draft, steps, behind), best), to=parts.INT64
            )
            axes = draft.constant([axis + 1], "axes")
            other = draft.op("ReduceSum", draft.op("Mul", others, hit), axes, keepdims=0)
            own = draft.op("Add", draft.op("Mul", own, stride), other)
        places, length = own, lengths[index].make()
        stride = length if stride is None else draft.op("Mul", stride, length)
    assert places is not None
    return x, places


def _along(draft: Draft, line: gs.Tensor, behind: int) -> gs.Tensor:
    """A line along an axis with so many axes behind it."""
    for _ in range(behind):
        line = parts.unsqueeze(draft, line, 1)
    return line


def _bin_places(plane: list[int], bins: list[int]) -> list[Array]:
    """The places in the plane of every bin."""
    places = np.arange(int(np.prod(plane)), dtype=np.int64).reshape(plane)
    edges = [adaptive_bins(n, count) for n, count in zip(plane, bins, strict=True)]
    rows = []
    for at in np.ndindex(*bins):
        box = tuple(slice(*edges[axis][i]) for axis, i in enumerate(at))
        rows.append(places[box].reshape(-1))
    return rows
