"""Operands that are brought to one shape from the right, with the batch of all in one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx

from surgeon import dims
from surgeon.anybatch.flow import Flow
from surgeon.frozen import Frozen

_MATRIX = 2  # axes of one


def aligned(flow: Flow, node: onnx.NodeProto) -> None:
    """Have what holds the batch in front of all that lies beside others' items.

    A mask of one row an item, [items, columns], meets [1, heads, rows, columns] in its rows: it
    becomes [items, 1, 1, columns]. Beside [rows, columns] alone, what comes of them has an axis
    more, up to where it meets others that have it. What has all items' rows behind one another, as
    a layer of matrices leaves it, becomes rows of items again.

    Raises:
        Frozen: There is no such axis.
    """
    held = [name for name in dict.fromkeys(node.input) if name in flow.places]
    shared = [flow.shape(name) for name in node.input if name not in flow.places]
    backs = {_back(flow, name) for name in held}
    behind = max(backs)
    if backs == {behind} and all(_fits(flow, shape, behind, held[0]) for shape in shared):
        return
    rank = max(len(flow.shape(name)) for name in node.input)
    options = [
        back
        for back in range(behind, rank + (1 if flow.is_given(node.output[0]) else 2))
        if all(_may_move(flow, name, back) or _may_split(flow, name, back, held) for name in held)
        and all(len(shape) < back or shape[-back] == 1 for shape in shared)
    ]
    if not options:
        if len(backs) > 1:
            raise Frozen("its operands hold the batch along different axes")
        return  # and what is in the way is named
    back = flow.choose(options)
    for place, name in enumerate(node.input):
        if name in held and _back(flow, name) != back:
            made = name if _may_move(flow, name, back) else _split(flow, name, held)
            node.input[place] = made if _back(flow, made) == back else _moved(flow, made, back)


def stacked(flow: Flow, node: onnx.NodeProto) -> None:
    """Have the matrices of each item, of two stacks, along the same axis of the stacks.

    Raises:
        Frozen: There is no such axis.
    """
    backs = [_back(flow, name) for name in node.input]
    if min(backs) <= _MATRIX:
        return  # rows or columns: the product says of which it is none
    for place, name in enumerate(node.input):
        if backs[place] < max(backs):
            if not _may_move(flow, name, max(backs)):
                raise Frozen("its operands hold the batch along different axes")
            node.input[place] = _moved(flow, name, max(backs))


def _back(flow: Flow, name: str) -> int:
    """The axis of the batch, counted from behind."""
    return len(flow.shape(name)) - flow.places[name]


def _fits(flow: Flow, shape: Sequence[dims.Dim], back: int, like: str) -> bool:
    """Whether what items share has one along the batch, or as many as they have together."""
    if len(shape) < back:
        return True
    return shape[-back] in (1, flow.shape(like)[-back])


def _may_move(flow: Flow, name: str, back: int) -> bool:
    """Whether the batch may lie in front of other axes: it is one there, and so are those."""
    shape, own = flow.shape(name), _back(flow, name)
    if own == back:
        return True
    one = flow.size == 1 and name not in flow.leads and shape[-own] == 1
    return one and (back > len(shape) or shape[-back] == 1)


def _moved(flow: Flow, name: str, back: int) -> str:
    """The value with the batch in front, and one where it was."""
    shape, place = [*flow.shape(name)], flow.places[name]
    rank, own = len(shape), len(shape) - place
    if back <= rank:
        order = [*range(rank)]
        order[place], order[rank - back] = rank - back, place
        return flow.note(flow.op("Transpose", [name], perm=order), shape, rank - back)
    if place:
        front = [place, *(axis for axis in range(rank) if axis != place)]
        name = flow.op("Transpose", [name], perm=front)
        shape.insert(0, shape.pop(place))
    axes = [*range(1, back - rank), back - own]
    for axis in axes:
        shape.insert(axis, 1)
    return flow.note(flow.unsqueezed(name, axes), shape, 0)


def _may_split(flow: Flow, name: str, back: int, held: Sequence[str]) -> bool:
    """Whether rows of all items, one behind another, may be rows of items, of three axes."""
    shape, own = flow.shape(name), _back(flow, name)
    rows = dims.exact_quotient(shape[-own], flow.size)
    if own != len(shape) or name in flow.leads or rows is None:
        return False
    known = isinstance(rows, int) or _like(flow, own, rows, held) is not None
    return known and back > own and (back == own + 1 or flow.size == 1)


def _like(flow: Flow, back: int, rows: dims.Dim, held: Sequence[str]) -> str | None:
    """What has as many rows there, beside the batch."""
    for name in held:
        if _back(flow, name) > back and flow.shape(name)[-back] == rows:
            return name
    return None


def _split(flow: Flow, name: str, held: Sequence[str]) -> str:
    """The value with the rows of each item apart."""
    shape = flow.shape(name)
    rows = dims.exact_quotient(shape[0], flow.size)
    assert rows is not None, "it was asked for"
    sizes = [-1, rows, *shape[1:]]
    if all(isinstance(size, int) for size in sizes):
        target = flow.add(f"{name}_shape", np.array(sizes, np.int64))
    else:
        like = _like(flow, len(shape), rows, held) or name
        at = len(flow.shape(like)) - len(shape)
        first = flow.add(f"{name}_items", np.array([-1], np.int64))
        rest = _told(flow, name, range(1, len(shape)), shape[1:])
        target = flow.op("Concat", [first, *_told(flow, like, [at], [rows]), *rest], axis=0)
    return flow.note(flow.op("Reshape", [name, target]), [flow.size, rows, *shape[1:]], 0)


def _told(flow: Flow, name: str, axes: Sequence[int], sizes: Sequence[dims.Dim]) -> Iterator[str]:
    """Sizes of a value, each as a vector of one: constants where they are known."""
    for axis, size in zip(axes, sizes, strict=True):
        known = isinstance(size, int)
        number = flow.add(f"{name}_size", np.array([size if known else axis], np.int64))
        yield number if known else flow.op("Gather", [flow.op("Shape", [name]), number])
