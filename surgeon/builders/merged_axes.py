"""Axes that stand side by side in all values of a stretch, as one: four where there were five.

The stretch begins at views of values of four axes at most, and ends at views of that kind. Between
them stand functions of each element, Transposes, and what goes along axes that are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import mul
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench
from surgeon.builders.cleaning import order_of
from surgeon.builders.views import as_shape
from surgeon.dims import Dim
from surgeon.facts.elementwise import BINARY, UNARY
from surgeon.facts.fact import Array
from surgeon.links import maker_of, named_inputs, producers_first
from surgeon.match import Match
from surgeon.model import describe
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_MOST = 4  # axes that every runtime has
_VIEWS = {"Flatten", "Reshape", "Squeeze", "Unsqueeze"}
_ALONG = {"Concat", "Gather", "LogSoftmax", "Softmax", "Split"}  # their `axis`
_BY_ONE_AXIS = 13  # the opset from which a Softmax goes along one axis alone
_LONGEST = 400  # nodes of a stretch
Shape = tuple[Dim, ...]


def merged_axes(draft: Draft, match: Match) -> gs.Tensor:
    """The stretch that ends at a view, and wherever else it ends, on four axes at most.

    Raises:
        Refused: Its axes do not stay side by side, or something in it is not known here.
    """
    stretch = _Stretch(draft, match.root)
    groups = _Merger(stretch).groups()
    written = _Writer(draft, stretch, groups)
    for node in stretch.nodes:
        written.write(node)
    ends = {id(end): written.end(end) for end in stretch.ends}
    draft.leans.extend(stretch.nodes)
    draft.also.extend(
        (end, [(end.outputs[0], ends[id(end)])]) for end in stretch.ends if end is not match.root
    )
    return ends[id(match.root)]


class _Stretch:
    """Values of more than four axes that hang together.

    Attributes:
        nodes: What makes them, producers first.
        ends: The views of them that have four axes at most.
        axes: Of each value, by its identity, the axes: those of one number are one axis.
        left: The axes along which something goes, which are merged with no other.
    """

    def __init__(self, draft: Draft, end: gs.Node) -> None:
        self.draft, self.facts = draft, draft.facts
        self.ends: list[gs.Node] = []
        self._makers: dict[int, gs.Node] = {}
        waiting = [end.inputs[0]]
        while waiting:
            waiting.extend(self._take(waiting.pop()))
        self.nodes = producers_first([*self._makers.values()], named_inputs)
        self.axes: dict[int, list[int]] = {}
        self.left: set[int] = set()
        self._same: dict[int, int] = {}
        self._count = 0
        for node in self.nodes:
            self._follow(node)
        for node in self.ends:
            axes = self.axes[id(node.inputs[0])]
            self.left.update(axes[axis] for axis in self.touched(node, len(axes)))
        self.axes = {at: [self._root(axis) for axis in axes] for at, axes in self.axes.items()}
        self.left = {self._root(axis) for axis in self.left}
        if any(len({*axes}) < len(axes) for axes in self.axes.values()):
            raise Refused("two of its axes meet one another")

    def shape(self, tensor: gs.Tensor) -> Shape:
        """A value's dimensions, which must be known."""
        shape = self.facts.of(tensor).shape
        if shape is None:
            raise Refused(f"the shape of `{tensor.name}` is not known")
        return shape

    def is_inside(self, tensor: gs.Tensor) -> bool:
        """Whether a value has more than four axes, and is no constant."""
        maker = maker_of(tensor)
        return maker is not None and id(maker) in self._makers

    def _take(self, tensor: gs.Tensor) -> Iterator[gs.Tensor]:
        node = maker_of(tensor)
        if node is None:
            raise Refused(f"`{tensor.name}` has {len(self.shape(tensor))} axes where it comes in")
        if id(node) in self._makers:
            return
        if len(self._makers) >= _LONGEST:
            raise Refused(f"more than {_LONGEST} nodes hang together")
        if not self.draft.holds(node) or not _is_known(node):
            raise Refused(f"{describe(node)} makes a value of more than {_MOST} axes")
        self._makers[id(node)] = node
        for value in node.inputs if node.op not in _VIEWS else node.inputs[:1]:
            if self._is_large(value):
                yield value
        for value in node.outputs:
            if not self._is_large(value):
                raise Refused(f"{describe(node)} makes values of several ranks")
            if self.draft.surgery.is_output(value):
                raise Refused(f"`{value.name}`, which has more than {_MOST} axes, is an output")
            yield value
            for reader in value.outputs:
                if not _is_known(reader) or not self.draft.holds(reader):
                    raise Refused(f"{describe(reader)} reads a value of more than {_MOST} axes")
                if self._is_large(reader.outputs[0]):
                    yield reader.outputs[0]
                elif reader.op not in _VIEWS and not self._picks(reader):
                    raise Refused(f"{describe(reader)} takes axes away, and is no view")
                elif all(end is not reader for end in self.ends):
                    self.ends.append(reader)

    def _picks(self, node: gs.Node) -> bool:
        """Whether a node takes one place of an axis."""
        return node.op == "Gather" and self.facts.of(node.inputs[1]).rank == 0

    def _is_large(self, tensor: gs.Tensor) -> bool:
        if isinstance(tensor, gs.Constant) or tensor.is_empty() or maker_of(tensor) is None:
            if not isinstance(tensor, gs.Constant) and (self.facts.of(tensor).rank or 0) > _MOST:
                raise Refused(f"`{tensor.name}` has more than {_MOST} axes where it comes in")
            return False
        if self.facts.array(tensor, decides=False) is not None:
            return False
        return len(self.shape(tensor)) > _MOST

    # ------------------------------------------------------------------ which axes are the same

    def _follow(self, node: gs.Node) -> None:
        shape, inside = self.shape(node.outputs[0]), [t for t in node.inputs if self.is_inside(t)]
        if node.op in _VIEWS and inside:
            raise Refused(f"{describe(node)} views a value of more than {_MOST} axes as another")
        if not inside and node.op not in _VIEWS | BINARY:
            raise Refused(f"{describe(node)} makes a value of more than {_MOST} axes")
        if not inside:
            axes = [self._fresh() for _ in shape]
        elif node.op == "Transpose":
            axes = [self.axes[id(node.inputs[0])][i] for i in order_of(node, len(shape))]
        else:
            axes = list(self.axes[id(inside[0])])
            for value in inside[1:]:
                if len(self.shape(value)) != len(shape):
                    raise Refused(f"{describe(node)} reads values of several ranks")
                for one, other in zip(axes, self.axes[id(value)], strict=True):
                    self._join(one, other)
            self.left.update(axes[axis] for axis in self.touched(node, len(shape)))
        if len(axes) != len(shape):
            raise Refused(f"{describe(node)} makes values of several ranks")
        for value in node.outputs:
            self.axes[id(value)] = axes

    def touched(self, node: gs.Node, rank: int) -> list[int]:
        """The axes along which a node goes."""
        if node.op in _ALONG:
            soft = node.op in ("LogSoftmax", "Softmax")
            axis = int(node.attrs.get("axis", -1 if soft else 0)) % rank
            if soft and self.facts.opset < _BY_ONE_AXIS and axis != rank - 1:
                raise Refused(f"{describe(node)} goes over all axes behind its own at this opset")
            return [axis]
        if node.op == "Slice":
            return [axis % rank for axis in self.slice_axes(node)]
        return []

    def slice_axes(self, node: gs.Node) -> list[int]:
        """Along which axes a Slice goes, which must be said."""
        axes = node.attrs.get("axes")
        if axes is None and len(node.inputs) > 3:
            axes = self.facts.array(node.inputs[3])
        if axes is None:
            raise Refused(f"{describe(node)} does not say its axes")
        return [int(axis) for axis in np.asarray(axes).reshape(-1)]

    def _fresh(self) -> int:
        self._count += 1
        return self._count

    def _join(self, one: int, other: int) -> None:
        first, second = self._root(one), self._root(other)
        if first != second:
            self._same[second] = first

    def _root(self, axis: int) -> int:
        while axis in self._same:
            axis = self._same[axis]
        return axis


