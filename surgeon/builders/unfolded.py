"""Windows as PyTorch's exporter writes `unfold`, with their axis where PyTorch has it.

`Tensor.unfold(dimension, size, step)` puts the windows in the place of the dimension and what is in
them last. The exporter (`unfold` of torch/onnx/symbolic_opset9.py, in every version) slices them
out, turns each, and stacks them along `dimension` as it was given: from behind that counts the new
axis too, and is one place too late. Windows of the last dimension need no turn, and it writes none.
"""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused


def windows_put_right(draft: Draft, match: Match) -> gs.Tensor:
    """y = Concat (Unsqueeze (Transpose? (Slice (x))), ...), along the axis that was meant."""
    c, node = Bench(draft), match.root
    behind = int(attribute_of(node, "axis"))
    if behind >= 0:
        raise Refused("its axis is counted from the front")
    if not all(map(_is_cut, node.inputs)):  # a stack that somebody wrote: it stays, as it is
        same: gs.Tensor = c.op("Concat", *node.inputs, axis=behind)
        return same
    turned = [_turned(c, part, behind) for part in node.inputs]
    rank = c.rank(turned[0])
    windows = [_window(c, t, rank + behind, rank) for t in turned]
    (source, first, size), *others = windows
    step = others[0][1] - first if others else 0
    places = [(source, first + n * step, size) for n in range(len(windows))]
    if first or (others and step < 1) or windows != places:
        raise Refused("its parts are no windows of one value, one after the other")
    axis = rank + behind
    made: gs.Tensor = c.op("Concat", *(c.unsqueeze(t, [axis]) for t in turned), axis=axis)
    return made


def _is_cut(part: gs.Tensor) -> bool:
    """Whether what got a new axis is a Slice, as it is or turned."""
    node = producer_of(part)
    cut = None if node is None or node.op != "Unsqueeze" else producer_of(node.inputs[0])
    if cut is not None and cut.op == "Transpose":
        cut = producer_of(cut.inputs[0])
    return cut is not None and cut.op == "Slice"


def _turned(c: Bench, part: gs.Tensor, axis: int) -> gs.Tensor:
    """What an Unsqueeze along an axis counted from behind reads."""
    node = producer_of(part)
    if node is None or node.op != "Unsqueeze" or _ints(c, node, 1) != [axis]:
        raise Refused("a part of it has no new axis of that number")
    return node.inputs[0]


def _window(c: Bench, turned: gs.Tensor, axis: int, rank: int) -> tuple[int, int, int]:
    """Which value a part is a slice of, from where, and how long it is; the axis is moved last."""
    cut = producer_of(turned)
    others = [n for n in range(rank) if n != axis]
    if cut is not None and cut.op == "Transpose" and attribute_of(cut, "perm") == [*others, axis]:
        cut = producer_of(cut.inputs[0])
    elif axis != rank - 1 or (cut is not None and cut.op == "Transpose"):
        raise Refused("a part of it is not turned so that the axis is last")
    if cut is None or cut.op != "Slice":
        raise Refused("a part of it is no Slice")
    starts, ends, axes, steps = (_ints(c, cut, place) for place in range(1, 5))
    if axes not in ([axis], [axis - rank]) or steps not in (None, [1]) or not starts or not ends:
        raise Refused("a part of it is no Slice along the axis")
    return id(cut.inputs[0]), starts[0], ends[0] - starts[0]


def _ints(c: Bench, node: gs.Node, place: int) -> list[int] | None:
    """The numbers of a constant operand; None where there is none."""
    array = c.facts.array(node.inputs[place]) if len(node.inputs) > place else None
    return None if array is None else [int(n) for n in array.reshape(-1)]
