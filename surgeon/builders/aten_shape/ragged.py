"""Tensors of unequal lengths brought to one: filled up, cut off, laid end to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.aten_shape.indices import places_of
from surgeon.rewrite import Refused


def _longest(c: Call, lengths: list[Size | int]) -> Size | int:
    known = [n for n in lengths if isinstance(n, int)]
    if len(known) == len(lengths):
        return max(known)
    return Size(
        None,
        lambda: c.op("ReduceMax", c.vector(lengths, "lengths"), c.ints([0], "axes"), keepdims=1),
    )


def _pad_sequence(c: Call) -> gs.Tensor:
    """Sequences of any lengths, filled up to that of the longest, and stacked."""
    given = c.args.tensors("sequences")
    if not given or any(c.rank(t) == 0 for t in given):
        raise Refused("it has no sequences, or one of rank 0")
    dtype, value = c.dtype(given[0]), c.value("padding_value")
    newer = c.args.schema.takes("padding_side")
    is_left = newer and c.value("padding_side") == "left"
    lengths = [c.size(t, 0) for t in given]
    room = _longest(c, lengths)
    axis = 0 if c.value("batch_first") else 1
    rows = []
    for tensor, length in zip(given, lengths, strict=True):
        row, missing = c.cast(tensor, dtype), c.sub(room, length)
        if missing != 0:
            fill = c.filled([missing, *c.sizes(tensor)[1:]], value, dtype)
            row = c.concat([fill, row] if is_left else [row, fill], 0)
        rows.append(c.unsqueeze(row, [axis]))
    return c.concat(rows, axis)


def _chunk_cat(c: Call) -> gs.Tensor:
    """Each tensor filled up with zeros and cut in as many chunks; each with its like joined."""
    tensors, chunks = c.args.tensors("tensors"), c.integer("num_chunks")
    axis = c.axis(c.integer("dim"), min((c.rank(t) for t in tensors), default=0))
    tensors, rows = c.promoted(tensors), []
    for tensor in tensors:
        sizes = c.sizes(tensor)
        length = sizes[axis]
        if not isinstance(length, int):
            raise Refused(f"the length of axis {axis} is known at run time only")
        if missing := -length % chunks:
            rest = [missing if i == axis else n for i, n in enumerate(sizes)]
            tensor = c.concat([tensor, c.filled(rest, 0, c.dtype(tensor))], axis)
        each = c.product([(length + missing) // chunks, *sizes[axis + 1 :]])
        rows.append(c.reshape(tensor, [*sizes[:axis], chunks, each]))
    return c.concat(rows, axis + 1)


def _flatten_dense_tensors(c: Call) -> gs.Tensor:
    return c.concat(c.promoted([c.flat(t) for t in c.args.tensors("tensors")]), 0)


def _nonzero_static(c: Call) -> gs.Tensor:
    """The places that hold something, as many as asked for: cut off, or filled up."""
    x, size = c.tensor(), c.integer("size")
    found = places_of(c, x)
    fill = c.filled([size, c.rank(x)], c.integer("fill_value"), TYPE.INT64)
    return c.slice(c.concat([found, fill], 0), 0, 0, size)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "pad_sequence": _pad_sequence,
    "_chunk_cat": _chunk_cat,
    "flatten_dense_tensors": _flatten_dense_tensors,
    "nonzero_static": _nonzero_static,
}
