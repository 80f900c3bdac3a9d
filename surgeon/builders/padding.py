"""Pad in words that every runtime has: Slice, Concat of constant blocks, Gather."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import parts
from surgeon.builders.parts import Array, Length
from surgeon.dims import Dim
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_MODES = ("constant", "reflect", "edge", "wrap")
_END = int(np.iinfo(np.int64).max)
_LARGEST_BLOCK = 1 << 22  # elements of a constant block


def pad_to_concat(draft: Draft, match: Match) -> gs.Tensor:
    """Pad as blocks of one value joined on, or as elements gathered by a constant index.

    Negative pads are sliced off: before the joining where the axis is surely long enough, else
    behind it, so that a crop may reach into the other end's padding, as onnxruntime has it. Pads
    may be computed; then the index is too.
    """
    node, facts = match.root, draft.facts
    x: gs.Tensor = node.inputs[0]
    shape = facts.of(x).shape
    if shape is None:
        raise Refused("the rank of its input is not known")
    rank = len(shape)
    axes = _axes(draft, node, rank)
    pads = _pads(draft, node, len(axes))
    mode = attribute_of(node, "mode") or "constant"
    if mode not in _MODES:
        raise Refused(f"its mode `{mode}` is none of {', '.join(_MODES)}")
    fill = _fill(draft, node) if mode == "constant" else None
    pairs = zip(pads, pads[len(axes) :], strict=False)
    return padded(draft, x, dict(zip(axes, pairs, strict=False)), mode, fill)


def padded(
    draft: Draft,
    x: gs.Tensor,
    sides: Mapping[int, tuple[Length, Length]],
    mode: str,
    fill: Array | gs.Tensor | None,
    *,
    crops: bool = False,
) -> gs.Tensor:
    """A value with so many elements before and behind on each of these axes.

    Args:
        draft: Where the nodes go.
        x: The value; its rank is known.
        sides: By axis; less than 0 for a crop.
        mode: As Pad has it.
        fill: What a constant Pad fills with; None in the other modes.
        crops: Whether amounts that only the run tells may be less than 0 in the other modes, where
            they leave places out, as in PyTorch.

    Raises:
        Refused: Nothing shows what it would be.
    """
    for axis, ends in sides.items():
        known = [n.static for n in ends]
        if known == [0, 0]:
            continue
        if fill is None and None in known:
            x = _by_places(draft, x, axis, ends, mode, crops=crops)
        elif fill is None or all(n is not None and n <= 0 for n in known):
            x = _by_numbers(draft, x, axis, [n or 0 for n in known], mode)
        elif None in known:
            x = _by_lengths(draft, x, axis, ends, fill)
        else:
            x = _filled(draft, x, axis, [n or 0 for n in known], fill)
    return x


def _axes(draft: Draft, node: gs.Node, rank: int) -> list[int]:
    if len(node.inputs) < 4 or node.inputs[3].is_empty():
        return list(range(rank))
    array = draft.facts.array(node.inputs[3])
    if array is None:
        raise Refused("its axes are computed at run time")
    return [int(n) % rank for n in array.reshape(-1)]


def _pads(draft: Draft, node: gs.Node, count: int) -> list[Length]:
    tensor = node.inputs[1]
    known: Sequence[Dim | None] | None = parts.dims_in(draft, tensor)
    if known is None:
        if draft.facts.of(tensor).shape != (2 * count,):
            raise Refused("its pads are computed at run time, and how many is not known")
        known = [None] * (2 * count)
    if len(known) != 2 * count:
        raise Refused(f"it has {len(known)} pads for {count} axes")
    return [parts.element(draft, lambda: tensor, i, dim) for i, dim in enumerate(known)]


def _fill(draft: Draft, node: gs.Node) -> Array | gs.Tensor:
    """The value that a constant Pad fills with: in the input's dtype, or computed."""
    if len(node.inputs) > 2 and not node.inputs[2].is_empty():
        array = draft.facts.array(node.inputs[2])
        return node.inputs[2] if array is None else array.reshape(())
    return np.zeros((), parts.numpy_dtype(draft, node.inputs[0]))