def _is_known(node: gs.Node) -> bool:
    known = UNARY | BINARY | _VIEWS | _ALONG | {"Clip", "Slice", "Transpose"}
    return (node.domain or "") in STANDARD and node.op in known


class _Merger:
    """Finds which axes can be one with the next."""

    def __init__(self, stretch: _Stretch) -> None:
        self.stretch = stretch

    def groups(self) -> dict[int, int]:
        """Of each axis that is one with the axis in front of it, that axis.

        Raises:
            Refused: A value keeps more than four.
        """
        stretch = self.stretch
        joined: dict[int, int] = {}
        values = {id(t): t for node in stretch.nodes for t in node.outputs}
        for at, axes in stretch.axes.items():  # from behind: a batch stays by itself if it can
            for one, other in reversed(list(pairwise(axes))):
                if sum(axis not in joined for axis in axes) <= _MOST:
                    break
                if other not in joined and self._may_be_one(one, other):
                    joined[other] = one
            if sum(axis not in joined for axis in axes) > _MOST:
                raise Refused(f"the axes of `{values[at].name}` do not stay side by side")
        return joined

    def _may_be_one(self, one: int, other: int) -> bool:
        if one == other or {one, other} & self.stretch.left:
            return False
        for node in self.stretch.nodes:
            for value in node.outputs:
                axes = self.stretch.axes[id(value)]
                if (one in axes) != (other in axes):
                    return False
                if one in axes and axes.index(other) != axes.index(one) + 1:
                    return False
            if node.op in BINARY and not self._fit(node, one, other):
                return False
        return True

    def _fit(self, node: gs.Node, one: int, other: int) -> bool:
        """Whether each operand has both axes whole, or neither; constants are made whole."""
        axes = self.stretch.axes[id(node.outputs[0])]
        if one not in axes:
            return True
        place, whole = axes.index(one), self.stretch.shape(node.outputs[0])
        for value in node.inputs:
            shape = padded(self.stretch.shape(value), len(whole))
            pairs = list(zip(shape[place : place + 2], whole[place : place + 2], strict=True))
            full = [a == b for a, b in pairs]
            single = [a == 1 for a, _ in pairs]
            constant = self.stretch.facts.array(value, decides=False) is not None
            known = constant and all(isinstance(b, int) for _, b in pairs)
            if not (all(full) or all(single) or known):
                return False
        return True


