"""Forms that name some axes or a number of parts, as opset 18 has them, in those that name all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.lists import MOST_PARTS, as_many
from surgeon.builders.bench import Bench, Size, operand
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def split_by_sizes(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """A Split into a number of parts, of which the last may be smaller, as one into sizes."""
    node, c = match.root, Bench(draft)
    x, count = node.inputs[0], attribute_of(node, "num_outputs")
    if not isinstance(count, int) or not 1 < count <= MOST_PARTS or count != len(node.outputs):
        raise Refused(f"it has no number of parts from 2 to {MOST_PARTS}")
    axis = c.axis(int(attribute_of(node, "axis") or 0), c.rank(x))
    length = c.size(x, axis)
    part = c.div(c.add(length, count - 1), count)
    last = c.sub(length, c.mul(part, count - 1))
    if isinstance(last, int) and last < 0:
        raise Refused("of so few elements the last parts would be less than nothing")
    sizes = c.vector([*[part] * (count - 1), last])
    return as_many(draft.op("Split", x, sizes, outputs=count, axis=axis), MOST_PARTS)


def pad_of_all_axes(draft: Draft, match: Match) -> gs.Tensor:
    """A Pad that names its axes as one that has a pad for each."""
    node, c = match.root, Bench(draft)
    x, pads, value, named = (operand(node, i) for i in range(4))
    if x is None or pads is None or named is None:
        raise Refused("it names no axes")
    axes, rank = draft.facts.array(named), c.rank(x)
    if axes is None:
        raise Refused("its axes are computed at run time")
    places = [c.axis(int(a), rank) for a in axes.reshape(-1)]
    ends = [[*places], [rank + place for place in places]]
    whole = _spread(c, pads, [*ends[0], *ends[1]], [0] * (2 * rank))
    made: gs.Tensor = c.op("Pad", x, whole, value, **node.attrs)
    return made


def resize_of_all_axes(draft: Draft, match: Match) -> gs.Tensor:
    """A Resize that names its axes as one that has a scale or a size for each."""
    node, c = match.root, Bench(draft)
    x, *lists = (operand(node, i) for i in range(4))
    roi, scales, sizes = (None if one is None or _is_empty(c, one) else one for one in lists)
    named = attribute_of(node, "axes")
    if x is None or named is None:
        raise Refused("it names no axes")
    if (attribute_of(node, "keep_aspect_ratio_policy") or "stretch") != "stretch":
        raise Refused("it keeps the aspect ratio, and so scales otherwise than its sizes say")
    rank = c.rank(x)
    places = [c.axis(int(a), rank) for a in named]
    if len(set(places)) < len(places):
        raise Refused("it names an axis twice")
    rest = {k: v for k, v in node.attrs.items() if k not in ("axes", "keep_aspect_ratio_policy")}
    if roi is not None and attribute_of(node, "coordinate_transformation_mode") != _CROPS:
        roi = None
    if roi is not None:
        both = [*places, *(rank + place for place in places)]
        roi = _spread(c, roi, both, [0] * rank + [1] * rank)
    if scales is not None:
        scales = _spread(c, scales, places, [1] * rank)
    if sizes is not None:
        sizes = _spread(c, sizes, places, c.sizes(x))
    made: gs.Tensor = c.op("Resize", x, roi, scales, sizes, **rest)
    return made


_CROPS = "tf_crop_and_resize"


def _is_empty(c: Bench, numbers: gs.Tensor) -> bool:
    """Whether a list is left out by another word: it has no numbers."""
    array = c.facts.array(numbers)
    return array is not None and not array.size


def _spread(
    c: Bench, numbers: gs.Tensor, places: Sequence[int], others: Sequence[Size | int]
) -> gs.Tensor:
    """A list with these numbers at these places, and other ones elsewhere."""
    array = c.facts.array(numbers)
    dtype = c.dtype(numbers)
    plain = [n for n in others if isinstance(n, int)]
    if array is not None and array.dtype != object and len(plain) == len(others):
        whole = np.asarray(plain).astype(array.dtype)
        whole[list(places)] = array.reshape(-1)
        return c.draft.constant(whole, "whole")
    if len(places) == len(others) and list(places) == list(range(len(others))):
        return numbers
    beside = c.cast(c.vector(others), dtype)
    index = np.arange(len(others))
    index[list(places)] = len(others) + np.arange(len(places))
    return c.op("Gather", c.concat([beside, numbers], 0), c.ints_of(index), axis=0)


def center_crop_pad(draft: Draft, match: Match) -> gs.Tensor:
    """CenterCropPad of lengths that are known: a Slice, and a Pad of zeros."""
    node, c = match.root, Bench(draft)
    x, wanted = node.inputs[0], draft.facts.array(node.inputs[1])
    rank = c.rank(x)
    named = attribute_of(node, "axes")
    axes = list(range(rank)) if named is None else [c.axis(int(a), rank) for a in named]
    lengths = [c.size(x, axis) for axis in axes]
    if wanted is None or not all(isinstance(n, int) for n in lengths):
        raise Refused("its lengths, or those it goes to, are known at run time only")
    known = [int(n) for n in lengths if isinstance(n, int)]
    pads, crops = np.zeros((2, rank), np.int64), []
    for axis, length, target in zip(axes, known, wanted.reshape(-1).tolist(), strict=True):
        if length > target:
            start = (length - target) // 2
            crops.append((axis, start, start + target))
        before = max(target - length, 0) // 2
        pads[:, axis] = before, max(target - length, 0) - before
    if crops:
        columns = [c.ints(list(column)) for column in zip(*crops, strict=True)]
        x = c.op("Slice", x, columns[1], columns[2], columns[0])
    if pads.any():
        x = c.op("Pad", x, c.ints(pads.reshape(-1).tolist(), "pads"))
    return x


def windows_as_pads(draft: Draft, match: Match) -> gs.Tensor:
    """A pool that rounds up, with what its last windows hang over as pads behind.

    Pads of a mean that count are joined on as zeros before; what is behind them never counts, and
    neither do any of a maximum.
    """
    node, c = match.root, Bench(draft)
    attributes = dict(node.attrs)
    if not attributes.pop("ceil_mode", 0):
        raise Refused("it does not round up")
    if attribute_of(node, "auto_pad") not in (None, "NOTSET"):
        raise Refused("its pads are worked out of its lengths")
    x, kernel = node.inputs[0], [int(k) for k in attribute_of(node, "kernel_shape")]
    ones, count = [1] * len(kernel), len(kernel)
    strides, dilations = (
        [int(n) for n in attribute_of(node, key) or ones] for key in ("strides", "dilations")
    )
    pads = [int(n) for n in attribute_of(node, "pads") or [0, 0] * count]
    shapes = [draft.facts.of(t).shape for t in (x, node.outputs[0])]
    given, gives = ([n for n in (s or ())[2:] if isinstance(n, int)] for s in shapes)
    behind = []
    for axis in range(count):
        end = pads[count + axis]
        if len(given) != count or len(gives) != count:
            behind.append(end + strides[axis] - 1)  # room for one window more, or for none
            if behind[axis] >= kernel[axis]:
                raise Refused("its lengths are known at run time only")
            continue
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        last = (gives[axis] - 1) * strides[axis]  # where the last window begins
        if last >= given[axis] + pads[axis]:
            raise Refused("its last window begins in the padding")
        behind.append(max(end, last + reach - given[axis] - pads[axis]))
    if node.op == "MaxPool":
        if any(n >= size for n, size in zip(behind, kernel, strict=True)):
            raise Refused("what its last windows hang over is as wide as a window")
        return c.op("MaxPool", x, **(attributes | {"pads": [*pads[:count], *behind]}))
    over = [n - pads[count + axis] for axis, n in enumerate(behind)]
    if attribute_of(node, "count_include_pad") and any(over):
        whole = [0, 0, *pads[:count], 0, 0, *pads[count:]]
        x = c.op("Pad", x, c.ints(whole, "pads")) if any(pads) else x
        attributes |= {"pads": [*[0] * count, *over], "count_include_pad": 0}
    else:
        attributes["pads"] = [*pads[:count], *behind]
    made: gs.Tensor = c.op("AveragePool", x, **attributes)
    return made
