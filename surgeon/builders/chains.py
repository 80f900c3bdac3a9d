"""What is taken of a value and then taken of that, put around and put around again: once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.padded import sides_of
from surgeon.builders.views import as_shape
from surgeon.facts import Facts
from surgeon.facts.fact import same_dims
from surgeon.match import Match, attribute_of, is_one_of
from surgeon.rewrite import Draft, Refused

Cut = tuple[int, int, int, int]  # start, end, axis, step
_TO_THE_END = (1 << 31) - 1  # as exporters say it, and whatever is larger
_LARGEST = (1 << 63) - 1

# ----------------------------------------------------------------------------------------- Slice


def slice_chain(draft: Draft, match: Match) -> gs.Tensor:
    """A Slice of a Slice, as one.

    A Slice with several readers goes where all of them are Slices that leave gaps, or of which some
    overlap: those that tile an axis are better one Split of it.
    """
    outer, inner = match.root, match.nodes[1]
    rank = draft.facts.of(inner.inputs[0]).rank
    first, second = (bounds_of(draft, node, rank) for node in (inner, outer))
    _check_readers(draft, inner.outputs[0], first, rank)
    outside = {cut[2]: cut for cut in second}
    shared = {axis for *_, axis, _ in first} & outside.keys()
    joined = [
        _one_cut(draft, inner, part, outside.pop(part[2])) if part[2] in shared else part
        for part in first
    ]
    rows = zip(*joined, *outside.values(), strict=True)
    names = ("starts", "ends", "axes", "steps")
    lists = [draft.constant(list(row), name) for row, name in zip(rows, names, strict=True)]
    return draft.op("Slice", inner.inputs[0], *lists)


def _check_readers(draft: Draft, cut: gs.Tensor, first: list[Cut], rank: int | None) -> None:
    """That every reader of a cut value may cut what it was cut from.

    Raises:
        Refused: One is no Slice of other axes, or one of several has no gaps.
    """
    if draft.surgery.is_output(cut) or any(
        not is_one_of(n, {"Slice"}) or n.inputs[0] is not cut for n in cut.outputs
    ):
        raise Refused("something else reads what is cut")
    bounds = [part for reader in cut.outputs for part in bounds_of(draft, reader, rank)]
    if len(cut.outputs) > 1 and {axis for *_, axis, _ in first} & {axis for *_, axis, _ in bounds}:
        raise Refused("several cut the same axis once more")
    gaps = all(step != 1 for *_, step in bounds)
    if len(cut.outputs) > 1 and not gaps and not _overlap(draft, cut, bounds):
        raise Refused("several Slices without gaps may be one Split")


def _overlap(draft: Draft, tensor: gs.Tensor, cuts: Sequence[Cut]) -> bool:
    """Whether two of these share an element, so that no Split gives both.

    Where the length is not known, what ends at a place from the end goes on as far as is asked: all
    but the first and all but the last elements share some at every length but one.
    """
    spans = []
    for part in cuts:
        start, end, step = _from_front(draft, tensor, part)
        end = end if end >= 0 else _LARGEST
        if step == 1 and 0 <= start < end:
            spans.append((part[2], start, end))
    return any(a[0] == b[0] and b[1] < a[2] for a, b in itertools.pairwise(sorted(spans)))


def bounds_of(draft: Draft, node: gs.Node, rank: int | None) -> list[Cut]:
    """(start, end, axis, step) of each axis that a Slice names."""
    lists: list[Sequence[int] | None] = []
    for index in range(1, 5):
        tensor = node.inputs[index] if len(node.inputs) > index else None
        if tensor is None or tensor.is_empty():
            lists.append(None)
            continue
        array = draft.facts.array(tensor)
        if array is None:
            raise Refused("its bounds are computed at run time")
        lists.append([int(n) for n in array.reshape(-1).tolist()])
    starts, ends, axes, steps = lists
    assert starts is not None
    assert ends is not None
    axes = axes if axes is not None else list(range(len(starts)))
    if any(axis < 0 for axis in axes):
        if rank is None:
            raise Refused("its rank is not known")
        axes = [axis % rank for axis in axes]
    steps = steps if steps is not None else [1] * len(starts)
    return list(zip(starts, ends, axes, steps, strict=True))


def lone_cut(facts: Facts, node: gs.Node) -> Cut | None:
    """(start, end, axis, step) of a Slice of one axis by constants; None of another.

    Of one that names no axis, which may have a step all the same, the first. An old one that the
    sweep has not come to has its bounds as attributes, and none here.
    """
    numbers = {2: 0, 3: 1}
    for place, tensor in enumerate(node.inputs[1:]):
        if tensor.is_empty():
            continue
        array = facts.array(tensor)
        if array is None or array.size != 1 or array.dtype == object:
            return None
        numbers[place] = int(array.reshape(-1)[0])
    if not {0, 1} <= numbers.keys():
        return None
    return numbers[0], numbers[1], numbers[2], numbers[3]


def _one_cut(draft: Draft, inner: gs.Node, first: Cut, second: Cut) -> Cut:
    """Two cuts of one axis, as one.

    Raises:
        Refused: Where it begins or ends depends on a length that is known at run time only.
    """
    axis = first[2]
    start, end, step = _from_front(draft, inner.inputs[0], first)
    more, last, stride = _from_front(draft, inner.outputs[0], second)
    if min(step, stride) < 1:
        raise Refused("one of the two goes backwards")
    if min(start, more) < 0:
        raise Refused("one of the two begins at a place that is counted from the end")
    if last >= _TO_THE_END:
        stop = end
    elif last >= 0 and end >= 0:
        stop = min(end, start + last * step)
    elif last < 0 and step == 1 and (end < 0 or end >= _TO_THE_END):
        stop = last + min(end, 0)
    else:
        raise Refused("one of the two ends at a place that is counted from the end")
    begin, step = start + more * step, step * stride
    if max(begin, step, -stop) > _LARGEST:
        raise Refused("its numbers leave the integers")
    return begin, stop, axis, step


def _from_front(draft: Draft, tensor: gs.Tensor, cut: Cut) -> tuple[int, int, int]:
    """(start, end, step) of a cut, counted from the front where the length is known."""
    start, end, axis, step = cut
    shape = draft.facts.of(tensor).shape
    length = shape[axis] if shape is not None and axis < len(shape) else None
    if isinstance(length, int):
        start, end = (max(n + length, 0) if n < 0 else n for n in (start, end))
    return start, end, step


# ---------------------------------------------------------------------------------------- Gather


def gather_all(draft: Draft, match: Match) -> gs.Tensor:
    """A Gather of every place once, in order: the value, or a view of it.

    The latter is `as_strided` as PyTorch's newer exporter has it, behind each pool to one element.
    """
    node = match.root
    x: gs.Tensor = node.inputs[0]
    shape, places = draft.facts.of(x).shape, draft.facts.array(node.inputs[1])
    if not shape or places is None or not places.ndim:
        raise Refused("its places are no list that is known")
    axis = int(attribute_of(node, "axis") or 0) % len(shape)
    if places.size != shape[axis]:
        raise Refused(f"{places.size} places are not known to be all of its axis {axis}")
    if (np.where(places < 0, places + places.size, places).ravel() != np.arange(places.size)).any():
        raise Refused("its places are in another order")
    if places.ndim == 1:
        return x
    return as_shape(draft, x, (*shape[:axis], *places.shape, *shape[axis + 1 :]))


def gather_chain(draft: Draft, match: Match) -> gs.Tensor:
    """Known places of a list of known places, along one axis: those places."""
    outer, inner = match.root, match.nodes[1]
    second, first = (draft.facts.array(node.inputs[1]) for node in (outer, inner))
    if first is None or second is None:
        raise Refused("its places are computed at run time")
    if first.ndim != 1:
        raise Refused("the first takes no list of places")
    rank = draft.facts.of(inner.inputs[0]).rank
    axes = [int(attribute_of(node, "axis") or 0) for node in (inner, outer)]
    if min(axes) < 0:
        if rank is None:
            raise Refused("its rank is not known")
        axes = [axis % rank for axis in axes]
    if axes[0] != axes[1]:
        raise Refused("the two take along different axes")
    if second.size and not -first.size <= second.min() <= second.max() < first.size:
        raise Refused("a place is outside the list")
    places = draft.constant(np.asarray(first[second], np.int64), "places")
    result: gs.Tensor = draft.op("Gather", inner.inputs[0], places, axis=axes[0])
    return result


# ----------------------------------------------------------------------------------- Pad, Expand


def pad_chain(draft: Draft, match: Match) -> gs.Tensor:
    """Two Pads with one value, as one."""
    outer, inner = match.root, match.nodes[1]
    x: gs.Tensor = inner.inputs[0]
    rank = draft.facts.of(x).rank
    if rank is None:
        raise Refused("its rank is not known")
    if any(attribute_of(n, "mode") not in (None, "constant", b"constant") for n in (outer, inner)):
        raise Refused("one of the two adds no constant value")
    values = [_value(draft, node) for node in (outer, inner)]
    if values[0] != values[1]:
        raise Refused("the two add different values")
    sides = [sides_of(draft, node, rank) for node in (outer, inner)]
    if min(map(min, sides), default=0) < 0:
        raise Refused("one of the two takes elements away")
    pads = draft.constant(np.array(sides, np.int64).sum(axis=0), "pads")
    rest = [t for t in outer.inputs[2:3] if not t.is_empty()]
    result: gs.Tensor = draft.op("Pad", x, pads, *rest, mode="constant")
    return result


def _value(draft: Draft, pad: gs.Node) -> bytes:
    """What a Pad adds, to the bit; nothing for the zero that it adds when it is told nothing."""
    if len(pad.inputs) < 3 or pad.inputs[2].is_empty():
        return b""
    array = draft.facts.array(pad.inputs[2])
    if array is None or array.size != 1 or array.dtype.kind not in "iufb":
        raise Refused("what one of the two adds is computed at run time, or no number")
    raw: bytes = array.tobytes()
    return raw if any(raw) else b""


def expand_chain(draft: Draft, match: Match) -> gs.Tensor:
    """An Expand of an Expand, to both shapes at once."""
    outer, inner = match.root, match.nodes[1]
    x: gs.Tensor = inner.inputs[0]
    first, second = (draft.facts.array(node.inputs[1]) for node in (inner, outer))
    result: gs.Tensor
    if first is None or second is None:
        result = draft.op("Expand", x, outer.inputs[1])
        if same_dims(draft.facts.of(result).shape, draft.facts.of(outer.outputs[0]).shape):
            return result
        raise Refused("what the first repeats, the second may leave as it is")
    try:
        both = np.broadcast_shapes(*(tuple(s.reshape(-1).tolist()) for s in (first, second)))
    except ValueError:
        raise Refused("the two do not go together") from None
    result = draft.op("Expand", x, draft.constant(np.array(both, np.int64), "shape"))
    return result


def choice_made(draft: Draft, match: Match) -> gs.Tensor:
    """A Where whose constant condition is the same everywhere, where the result is no larger."""
    condition, facts = match.values["c"], draft.facts
    assert condition is not None
    array = facts.array(condition)
    if array is None or not array.size or (array != array.reshape(-1)[0]).any():
        raise Refused("its condition is not the same everywhere")
    chosen = match.values["a" if array.reshape(-1)[0] else "b"]
    assert chosen is not None
    if not same_dims(facts.of(chosen).shape, facts.of(match.root.outputs[0]).shape):
        raise Refused("the condition, or what is not chosen, may make the result larger")
    return chosen


def same_branches(draft: Draft, match: Match) -> gs.Tensor:
    """A Where of a value and itself: the value, where the condition makes it no larger."""
    x, facts = match.values["x"], draft.facts
    assert x is not None
    if not same_dims(facts.of(x).shape, facts.of(match.root.outputs[0]).shape):
        raise Refused("the condition may make the result larger")
    return x
