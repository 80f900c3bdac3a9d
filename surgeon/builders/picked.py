"""Channels that are put in another order, repeated or left out: in the weights beside them.

A picture's blue, green, red as red, green, blue is a Gather, a Slice backwards, or a Split and a
Concat in front of the first convolution, whose weights may stand in that order instead. Behind a
product its weights give the channels in the order that is wanted, and those alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.cleaning import order_of
from surgeon.builders.factors import lone_producer, maker_here
from surgeon.builders.linear import array_of, narrow
from surgeon.builders.own_constants import operand_behind, own_weight
from surgeon.builders.parts import rank_of
from surgeon.facts.elementwise import UNARY
from surgeon.facts.fact import Array, same_dims
from surgeon.facts.question import Shape
from surgeon.facts.values import is_to_the_end, slice_bounds
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div", "PRelu"})  # with a constant
_PASSED = UNARY | _ARITHMETIC | {"Clip", "Transpose"}
_LINEAR = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_TO_THE_END = (1 << 31) - 1
_MOST = 1 << 16  # channels whose places are written down


class Picked(NamedTuple):
    """A value made of places of another along one axis.

    Attributes:
        source: The value that they are places of.
        axis: The axis, from 0.
        places: Which place of the source stands at each place: int64, one axis.
    """

    source: gs.Tensor
    axis: int
    places: Array


def picked_before(draft: Draft, match: Match) -> gs.Tensor:
    """y = Conv, ConvTranspose, Gemm or MatMul of picked channels, as one of them as they are."""
    passed: list[gs.Node] = []
    node = lone_producer(draft, match.root.inputs[0])
    while (found := _picked(draft, node)) is None:
        _need_passable(draft, node)
        passed.append(node)
        node = lone_producer(draft, node.inputs[_computed(draft, node)])
    x, axis, places = found
    if not np.array_equal(np.unique(places), np.arange(_channels(draft, x, axis) or 0)):
        raise Refused("it leaves channels out, for which the weights would hold zeros")
    for other in reversed(passed):
        if other.op == "Transpose":
            axis = order_of(other, None).index(axis)
        x = _anew(draft, other, x, axis, lambda c, axis: _put_back(c, axis, places))
    return _of_inputs(draft, match.root, x, axis, places)


def picked_behind(draft: Draft, match: Match) -> gs.Tensor:
    """y = picked channels of a Conv, ConvTranspose, Gemm or MatMul, as one that has those alone."""
    found = _picked(draft, match.root)
    if found is None:
        raise Refused("where its parts begin is known at run time only, or not of one axis")
    x, axis, places = found
    if len(np.unique(places)) != len(places):
        raise Refused("it repeats channels, which would be computed several times")
    passed: list[tuple[gs.Node, int]] = []
    node = _alone(draft, match.root, x)
    while node.op not in _LINEAR:
        _need_passable(draft, node)
        passed.append((node, axis))
        if node.op == "Transpose":
            axis = order_of(node, None)[axis]
        node = lone_producer(draft, node.inputs[_computed(draft, node)])
    made = of_outputs(draft, node, axis, places)
    for other, axis in reversed(passed):
        made = _anew(draft, other, made, axis, lambda c, axis: c.take(places, axis))
    return made


def _alone(draft: Draft, root: gs.Node, x: gs.Tensor) -> gs.Node:
    """What makes the value that a node picks from, where nothing else reads it or parts of it."""
    parts = [t.inputs[0] for t in root.inputs if t.inputs and t is not x]
    between = [node for node in parts if x in node.inputs]
    for tensor in [x, *(piece for node in between for piece in node.outputs)]:
        if draft.surgery.is_output(tensor) or not all(
            node is root or (tensor is x and node in between) for node in tensor.outputs
        ):
            raise Refused(f"{tensor.name!r} is read elsewhere too")
    return maker_here(draft, x)


# ------------------------------------------------------------------------------- what is picked


def _picked(draft: Draft, node: gs.Node) -> Picked | None:
    """What a Gather, Slice, Concat or Expand takes from where; None where it is none of one value.

    Raises:
        Refused: It takes everything as it stands.
    """
    take = _TAKES.get(node.op)
    found = None if take is None else take(draft, node)
    if found and np.array_equal(
        found.places, np.arange(_channels(draft, found.source, found.axis) or 0)
    ):
        raise Refused("it takes everything as it stands")
    return found


def _gathered(draft: Draft, node: gs.Node) -> Picked | None:
    x, places = node.inputs[0], draft.facts.array(node.inputs[1])
    axis = int(attribute_of(node, "axis") or 0)
    size = _channels(draft, x, axis)
    if places is None or places.ndim != 1 or not 0 < places.size <= _MOST or not size:
        return None
    if not ((places >= -size) & (places < size)).all():
        return None
    axis %= rank_of(draft, x)
    return Picked(x, axis, places.astype(np.int64) % size)


def _sliced(draft: Draft, node: gs.Node) -> Picked | None:
    x = node.inputs[0]
    given = [array_of(draft, node, index) for index in range(1, 5)]
    if any(
        array is None and len(node.inputs) > index + 1 and not node.inputs[index + 1].is_empty()
        for index, array in enumerate(given)
    ):
        return None
    starts, ends, axes, steps = (None if a is None else a.reshape(-1).tolist() for a in given)
    if starts is None or ends is None:
        return None
    found = None
    along, strides = axes or list(range(len(starts))), steps or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, along, strides, strict=True):
        if step == 1 and start == 0 and end >= _TO_THE_END:
            continue
        size = _channels(draft, x, axis)
        if found or not size or is_to_the_end(end, step):
            return None
        places = np.arange(*slice_bounds(start, end, step, size), step)
        found = Picked(x, axis % rank_of(draft, x), places)
    return found


def _joined(draft: Draft, node: gs.Node) -> Picked | None:
    """Of a Concat whose operands are all parts of one value, or that value."""
    axis = int(attribute_of(node, "axis"))
    if not _channels(draft, node.outputs[0], axis):
        return None
    axis %= rank_of(draft, node.outputs[0])
    parts = [_part(draft, operand, axis) for operand in node.inputs]
    known = [part for part in parts if part]
    first = known[0] if len(known) == len(parts) else None
    if not first or any((p.source, p.axis) != (first.source, axis) for p in known):
        return None
    return Picked(first.source, axis, np.concatenate([part.places for part in known]))


def _part(draft: Draft, tensor: gs.Tensor, axis: int) -> Picked | None:
    """What a value is of the one that a Split or Slice makes it of; else all of itself."""
    node = producer_of(tensor)
    if node and not draft.holds(node):
        node = None
    if node and node.op == "Split":
        shapes = [draft.facts.of(piece).shape for piece in node.outputs]
        sizes = [shape[axis] for shape in shapes if shape]
        numbers = [size for size in sizes if isinstance(size, int)]
        own = int(attribute_of(node, "axis") or 0) % len(shapes[0] or [0])
        if own != axis or len(numbers) != len(node.outputs):
            return None
        at = next(place for place, piece in enumerate(node.outputs) if piece is tensor)
        begin = sum(numbers[:at])
        return Picked(node.inputs[0], axis, np.arange(begin, begin + numbers[at]))
    if node and node.op == "Slice":
        return _sliced(draft, node)
    size = _channels(draft, tensor, axis)
    return Picked(tensor, axis, np.arange(size)) if size else None


def _spread(draft: Draft, node: gs.Node) -> Picked | None:
    """Of an Expand of one axis: one channel for all."""
    before, after = (draft.facts.of(t).shape for t in (node.inputs[0], node.outputs[0]))
    if before is None or after is None or len(before) != len(after):
        return None
    grown = [
        axis
        for axis, sizes in enumerate(zip(before, after, strict=True))
        if sizes[0] == 1 != sizes[1]
    ]
    size = _channels(draft, node.outputs[0], grown[0]) if len(grown) == 1 else None
    if not size:
        return None
    if not same_dims(_without(before, grown[0]), _without(after, grown[0])):
        return None
    return Picked(node.inputs[0], grown[0], np.zeros(size, np.int64))


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


_TAKES: Mapping[str, Callable[[Draft, gs.Node], Picked | None]] = {
    "Gather": _gathered,
    "Slice": _sliced,
    "Concat": _joined,
    "Expand": _spread,
}


# ------------------------------------------------------------------------------- what is passed


def _need_passable(draft: Draft, node: gs.Node) -> None:
    if node.op not in _PASSED:
        raise Refused(f"nothing passes {node.op}")
    if rank_of(draft, node.inputs[_computed(draft, node)]) != rank_of(draft, node.outputs[0]):
        raise Refused(f"the constant of {node.op} puts axes in front")


def _computed(draft: Draft, node: gs.Node) -> int:
    """The place of an operand that is no constant: of arithmetic with one it is either."""
    return int(node.op in _ARITHMETIC and draft.facts.array(node.inputs[0]) is not None)


def _anew(
    draft: Draft,
    node: gs.Node,
    x: gs.Tensor,
    axis: int,
    move: Callable[[Array, int], Array],
) -> gs.Tensor:
    """A node of the other value, with its constant moved along an axis of what it makes."""
    if node.op not in _ARITHMETIC:
        return draft.op(node.op, x, *node.inputs[1:], **node.attrs)
    data = _computed(draft, node)
    made, constant = node.inputs[data], node.inputs[1 - data]
    wide = operand_behind(draft, made, constant, node.outputs[0], "its constant")
    if wide.shape[axis] > 1:
        moved, rank = move(wide, axis), rank_of(draft, constant)
        constant = draft.constant(moved.reshape(moved.shape[wide.ndim - rank :]), "constant")
    return draft.op(node.op, *((constant, x) if data else (x, constant)), **node.attrs)


def _put_back(constant: Array, axis: int, places: Array) -> Array:
    """What stands beside picked channels, beside those that they are picked of.

    Raises:
        Refused: It differs where one channel stands several times.
    """
    found = constant.take(np.unique(places, return_index=True)[1], axis)
    if not np.array_equal(found.take(places, axis), constant, equal_nan=found.dtype.kind == "f"):
        raise Refused("a constant in between is not the same for each of what it repeats")
    return found


# ------------------------------------------------------------------------------------- weights


def _of_inputs(draft: Draft, node: gs.Node, x: gs.Tensor, axis: int, places: Array) -> gs.Tensor:
    """The product of the other value: its weight has for each channel what is summed over it."""
    weight = own_weight(draft, node)
    if node.op == "Gemm" and attribute_of(node, "transA"):
        raise Refused("its input is transposed")
    if axis != _axis_of_channels(node, rank_of(draft, x)):
        raise Refused("what is picked are no channels that it sums over")
    _need_one_group(node)
    along = {"Conv": 1, "ConvTranspose": 0, "Gemm": int(bool(attribute_of(node, "transB")))}.get(
        node.op, max(0, weight.ndim - 2)
    )
    order = np.argsort(places, kind="stable")
    made, begins = weight.take(order, along), np.unique(places[order], return_index=True)[1]
    if len(begins) < len(places):
        sums = np.add.reduceat(made.astype(np.float64), begins, along)
        made = narrow(sums, weight)
    return draft.op(node.op, x, draft.constant(made, "weight"), *node.inputs[2:], **node.attrs)


def of_outputs(draft: Draft, node: gs.Node, axis: int, places: Array) -> gs.Tensor:
    """The product that has the picked channels alone."""
    _need_one_group(node)
    weight = own_weight(draft, node)
    if axis != _axis_of_channels(node, rank_of(draft, node.outputs[0])) or weight.ndim < 2:
        raise Refused("what is picked are no channels of its weight")
    along = {
        "Conv": 0,
        "ConvTranspose": 1,
        "Gemm": 1 - int(bool(attribute_of(node, "transB"))),
    }.get(node.op, weight.ndim - 1)
    operands = [node.inputs[0], draft.constant(weight.take(places, along), "weight")]
    bias = node.inputs[2] if len(node.inputs) > 2 and not node.inputs[2].is_empty() else None
    if bias is not None:
        array = own_weight(draft, node, 2)
        wide = array.ndim and array.shape[-1] > 1
        operands.append(draft.constant(array.take(places, -1), "bias") if wide else bias)
    return draft.op(node.op, *operands, **node.attrs)


def _axis_of_channels(node: gs.Node, rank: int) -> int:
    return rank - 1 if node.op in ("Gemm", "MatMul") else 1


def _need_one_group(node: gs.Node) -> None:
    if node.op in ("Conv", "ConvTranspose") and attribute_of(node, "group") not in (None, 1):
        raise Refused("its channels are of several groups")


def _channels(draft: Draft, tensor: gs.Tensor, axis: int) -> int | None:
    """How many places an axis has, where that is a number and none that is too large."""
    shape = draft.facts.of(tensor).shape
    size = shape[axis] if shape else None
    return size if isinstance(size, int) and 0 < size <= _MOST else None
