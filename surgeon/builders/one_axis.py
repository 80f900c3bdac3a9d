"""What goes along one axis of known length, in forms of parts, means and views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import parts
from surgeon.builders.bench import Bench
from surgeon.builders.chains import bounds_of
from surgeon.facts.values import slice_bounds
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_MOST_PARTS = 128
_SUMS_READ_AXES, _MEANS_READ_AXES = 13, 18  # the opsets from which they are an input


def list_as_parts(draft: Draft, match: Match) -> gs.Tensor:
    """A Gather by a constant list as the stretches of its axis that the list runs through."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    indices = draft.facts.array(node.inputs[1])
    rank = parts.rank_of(draft, x)
    axis = int(attribute_of(node, "axis") or 0) % rank
    length = c.size(x, axis)
    if indices is None or indices.ndim != 1 or not indices.size:
        raise Refused("its indices are no constant list")
    if not isinstance(length, int) or not length:
        raise Refused("the length of its axis is known at run time only, or nothing")
    places = [int(i) + length * (i < 0) for i in indices.tolist()]
    times = _times_each(places, length)
    if times > 1 and (made := _each_again(c, x, axis, times)) is not None:
        return made
    runs = stretches(places)
    if len(runs) > _MOST_PARTS:
        raise Refused(f"it is in {len(runs)} pieces")
    cut: dict[tuple[int, int], gs.Tensor] = {(0, length): x}
    for run in runs:
        if run not in cut:
            cut[run] = c.slice(x, axis, *run)
    return c.concat([cut[run] for run in runs], axis)


def _times_each(places: Sequence[int], length: int) -> int:
    """How many times every element of the axis stands there, one after the other; 0 if not so."""
    times, rest = divmod(len(places), length)
    return 0 if rest or list(places) != [i // times for i in range(len(places))] else times


def _each_again(c: Bench, x: gs.Tensor, axis: int, times: int) -> gs.Tensor | None:
    """Every element of an axis so many times, and None where no constant gives its shape."""
    shape = c.facts.of(x).shape
    assert shape is not None, "the axis has a known length"
    front, behind = shape[:axis], shape[axis + 1 :]
    wanted = (*front, dims.product([shape[axis], times]), *behind)
    target = dims.constant_target((*front, shape[axis], times, *behind), wanted)
    if target is None:
        return None
    beside = c.concat([c.unsqueeze(x, [axis + 1])] * times, axis + 1)
    made: gs.Tensor = c.op("Reshape", beside, c.ints(target, "joined"))
    return made


def stretches(places: Sequence[int]) -> list[tuple[int, int]]:
    """A list of places as first and end of each stretch that counts up by one."""
    found: list[tuple[int, int]] = []
    for place in places:
        if found and found[-1][1] == place:
            found[-1] = found[-1][0], place + 1
        else:
            found.append((place, place + 1))
    return found


def sum_along_one_axis(draft: Draft, match: Match) -> gs.Tensor:
    """A ReduceSum along one axis as the mean along it, times its length."""
    c, node = Bench(draft), match.root
    x, opset = node.inputs[0], draft.facts.opset
    if not _SUMS_READ_AXES <= opset < _MEANS_READ_AXES:
        raise Refused("sums have their axes as an attribute, or means as an input, at this opset")
    axes = draft.facts.array(node.inputs[1]) if len(node.inputs) > 1 else None
    if axes is None or axes.size != 1:
        raise Refused("it is not along one axis")
    rank = parts.rank_of(draft, x)
    axis = int(axes.item()) % rank
    length = c.size(x, axis)
    if not isinstance(length, int) or not length:
        raise Refused("the length of its axis is known at run time only, or nothing")
    keepdims = int(attribute_of(node, "keepdims"))
    mean = draft.op("ReduceMean", x, draft.constant([axis], "axes"), keepdims=keepdims)
    count = draft.constant(np.array(length, parts.numpy_dtype(draft, x)), "count")
    made: gs.Tensor = draft.op("Mul", mean, count)
    return made


def steps_as_views(draft: Draft, match: Match) -> gs.Tensor:
    """A Slice in steps as views: each element that counts begins a row."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    cuts = bounds_of(draft, node, parts.rank_of(draft, x))
    if all(step == 1 for *_, step in cuts):
        raise Refused("it takes no steps")
    sizes = list(c.sizes(x))
    whole, stepped = [], []
    for start, end, axis, step in cuts:
        length = sizes[axis]
        if step < 1 or not all(isinstance(n, int) for n in sizes[axis:]):
            raise Refused("it goes from behind, or a length is known at run time only")
        assert isinstance(length, int)
        first, last = slice_bounds(start, end, step, length)
        kept = -(-(last - first) // step)
        rows = first // step + kept
        if kept < 1 or rows * step - length > length:
            raise Refused("nothing is left of it, or its steps are longer than what is there")
        if step > 1:
            stepped.append((axis, step, first, rows))
            first, last = 0, min(rows * step, length)
        if last - first < length:
            whole.append((first, last, axis))
            sizes[axis] = last - first
    x = _cut(c, x, whole) if whole else x
    for axis, step, first, rows in stepped:
        x = _one_in(c, x, sizes, axis, (step, first, rows))
    return x


def _cut(c: Bench, x: gs.Tensor, cuts: Sequence[tuple[int, int, int]]) -> gs.Tensor:
    """One Slice of several axes: first and last of each."""
    lists = zip(("starts", "ends", "axes"), zip(*cuts, strict=True), strict=True)
    made: gs.Tensor = c.op("Slice", x, *(c.ints(numbers, name) for name, numbers in lists))
    return made


def _one_in(
    c: Bench, x: gs.Tensor, sizes: list[Any], axis: int, picked: tuple[int, int, int]
) -> gs.Tensor:
    """One of every `step` elements of an axis, from the first on up to the last of so many rows."""
    step, first, rows = picked
    front, behind = sizes[:axis], sizes[axis + 1 :]
    row = int(np.prod(behind, dtype=np.int64))
    missing = rows * step - sizes[axis]
    if missing:  # any elements will do: those in front are there
        x = c.concat([x, c.slice(x, axis, 0, missing)], axis)
    place, leading = first % step * row, first // step
    cuts = [(place, place + row, axis + 1)]
    if leading:
        cuts.insert(0, (leading, rows, axis))
    x = _cut(c, c.reshape(x, [*front, rows, step * row]), cuts)
    sizes[axis] = rows - leading
    return c.reshape(x, sizes)
