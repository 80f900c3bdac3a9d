"""Pad in words that every runtime has: Slice, Concat of constant blocks, Gather."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.dims import Dim
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_INDEXED = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}  # ONNX's mode: numpy's


def pad_to_concat(draft: Draft, match: Match) -> gs.Tensor:
    """Pad with constant pads: constant blocks joined on, or elements gathered by a constant index.

    Negative pads are sliced off first. A crop that reaches into the opposite padding is refused:
    runtimes do not agree on it.
    """
    node, facts = match.root, draft.facts
    x = node.inputs[0]
    shape = facts.of(x).shape
    if shape is None:
        raise Refused("the rank of its input is not known")
    pads = _numbers(draft, node, 1)
    if pads is None:
        raise Refused("its pads are computed at run time")
    axes = _numbers(draft, node, 3) or list(range(len(shape)))
    if len(pads) != 2 * len(axes):
        raise Refused(f"it has {len(pads)} pads for {len(axes)} axes")
    mode = attribute_of(node, "mode") or "constant"
    value = _fill(draft, node)
    y: gs.Tensor = x
    for index, axis in enumerate(axes):
        before, after = pads[index], pads[index + len(axes)]
        if before or after:
            y = _one_axis(draft, y, axis % len(shape), before, after, mode, value)
    if y is x:
        return x
    return y


def _one_axis(
    draft: Draft, x: gs.Tensor, axis: int, before: int, after: int, mode: str, value: Any
) -> gs.Tensor:
    shape = draft.facts.of(x).shape
    assert shape is not None
    size = shape[axis]
    if mode != "constant":
        if not isinstance(size, int):
            raise Refused(f"axis {axis} is {size}: mode `{mode}` needs its size")
        if min(before, after) < 0 or (mode == "reflect" and max(before, after) >= size):
            raise Refused(f"pads of {before} and {after} on {size} elements in mode `{mode}`")
        index = np.pad(np.arange(size), (before, after), mode=_INDEXED[mode])  # type: ignore[call-overload]
        return draft.op("Gather", x, draft.constant(index.astype(np.int64), "index"), axis=axis)
    crop = min(before, 0) + min(after, 0)
    if crop:
        left = size + crop
        if not dims.not_negative(left):
            raise Refused(f"it crops {-crop} of the {size} elements of axis {axis}")
        start, end = -min(before, 0), min(after, 0) or int(np.iinfo(np.int64).max)
        bounds = [draft.constant([n], w) for n, w in ((start, "starts"), (end, "ends"))]
        x = draft.op("Slice", x, *bounds, draft.constant([axis], "axes"))
        shape = draft.facts.of(x).shape
        assert shape is not None
    blocks = [
        _block(draft, x, shape, axis, length, value) for length in (max(before, 0), max(after, 0))
    ]
    parts = [t for t in (blocks[0], x, blocks[1]) if t is not None]
    return draft.op("Concat", *parts, axis=axis) if len(parts) > 1 else x


def _block(
    draft: Draft, x: gs.Tensor, shape: tuple[Dim, ...], axis: int, length: int, value: Any
) -> gs.Tensor | None:
    if not length:
        return None
    wanted = [length if i == axis else d for i, d in enumerate(shape)]
    static = [d for d in wanted if isinstance(d, int)]
    if len(static) == len(wanted):
        if int(np.prod(static, dtype=object)) > 1 << 22:
            raise Refused(f"a block of {static} would be a large constant")
        return draft.constant(np.full(static, value), "block")
    sizes = draft.op("Shape", x)
    ends = [
        draft.constant([d], "size")
        if isinstance(d, int)
        else draft.op("Gather", sizes, draft.constant([i], "axis"), axis=0)
        for i, d in enumerate(wanted)
    ]
    return draft.op("Expand", draft.constant(value, "value"), draft.op("Concat", *ends, axis=0))


def _fill(draft: Draft, node: gs.Node) -> Any:
    """The value that a constant Pad fills with, in the input's dtype."""
    dtype = draft.facts.of(node.inputs[0]).dtype
    if not dtype:
        raise Refused("the dtype of its input is not known")
    if len(node.inputs) > 2 and not node.inputs[2].is_empty():
        array = draft.facts.array(node.inputs[2])
        if array is None:
            raise Refused("the value it fills with is computed at run time")
        return array.reshape(())
    return np.zeros((), onnx.helper.tensor_dtype_to_np_dtype(dtype))


def _numbers(draft: Draft, node: gs.Node, index: int) -> list[int] | None:
    if index >= len(node.inputs) or node.inputs[index].is_empty():
        return None
    array = draft.facts.array(node.inputs[index])
    return None if array is None else [int(n) for n in array.reshape(-1)]
