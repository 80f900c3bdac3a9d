"""Reading at indices and masks, by linear places where need be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.aten_shape.slices import from_front
from surgeon.builders.bench import Bench, same_length
from surgeon.rewrite import Refused

MASKS = (TYPE.BOOL, TYPE.UINT8)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the indices of `x[...]` point.

    Attributes:
        axes: The indexed axes, in order.
        indices: An int64 tensor for each, that broadcast together.
        rank: Of what they broadcast to.
        joined: Whether the axes stand side by side.
    """

    axes: tuple[int, ...]
    indices: tuple[gs.Tensor, ...]
    rank: int
    joined: bool


def masks_of(c: Call, given: Sequence[gs.Tensor]) -> list[gs.Tensor | None]:
    """The indices, None for an axis that is taken whole; what may be a mask has a known dtype."""
    found = [None if t.is_empty() else t for t in given]
    for tensor in found:
        if tensor is not None:
            c.dtype(tensor)
    return found


def first_axis(given: Sequence[gs.Tensor | None]) -> int:
    """Where the first index stands."""
    return next(i for i, t in enumerate(given) if t is not None)


def place_of(c: Call, x: gs.Tensor, given: Sequence[gs.Tensor | None]) -> Place:
    """Where indices and masks point; a mask stands for the indices at which it holds."""
    axes: list[int] = []
    indices: list[gs.Tensor] = []
    axis = 0
    for tensor in given:
        if tensor is None:
            axis += 1
            continue
        if c.dtype(tensor) in MASKS:
            depth = c.rank(tensor)
            if depth == 0:
                raise Refused("a mask of rank 0 adds an axis")
            places = c.op("NonZero", c.cast(tensor, TYPE.BOOL))
            for row in range(depth):
                index = c.op("Gather", places, c.number(row, TYPE.INT64), axis=0)
                axes.append(axis)
                indices.append(index)
                axis += 1
            continue
        axes.append(axis)
        index = from_front(c, c.cast(tensor, TYPE.INT64), c.size(x, axis))
        indices.append(index)
        axis += 1
    if axis > c.rank(x):
        raise Refused(f"{axis} indices for an input of rank {c.rank(x)}")
    if not axes:
        raise Refused("every index is None")
    rank = max(c.rank(i) for i in indices)
    return Place(tuple(axes), tuple(indices), rank, axes[-1] - axes[0] == len(axes) - 1)


def linear_places(c: Call, x: gs.Tensor, place: Place) -> gs.Tensor:
    """One index into the indexed axes, flattened."""
    total: gs.Tensor | None = None
    stride: Size | int = 1
    for axis, index in reversed(list(zip(place.axes, place.indices, strict=True))):
        step = index if stride == 1 else c.op("Mul", index, _number(c, stride))
        total = step if total is None else c.op("Add", total, step)
        stride = c.mul(stride, c.size(x, axis))
    assert total is not None
    return total


def _number(c: Bench, size: Size | int) -> gs.Tensor:
    if isinstance(size, int):
        return c.number(size, TYPE.INT64)
    return c.op("Reshape", size.tensor, c.ints([], "scalar"))


def _index(c: Call) -> gs.Tensor:
    return read_at(c, c.tensor(), masks_of(c, c.args.tensors("indices")))


def read_at(c: Call, x: gs.Tensor, given: list[gs.Tensor | None]) -> gs.Tensor:
    """`x[...]` at indices and masks."""
    while given and given[-1] is None:
        given.pop()
    if not given:
        return x
    said = [t for t in given if t is not None]
    if len(said) == 1 and c.dtype(said[0]) in MASKS:
        return _masked(c, x, said[0], first_axis(given))
    if len(said) == 1:
        axis = first_axis(given)
        index = c.cast(said[0], TYPE.INT64)
        if c.opset < 11:
            index = from_front(c, index, c.size(x, axis))
        return c.op("Gather", x, index, axis=axis)
    place = place_of(c, x, given)
    rank = c.rank(x)
    lengths = c.sizes(x)
    axes = place.axes
    if not place.joined:
        rest = [i for i in range(rank) if i not in axes]
        linear = linear_places(c, x, place)
        x = c.permute(x, [*axes, *rest])
        first, behind, before = 0, [lengths[i] for i in rest], []
    else:
        linear = linear_places(c, x, place)
        first = axes[0]
        before, behind = lengths[:first], lengths[axes[-1] + 1 :]
    flat = c.reshape(x, [*before, c.product([lengths[a] for a in axes]), *behind])
    return c.op("Gather", flat, linear, axis=first)


def _masked(c: Call, x: gs.Tensor, mask: gs.Tensor, axis: int) -> gs.Tensor:
    depth = c.rank(mask)
    if depth == 0:
        raise Refused("a mask of rank 0 adds an axis")
    lengths = c.sizes(x)
    if depth > 1:
        middle = c.product(lengths[axis : axis + depth])
        x = c.reshape(x, [*lengths[:axis], middle, *lengths[axis + depth :]])
    return c.op("Compress", x, c.flat(c.cast(mask, TYPE.BOOL)), axis=axis)


def no_old_number(c: Call, *release: int) -> None:
    """Raises Refused for a number in a file of a release that made now a line of it, now none."""
    if c.rank(c.tensor()) == 0 and c.facts.model.is_before(*release):
        version = ".".join(map(str, release))
        raise Refused(
            f"before PyTorch {version} its result on a number was now a number, now a line"
        )