def _by_places(
    draft: Draft, x: gs.Tensor, axis: int, pads: tuple[Length, Length], mode: str, *, crops: bool
) -> gs.Tensor:
    """Elements of x alone, at places that are computed as the pads are."""
    if not crops and not all(n.dim is not None and dims.not_negative(n.dim) for n in pads):
        raise Refused(
            f"the pads of axis {axis} in mode `{mode}` are computed at run time, and may be crops"
        )
    size = parts.lengths_of(draft, x, axis + 1)[axis]
    length, before = size.make(), pads[0].make()
    total = draft.op("Add", draft.op("Add", length, before), pads[1].make())
    place = draft.op("Sub", parts.counting(draft, Length(None, lambda: total)), before)
    if mode == "wrap":
        if draft.facts.opset < 10:  # no Mod; PyTorch goes around once at most
            place = draft.op("Add", place, length)
        place = parts.remainder(draft, place, length)
    else:
        last = draft.op("Sub", length, draft.constant([1], "one"))
        if mode == "reflect":  # around the first element, then around the last
            beyond = draft.op("Abs", draft.op("Sub", last, draft.op("Abs", place)))
            place = draft.op("Sub", last, beyond)
        elif draft.facts.opset >= 12:
            place = draft.op("Max", draft.constant([0], "zero"), draft.op("Min", place, last))
        else:  # Max and Min of integers are younger: (|n| - |n - m| + m) / 2 is n within 0 and m
            ends = (draft.op("Abs", n) for n in (place, draft.op("Sub", place, last)))
            twice = draft.op("Add", draft.op("Sub", *ends), last)
            place = draft.op("Div", twice, draft.constant([2], "two"))
    return draft.op("Gather", x, place, axis=axis)


def _by_numbers(draft: Draft, x: gs.Tensor, axis: int, known: list[int], mode: str) -> gs.Tensor:
    """Elements of x alone: cropped, reflected, repeated, wrapped."""
    before, after = known
    size = _size(draft, x, axis)
    if before <= 0 and after <= 0:
        if isinstance(size, int) and size + before + after < 0:
            raise Refused(f"it crops {-before - after} of the {size} elements of axis {axis}")
        return _slice(draft, x, axis, -before, after or _END)
    if min(before, after) < 0:
        raise Refused(
            f"pads of {before} and {after} on axis {axis}: mode `{mode}` beside a crop has no one "
            "meaning"
        )
    if isinstance(size, int):
        if mode == "reflect" and max(before, after) >= size:
            raise Refused(f"pads of {before} and {after} on {size} elements in mode `reflect`")
        index = np.pad(np.arange(size), (before, after), mode=mode)  # type: ignore[call-overload]
        return _gather(draft, x, axis, index)
    if mode == "wrap" and not dims.at_most(max(before, after), size):
        raise Refused(f"axis {axis} is {size}: mode `wrap` needs its size, or a bound")
    blocks = (
        _ahead(draft, x, axis, before, mode) if before else None,
        x,
        _behind(draft, x, axis, after, mode) if after else None,
    )
    return draft.op("Concat", *(t for t in blocks if t is not None), axis=axis)


def _ahead(draft: Draft, x: gs.Tensor, axis: int, count: int, mode: str) -> gs.Tensor:
    """What stands in front of an axis whose size is known at run time."""
    if mode == "wrap":
        return _slice(draft, x, axis, -count, _END)
    index = np.arange(count, 0, -1) if mode == "reflect" else np.zeros(count)
    return _gather(draft, x, axis, index)


def _behind(draft: Draft, x: gs.Tensor, axis: int, count: int, mode: str) -> gs.Tensor:
    """What stands behind it; negative indices of Gather are younger than those of Slice."""
    if mode == "wrap":
        return _slice(draft, x, axis, 0, count)
    if mode == "reflect":
        tail = _slice(draft, x, axis, -count - 1, -1)
        return _gather(draft, tail, axis, np.arange(count - 1, -1, -1))
    return _gather(draft, _slice(draft, x, axis, -1, _END), axis, np.zeros(count))


def _filled(
    draft: Draft, x: gs.Tensor, axis: int, pads: list[int], fill: Array | gs.Tensor
) -> gs.Tensor:
    """Blocks of one value, of lengths that are numbers."""
    starts, ends = max(-pads[0], 0), min(pads[1], 0) or _END
    crops, size = min(pads[0], 0) + min(pads[1], 0), _size(draft, x, axis)
    first = bool(crops) and dims.not_negative(size + crops)
    if isinstance(size, int) and size + crops < 0:
        raise Refused(f"it crops {-crops} of the {size} elements of axis {axis}")
    if first:
        x = _slice(draft, x, axis, starts, ends)
    lengths = [parts.constant_length(draft, max(n, 0)) for n in pads]
    y = _joined(draft, x, axis, (lengths[0], lengths[1]), fill)
    return _slice(draft, y, axis, starts, ends) if crops and not first else y


