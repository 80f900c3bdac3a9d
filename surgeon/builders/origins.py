"""Where a piece of a tensor comes from: which places along an axis Split, Slice and others took."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.cleaning import order_of
from surgeon.builders.views import KEEP_ORDER
from surgeon.dims import Dim
from surgeon.facts.fact import Array
from surgeon.facts.values import slice_bounds
from surgeon.match import attribute_of, producer_of
from surgeon.rewrite import Draft

Shape = tuple[Dim, ...]
_DEEPEST = 10  # nodes from a piece back to the whole; the check of a rewrite reaches little further


@dataclass(frozen=True, slots=True)
class _Frame:
    """The dimensions in front of the axis along which pieces are put together, and behind it.

    What leads from the whole to a piece keeps these; what stands between them is numbered in row-
    major order, and a piece is the list of the numbers that it takes.
    """

    before: Shape
    behind: Shape

    def between(self, shape: Shape | None) -> tuple[int, ...] | None:
        """What a shape has between the two; None where it does not have these, or is not known."""
        if shape is None or len(shape) < len(self.before) + len(self.behind):
            return None
        first, end = len(self.before), len(shape) - len(self.behind)
        sizes = tuple(d for d in shape[first:end] if isinstance(d, int))
        kept = shape[:first] == self.before and shape[end:] == self.behind
        return sizes if kept and len(sizes) == end - first else None


def origins_of(
    draft: Draft, piece: gs.Tensor, axis: int, most: int
) -> list[tuple[gs.Tensor, Array]]:
    """The tensors that a piece is taken from along this axis, itself first, and which places.

    None of a piece whose length is known at run time only, or is more than `most`.
    """
    shape = draft.facts.of(piece).shape
    if shape is None or axis >= len(shape):
        return []
    frame, length = _Frame(shape[:axis], shape[axis + 1 :]), shape[axis]
    if not isinstance(length, int) or length > most:
        return []
    places = np.arange(length)
    found = [(piece, places)]
    for _ in range(_DEEPEST):
        node = producer_of(piece)
        if node is None or not draft.holds(node):
            break
        behind = _behind(draft, node, piece, places, frame)
        if behind is None:
            break
        piece, places = node.inputs[0], behind
        if len(frame.between(draft.facts.of(piece).shape) or ()) == 1:
            found.append((piece, places))
    return found


def _behind(
    draft: Draft, node: gs.Node, made: gs.Tensor, places: Array, frame: _Frame
) -> Array | None:
    """Which places of a node's first operand the given ones of its result are; None if unknown."""
    if node.op not in KEEP_ORDER and node.op not in _STEPS:
        return None
    facts = draft.facts
    inner = frame.between(facts.of(node.inputs[0]).shape)
    outer = frame.between(facts.of(made).shape)
    if inner is None or outer is None:
        return None
    if node.op in KEEP_ORDER:
        return places if math.prod(inner) == math.prod(outer) else None
    step = _Step(draft, node, made, frame, inner, outer, len(places))
    grid = _STEPS[node.op](step, _apart(places, outer))
    if grid is None or any(((g < 0) | (g >= n)).any() for g, n in zip(grid, inner, strict=True)):
        return None
    return _joined(grid, inner, len(places))


@dataclass(frozen=True, slots=True)
class _Step:
    """A node that cuts or repeats.

    Attributes:
        draft: Where what is known is asked.
        node: The node.
        made: That of its results which is looked at.
        frame: The dimensions that it keeps.
        inner: What its operand has between those.
        outer: What its result has.
        count: How many places are looked for.
    """

    draft: Draft
    node: gs.Node
    made: gs.Tensor
    frame: _Frame
    inner: tuple[int, ...]
    outer: tuple[int, ...]
    count: int

    def place(self, axis: int) -> int | None:
        """Where an axis of the operand stands between those dimensions; None if it is one."""
        first, count = len(self.frame.before), len(self.inner)
        place = axis % (first + count + len(self.frame.behind)) - first
        return place if 0 <= place < count else None

    def numbers(self, index: int) -> list[int] | None:
        """An input of constant integers; None where it is left out, or is computed."""
        if len(self.node.inputs) <= index or self.node.inputs[index].is_empty():
            return None
        array = self.draft.facts.array(self.node.inputs[index])
        return None if array is None else [int(n) for n in array.reshape(-1).tolist()]

    def lacks(self, index: int) -> bool:
        """Whether an input is there, but is computed."""
        given = len(self.node.inputs) > index and not self.node.inputs[index].is_empty()
        return given and self.draft.facts.array(self.node.inputs[index]) is None


