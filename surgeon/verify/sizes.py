"""Which sizes the dynamic dims are given: several for each, odd ones among them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import onnx

from surgeon.assumed import follows, formula_value
from surgeon.verify.growth import Growth
from surgeon.verify.limits import Input

WANTED = 3  # sizes for each dynamic dim
LARGEST = 1 << 23  # elements of one input
LEADING = (2, 1, 3)
OTHER = (64, 37, 100)
SQUARE = (64, 37, 48)  # for one that stands on two axes of an input
CUBIC = (16, 9, 24)  # where an input has three dynamic dims or more besides the first
MORE_LEADING = (4, 8, 5, 16, 6, 7, 32, 10, 12, 64)
MORE_OTHER = (
    *(32, 16, 128, 8, 224, 512, 96, 1600, 48, 20, 10, 50, 12, 7, 5, 6, 4, 3, 2, 1),
    *(256, 200, 320, 384, 16_000, 33, 65),
)
SMALLER = (2, 8)  # what other dims are divided by, before one is said to have one size
ATTEMPTS = 160
_LONGER = 5  # lengths at which single dims are tried twice as long
_LONG = 600  # sizes above are those of sounds and texts, and not of both axes of images
_LARGEST_LONG = 1 << 18  # elements of one input with such a size


def dynamic_dims(inputs: Sequence[Input], told: Collection[str] = ()) -> dict[str, int]:
    """The dynamic dims by name, with the axis of their first appearance.

    One that is called by the sum or the product of others has no size of its own: optimum's masks
    are of `past_sequence_length + sequence_length`.

    Args:
        inputs: What has them.
        told: Dims of which somebody said a size: these have one, whatever they are called.
    """
    dims: dict[str, int] = {}
    for each in inputs:
        for axis, dim in enumerate(each.dims):
            if isinstance(dim, str):
                dims.setdefault(dim, axis)
    ones = dict.fromkeys(dims, 1)
    return {
        dim: axis
        for dim, axis in dims.items()
        if dim in told or not follows(dim) or formula_value(dim, ones) is None
    }


def is_leading(dim: str, inputs: Sequence[Input]) -> bool:
    """Whether this dim stands first wherever it stands, and is no sequence's length."""
    return all(
        axis == 0 and not each.is_list
        for each in inputs
        for axis, d in enumerate(each.dims)
        if d == dim
    )


def groups(
    dims: Mapping[str, int],
    inputs: Sequence[Input],
    base: Mapping[str, int],
    hints: Mapping[str, Sequence[int]],
) -> list[tuple[str, ...]]:
    """Dims that may be tied (the batch of several inputs): on one axis, of one size at the base."""
    found: dict[tuple[object, ...], list[str]] = {}
    for dim, axis in _roles(dims, inputs, hints).items():
        key = (dim,) if dim in hints else (axis, base[dim])
        found.setdefault(key, []).append(dim)
    return [tuple(group) for group in found.values()]


def candidates(
    dims: Mapping[str, int],
    inputs: Sequence[Input],
    hints: Mapping[str, Sequence[int]],
    growth: Growth | None = None,
) -> dict[str, list[int]]:
    """For each dim, the sizes to try, best first; where hints are given, nothing but them.

    Dims on one axis of several inputs get the same sizes, as they are often tied; dims on several
    axes of one input get different ones. One that stands on two axes of one input stays smaller:
    what attends from each of its places to each takes the fourth power. Where `growth` knows of a
    value that becomes large at the best ones, smaller ones are first.
    """
    return _candidates(dims, inputs, hints, _usual(dims, inputs, hints, growth))


def _usual(
    dims: Mapping[str, int],
    inputs: Sequence[Input],
    hints: Mapping[str, Sequence[int]],
    growth: Growth | None,
) -> tuple[int, ...]:
    """The best sizes of dims that are no batch: smaller ones where a value becomes large."""
    if growth is None:
        return OTHER
    best = next(first_choices(_candidates(dims, inputs, hints, OTHER)))
    return CUBIC if growth.elements(best) > LARGEST else OTHER


def _candidates(
    dims: Mapping[str, int],
    inputs: Sequence[Input],
    hints: Mapping[str, Sequence[int]],
    other: Sequence[int],
) -> dict[str, list[int]]:
    square = {dim for each in inputs for dim in each.dims if each.dims.count(dim) > 1}
    counts = [sum(isinstance(dim, str) for dim in each.dims[1:]) for each in inputs]
    other = CUBIC if max(counts, default=0) > 2 else other
    found = {}
    for dim, axis in dims.items():
        usual = LEADING if axis == 0 else SQUARE if dim in square and other is OTHER else other
        turn = max(0, axis - 1) % WANTED
        rotated = [*usual[turn:], *usual[:turn]]
        more = MORE_LEADING if axis == 0 else MORE_OTHER
        found[dim] = list(hints.get(dim, ())) or list(dict.fromkeys([*rotated, *more]))
    return found