def _by_lengths(
    draft: Draft,
    x: gs.Tensor,
    axis: int,
    pads: tuple[Length, Length],
    fill: Array | gs.Tensor,
) -> gs.Tensor:
    """Blocks of one value, of lengths known at run time, which may turn out to be crops."""
    blocks, crops = zip(*(_signs(draft, n) for n in pads), strict=True)
    return _cropped(draft, _joined(draft, x, axis, blocks, fill), axis, crops)


def wrapped(draft: Draft, x: gs.Tensor, axis: int, pads: tuple[Length, Length]) -> gs.Tensor:
    """Elements of x alone, around an axis; first are taken off what turns out to be crops."""
    (before, first), (after, last) = (_signs(draft, n) for n in pads)
    inner = _cropped(draft, x, axis, (first, last))
    return _by_places(draft, inner, axis, (before, after), "wrap", crops=True)


def _cropped(draft: Draft, y: gs.Tensor, axis: int, crops: Sequence[gs.Tensor | None]) -> gs.Tensor:
    """A value without so many elements, as a number that is not positive says, at either end."""
    if all(crop is None for crop in crops):
        return y
    zero = draft.constant([0], "zero")
    starts = zero if crops[0] is None else draft.op("Sub", zero, crops[0])
    if crops[1] is None:
        ends: gs.Tensor = draft.constant([_END], "ends")
    else:
        ends = draft.op("Add", parts.lengths_of(draft, y, axis + 1)[axis].make(), crops[1])
    return draft.op("Slice", y, starts, ends, draft.constant([axis], "axes"))


def _signs(draft: Draft, pad: Length) -> tuple[Length, gs.Tensor | None]:
    """A pad as the block that it adds and the crop, not positive, that it is; None for none."""
    if pad.dim is not None and dims.not_negative(pad.dim):
        return pad, None
    zero = draft.constant([0], "zero")
    if pad.dim is not None and dims.not_negative(-pad.dim):
        return parts.constant_length(draft, 0), pad.make()
    number = pad.make()
    if draft.facts.opset >= 12:
        added, taken = draft.op("Max", number, zero), draft.op("Min", number, zero)
    else:  # Max and Min of integers are younger: (n + |n|) / 2 and (n - |n|) / 2
        size, two = draft.op("Abs", number), draft.constant([2], "two")
        added = draft.op("Div", draft.op("Add", number, size), two)
        taken = draft.op("Div", draft.op("Sub", number, size), two)
    return Length(None, lambda: added), taken


def _joined(
    draft: Draft,
    x: gs.Tensor,
    axis: int,
    lengths: tuple[Length, ...],
    fill: Array | gs.Tensor,
) -> gs.Tensor:
    ends = [
        None if n.static == 0 else _block(draft, x, axis, n, fill) for n in (lengths[0], lengths[1])
    ]
    joined = [t for t in (ends[0], x, ends[1]) if t is not None]
    return draft.op("Concat", *joined, axis=axis) if len(joined) > 1 else x


def _block(
    draft: Draft, x: gs.Tensor, axis: int, length: Length, fill: Array | gs.Tensor
) -> gs.Tensor:
    lengths = parts.lengths_of(draft, x, draft.facts.of(x).rank or 0)
    lengths[axis] = length
    static = [n.static for n in lengths if n.static is not None]
    if isinstance(fill, gs.Tensor):
        return draft.op("Expand", fill, parts.shape_from(draft, lengths))
    if len(static) < len(lengths):
        value = draft.constant(fill, "value")
        return draft.op("Expand", value, parts.shape_from(draft, lengths))
    if int(np.prod(static, dtype=object)) > _LARGEST_BLOCK:
        raise Refused(f"a block of {static} would be a large constant")
    return draft.constant(np.full(static, fill), "block")


def _size(draft: Draft, x: gs.Tensor, axis: int) -> Any:
    shape = draft.facts.of(x).shape
    assert shape is not None, "Slice, Gather and Concat keep the rank"
    return shape[axis]


def _slice(draft: Draft, x: gs.Tensor, axis: int, start: int, end: int) -> gs.Tensor:
    bounds = (draft.constant([n], w) for n, w in ((start, "starts"), (end, "ends")))
    return draft.op("Slice", x, *bounds, draft.constant([axis], "axes"))


def _gather(draft: Draft, x: gs.Tensor, axis: int, index: Array) -> gs.Tensor:
    return draft.op("Gather", x, draft.constant(index.astype(np.int64), "index"), axis=axis)
