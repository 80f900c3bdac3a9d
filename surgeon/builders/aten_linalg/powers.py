"""Powers and the exponential of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_linalg.solving import inverse
from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.builders.contraction import product

# How many terms Taylor's series has where the norm is 1 at most, and how often it is squared at
# most: the exponential of a matrix whose norm is 2 to that power has no digit left in that dtype.
_SERIES: Mapping[int, tuple[int, int]] = {TYPE.FLOAT: (12, 24), TYPE.DOUBLE: (20, 52)}

_LARGEST = 1024  # the side of a constant identity; products need no unrolling


def _matrix_power(c: Call) -> gs.Tensor:
    x, n = c.tensor(), c.integer("n")
    if n < 0:
        x, n = inverse(c, x), -n
    if n == 0:
        size = c.size(x, c.rank(x) - 1)
        return m.identity(c, x, size, size)
    result: gs.Tensor | None = None
    square = x
    while n:
        if n & 1:
            result = square if result is None else product(c, result, square)
        n >>= 1
        if n:
            square = product(c, square, square)
    assert result is not None
    return result


def _matrix_exp(c: Call) -> gs.Tensor:
    """Taylor's series of A / 2^s, squared s times; s is each matrix's own."""
    a = c.tensor()
    size, dtype, rank = m.square(c, a, _LARGEST), c.dtype(a), c.rank(a)
    if c.size(a, rank - 1) == 0:  # no elements, and no greatest
        return c.filled(c.sizes(a), 0, dtype)
    terms, most = _SERIES[dtype]
    sums = c.op("ReduceSum", c.op("Abs", a), c.ints([rank - 2], "axes"), keepdims=1)
    norm = c.op("ReduceMax", sums, c.ints([rank - 1], "axes"), keepdims=1)
    halvings = c.op("Ceil", c.op("Mul", c.op("Log", norm), c.number(1 / math.log(2), dtype)))
    halvings = c.op("Max", halvings, c.number(0, dtype))
    halvings = c.op("Min", halvings, c.number(most, dtype))
    a = c.op("Div", a, c.op("Pow", c.number(2, dtype), halvings))
    eye = m.identity(c, a, size, size)
    y = eye
    for k in range(terms, 0, -1):  # Horner's scheme
        y = c.op("Add", eye, c.op("Div", c.op("MatMul", a, y), c.number(k, dtype)))
    for k in range(most):
        more = c.op("Less", c.number(k, dtype), halvings)
        y = c.op("Where", more, c.op("MatMul", y, y), y)
    return y


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("matrix_power", "linalg_matrix_power"), _matrix_power),
    **dict.fromkeys(("matrix_exp", "linalg_matrix_exp"), _matrix_exp),
}
