"""Orthogonal polynomials of a constant degree, by their recurrences of three terms (DLMF 18.9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.work import Work
from surgeon.rewrite import Refused

_HIGHEST = 64  # degrees that are unrolled, each up to five nodes


class _Family(NamedTuple):
    """The polynomial of degree 1, and p(k + 1) = (a x + b) p(k) - c p(k - 1) for each k."""

    first: tuple[float, float]
    step: Callable[[int], tuple[float, float, float]]


def _two(_: int) -> tuple[float, float, float]:
    return 2.0, 0.0, 1.0


_FAMILIES: Mapping[str, _Family] = {
    "chebyshev_polynomial_t": _Family((1, 0), _two),
    "chebyshev_polynomial_u": _Family((2, 0), _two),
    "chebyshev_polynomial_v": _Family((2, -1), _two),
    "chebyshev_polynomial_w": _Family((2, 1), _two),
    "hermite_polynomial_h": _Family((2, 0), lambda k: (2.0, 0.0, 2.0 * k)),
    "hermite_polynomial_he": _Family((1, 0), lambda k: (1.0, 0.0, float(k))),
    "laguerre_polynomial_l": _Family(
        (-1, 1), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))
    ),
    "legendre_polynomial_p": _Family((1, 0), lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1))),
}


def polynomial_of_degree(work: Work) -> gs.Tensor:
    """`special_*_polynomial_*` (x, n): 1, a line, and one step for each degree above."""
    degree = work.args.value("n")
    if isinstance(degree, list) or degree != int(degree):
        raise Refused("its degree is not one whole number")
    n = int(degree)
    if n > _HIGHEST:
        raise Refused(f"its degree is {n}; up to {_HIGHEST} are unrolled")
    name = work.name.removeprefix("special_")
    x = work.floating(work.args.tensor("x"))
    if name.startswith("shifted_"):
        x = work.op("Sub", work.op("Mul", x, 2.0), 1.0)
    family = _FAMILIES[name.removeprefix("shifted_")]
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
