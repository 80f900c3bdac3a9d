"""Batches of unequal lengths, packed or laid end to end, and filled up again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import LARGEST, TYPE, Call, Size
from surgeon.builders.bench import same_length
from surgeon.builders.packing import places_of, taken
from surgeon.rewrite import Refused


def _turned(c: Call, x: gs.Tensor) -> gs.Tensor:
    """With batch and time changed places, where the batch is first outside."""
    if not c.value("batch_first"):
        return x
    made: gs.Tensor = c.op("Transpose", x, perm=[1, 0, *range(2, c.rank(x))])
    return made


def _pack(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    """The steps within each sample's length, and how many samples have each step."""
    x, lengths = c.tensor("input"), c.cast(c.tensor("lengths"), TYPE.INT64)
    if c.rank(x) < 2:
        raise Refused(f"its input has rank {c.rank(x)}")
    x = _turned(c, x)
    steps = c.unsqueeze(c.count(c.size(x, 0)), [1])
    inside = c.op("Less", steps, c.unsqueeze(lengths, [0]))
    sizes = c.op("ReduceSum", c.cast(inside, TYPE.INT64), c.ints([1], "axes"), keepdims=0)
    longest = c.scalar(c.slice(lengths, 0, 0, 1))
    return taken(c, x, inside), c.slice(sizes, 0, 0, longest)


def _pad(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    """Each step in its place, the rest filled up; and how long each sample is."""
    data, sizes = c.tensor("data"), c.cast(c.tensor("batch_sizes"), TYPE.INT64)
    value, rank, dtype = c.value("padding_value"), c.rank(data), c.dtype(data)
    time, total = c.size(sizes, 0), c.scalar(c.tensor("total_length"))
    places = places_of(c, sizes)
    found = c.op("Gather", data, places.rows, axis=0)
    inside = c.unsqueeze(places.inside, list(range(2, rank + 1)))
    found = c.where(inside, found, c.number(value, dtype))
    if not same_length(time, total) and not (isinstance(total, int) and total <= 0):
        steps = c.sub(total, time)
        if not isinstance(total, int):  # no number above 0 asks for none
            steps = Size(None, partial(_none_below, c, steps))
        found = c.concat([found, c.filled([steps, *c.sizes(found)[1:]], value, dtype)], 0)
    return _turned(c, found), places.lengths


def _none_below(c: Call, steps: Size | int) -> gs.Tensor:
    made: gs.Tensor = c.op("Max", c.vector([steps]), c.ints([0], "none"))
    return made


def _filled_up(c: Call) -> gs.Tensor:
    """`_jagged_to_padded_dense_forward`: rows between offsets as a batch, cut or filled up."""
    values, offsets = c.tensor("values"), _offsets(c)
    room = c.listed("max_lengths")[0]
    begin, end = c.slice(offsets, 0, 0, -1), c.slice(offsets, 0, 1, LARGEST)
    places = c.op("Add", c.unsqueeze(begin, [1]), c.unsqueeze(c.count(room), [0]))
    inside = c.op("Less", places, c.unsqueeze(end, [1]))
    # a row behind the last stands for what is filled up, where there may be no other
    row = c.filled([1, *c.sizes(values)[1:]], c.value("padding_value"), c.dtype(values))
    places = c.op("Where", inside, places, c.vector([c.size(values, 0)], "behind"))
    made: gs.Tensor = c.op("Gather", c.concat([values, row], 0), places, axis=0)
    return made


def _laid_end_to_end(c: Call) -> gs.Tensor:
    """`_padded_dense_to_jagged_forward`: of each sample as many rows as lie between its offsets."""
    dense, offsets = c.tensor("dense"), _offsets(c)
    begin, end = c.slice(offsets, 0, 0, -1), c.slice(offsets, 0, 1, LARGEST)
    lengths = c.unsqueeze(c.op("Sub", end, begin), [1])
    inside = c.op("Less", c.unsqueeze(c.count(c.size(dense, 1)), [0]), lengths)
    return taken(c, dense, inside)


def _offsets(c: Call) -> gs.Tensor:
    given = c.args.tensors("offsets")
    if len(given) != 1 or c.rank(given[0]) != 1:
        raise Refused(f"it is jagged along {len(given)} axes")
    return c.cast(given[0], TYPE.INT64)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "_pack_padded_sequence": _pack,
    "_pad_packed_sequence": _pad,
    "_jagged_to_padded_dense_forward": _filled_up,
    "_padded_dense_to_jagged_forward": _laid_end_to_end,
}
