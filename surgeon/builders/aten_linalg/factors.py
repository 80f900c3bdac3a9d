"""Cholesky and QR factors, column by column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_linalg import turns
from surgeon.builders.aten_linalg.solving import triangular
from surgeon.builders.aten_shape.call import Call
from surgeon.rewrite import Refused


def cholesky(c: Call, a: gs.Tensor) -> gs.Tensor:
    """L of A = L L^T; the upper triangle of A is not looked at."""
    size = m.square(c, a)
    few = m.few(size)
    if few is None:
        factor = turns.without(c, turns.lower_factor(c, *turns.with_one(c, a, size)), size)
        return factor if isinstance(size, int) else m.columns(c, factor, 0, size)
    found = []
    for step in range(few):
        column = m.columns(c, a, 0, 1)
        column = c.op("Div", column, c.op("Sqrt", m.rows(c, column, 0, 1)))
        found.append(m.padded(c, column, above=step))
        if step + 1 < few:
            below = m.rows(c, column, 1)
            rest = m.columns(c, m.rows(c, a, 1), 1)
            a = c.op("Sub", rest, c.op("MatMul", below, m.turned(c, below)))
    return c.concat(found, c.rank(a) - 1)


def _cholesky(c: Call) -> tuple[gs.Tensor, ...]:
    """The factor; and in `linalg_cholesky_ex` the order of the first minor that is not positive."""
    a = c.tensor()
    upper = bool(c.value("upper"))
    factor = cholesky(c, m.turned(c, a) if upper else a)
    info = []
    if m.is_read(c, 1):  # from there on, roots of what is below 0 are no numbers
        roots = m.diagonal_of(c, factor, m.square(c, a))
        info.append(m.first_of(c, c.op("Not", c.op("Less", c.number(0, c.dtype(a)), roots))))
    return (m.turned(c, factor) if upper else factor, *info)


def _cholesky_solve(c: Call) -> gs.Tensor:
    return _by_factor(c, c.tensor("input2"), c.tensor())


def _cholesky_inverse(c: Call) -> gs.Tensor:
    factor = c.tensor()
    size = m.square(c, factor)
    return _by_factor(c, factor, m.identity(c, factor, size, size))


def _by_factor(c: Call, factor: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
    """X of L L^T X = B, or of U^T U X = B."""
    upper = bool(c.value("upper"))
    lower, above = (m.turned(c, factor), factor) if upper else (factor, m.turned(c, factor))
    return triangular(c, above, triangular(c, lower, b, upper=False), upper=True)


class _Reflection(NamedTuple):
    """H = 1 - tau v v^T."""

    vector: gs.Tensor  # [..., rows, 1]
    tau: gs.Tensor  # [..., 1, 1]


def _reflected(c: Call, one: _Reflection, x: gs.Tensor) -> gs.Tensor:
    share = c.op("MatMul", m.turned(c, one.vector), x)
    return c.op("Sub", x, c.op("Mul", c.op("Mul", one.tau, one.vector), share))


def _reflection(c: Call, column: gs.Tensor) -> tuple[_Reflection, gs.Tensor]:
    """What turns a column into a multiple of the first axis, and that multiple.

    As LAPACK's larfg: the multiple has the sign that the first element lacks, and a column that
    is one already stays.
    """
    dtype = c.dtype(column)
    one, zero = c.number(1, dtype), c.number(0, dtype)
    head, tail = m.rows(c, column, 0, 1), m.rows(c, column, 1)
    axes = c.ints([c.rank(column) - 2], "axes")
    still = c.op("Equal", c.op("ReduceMax", c.op("Abs", tail), axes, keepdims=1), zero)
    length = c.op("ReduceL2", column, axes, keepdims=1)
    negative = c.op("Less", head, zero)
    multiple = c.op("Where", negative, length, c.op("Neg", length))
    multiple = c.op("Where", still, head, multiple)
    # where it stays, both differences are 0: 1 is divided by instead
    gap = c.op("Where", still, one, c.op("Sub", head, multiple))
    base = c.op("Where", still, one, multiple)
    tau = c.op("Div", c.op("Sub", multiple, head), base)
    vector = m.stacked(c, [c.op("Add", c.op("Mul", head, zero), one), c.op("Div", tail, gap)])
    return _Reflection(vector, tau), multiple


def householder(c: Call, a: gs.Tensor, high: int, wide: int) -> tuple[list[_Reflection], gs.Tensor]:
    """The reflections of A = Q R, and R [min(high, wide), wide]."""
    reflections: list[_Reflection] = []
    found = []
    for step in range(min(high, wide)):
        if step == high - 1:  # one row is left, and stays
            found.append(m.padded(c, a, left=step))
            break
        one, corner = _reflection(c, m.columns(c, a, 0, 1))
        reflections.append(one)
        row = [corner]
        if step + 1 < wide:
            rest = _reflected(c, one, m.columns(c, a, 1))
            row.append(m.rows(c, rest, 0, 1))
            a = m.rows(c, rest, 1)
        found.append(m.padded(c, c.concat(row, c.rank(a) - 1), left=step))
    return reflections, m.stacked(c, found)


def orthogonal(
    c: Call, a: gs.Tensor, reflections: list[_Reflection], high: int, wide: int
) -> gs.Tensor:
    """The first columns of Q."""
    q = m.identity(c, a, high, wide)
    for step in reversed(range(len(reflections))):
        below = _reflected(c, reflections[step], m.rows(c, q, step))
        q = m.stacked(c, [m.rows(c, q, 0, step), below]) if step else below
    return q


def orthogonal_factor(c: Call, a: gs.Tensor, high: int, wide: int, *, complete: bool) -> gs.Tensor:
    """Q of A = Q R, as many columns as A has, or all."""
    count = high if complete else min(high, wide)
    if m.few(high) is None or m.few(wide) is None:
        q, _ = turns.reflected(c, a, high, wide)
        return m.columns(c, m.rows(c, q, 0, high), 0, count)
    return orthogonal(c, a, householder(c, a, high, wide)[0], high, count)


def _qr(c: Call) -> tuple[gs.Tensor, gs.Tensor]:
    a = c.args.first()
    size, others = m.side(c, a, -2), m.side(c, a, -1)
    if c.args.schema.takes("mode"):
        mode = c.value("mode")
    else:
        mode = "reduced" if c.value("some") else "complete"
    if mode == "r" and m.is_read(c, 0):
        raise Refused("its mode is `r`, and the other factor is read")
    high, wide = m.few(size), m.few(others)
    if high is None or wide is None:
        q, r = turns.reflected(c, a, size, others)
        end = m.smaller(c, size, others)
        if mode == "complete":
            return m.columns(c, m.rows(c, q, 0, size), 0, size), m.rows(c, r, 0, size)
        return m.columns(c, m.rows(c, q, 0, size), 0, end), m.rows(c, r, 0, end)
    reflections, r = householder(c, a, high, wide)
    if mode == "complete":
        missing = max(high - wide, 0)
        return orthogonal(c, a, reflections, high, high), m.padded(c, r, below=missing)
    if mode == "r":
        return r, r
    return orthogonal(c, a, reflections, high, min(high, wide)), r


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("cholesky", "linalg_cholesky", "linalg_cholesky_ex"), _cholesky),
    "cholesky_solve": _cholesky_solve,
    "cholesky_inverse": _cholesky_inverse,
    **dict.fromkeys(("qr", "linalg_qr"), _qr),
}
