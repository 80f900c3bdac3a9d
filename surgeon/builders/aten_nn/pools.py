"""PyTorch's maximum pooling.

Windows are those of ATen/native/Pool.h: with `ceil_mode` a last window that would begin in the
padding behind is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.builders.aten_nn.fitted import fitted, least
from surgeon.builders.bench import LARGEST
from surgeon.builders.parts import Array, Length
from surgeon.builders.whole_numbers import largest
from surgeon.builders.windows import Window, begun, digit_of, with_batch
from surgeon.facts.fact import INTEGERS
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FIRST_DILATED = 10  # the opset of MaxPool's `dilations`
_FIRST_CEILING = 10  # and of its `ceil_mode`
_IN_MAX_POOL = frozenset({onnx.TensorProto.INT8, onnx.TensorProto.UINT8})  # from opset 12


def max_pool(draft: Draft, match: Match, *, indices: int) -> Any:
    """`aten.max_pool{1,2,3}d`, and with `indices` `aten.max_pool{2,3}d_with_indices`."""
    args = bind(match.root, draft.facts)
    spatial = digit_of(match.root.op)
    x, batched = with_batch(draft, match.root.inputs[0], spatial)
    fill = least(draft, parts.numpy_dtype(draft, x))
    fit = fitted(draft, args, x, spatial, "ReduceMax", fill=fill)
    if fit.computed and indices and parts.is_read(draft, match.root.outputs[1]):
        raise Refused("its window or padding is known at run time only, and its places are read")
    x = fit.x
    if fit.pads is not None:
        x = fit.padded(draft, x, fill)
    if fit.is_done:
        y = x if batched else parts.squeeze(draft, x, 0)
        return (y, y) if indices else y
    windows = fit.windows
    dtype = draft.facts.of(x).dtype
    if dtype in INTEGERS and not (dtype in _IN_MAX_POOL and draft.facts.opset >= 12):
        return _of_integers(draft, x, windows, batched=batched, indices=bool(indices))
    lengths = parts.lengths_of(draft, x, spatial + 2)[2:]
    if draft.facts.opset < _FIRST_DILATED and any(w.dilation != 1 for w in windows):
        if indices and parts.is_read(draft, match.root.outputs[1]):
            return found_in_windows(draft, x, windows, lengths, batched=batched)
        y = largest_gathered(draft, x, windows, lengths)
        y = y if batched else parts.squeeze(draft, y, 0)
        return (y, y) if indices else y
    if any(w.may_drop(n) or w.is_wide(n) for w, n in zip(windows, lengths, strict=True)):
        if indices and parts.is_read(draft, match.root.outputs[1]):
            raise Refused(
                "its last window depends on a length known at run time, or it is padded by as much "
                "as a window, and its places are read; fix it with `--shape`"
            )
        y = _longer(draft, x, windows, lengths)
        y = y if batched else parts.squeeze(draft, y, 0)
        return (y, y) if indices else y
    near = [w.padding for w in windows]
    far, ceil = _ends(windows, lengths, draft.facts.opset)
    attributes: dict[str, Any] = {
        "kernel_shape": [w.kernel for w in windows],
        "pads": [*near, *far],
        "strides": [w.stride for w in windows],
    }
    if any(w.dilation != 1 for w in windows):
        attributes["dilations"] = [w.dilation for w in windows]
    if ceil:
        attributes["ceil_mode"] = 1
    if not indices:
        y = draft.op("MaxPool", x, **attributes)
        return y if batched else parts.squeeze(draft, y, 0)
    y, flat = draft.op("MaxPool", x, outputs=2, **attributes)
    places = in_plane(draft, flat, lengths)
    if batched:
        return y, places
    return parts.squeeze(draft, y, 0), parts.squeeze(draft, places, 0)


def found_in_windows(
    draft: Draft, x: gs.Tensor, windows: list[Window], lengths: list[Length], *, batched: bool
) -> tuple[gs.Tensor, gs.Tensor]:
    """The greatest elements of gathered windows, and where in its plane each stands."""
    taps = [_taps(window, length) for window, length in zip(windows, lengths, strict=True)]
    plane = [length.static or 0 for length in lengths]
    counts = [len(rows) for rows in taps]
    rows = []
    for at in np.ndindex(*counts):
        inside = [[n for n in taps[axis][i] if 0 <= n < plane[axis]] for axis, i in enumerate(at)]
        rows.append(np.ravel_multi_index(np.ix_(*inside), plane).reshape(-1))
    return looked_up(draft, x, rows, plane, counts, batched=batched)


def looked_up(
    draft: Draft,
    x: gs.Tensor,
    rows: list[Array],
    plane: list[int],
    bins: list[int],
    *,
    batched: bool,
) -> tuple[gs.Tensor, gs.Tensor]:
    """The greatest element of every bin, and where in its plane it stands.

    Args:
        draft: Takes the nodes.
        x: [N, C, *plane].
        rows: The places in the plane of every bin.
        plane: How long the axes are.
        bins: How many bins there are along each.
        batched: Whether the result has a batch.
    """
    width = max(len(row) for row in rows)
    table = np.stack([np.concatenate([r, np.repeat(r[:1], width - len(r))]) for r in rows])
    flat = parts.reshape(draft, x, [0, 0, int(np.prod(plane))])
    windows = draft.op("Gather", flat, draft.constant(table, "bins"), axis=2)  # [N, C, bins, width]
    values = draft.op("ReduceMax", windows, draft.constant([3], "axes"), keepdims=0)
    best = draft.op("ArgMax", windows, axis=3, keepdims=0)
    starts = np.arange(table.shape[0], dtype=np.int64) * table.shape[1]
    at = draft.op("Add", best, draft.constant(starts, "starts"))
    places = draft.op("Gather", draft.constant(table.reshape(-1), "places"), at, axis=0)
    shape = [0, 0, *bins] if batched else [-1, *bins]
    return parts.reshape(draft, values, shape), parts.reshape(draft, places, shape)


def _taps(window: Window, length: Length) -> list[list[int]]:
    """What every window reads along an axis; some of it in the padding."""
    if length.static is None:
        raise Refused("`dilations` of `MaxPool` needs opset 10; or fix the shape with `--shape`")
    found = []
    for row in range(window.count(length.static)):
        first = row * window.stride - window.padding
        taps = [first + tap * window.dilation for tap in range(window.kernel)]
        if not any(0 <= at < length.static for at in taps):
            raise Refused("a window lies in the padding")
        found.append(taps)
    return found


def _longer(draft: Draft, x: gs.Tensor, windows: list[Window], lengths: list[Length]) -> gs.Tensor:
    """The maxima of full windows of a longer input, of which those are kept that begin in it."""
    near = [w.padding for w in windows]
    far = [w.padding + (w.stride - 1 if w.ceil else 0) for w in windows]
    edges = draft.constant([0, 0, *near, 0, 0, *far], "pads")
    x = draft.op("Pad", x, edges, least(draft, parts.numpy_dtype(draft, x)))
    attributes: dict[str, Any] = {
        "kernel_shape": [w.kernel for w in windows],
        "strides": [w.stride for w in windows],
    }
    if any(w.dilation != 1 for w in windows):
        attributes["dilations"] = [w.dilation for w in windows]
    y = draft.op("MaxPool", x, **attributes)
    return begun(draft, y, list(zip(lengths, windows, strict=True)))


def _ends(windows: list[Window], lengths: list[Length], opset: int) -> tuple[list[int], int]:
    """The padding behind each axis, and `ceil_mode` where a runtime has to find it."""
    far, ceil = [], 0
    for length, window in zip(lengths, windows, strict=True):
        if window.floors(length):
            far.append(window.padding)
        elif length.static is not None:
            last = (window.count(length.static) - 1) * window.stride + window.reach
            far.append(last - length.static - window.padding)
        elif window.never_drops and opset < _FIRST_CEILING:
            far.append(window.padding + window.stride - 1)  # less than a window
        elif window.never_drops:
            far.append(window.padding)
            ceil = 1
        else:
            raise Refused(
                "its last window depends on a length known at run time; fix it with `--shape`"
            )
    return far, ceil


def _of_integers(
    draft: Draft, x: gs.Tensor, windows: list[Window], *, batched: bool, indices: bool
) -> Any:
    found = [y for y in largest(draft, x, windows, indices=indices) if y is not None]
    found = found if batched else [parts.squeeze(draft, y, 0) for y in found]
    return tuple(found) if indices else found[0]


def largest_gathered(
    draft: Draft, x: gs.Tensor, windows: list[Window], lengths: list[Length]
) -> gs.Tensor:
    """Windows gathered axis by axis; what would lie outside repeats an element that does not."""
    for axis, (window, length) in enumerate(zip(windows, lengths, strict=True)):
        if length.static is None:
            x = _largest_beside(draft, x, axis, window, length, spatial=len(windows))
            continue
        rows = []
        for taps in _taps(window, length):
            inside = [at for at in taps if 0 <= at < length.static]
            rows.append([at if at in inside else inside[0] for at in taps])
        windows_of = draft.op("Gather", x, draft.constant(rows, "windows"), axis=axis + 2)
        x = draft.op("ReduceMax", windows_of, draft.constant([axis + 3], "axes"), keepdims=0)
    return x


def _largest_beside(
    draft: Draft, x: gs.Tensor, axis: int, window: Window, length: Length, *, spatial: int
) -> gs.Tensor:
    """The greatest of what windows read along one axis of any length: copies of it, shifted."""
    pads = np.zeros((2, spatial + 2), np.int64)
    behind = window.pads - window.padding
    pads[:, axis + 2] = window.padding, behind + (window.stride - 1) * window.ceil
    fill = least(draft, parts.numpy_dtype(draft, x))
    x = draft.op("Pad", x, draft.constant(pads.reshape(-1), "pads"), fill)
    along = draft.constant([axis + 2], "axes")
    starts = [tap * window.dilation for tap in range(window.kernel)]
    ends = [start - starts[-1] for start in starts[:-1]] + [LARGEST]
    taps = [
        draft.op("Slice", x, draft.constant([start], "start"), draft.constant([end], "end"), along)
        for start, end in zip(starts, ends, strict=True)
    ]
    y = draft.op("Max", *taps)
    strides = [1] * spatial
    strides[axis] = window.stride
    if window.stride > 1:
        y = draft.op("MaxPool", y, kernel_shape=[1] * spatial, strides=strides)
    return begun(draft, y, [(length, window)], first=axis + 2)


def in_plane(draft: Draft, flat: gs.Tensor, lengths: list[Length]) -> gs.Tensor:
    """ONNX counts the elements of the whole input, PyTorch those of each plane."""
    if all(n.static is not None for n in lengths):
        size = draft.constant([int(np.prod([n.static or 0 for n in lengths]))], "plane")
    else:
        size = lengths[0].make()
        for length in lengths[1:]:
            size = draft.op("Mul", size, length.make())
    return parts.remainder(draft, flat, size)
