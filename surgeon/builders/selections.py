"""Selections by a mask: what NonZero with GatherND or Gather, or Compress, takes from a tensor.

A selection packs the elements where the mask holds into an axis whose length is known at run time
only. What is computed from it element by element, or line by line along the axes behind that one,
can be computed on the whole tensor instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.lines import apart, by_lines, is_by_lines
from surgeon.builders.meshes import WIDE
from surgeon.facts.elementwise import ELEMENTWISE
from surgeon.facts.fact import same_dims
from surgeon.facts.kinds import FLOATS
from surgeon.match import attribute_of, producer_of

_EACH = ELEMENTWISE | {"Clip"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Elements packed along an axis: those where the mask holds, in its order.

    Attributes:
        mask: Of any dtype; an element that is not zero holds.
        axis: The packed axis; in the whole tensor as many axes as the mask has stand there.
    """

    mask: gs.Tensor
    axis: int


class Reader:
    """Finds selections behind tensors; makes nothing until it is asked for the whole tensor."""

    def __init__(self, c: Bench) -> None:
        self.c = c
        self.why = ""  # the nearest reason why something is no selection
        self._found: dict[int, Selection | None] = {}
        self._made: dict[int, gs.Tensor] = {}

    def selection(self, t: gs.Tensor) -> Selection | None:
        """What the tensor selects; None where it is no selection, or not provably one."""
        if id(t) not in self._found:
            self._found[id(t)] = None
            node = producer_of(t)
            self._found[id(t)] = None if node is None else self._of(node, t)
        return self._found[id(t)]

    def whole(self, t: gs.Tensor) -> gs.Tensor:
        """The tensor that a selection was taken from."""
        if id(t) not in self._made:
            node = t.inputs[0]
            if node.op in _EACH:
                operands = [
                    None if x.is_empty() else self.whole(x) if self.selection(x) else x
                    for x in node.inputs
                ]
                self._made[id(t)] = self.c.op(node.op, *operands, **node.attrs)
            elif is_by_lines(node):
                found = self.selection(node.inputs[0])
                assert found is not None
                extra = self.c.rank(found.mask) - 1
                self._made[id(t)] = by_lines(self.c, node, self.whole(node.inputs[0]), extra)
            elif node.op in ("Reshape", "Flatten"):
                self._made[id(t)] = self.whole(node.inputs[0])
            elif node.op == "Compress":
                data, _, axis = _compressed_axes(self.c, node)
                self._made[id(t)] = self.c.flat(data) if axis is None else data
            else:
                self._made[id(t)] = node.inputs[0]
        return self._made[id(t)]

    def _of(self, node: gs.Node, t: gs.Tensor) -> Selection | None:
        c = self.c
        if node.op == "GatherND" and not attribute_of(node, "batch_dims"):
            mask = mask_of_places(c, node.inputs[1])
            return self._if_it_fits(node.inputs[0], mask, 0)
        if node.op == "Gather" and c.facts.of(node.inputs[1]).rank == 1:
            mask, rank = mask_of_places(c, node.inputs[1]), c.facts.of(node.inputs[0]).rank
            axis = int(attribute_of(node, "axis") or 0)
            return None if not rank else self._if_it_fits(node.inputs[0], mask, axis % rank)
        if node.op == "Compress":
            return self._compressed(node)
        if node.op in ("Reshape", "Flatten"):
            found = self.selection(node.inputs[0])
            same = c.facts.of(t).rank == 1 and c.facts.of(node.inputs[0]).rank == 1
            return found if same and node.op == "Reshape" else None
        if node.op in _EACH and len(node.outputs) == 1:
            return self._elementwise(node, t)
        if is_by_lines(node):
            return self._by_lines(node)
        return None

    def _by_lines(self, node: gs.Node) -> Selection | None:
        """Computed from each element of the packed axis by itself, as a Linear or a Softmax is."""
        found = self.selection(node.inputs[0])
        if found is None or any(self.selection(x) for x in node.inputs[1:] if not x.is_empty()):
            return None
        why = apart(self.c, node, found.axis)
        self.why = why or self.why
        return None if why else found

    def _compressed(self, node: gs.Node) -> Selection | None:
        c = self.c
        data, mask, axis = _compressed_axes(c, node)
        rank, shape, length = c.facts.of(data).rank, c.shape(data), c.shape(mask)
        if axis is not None:
            return self._if_it_fits(data, mask, axis % rank) if rank else None
        if shape is None or length is None or len(length) != 1:
            return None
        return Selection(mask, 0) if dims.equal(dims.product(shape), length[0]) is True else None

    def _if_it_fits(self, data: gs.Tensor, mask: gs.Tensor | None, axis: int) -> Selection | None:
        """The selection, where the mask is as large as the axes of `data` that it stands for."""
        if mask is None:
            return None
        shape, wanted = self.c.shape(data), self.c.shape(mask)
        if shape is None or wanted is None or not wanted:
            return None
        return (
            Selection(mask, axis) if same_dims(shape[axis : axis + len(wanted)], wanted) else None
        )

    def _elementwise(self, node: gs.Node, t: gs.Tensor) -> Selection | None:
        c = self.c
        out = c.facts.of(t).rank
        found = [(x, self.selection(x)) for x in node.inputs if not x.is_empty()]
        behind = {(c.rank(x) - 1 - s.axis, id(s.mask)) for x, s in found if s is not None}
        if out is None or len(behind) != 1:
            return None
        if _may_fail(c, node):
            self.why = f"`{node.op}` of integers may fail where the mask does not hold"
            return None
        (after, _), mask = next(iter(behind)), next(s.mask for _, s in found if s is not None)
        for x, s in found:
            shape = c.shape(x)
            if s is not None or (shape is not None and len(shape) <= after):
                continue
            if shape is None or shape[len(shape) - 1 - after] != 1:
                return None
            if len(shape) > after + 1 and c.rank(mask) != 1:
                return None
        return Selection(mask, out - 1 - after)