def _apart(places: Array, sizes: Sequence[int]) -> list[Array]:
    """Numbers in row-major order as one index an axis."""
    grid: list[Array] = []
    for size in reversed(sizes):
        grid.append(places % size)
        places = places // size
    return grid[::-1]


def _joined(grid: Sequence[Array], sizes: Sequence[int], count: int) -> Array:
    """One index an axis as numbers in row-major order."""
    places = np.zeros(count, np.int64)
    for index, size in zip(grid, sizes, strict=True):
        places = places * size + index
    return places


def _repeated(step: _Step, grid: list[Array]) -> list[Array] | None:
    """Expand and Tile: every axis has its elements again and again."""
    new = len(step.outer) - len(step.inner)
    if new and step.frame.before:
        return None  # axes are new in front of all others, so those are not where they were
    sizes = list(zip(step.inner, step.outer[new:], strict=True))
    if any(outer % inner if inner else outer for inner, outer in sizes):
        return None
    return [index % inner for index, (inner, _) in zip(grid[new:], sizes, strict=True)]


def _parted(step: _Step, grid: list[Array]) -> list[Array] | None:
    node, place = step.node, step.place(int(attribute_of(step.node, "axis")))
    if place is None or step.lacks(1):
        return None
    number = next(i for i, tensor in enumerate(node.outputs) if tensor is step.made)
    each = -(-step.inner[place] // len(node.outputs))  # the last may be shorter
    sizes = step.numbers(1) or [each] * len(node.outputs)
    grid[place] = grid[place] + sum(sizes[:number])
    return grid


def _cut(step: _Step, grid: list[Array]) -> list[Array] | None:
    starts, ends, axes, steps = map(step.numbers, range(1, 5))
    if starts is None or ends is None or step.lacks(3) or step.lacks(4):
        return None
    axes, steps = axes or list(range(len(starts))), steps or [1] * len(starts)
    for start, end, axis, stride in zip(starts, ends, axes, steps, strict=True):
        place = step.place(axis)
        if place is not None:
            first, last = slice_bounds(start, end, stride, step.inner[place])
            if len(range(first, last, stride)) != step.outer[place]:
                return None
            grid[place] = first + stride * grid[place]
        elif stride != 1:
            return None  # the axis keeps its size, but may be turned round
    return grid


def _picked(step: _Step, grid: list[Array]) -> list[Array] | None:
    place = step.place(int(attribute_of(step.node, "axis")))
    indices = step.draft.facts.array(step.node.inputs[1])
    if place is None or indices is None:
        return None
    if step.outer != (*step.inner[:place], *indices.shape, *step.inner[place + 1 :]):
        return None
    end, size = place + indices.ndim, step.inner[place]
    chosen = indices.reshape(-1)[_joined(grid[place:end], indices.shape, step.count)]
    chosen = chosen.astype(np.int64)
    return [*grid[:place], np.where(chosen < 0, chosen + size, chosen), *grid[end:]]


def _turned(step: _Step, grid: list[Array]) -> list[Array] | None:
    first, count = len(step.frame.before), len(step.inner)
    rank = first + count + len(step.frame.behind)
    order = order_of(step.node, rank)
    between = [axis - first for axis in order[first : first + count]]
    if order != [*range(first), *(axis + first for axis in between), *range(first + count, rank)]:
        return None
    if sorted(between) != list(range(count)):
        return None  # axes of the frame stand between the others
    return [grid[between.index(axis)] for axis in range(count)]


_STEPS: Mapping[str, Callable[[_Step, list[Array]], list[Array] | None]] = {
    "Expand": _repeated,
    "Tile": _repeated,
    "Split": _parted,
    "Slice": _cut,
    "Gather": _picked,
    "Transpose": _turned,
}
