"""Orthogonal polynomials, by their recurrences of three terms (DLMF 18.9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.work import INT64, Work
from surgeon.builders.bench import Bench, Size
from surgeon.builders.turns import in_turns
from surgeon.rewrite import Draft

_HIGHEST = 64  # degrees that are unrolled, each up to five nodes

Line = tuple[float, float]  # (a, b) of a k + b


class _Family(NamedTuple):
    """The polynomial of degree 1, and p(k + 1) = (a x + b) p(k) - c p(k - 1).

    Attributes:
        first: Slope and rest of the polynomial of degree 1.
        slope: a, as a line in k.
        rest: b.
        back: c.
        divided: Whether all three are divided by k + 1.
    """

    first: Line
    slope: Line
    rest: Line = (0, 0)
    back: Line = (0, 1)
    divided: bool = False

    def step(self, k: int) -> tuple[float, float, float]:
        """a, b and c from degree k to the next."""
        under = k + 1 if self.divided else 1
        a, b, c = ((p * k + q) / under for p, q in (self.slope, self.rest, self.back))
        return a, b, c


_FAMILIES: Mapping[str, _Family] = {
    "chebyshev_polynomial_t": _Family((1, 0), (0, 2)),
    "chebyshev_polynomial_u": _Family((2, 0), (0, 2)),
    "chebyshev_polynomial_v": _Family((2, -1), (0, 2)),
    "chebyshev_polynomial_w": _Family((2, 1), (0, 2)),
    "hermite_polynomial_h": _Family((2, 0), (0, 2), back=(2, 0)),
    "hermite_polynomial_he": _Family((1, 0), (0, 1), back=(1, 0)),
    "laguerre_polynomial_l": _Family((-1, 1), (0, -1), (2, 1), (1, 0), divided=True),
    "legendre_polynomial_p": _Family((1, 0), (2, 1), back=(1, 0), divided=True),
}


def polynomial_of_degree(work: Work) -> gs.Tensor:
    """`special_*_polynomial_*` (x, n): 1, a line, and one step for each degree above."""
    degree = work.args.tensor("n")
    known = work.facts.array(degree)
    name = work.name.removeprefix("special_")
    family = _FAMILIES[name.removeprefix("shifted_")]
    if known is None or known.size != 1 or work.rank(degree) or known > _HIGHEST:
        _, (x, _) = work.together(work.args.tensor("x"), degree, floating=True)
        x = _shifted(work, x) if name.startswith("shifted_") else x
        return _of_computed_degree(work, family, x, work.cast(degree, INT64))
    n = int(known)  # without its fraction, as PyTorch takes it
    x = work.floating(work.args.tensor("x"))
    x = _shifted(work, x) if name.startswith("shifted_") else x
    zero = work.op("Mul", x, 0.0)
    if n <= 0:  # not of x: what is infinite there stays out of it
        shape = work.draft.op("Shape", x)
        return work.draft.op("Expand", work.number(float(n == 0), work.dtype(x)), shape)
    below, here = work.op("Add", zero, 1.0), _line(work, x, *family.first)
    for k in range(1, n):
        a, b, c = family.step(k)
        rising = work.op("Mul", _line(work, x, a, b), here)
        falling = below if c == 1 else work.op("Mul", below, c)
        below, here = here, work.op("Sub", rising, falling)
    return here


def _shifted(work: Work, x: gs.Tensor) -> gs.Tensor:
    made: gs.Tensor = work.op("Sub", work.op("Mul", x, 2.0), 1.0)
    return made


def _of_computed_degree(work: Work, family: _Family, x: gs.Tensor, n: gs.Tensor) -> gs.Tensor:
    """A degree for each element, int64: a turn for each degree up to the greatest."""
    dtype, bench = work.dtype(x), Bench(work.draft)
    sizes = work.draft.op("Shape", work.op("Add", x, work.cast(n, dtype)))
    one, zero = work.number(1, dtype), work.number(0, dtype)
    line = work.draft.op("Expand", _line(work, x, *family.first), sizes)
    low = work.where(work.equal(n, work.number(1, INT64)), line, one)
    low = work.where(work.op("Less", n, work.number(0, INT64)), zero, low)
    start = [work.draft.op("Expand", t, sizes) for t in (one, line, low)]
    most = bench.concat([bench.flat(n), bench.ints([2], "least")], 0)
    last = work.draft.op("ReduceMax", most, work.axes([0]), keepdims=1)
    count = Size(None, lambda: work.draft.op("Sub", last, work.axes([1])))
    numbers = work.draft.op("Add", bench.unsqueeze(bench.count(count), [1]), work.axes([1]))

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        inner, (below, here, found) = work.within(draft), state
        k = inner.cast(draft.op("Squeeze", number, inner.axes([0])), dtype)
        after = draft.op("Add", number, inner.axes([1]))

        def times(line: Line, t: gs.Tensor) -> gs.Tensor:
            return (
                inner.op("Mul", _line(inner, k, *line), t)
                if line[0]
                else (t if line[1] == 1 else inner.op("Mul", t, float(line[1])))
            )

        rising = times(family.slope, x)
        if any(family.rest):
            rising = inner.op("Add", rising, _line(inner, k, *family.rest))
        high = inner.op("Sub", inner.op("Mul", rising, here), times(family.back, below))
        if family.divided:
            high = inner.op("Div", high, inner.op("Add", k, 1.0))
        reached = inner.equal(n, draft.op("Squeeze", after, inner.axes([0])))
        return [draft.op("Identity", here), high, inner.where(reached, high, found)]

    return in_turns(work.draft, start, numbers, step)[2]


def _line(work: Work, x: gs.Tensor, a: float, b: float) -> gs.Tensor:
    y = x if a == 1 else work.op("Mul", x, float(a))
    return work.op("Add", y, float(b)) if b else y


def spherical_bessel(work: Work) -> gs.Tensor:
    """`special_spherical_bessel_j0`: sin x / x, 1 at 0 and 0 far away."""
    x = work.floating(work.args.tensor("x"))
    y = work.op("Div", work.op("Sin", x), x)
    y = work.where(work.equal(x, work.number(0, work.dtype(x))), 1.0, y)
    far = work.equal(work.op("Abs", x), work.number(np.inf, work.dtype(x)))
    return work.where(far, 0.0, y)


_NAMES = [
    *(f"special_{name}" for name in _FAMILIES),
    *(f"special_shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
]
FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys(_NAMES, polynomial_of_degree),
    "special_spherical_bessel_j0": spherical_bessel,
}
