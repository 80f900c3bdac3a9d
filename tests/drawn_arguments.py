"""Arguments of ATen operators, drawn at random: arrays, axes, and what fits together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

Draw = Callable[..., Any]
Arguments = Callable[[Draw], list[Any]]
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-30, 3e4)
FLOATS = ("float32", "float64")
ALL = ("float32", "float64", "int64", "int32", "bool")
NUMBERS = ("float32", "float64", "int64", "int32")


def shape(draw: Draw, least: int = 0, most: int = 4, longest: int = 4, smallest: int = 0) -> Any:
    return tuple(draw(st.lists(st.integers(smallest, longest), min_size=least, max_size=most)))


def array(draw: Draw, dims: tuple[int, ...], kinds: tuple[str, ...], *, edges: bool = True) -> Any:
    """Seeded numbers of either sign; a float has special ones among them."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = np.dtype(draw(st.sampled_from(kinds)))
    if dtype == np.bool_:
        return np.asarray(rng.random(dims) < 0.5)
    if dtype.kind == "i":
        return rng.integers(-9, 10, dims).astype(dtype)
    values = rng.normal(size=dims)
    if edges and draw(st.booleans()):
        values = np.where(rng.random(dims) < 0.3, rng.choice(EDGES, dims), values)
    return np.asarray(values, dtype)


def axis(draw: Draw, rank: int) -> int:
    """An axis from either end; PyTorch takes 0 and -1 of rank 0 as well."""
    return int(draw(st.integers(-max(rank, 1), max(rank, 1) - 1)))


def axes(draw: Draw, rank: int, least: int = 0) -> list[int]:
    order = draw(st.permutations(range(rank)))
    return [a - rank * draw(st.booleans()) for a in order[: draw(st.integers(least, rank))]]


def moved(*rest: Callable[[Draw, int], Any], least: int = 0) -> Arguments:
    """A tensor of any kind, and arguments that depend on its rank."""

    def draw_all(draw: Draw) -> list[Any]:
        x = array(draw, shape(draw, least), ALL)
        return [x, *(argument(draw, x.ndim) for argument in rest)]

    return draw_all


def number(low: int, high: int) -> Callable[[Draw, int], int]:
    return lambda draw, rank: int(draw(st.integers(low, high)))


def truth(draw: Draw, rank: int) -> bool:
    return bool(draw(st.booleans()))


def bound(draw: Draw, rank: int) -> int | None:
    """Where a slice begins or ends: inside, at the edge, far outside, or not said."""
    found = draw(st.one_of(st.none(), st.integers(-6, 6), st.sampled_from([2**31, 2**63 - 1])))
    return None if found is None else int(found)


def pair(kinds: tuple[str, ...] = NUMBERS) -> Arguments:
    """Two tensors that broadcast, of two dtypes; one of rank 0 could pass for a Python number."""

    def draw_all(draw: Draw) -> list[Any]:
        dims = shape(draw, 1, longest=3)
        other = tuple(1 if draw(st.booleans()) else n for n in dims)
        other = other[draw(st.integers(0, len(dims) - 1)) :]
        both = [array(draw, dims, kinds, edges=False), array(draw, other, kinds, edges=False)]
        return both[::-1] if draw(st.booleans()) else both

    return draw_all


def reduced(kinds: tuple[str, ...], *, empty: bool, dtype: bool = True) -> Arguments:
    def draw_all(draw: Draw) -> list[Any]:
        x = array(draw, shape(draw, smallest=0 if empty else 1), kinds, edges=False)
        chosen = axes(draw, x.ndim, least=0 if empty else min(1, x.ndim))
        assume(chosen or empty)
        return [x, chosen, truth(draw, 0), *([None] if dtype else [])]

    return draw_all


def viewed(draw: Draw) -> list[Any]:
    x = array(draw, shape(draw, smallest=1), ALL)
    sizes, rest = [], x.size
    for _ in range(draw(st.integers(0, 3))):
        part = draw(st.sampled_from([n for n in range(1, rest + 1) if rest % n == 0]))
        sizes.append(part)
        rest //= part
    sizes.append(rest)
    if draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return [x, sizes]


def expanded(draw: Draw) -> list[Any]:
    dims = shape(draw, longest=3)
    x = array(draw, tuple(1 if draw(st.booleans()) else n for n in dims), ALL)
    front = draw(st.lists(st.integers(0, 3), max_size=2))
    kept = [-1 if x.shape[i] == n and draw(st.booleans()) else n for i, n in enumerate(dims)]
    return [x, [*front, *kept], False]


def decomposed(draw: Draw) -> list[Any]:
    return [array(draw, shape(draw, 2, longest=4), ("float32", "float64"), edges=False), None]


