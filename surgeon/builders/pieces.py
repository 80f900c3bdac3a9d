"""Pieces of one tensor, repeated or not, that are put together again: one Gather of that tensor."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import onnx_graphsurgeon as gs
from onnx.helper import tensor_dtype_to_np_dtype

from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.selections import producer_of
from surgeon.builders.views import KEEP_ORDER
from surgeon.dims import Dim
from surgeon.facts.fact import Array
from surgeon.facts.values import slice_bounds
from surgeon.fold import DEFAULT_LIMIT
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

Shape = tuple[Dim, ...]
_DEEPEST = 10  # nodes from a piece back to the whole; the check of a rewrite reaches little further
# Nodes that a Gather saves at least where none was: a roll of two Slices runs where no Gather does.
_WORTH = 4
_MOST = DEFAULT_LIMIT // 8  # indices of one Gather
_OF_A_NODE = 128  # bytes of indices that take no more of a file than a node does, with its name
# onnxruntime's Gather takes some 4 ns for each row that it copies, however short the row is; Slice
# and Concat take 1 to 2 us for a node, and copy rows that follow one another at once. So it is as
# fast as they are with rows that are not short, or few for each node that goes.
_SHORT = 256  # bytes
_FEW = 128  # rows
_WITH_STEPS = 10  # the opset whose Slice has steps
_UNKNOWN = 8  # what a size counts that is known at run time only


@dataclass(frozen=True, slots=True)
class _Frame:
    """The dimensions in front of the axis along which pieces are put together, and behind it.

    What leads from the whole to a piece keeps these; what stands between them is numbered in row-
    major order, and a piece is the list of the numbers that it takes.
    """

    before: Shape
    behind: Shape

    def between(self, shape: Shape | None) -> tuple[int, ...] | None:
        """What a shape has between the two; None where it has not these, or is not known."""
        if shape is None or len(shape) < len(self.before) + len(self.behind):
            return None
        first, end = len(self.before), len(shape) - len(self.behind)
        sizes = tuple(d for d in shape[first:end] if isinstance(d, int))
        kept = shape[:first] == self.before and shape[end:] == self.behind
        return sizes if kept and len(sizes) == end - first else None


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring operands of a Concat that are pieces of one tensor.

    Attributes:
        first: The first operand.
        end: The one behind the last.
        source: What they are pieces of.
        places: What they take of it, in order.
        saved: How many nodes fewer there are when it is taken at once.
    """

    first: int
    end: int
    source: gs.Tensor
    places: Array
    saved: int


def pieces_as_gather(draft: Draft, match: Match) -> gs.Tensor:
    """A Concat of constant pieces of one tensor as one Gather or Slice of it, or as itself.

    Neighbouring operands that are pieces of one tensor are taken at once, whatever the others are.
    """
    root = match.root
    shape = draft.facts.of(root.outputs[0]).shape
    if shape is None:
        raise Refused("its rank is not known")
    axis = int(root.attrs["axis"]) % len(shape)
    origins = [_origins(draft, tensor, axis) for tensor in root.inputs]
    if not any(len(found) > 1 for found in origins):
        raise Refused("no operand is a piece of known size of another tensor")
    parts: list[gs.Tensor] = []
    done = 0
    for run in _runs(draft, root, axis, origins):
        taken = _taken(draft, run, axis)
        if taken is not None:
            parts += [*root.inputs[done : run.first], taken]
            done = run.end
    if not parts:
        raise Refused("for a Gather too few nodes go, or its rows or indices are too many")
    parts += root.inputs[done:]
    return parts[0] if len(parts) == 1 else draft.op("Concat", *parts, axis=axis)


# ---------------------------------------------------------------------- where a piece comes from


def _origins(draft: Draft, piece: gs.Tensor, axis: int) -> list[tuple[gs.Tensor, Array]]:
    """The tensors that a piece is taken from along this axis, itself first, and which places."""
    shape = draft.facts.of(piece).shape
    if shape is None or axis >= len(shape):
        return []
    frame, length = _Frame(shape[:axis], shape[axis + 1 :]), shape[axis]
    if not isinstance(length, int) or length > _MOST:
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


_STEPS: Mapping[str, Callable[[_Step, list[Array]], list[Array] | None]] = {
    "Expand": _repeated,
    "Tile": _repeated,
    "Split": _parted,
    "Slice": _cut,
    "Gather": _picked,
}

# ---------------------------------------------------------------------- what is taken at once