def padded(shape: Shape, rank: int) -> Shape:
    """The shape with axes of one element in front, as it is broadcast to so many."""
    return (1,) * (rank - len(shape)) + tuple(shape)


class _Writer:
    """The nodes of a stretch once more, on merged axes."""

    def __init__(self, draft: Draft, stretch: _Stretch, joined: dict[int, int]) -> None:
        self.draft, self.stretch, self.joined, self.c = draft, stretch, joined, Bench(draft)
        self.made: dict[int, gs.Tensor] = {}

    def end(self, node: gs.Node) -> gs.Tensor:
        """A view of four axes at most, or one place of an axis."""
        source, wanted = self.made[id(node.inputs[0])], self.stretch.shape(node.outputs[0])
        if node.op == "Gather":
            axes = self.stretch.axes[id(node.inputs[0])]
            (axis,) = self.stretch.touched(node, len(axes))
            at = self._kept(axes).index(axes[axis])
            source = self.draft.op("Gather", source, node.inputs[1], axis=at)
        return as_shape(self.draft, source, wanted)

    def write(self, node: gs.Node) -> None:
        results = self._written(node)
        for old, new in zip(node.outputs, results, strict=True):
            self.made[id(old)] = new

    def _written(self, node: gs.Node) -> Sequence[gs.Tensor]:
        axes, shape = self.stretch.axes[id(node.outputs[0])], self.stretch.shape(node.outputs[0])
        attributes, op = dict(node.attrs), node.op
        if op in _VIEWS:
            return [as_shape(self.draft, node.inputs[0], self._merged(axes, shape))]
        if op == "Transpose":
            before = self._kept(self.stretch.axes[id(node.inputs[0])])
            perm = [before.index(axis) for axis in self._kept(axes)]
            return [self.c.permute(self.made[id(node.inputs[0])], perm)]
        for axis in self.stretch.touched(node, len(shape)) if op in _ALONG else ():
            attributes["axis"] = self._kept(axes).index(axes[axis])
        operands = [self._operand(node, value, axes, shape) for value in node.inputs]
        if op == "Slice":
            there = [
                self._kept(axes).index(axes[axis % len(axes)])
                for axis in self.stretch.slice_axes(node)
            ]
            if "axes" in attributes:
                attributes["axes"] = there
            else:
                operands[3] = self.c.ints(there, "axes")
        made = self.draft.op(op, *operands, outputs=len(node.outputs), **attributes)
        return made if len(node.outputs) > 1 else [made]

    def _operand(
        self, node: gs.Node, value: gs.Tensor, axes: list[int], whole: Shape
    ) -> gs.Tensor | None:
        if value.is_empty():
            return None
        if id(value) in self.made:
            return self.made[id(value)]
        if node.op not in BINARY and node.op != "Concat":
            return value
        shape = self.stretch.shape(value)
        full = padded(shape, len(whole))
        apart = all(axis not in self.joined for axis in axes[len(whole) - len(shape) :])
        if len(shape) <= _MOST and (apart or all(length == 1 for length in shape)):
            return value
        array = self.stretch.facts.array(value, decides=False)
        if array is None:
            return as_shape(self.draft, value, self._merged(axes, full))
        whole = full if node.op == "Concat" else whole
        return self.draft.constant(self._merged_array(array.reshape(full), axes, whole), "operand")  # type: ignore[arg-type]

    def _merged_array(self, array: Array, axes: list[int], whole: Shape) -> Array:
        """A constant with its axes merged; whole where it has one of them and not another."""
        shape: list[int] = list(array.shape)
        for group in self._groups(axes):
            if any(shape[place] > 1 for place in group) and len(group) > 1:
                for place in group:
                    length = whole[place]
                    assert isinstance(length, int)  # the merger asked
                    shape[place] = length
        wide = np.broadcast_to(array, shape)
        return np.ascontiguousarray(wide.reshape(self._merged(axes, tuple(shape))))

    def _groups(self, axes: list[int]) -> list[list[int]]:
        """The places of axes, those together that are one."""
        groups: list[list[int]] = []
        for place, axis in enumerate(axes):
            if axis in self.joined:
                groups[-1].append(place)
            else:
                groups.append([place])
        return groups

    def _kept(self, axes: list[int]) -> list[int]:
        return [axis for axis in axes if axis not in self.joined]

    def _merged(self, axes: list[int], shape: Shape) -> Any:
        return tuple(reduce(mul, (shape[place] for place in group)) for group in self._groups(axes))