def _masked_select(c: Call) -> gs.Tensor:
    x, mask = c.tensor(), c.cast(c.tensor("mask"), TYPE.BOOL)
    if c.rank(mask) == 0:
        no_old_number(c, 1, 8)
    same = c.shape(x) is not None and c.shape(x) == c.shape(mask)
    if not same:
        rank = max(c.rank(x), c.rank(mask))
        sizes = [c.op("Shape", c.unsqueeze(t, range(rank - c.rank(t)))) for t in (x, mask)]
        ones = c.op("Equal", sizes[0], c.ints([1], "one"))
        target = c.op("Where", ones, sizes[1], sizes[0])
        x = c.op("Expand", x, target)
        as_number = c.op("Expand", c.cast(mask, TYPE.INT32), target)
        mask = c.cast(as_number, TYPE.BOOL)
    return c.op("Compress", c.flat(x), c.flat(mask), axis=0)


def places_of(c: Call, x: gs.Tensor) -> gs.Tensor:
    """Where it holds something, a row for each place."""
    holds = c.cast(x, TYPE.BOOL)
    if c.rank(x) == 0:  # a line of one element, of whose place no number is kept
        holds = c.op("Reshape", holds, c.ints([1], "line"))
    found: gs.Tensor = c.op("Transpose", c.op("NonZero", holds), perm=[1, 0])
    return found if c.rank(x) else c.slice(found, 1, 0, 0)


def _nonzero(c: Call) -> gs.Tensor:
    return places_of(c, c.tensor())


def _index_select(c: Call) -> gs.Tensor:
    x, index = c.tensor(), c.cast(c.tensor("index"), TYPE.INT64)
    rank = c.rank(x)
    if rank == 0:
        no_old_number(c, 1, 8)
        return x
    axis = c.axis(c.integer("dim"), rank)
    if c.facts.of(index).rank != 1:
        index = c.op("Reshape", index, c.ints([-1], "target"))
    return c.op("Gather", x, index, axis=axis)


def _embedding(c: Call) -> gs.Tensor:
    index = c.cast(c.tensor("indices"), TYPE.INT64)
    return c.op("Gather", c.tensor("weight"), index, axis=0)


def at_places(c: Bench, x: gs.Tensor, index: gs.Tensor, axis: int) -> gs.Tensor:
    """Linear places of `gather` and `scatter` in the flattened `x`."""
    rank = c.rank(x)
    total: gs.Tensor | None = None
    stride: Size | int = 1
    for at in reversed(range(rank)):
        step = index
        if at != axis:
            step = c.unsqueeze(c.count(c.size(index, at)), range(1, rank - at))
        if stride != 1:
            step = c.op("Mul", step, _number(c, stride))
        total = step if total is None else c.op("Add", total, step)
        stride = c.mul(stride, c.size(x, at))
    assert total is not None
    return total


def _gather(c: Call) -> gs.Tensor:
    x, index = c.tensor(), c.cast(c.tensor("index"), TYPE.INT64)
    rank = c.rank(x)
    if rank == 0:
        return c.op("Expand", x, c.op("Shape", index))
    return gather(c, x, index, c.axis(c.integer("dim"), rank))


def gather(c: Bench, x: gs.Tensor, index: gs.Tensor, axis: int) -> gs.Tensor:
    """One element of an axis for each index, as GatherElements; by linear places before it."""
    if c.rank(index) == 0:  # one element, as a number
        found = gather(c, x, c.op("Reshape", index, c.ints([1] * c.rank(x), "target")), axis)
        return c.op("Reshape", found, c.ints([], "target"))
    if c.opset >= 11:
        return c.op("GatherElements", x, index, axis=axis)
    return c.op("Gather", c.flat(x), at_places(c, x, index, axis), axis=0)


def _take(c: Call) -> gs.Tensor:
    x = c.tensor()
    index = c.cast(c.tensor("index"), TYPE.INT64)
    if c.opset < 11:
        index = from_front(c, index, c.product(c.sizes(x)))
    return c.op("Gather", c.flat(x), index, axis=0)


def _take_along_dim(c: Call) -> gs.Tensor:
    x, index = c.tensor(), c.cast(c.tensor("indices"), TYPE.INT64)
    if not c.has("dim"):
        x, index = c.flat(x), c.flat(index)
        return gather(c, x, from_front(c, index, c.size(x, 0)), 0)
    rank = c.rank(x)
    axis = c.axis(c.integer("dim"), rank)
    for at in range(rank):
        mine, its = c.size(x, at), c.size(index, at)
        if at == axis or (mine == 1 and its == 1):
            continue
        if same_length(mine, its):
            continue
        if mine == 1:
            x = c.op("Expand", x, c.vector([1] * at + [its] + [1] * (rank - at - 1)))
        elif its == 1:
            index = c.op("Expand", index, c.vector([1] * at + [mine] + [1] * (rank - at - 1)))
        elif not (isinstance(mine, int) and isinstance(its, int)):
            x = c.op("Expand", x, c.vector([1] * at + [its] + [1] * (rank - at - 1)))
            index = c.op("Expand", index, c.vector([1] * at + [mine] + [1] * (rank - at - 1)))
    return gather(c, x, from_front(c, index, c.size(x, axis)), axis)


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "index": _index,
    "index_select": _index_select,
    "embedding": _embedding,
    "gather": _gather,
    "take": _take,
    "take_along_dim": _take_along_dim,
    "masked_select": _masked_select,
    **dict.fromkeys(("nonzero", "argwhere"), _nonzero),
}