def _runs(
    draft: Draft, root: gs.Node, axis: int, origins: Sequence[list[tuple[gs.Tensor, Array]]]
) -> Iterator[_Run]:
    """Operands that are worth taking at once, from the first to the last."""
    known = [{id(source): places for source, places in found} for found in origins]
    failed: dict[tuple[int, bool], int] = {}  # how far what is taken of a tensor was too little
    first = 0
    while first < len(origins):
        best: _Run | None = None
        for source, straight in product([source for source, _ in origins[first]], (False, True)):
            if failed.get((id(source), straight), 0) > first:
                continue
            parts = [known[first][id(source)]]
            for found in known[first + 1 :]:
                more = found.get(id(source))
                if more is None or (straight and not _follows(parts[-1], more)):
                    break
                parts.append(more)
            end, places = first + len(parts), np.concatenate(parts)
            saved = _saved(draft, root, axis, (first, end), source, places)
            if saved <= 0:
                failed[id(source), straight] = end
            elif best is None or (saved, end) > (best.saved, best.end):
                best = _Run(first, end, source, places, saved)
        if best is not None:
            yield best
        first = first + 1 if best is None else best.end


def _follows(places: Array, more: Array) -> bool:
    """Whether places begin behind the last of others."""
    return bool(len(places) and len(more) and more[0] == places[-1] + 1)


def _saved(
    draft: Draft,
    root: gs.Node,
    axis: int,
    span: tuple[int, int],
    source: gs.Tensor,
    places: Array,
) -> int:
    """How many nodes go when these operands are taken at once; 0 where that is not worth it."""
    nodes = _freed(draft, root.inputs[slice(*span)], source)
    whole, freed = span == (0, len(root.inputs)), len(nodes)
    if _is_all(draft, source, axis, places):
        return freed + whole
    saved, stride = freed - (not whole), _stride(draft, places)
    if stride == 1:
        return saved
    if saved < _WORTH and not any(node.op == "Gather" for node in nodes):
        return 0
    if stride:
        return saved
    shape, dtype = draft.facts.of(source).shape, draft.facts.of(source).dtype
    if shape is None or not dtype or len(places) > _MOST:
        return 0
    width = 1 if dtype == TYPE.STRING else np.dtype(tensor_dtype_to_np_dtype(dtype)).itemsize
    row = width * _count(shape[axis + 1 :])
    rows = len(places) * _count(shape[:axis])
    return saved if row >= _SHORT or rows <= _FEW * freed else 0


def _count(sizes: Shape) -> int:
    return math.prod(size if isinstance(size, int) else _UNKNOWN for size in sizes)


def _freed(draft: Draft, pieces: Sequence[gs.Tensor], source: gs.Tensor) -> list[gs.Node]:
    """The nodes that nobody reads when one node less reads these pieces of the source."""
    surgery, gone = draft.surgery, Counter[int]()
    waiting, freed = list(pieces), list[gs.Node]()
    while waiting:
        tensor = waiting.pop()
        gone[id(tensor)] += 1
        node = tensor.inputs[0] if tensor.inputs and tensor is not source else None
        if node is None or surgery.gives_output(node):
            continue
        if all(gone[id(made)] >= len(made.outputs) for made in node.outputs):
            freed.append(node)
            waiting.extend(node.inputs)
    return freed


def _is_all(draft: Draft, source: gs.Tensor, axis: int, places: Array) -> bool:
    """Whether it is every place of the source, in order."""
    shape = draft.facts.of(source).shape
    return (
        shape is not None
        and shape[axis] == len(places)
        and bool((places == np.arange(len(places))).all())
    )


def _stride(draft: Draft, places: Array) -> int | None:
    """The step of a Slice that takes these places; None where none does, or none so old."""
    if len(places) == 0:
        return None
    steps = np.unique(np.diff(places))
    if len(steps) > 1 or (len(steps) and steps[0] < 1):
        return None
    step = int(steps[0]) if len(steps) else 1
    return step if step == 1 or draft.facts.opset >= _WITH_STEPS else None


def _taken(draft: Draft, run: _Run, axis: int) -> gs.Tensor | None:
    """What a run of operands is, straight from the whole; None without room for its indices."""
    c, places = Bench(draft), run.places
    if _is_all(draft, run.source, axis, places):
        return run.source
    stride = _stride(draft, places)
    if stride:
        return c.slice(run.source, axis, int(places[0]), int(places[-1]) + 1, stride)
    if not _has_room(draft, 8 * len(places) - _OF_A_NODE * run.saved):
        return None
    taken: gs.Tensor = c.op("Gather", run.source, c.ints_of(places), axis=axis)
    return taken


def _has_room(draft: Draft, added: int) -> bool:
    """Whether indices may add this much to the file, less what the nodes took that go."""
    if added > 0:
        added += draft.surgery.findings.get("indices", 0)
        if added > DEFAULT_LIMIT:
            return False
        draft.surgery.findings["indices"] = added
    return True