def spaced(draw: Draw) -> list[Any]:
    start = array(draw, (), ("float32", "float64"), edges=False)
    return [start, draw(st.sampled_from([-1.0, 0.0, 2.5])), draw(st.integers(0, 6)), None]


def of_degrees(draw: Draw) -> list[Any]:
    dims = shape(draw, 1, smallest=1, longest=3)
    x = array(draw, dims, ("float32", "float64"), edges=False)
    return [np.tanh(x).astype(x.dtype), array(draw, dims[-1:], ("int64", "float32"), edges=False)]


def padded(draw: Draw) -> list[Any]:
    x = array(draw, shape(draw, 1), NUMBERS)
    pads: list[int] = []
    for length in x.shape[::-1][: draw(st.integers(1, x.ndim))]:
        first = draw(st.integers(-length, 3))
        pads += [first, draw(st.integers(-(length + min(first, 0)), 3))]
    return [x, pads, draw(st.sampled_from([0, 2, -1]))]


def gathered(draw: Draw) -> list[Any]:
    x = array(draw, shape(draw, 1, smallest=1), ALL)
    at = axis(draw, x.ndim)
    count = draw(st.integers(0, 5))
    picks = draw(st.lists(st.integers(0, x.shape[at] - 1), min_size=count, max_size=count))
    return [x, at, np.asarray(picks, np.int64)]


def indexed(draw: Draw) -> list[Any]:
    """`x[..., i, ...]` with negative indices, and None where an axis is taken whole."""
    x = array(draw, shape(draw, 1, 3, smallest=1), ALL)
    count = draw(st.integers(1, x.ndim))
    dims = shape(draw, 0, 2, longest=3)
    found: list[Any] = []
    for length in x.shape[:count]:
        if draw(st.booleans()) and len(found) < count - 1:
            found.append(None)
            continue
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        found.append(rng.integers(-length, length, dims))
    return [x, found]


def split(draw: Draw) -> list[Any]:
    x = array(draw, shape(draw, 1, smallest=1), ALL)
    return [x, draw(st.integers(1, 5)), axis(draw, x.ndim)]


def joined(draw: Draw) -> list[Any]:
    x = array(draw, shape(draw, 1, longest=3), ALL)
    at = axis(draw, x.ndim)
    parts = [x]
    for _ in range(draw(st.integers(0, 3))):
        dims = list(x.shape)
        dims[at] = draw(st.integers(0, 3))
        parts.append(array(draw, tuple(dims), ALL))
    return [parts, at]


def product(draw: Draw) -> list[Any]:
    n, k, m = (draw(st.integers(1, 4)) for _ in range(3))
    batch = shape(draw, 0, 2, longest=3, smallest=1)
    left, right = (tuple(1 if draw(st.booleans()) else d for d in batch) for _ in range(2))
    kind = (draw(st.sampled_from(FLOATS)),)
    a = array(draw, (*left, n, k) if draw(st.booleans()) else (k,), kind, edges=False)
    b = array(draw, (*right, k, m) if draw(st.booleans()) else (k,), kind, edges=False)
    return [a, b]


