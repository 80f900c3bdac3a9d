"""What goes along one axis of known length, in forms that read no list: parts, and means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import parts
from surgeon.builders.bench import Bench
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
