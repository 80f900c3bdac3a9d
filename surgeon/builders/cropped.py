"""Parts of what a Conv or ConvTranspose gives, as one with other pads."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import Bench
from surgeon.dims import Dim
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_UNSAID = (None, "NOTSET", b"NOTSET", "", b"")


def slice_into_window(draft: Draft, match: Match) -> gs.Tensor:
    """A Slice that cuts off the first and last windows of a Conv, which pads make.

    So causal convolutions are written: pads on both sides, and what they add behind cut off. The
    pads of a ConvTranspose cut off themselves.
    """
    c, root, made = Bench(draft), match.root, match.values["p"]
    assert made is not None
    node = made.inputs[0]
    shape, before, after = (c.shape(t) for t in (node.inputs[0], made, root.outputs[0]))
    kernel = _kernel(c, node)
    if shape is None or before is None or after is None or kernel is None:
        raise Refused("a shape is not known")
    rank = len(shape) - 2
    strides, dilations, pads = (
        list(attribute_of(node, name) or default)
        for name, default in (
            ("strides", [1] * rank),
            ("dilations", [1] * rank),
            ("pads", [0] * 2 * rank),
        )
    )
    if attribute_of(node, "auto_pad") not in _UNSAID or attribute_of(node, "output_shape"):
        raise Refused("its pads are not told as numbers")
    for axis, begin in _begins(c, root, len(shape)).items():
        cut = before[axis] - after[axis]
        place = axis - 2
        if place < 0 or not isinstance(cut, int) or not 0 <= begin <= cut:
            raise Refused(
                "how much it cuts off is not known, or is of another axis than a window's"
            )
        sides = ((place, begin), (place + rank, cut - begin))
        for side, count in sides:
            pads[side] += count if node.op == "ConvTranspose" else -count * int(strides[place])
            if pads[side] < 0:
                raise Refused("it cuts off more than the pads make")
        if node.op == "ConvTranspose":
            _require(c, after[axis] - 1)
        else:
            reach = (kernel[place] - 1) * int(dilations[place])
            _require(c, shape[axis] + pads[place] + pads[place + rank] - reach - 1)
    attributes = {**node.attrs, "pads": pads}
    y: gs.Tensor = c.op(node.op, *node.inputs, **attributes)
    return y


def _require(c: Bench, room: Dim) -> None:
    """That something is left, whatever the input's length is."""
    if not (room >= 0 if isinstance(room, int) else dims.not_negative(room)):
        c.facts.fitting.asked = True  # what other kernels need may show it
        raise Refused("whether anything is left without these pads is not provable")


def _kernel(c: Bench, node: gs.Node) -> list[int] | None:
    weight = c.shape(node.inputs[1])
    sizes = attribute_of(node, "kernel_shape") or (None if weight is None else weight[2:])
    known = [int(size) for size in sizes or () if isinstance(size, int)]
    return known if known and len(known) == len(sizes or ()) else None


def _begins(c: Bench, root: gs.Node, rank: int) -> dict[int, int]:
    """By axis, where a Slice in steps of 1 begins, counted from the front."""
    given = [c.facts.array(t) if t.name else None for t in root.inputs[1:]]
    starts, axes = given[0], given[2] if len(given) > 2 else None
    steps = given[3] if len(given) > 3 else None
    if starts is None or (axes is None and len(given) > 2 and root.inputs[3].name):
        raise Refused("where it begins is known at run time only")
    if len(given) > 3 and root.inputs[4].name and (steps is None or (steps != 1).any()):
        raise Refused("it takes steps")
    along = range(starts.size) if axes is None else [int(a) % rank for a in axes.reshape(-1)]
    found = dict(zip(along, (int(n) for n in starts.reshape(-1)), strict=True))
    if any(n < 0 for n in found.values()):
        raise Refused("where it begins is counted from the end")
    return found
