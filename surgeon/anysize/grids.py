"""Constants that are as long as a size, for any: the same all along, or grids of places.

A detector's head holds a place for each cell of its levels, and a stride: numbers that go up by
equal steps along the rows and columns of a level. Such are computed at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.anysize.depending import depending
from surgeon.anysize.sizes import Sizes, factors, told
from surgeon.dims import Dim
from surgeon.facts.fact import Array
from surgeon.frozen import Frozen
from surgeon.rewrite import Draft

_FIRST_RANGE = 11  # the opset that has it


class Level(NamedTuple):
    """Part of a constant whose elements go up by equal steps.

    Attributes:
        loops: What counts them, and along which axis of `base`.
        base: Its first elements: 1 along each of these axes.
        steps: As many as loops, each as `base`.
        shape: With the axes apart that a value has as one.
        whole: With these as one.
    """

    loops: tuple[tuple[int, Dim], ...]
    base: Array
    steps: tuple[Array, ...]
    shape: tuple[Dim, ...]
    whole: tuple[Dim, ...]


def for_any(
    sizes: Sizes, draft: Draft, tensor: gs.Tensor, array: Array, along: Mapping[int, Dim]
) -> gs.Tensor:
    """A constant that is broadcast against lengths, for any.

    Args:
        sizes: The graph.
        draft: Takes the nodes.
        tensor: The constant.
        array: Its value.
        along: The axes that are as long as these.

    Raises:
        Frozen: It is none that is known for other sizes.
    """
    key = (tensor.name, tuple(along.items()))
    if key in sizes.made:
        return sizes.made[key]
    one = _same_all_along(sizes, array, along)
    if one is not None:
        made = draft.constant(one, "one")
    else:
        levels = _levels(sizes, array, along)
        if not levels or sizes.facts.opset < _FIRST_RANGE:
            axis, dim = next(iter(along.items()))
            raise Frozen(
                f"{sizes.title(tensor)} has {array.shape[axis]} elements along {told(sizes, dim)}"
            )
        parts = [_computed(sizes, draft, level, split=len(levels) > 1) for level in levels]
        axis = next(iter(along)) - array.ndim
        made = parts[0] if len(parts) == 1 else draft.op("Concat", *parts, axis=axis)
        sizes.made[key] = made
    return made


def _same_all_along(sizes: Sizes, array: Array, along: Mapping[int, Dim]) -> Array | None:
    """One of the elements along each axis, where all are the same, and none is a length."""
    one = array
    for axis in along:
        one = one.take([0], axis)
    same = np.array_equal(
        array, np.broadcast_to(one, array.shape), equal_nan=array.dtype.kind == "f"
    )
    if not same:
        return None
    numbers = one.dtype.kind in "fiu"
    depends = numbers and len(depending(sizes, one, _lengths(sizes, along))) == one.size
    return None if depends else one


def _lengths(sizes: Sizes, along: Mapping[int, Dim]) -> set[int]:
    numbers = {sizes.number(dim) for dim in along.values()}
    parts = (part for dim in along.values() for part in factors(sizes, dim))
    return numbers | {sizes.number(part) for part in parts if sizes.is_free(part)}


def _levels(sizes: Sizes, array: Array, along: Mapping[int, Dim]) -> list[Level]:
    """The levels of a grid; none where it is no such."""
    if array.dtype.kind not in "fi" or not np.isfinite(array).all():
        return []
    if len(along) > 1:
        level = _level(sizes, array, along)
        return [level] if level is not None and not _all_hang(sizes, [level]) else []
    ((axis, dim),) = along.items()
    parts = sizes.joined.get(dim, (dim,))
    if parts is None:
        return []
    found: list[Level] = []
    begin = 0
    for part in parts:
        end = begin + sizes.number(part)
        cut = array.take(range(begin, end), axis)
        level = _level(sizes, cut, {axis: part}) if sizes.is_free(part) else None
        if level is None:
            return []
        found.append(level)
        begin = end
    return [] if begin != array.shape[axis] or _all_hang(sizes, found) else found


def _level(sizes: Sizes, array: Array, along: Mapping[int, Dim]) -> Level | None:
    """A part of a constant whose elements go up by equal steps along what its axes are made of."""
    apart: list[Dim] = []
    for axis, length in enumerate(array.shape):
        apart += list(factors(sizes, along[axis])) if axis in along else [int(length)]
    loops = tuple((axis, dim) for axis, dim in enumerate(apart) if sizes.is_free(dim))
    numbers = [sizes.number(dim) for dim in apart]
    if any(numbers[axis] < 2 for axis, _ in loops):
        return None
    whole = array.reshape(numbers)
    base = _at(whole, loops, None)
    steps = tuple(_at(whole, loops, axis) - base for axis, _ in loops)
    again = base
    for (axis, dim), step in zip(loops, steps, strict=True):
        again = again + _counted(numbers[axis], axis, whole.ndim, array.dtype) * step
        if not _is_plain(sizes, dim, base, step):
            return None
    if not np.array_equal(np.broadcast_to(again, whole.shape), whole):
        return None
    together: list[Dim] = [
        along[axis] if axis in along else int(length) for axis, length in enumerate(array.shape)
    ]
    return Level(loops, base, steps, tuple(apart), tuple(together))


def _at(array: Array, loops: Sequence[tuple[int, Dim]], second: int | None) -> Array:
    """The first elements along all loops, or the second along one."""
    for axis, _ in loops:
        array = array.take([int(axis == second)], axis)
    return array


def _counted(number: int, axis: int, rank: int, dtype: Any) -> Array:
    return np.arange(number).astype(dtype).reshape([-1 if at == axis else 1 for at in range(rank)])


def _is_plain(sizes: Sizes, dim: Dim, base: Array, step: Array) -> bool:
    """Whether steps are cells, or pixels of the input, which are as large at any size.

    And what it begins with is no middle or end of the row, which would be elsewhere.
    """
    number = sizes.number(dim)
    of = next((size for size in sizes.sizes if {size.symbol} == dims.symbols(dim)), None)
    if of is None:
        return False
    stride = of.number / number
    for first, each in np.broadcast(base, step):
        if each == 0:
            continue
        if each not in (1, stride):
            return False
        share = abs(float(first) / float(each))
        if any(abs(share - end) < 1 for end in (number, number / 2)) and number > 2:
            return False
    return True


def _all_hang(sizes: Sizes, levels: Sequence[Level]) -> bool:
    """Whether what stays the same within each level may be its length: in all of them."""
    for level in levels:
        still = ~np.any(np.stack([step != 0 for step in level.steps]), axis=0)
        lengths = {sizes.number(dim) for _, dim in level.loops}
        constant = level.base[still]
        if not constant.size or len(depending(sizes, constant, lengths)) < constant.size:
            return False
    return True


def _computed(sizes: Sizes, draft: Draft, level: Level, *, split: bool) -> gs.Tensor:
    """A level at run time."""
    rank = len(level.shape)
    moving = [
        (axis, dim, step)
        for (axis, dim), step in zip(level.loops, level.steps, strict=True)
        if np.any(step)
    ]
    if not moving:
        one = level.base.reshape([d if isinstance(d, int) else 1 for d in level.whole])
        return draft.op("Expand", draft.constant(one, "level"), sizes.vector(draft, level.whole))
    made: gs.Tensor | None = None
    for axis, dim, step in moving:
        counted = _range(sizes, draft, dim, level.base.dtype)
        if rank > axis + 1:
            ends = draft.constant(list(range(1, rank - axis)), "axes")
            counted = draft.op("Unsqueeze", counted, ends)
        term = counted if np.all(step == 1) else draft.op("Mul", counted, _least(draft, step))
        made = term if made is None else draft.op("Add", made, term)
    assert made is not None, "something moves"
    if np.any(level.base):
        made = draft.op("Add", made, _least(draft, level.base))
    shape = draft.facts.of(made).shape
    if shape != level.shape and (split or level.shape != level.whole):
        made = draft.op("Expand", made, sizes.vector(draft, level.shape))
    if level.shape != level.whole:
        constant = dims.constant_target(level.shape, level.whole)
        operand = (
            sizes.vector(draft, level.whole)
            if constant is None
            else draft.constant(constant, "shape")
        )
        made = draft.op("Reshape", made, operand)
    return made


def _least(draft: Draft, array: Array) -> gs.Tensor:
    """A constant without axes in front that are one long."""
    shape = list(array.shape)
    while shape and shape[0] == 1:
        shape.pop(0)
    return draft.constant(array.reshape(shape), "step")


def _range(sizes: Sizes, draft: Draft, dim: Dim, dtype: Any) -> gs.Tensor:
    """0, 1, 2, ... as many as a length."""
    key = ("", ((0, dim), str(dtype)))
    if key not in sizes.made:
        last = draft.op("Squeeze", sizes.computed(draft, dim), draft.constant([0], "axis"))
        zero, one = (draft.constant(np.array(n, np.int64), "number") for n in (0, 1))
        counted = draft.op("Range", zero, last, one)
        if dtype != np.int64:
            kind = int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
            counted = draft.op("Cast", counted, to=kind)
        sizes.made[key] = counted
    return sizes.made[key]