def windows(draw: Draw, count: int = 2) -> list[list[int]]:
    """Kernel, stride and padding, which is at most half the kernel."""
    kernel = [draw(st.integers(1, 3)) for _ in range(count)]
    stride = [draw(st.integers(1, 3)) for _ in range(count)]
    return [kernel, stride, [draw(st.integers(0, k // 2)) for k in kernel]]


def pooled(*, largest: bool) -> Arguments:
    def draw_all(draw: Draw) -> list[Any]:
        x = array(draw, (*shape(draw, 1, 2, 2, 1), *shape(draw, 2, 2, 7, 3)), ("float32",))
        x = np.nan_to_num(x, nan=0.25, posinf=9.0, neginf=-9.0)
        first = [x, *windows(draw)]
        if largest:
            return [*first, [draw(st.integers(1, 2)) for _ in range(2)], truth(draw, 0)]
        divisor = draw(st.sampled_from([None, 3]))
        return [*first, truth(draw, 0), truth(draw, 0), divisor]

    return draw_all


def resized(*options: Any, longest: int = 9) -> Arguments:
    def draw_all(draw: Draw) -> list[Any]:
        dims = (*shape(draw, 2, 2, 2, 1), *shape(draw, 2, 2, 6, 1))
        x = array(draw, dims, ("float32",), edges=False)
        sizes = [draw(st.integers(1, longest)) for _ in range(2)]
        return [x, sizes, *(draw(st.sampled_from(o)) for o in options), None, None]

    return draw_all


def adapted(draw: Draw) -> list[Any]:
    x = array(draw, (*shape(draw, 1, 2, 2, 1), *shape(draw, 2, 2, 9, 1)), FLOATS, edges=False)
    return [x, [draw(st.integers(1, 6)) for _ in range(2)]]


def grouped(draw: Draw) -> list[Any]:
    groups, each = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    dims = (draw(st.integers(1, 2)), groups * each, *shape(draw, 0, 3, 4, 1))
    x = array(draw, dims, ("float32",), edges=False)
    weights = [array(draw, dims[1:2], ("float32",), edges=False) for _ in range(2)]
    given = [w if draw(st.booleans()) else None for w in weights]
    return [x, groups, *given, 1e-3, False]


def ranked(*, scalar: bool) -> Arguments:
    """Rows without infinities, shares of them, an axis and a way between neighbours."""

    def draw_all(draw: Draw) -> list[Any]:
        x = array(draw, shape(draw, 1, smallest=1), FLOATS)
        x = np.where(np.isinf(x), np.asarray(2, x.dtype), x)
        q = draw(st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]))
        share = q if scalar else np.asarray([q, 1 - q, 0.4], x.dtype)
        dim = draw(st.one_of(st.none(), st.just(axis(draw, x.ndim))))
        ways = ["linear", "lower", "higher", "midpoint", "nearest"]
        return [x, share, dim, truth(draw, 0), draw(st.sampled_from(ways))]

    return draw_all


def masked(draw: Draw) -> list[Any]:
    x = array(draw, shape(draw, 1), ALL)
    mask = array(draw, x.shape[draw(st.integers(0, x.ndim - 1)) :], ("bool",))
    if draw(st.booleans()):  # both are broadcast
        x, mask = x[..., :1], np.broadcast_to(mask, x.shape)[None].copy()
    return [x, mask, array(draw, (mask.size * x.size,), (x.dtype.name,))]


def scattered(draw: Draw) -> tuple[Any, int, Any, Any]:
    """A tensor, an axis of it, indices into that, which may repeat, and a source of their shape."""
    x = array(draw, shape(draw, 1, 3, smallest=1), NUMBERS, edges=False)
    at = axis(draw, x.ndim)
    longest = [5 if i == at % x.ndim else n for i, n in enumerate(x.shape)]
    dims = [n if draw(st.booleans()) else draw(st.integers(0, n)) for n in longest]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    index = rng.integers(0, x.shape[at], dims)
    return x, at, index, array(draw, tuple(dims), (x.dtype.name,), edges=False)


def lined(draw: Draw) -> list[Any]:
    """A tensor, an axis, indices, and as many lines of a source."""
    x = array(draw, shape(draw, 1, 3, smallest=1), NUMBERS, edges=False)
    at, many = axis(draw, x.ndim), draw(st.integers(0, 5))
    index = np.random.default_rng(draw(st.integers(0, 99))).integers(0, x.shape[at], many)
    dims = [many if i == at % x.ndim else n for i, n in enumerate(x.shape)]
    return [x, at, index, array(draw, tuple(dims), (x.dtype.name,), edges=False)]


def part(draw: Draw) -> list[Any]:
    """A tensor, what stands in the place of a part of it, and which part that is."""
    x = array(draw, shape(draw, 1), ALL)
    at, begin, end, step = axis(draw, x.ndim), bound(draw, 0), bound(draw, 0), number(1, 3)(draw, 0)
    taken = np.swapaxes(np.swapaxes(x, 0, at)[begin:end:step], 0, at)
    return [x, array(draw, taken.shape, (x.dtype.name,)), at, begin, end, step]


def classified(draw: Draw) -> list[Any]:
    """Scores, a class for each place, weights, a reduction, and a class that does not count."""
    x = array(draw, shape(draw, 2, 4, smallest=1), ("float32",), edges=False)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    target = rng.integers(0, x.shape[1], (x.shape[0], *x.shape[2:]))
    weight = np.abs(array(draw, x.shape[1:2], ("float32",), edges=False))
    given = weight if draw(st.booleans()) else None
    return [x, target, given, draw(st.integers(0, 2)), draw(st.sampled_from([-100, 0, 1]))]


def diagonal(draw: Draw) -> list[Any]:
    x = array(draw, shape(draw, 2, smallest=1), ALL)
    first, second = draw(st.permutations(range(x.ndim)))[:2]
    offset = draw(st.integers(-2, 2))
    line = np.diagonal(x, offset, first, second)
    return [x, array(draw, line.shape, (x.dtype.name,)), offset, first, second - x.ndim]


def sought(draw: Draw) -> list[Any]:
    kind = (draw(st.sampled_from(NUMBERS)),)
    x = array(draw, shape(draw), kind)
    return [x, array(draw, shape(draw, 0, 2), kind), truth(draw, 0), truth(draw, 0)]
