"""Pieces of one tensor, repeated or not, that are put together again: one Gather of that tensor."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import onnx_graphsurgeon as gs
from onnx.helper import tensor_dtype_to_np_dtype

from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.origins import origins_of
from surgeon.dims import Dim
from surgeon.facts.fact import Array
from surgeon.fold import DEFAULT_LIMIT
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

Shape = tuple[Dim, ...]
# Nodes that a Gather saves at least where none was: a roll of two Slices runs where no Gather does.
_WORTH = 4
_MOST = DEFAULT_LIMIT // 8  # places that are looked for, and so indices of one Gather
_OF_A_NODE = 128  # bytes of indices that take no more of a file than a node does, with its name
# onnxruntime's Gather takes some 4 ns for each row that it copies, however short the row is; Slice
# and Concat take 1 to 2 us for a node, and copy rows that follow one another at once. So it is as
# fast as they are with rows that are not short, or few for each node that goes.
_SHORT = 256  # bytes
_FEW = 128  # rows
_WITH_STEPS = 10  # the opset whose Slice has steps
_UNKNOWN = 8  # what a size counts that is known at run time only


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
    origins: list[list[tuple[gs.Tensor, Array]]] = []
    left = _MOST
    for tensor in root.inputs:
        origins.append(origins_of(draft, tensor, axis, left))
        left -= len(origins[-1][0][1]) if origins[-1] else 0
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
    if shape is None or not dtype:
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