def traced_sizes(before: onnx.ModelProto, after: onnx.ModelProto) -> dict[str, list[int]]:
    """Sizes of dims that the original's outputs state of a trace, where the result's say the dim.

    What a trace froze runs at these sizes if at any.
    """
    found: dict[str, set[int]] = {}
    for one, other in zip(before.graph.output, after.graph.output, strict=False):
        pair = (v.type.tensor_type.shape.dim for v in (one, other))
        for claimed, proven in zip(*pair, strict=False):
            if claimed.dim_value and proven.dim_param:
                found.setdefault(proven.dim_param, set()).add(claimed.dim_value)
    return {dim: sorted(sizes) for dim, sizes in found.items() if len(sizes) == 1}


def fits(sizes: Mapping[str, int], inputs: Sequence[Input], growth: Growth | None = None) -> bool:
    """Whether no input becomes too large, nor, as far as `growth` knows, what is made of them.

    And whether parts that are joined there are as long as one another.
    """
    most = _LARGEST_LONG if max(sizes.values(), default=0) > _LONG else LARGEST
    if any(math.prod(each.shape(sizes)) > most for each in inputs):
        return False
    return growth is None or (growth.joins(sizes) and growth.is_moderate(sizes))


def first_choices(lists: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """The sizes to compare at, where all of them run."""
    seen = []
    for turn in range(WANTED):
        sizes = {dim: sizes[turn % len(sizes)] for dim, sizes in lists.items()}
        if sizes not in seen:
            seen.append(sizes)
            yield sizes


def search(
    dims: Mapping[str, int],
    inputs: Sequence[Input],
    hints: Mapping[str, Sequence[int]],
    growth: Growth | None = None,
) -> Iterator[dict[str, int]]:
    """Where the first choices do not run: leading dims alike, the others alike; bounded.

    At the first few lengths each of the others is tried twice as long, too: a mask is as long as
    what is kept and what is new. So are all of an input together: an image has half the resolution
    of another.
    """
    usual = _usual(dims, inputs, hints, growth)
    dims = _roles(dims, inputs, hints)
    leading = (*LEADING, *MORE_LEADING)
    other = tuple(dict.fromkeys((*usual, *OTHER, *MORE_OTHER)))
    # More models want one length than want one batch.
    pairs = sorted(
        itertools.product(range(len(leading)), range(len(other))),
        key=lambda pair: (4 * pair[0] + pair[1], pair),
    )
    seen = set()
    for at, place in pairs:
        sizes = {
            dim: hints[dim][0] if hints.get(dim) else (other[place] if axis else leading[at])
            for dim, axis in dims.items()
        }
        longer = [dim for dim, axis in dims.items() if axis and not hints.get(dim)]
        longer = longer if at == 0 and place < _LONGER and len(longer) > 1 else []
        alone = [(dim,) for dim in longer]
        for doubled in ((), *alone, *_planes(inputs, longer)):
            each = {**sizes, **{dim: 2 * sizes[dim] for dim in doubled}}
            key = tuple(each.values())
            if key not in seen:
                seen.add(key)
                yield each
        if len(seen) >= ATTEMPTS:
            return


def with_smaller(
    base: Mapping[str, int], group: Sequence[str], fixed: Collection[str]
) -> Iterator[dict[str, int]]:
    """The base with smaller sizes of dims that are neither a group's nor fixed."""
    last = dict(base)
    for times in SMALLER:  # all alike: one may be twice as long as another
        free = {dim: n for dim, n in base.items() if dim not in group and dim not in fixed}
        smaller = {**base, **{dim: max(1, n // times) for dim, n in free.items()}}
        if smaller != last:
            yield (last := smaller)


def _planes(inputs: Sequence[Input], dims: Sequence[str]) -> list[tuple[str, ...]]:
    """Of each of several inputs those of the dims that it has alone, where they are several."""
    found = []
    for each in inputs:
        others = {dim for other in inputs if other is not each for dim in other.dims}
        own = [dim for dim in dict.fromkeys(each.dims) if dim in dims and dim not in others]
        if 1 < len(own) < len(dims):
            found.append(tuple(str(dim) for dim in own))
    return found


def _roles(
    dims: Mapping[str, int], inputs: Sequence[Input], hints: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """The axis that each dim counts for: a batch for the first, wherever it stands."""
    batches = _of_states(inputs, {dim for dim, given in hints.items() if len(given) == 1})
    return {dim: 0 if dim in batches else axis for dim, axis in dims.items()}


def _of_states(inputs: Sequence[Input], fixed: Set[str]) -> set[str]:
    """Dims that may be the batch of a recurrent state: the only ones, behind a number of layers."""
    free = [[isinstance(d, str) and d not in fixed for d in each.dims] for each in inputs]
    if not any(each and each[0] for each in free):
        return set()
    return {
        str(each.dims[1])
        for each, open_ in zip(inputs, free, strict=True)
        if open_ == [False, True, False]
    }


def sizes_of(feeds: Mapping[str, Any], inputs: Sequence[Input]) -> dict[str, int]:
    """The dynamic dims' sizes in given arrays."""
    shapes = {each.name: _shape_of(feeds[each.name]) for each in inputs}
    return {
        dim: shapes[each.name][axis]
        for each in inputs
        for axis, dim in enumerate(each.dims)
        if isinstance(dim, str) and len(shapes[each.name]) == len(each.dims)
    }


def _shape_of(fed: Any) -> tuple[int, ...]:
    """Of a list: how many, and the shape of the first."""
    return (len(fed), *fed[0].shape) if isinstance(fed, list) and fed else np.shape(fed)