def _compressed_axes(c: Bench, node: gs.Node) -> tuple[gs.Tensor, gs.Tensor, int | None]:
    """Data, mask and axis of a Compress; both as they were where both were made flat for it."""
    data, mask, axis = node.inputs[0], stripped(c, node.inputs[1]), node.attrs.get("axis")
    line, lines = producer_of(mask), producer_of(data)
    if line is not None and line.op == "Reshape":
        whole, flat = line.inputs[0], data
        if axis is not None and lines is not None and lines.op == "Reshape":
            flat = lines.inputs[0]
        one = axis is None or (int(axis) == 0 and c.facts.of(data).rank == 1)
        if one and same_dims(c.shape(flat), c.shape(whole)):
            return flat, stripped(c, whole), 0
    return data, mask, None if axis is None else int(axis)


def _may_fail(c: Bench, node: gs.Node) -> bool:
    """Whether an element that the mask leaves out could stop the run: an integer divided by 0."""
    if node.op not in ("Div", "Mod") or c.facts.of(node.inputs[0]).dtype in FLOATS:
        return False
    divisor = c.facts.array(node.inputs[1])
    return divisor is None or not bool(np.all(divisor))


def unequal(mask: gs.Tensor) -> str:
    """Why a mask is not used that may have another size than what it masks."""
    return (
        f"that the mask `{mask.name}` is as large as the data is not provable; say so with "
        "`--assume` or `--shape`"
    )


def mask_of_places(c: Bench, indices: gs.Tensor) -> gs.Tensor | None:
    """The mask whose places `indices` holds, one a row; None where it is no such thing."""
    turned, moved, x = False, False, indices
    while (node := producer_of(x)) is not None and node.op != "NonZero":
        shape, before = c.shape(x), c.shape(node.inputs[0])
        if node.op == "Transpose":
            turned ^= list(node.attrs.get("perm") or (1, 0)) == [1, 0]
        elif node.op in ("Reshape", "Squeeze", "Unsqueeze", "Flatten"):
            same = shape and before and len(shape) == len(before) == 2 and shape[1] == before[1]
            moved = moved or not same or not isinstance(shape[1] if shape else None, int)
        elif node.op == "Gather":  # the only row, taken out
            rows = c.facts.array(node.inputs[1])
            row = rows is not None and rows.size == 1 and not int(attribute_of(node, "axis") or 0)
            if not row or not before or before[0] != 1:
                return None
            moved = True
        elif node.op not in ("Cast", "Identity", "Split") or len(node.outputs) > 1:
            return None
        elif node.op == "Cast" and node.attrs.get("to") not in WIDE:
            return None  # in so few bits places wrap around
        x = node.inputs[0]
    if node is None:
        return None
    mask = stripped(c, node.inputs[0])
    rank, shape = c.facts.of(mask).rank, c.shape(indices)
    if rank == 1:  # a line of numbers stays one, however it is viewed
        return mask if shape is not None and (len(shape) == 1 or shape[1:] == (1,)) else None
    return mask if turned and not moved and rank else None


def stripped(c: Bench, mask: gs.Tensor) -> gs.Tensor:
    """The mask without what changes neither its shape nor where it holds."""
    while (node := producer_of(mask)) is not None:
        x = node.inputs[0]
        if node.op == "Expand":
            if not same_dims(c.shape(x), c.shape(mask)):
                break
        elif node.op == "Cast":
            if TYPE.BOOL not in (c.facts.of(x).dtype, node.attrs.get("to")):
                break
        elif node.op != "Identity":
            break
        mask = x
    return mask
