"""PyTorch operators: integrals by trapezoids, powers in columns, means and norms of parts."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_reductions import Dims, over
from surgeon.reference.operators.math_types import common, cut, real
from surgeon.reference.operators.precision import Array, Row, is_float, narrow, wide
from surgeon.reference.operators.shapes import axis_of


def nanmean(self: Array, dim: Dims, keepdim: bool, dtype: Any) -> Array:
    x = self if dtype is None else self.astype(dtype)
    values = wide(x)
    count = over(np.sum, values == values, dim, keepdim)
    return narrow(over(np.nansum, values, dim, keepdim) / count, x)


def linalg_vecdot(x: Array, y: Array, dim: int) -> Array:
    a, b, dtype = common(x, y)
    a, b = np.broadcast_arrays(np.conj(a), b)
    axis = axis_of(dim, a.ndim)
    return cut(
        np.einsum("...i,...i->...", np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)), dtype
    )


def renorm(self: Array, p: float, dim: int, maxnorm: float) -> Array:
    rows = np.moveaxis(wide(self), axis_of(dim, self.ndim), 0)
    scaled = [
        r * min(1.0, maxnorm / (n + 1e-7)) if n > maxnorm else r
        for r, n in ((r, np.linalg.norm(r.reshape(-1), p)) for r in rows)
    ]
    return narrow(
        np.moveaxis(np.asarray(scaled).reshape(rows.shape), 0, axis_of(dim, self.ndim)), self
    )


def _areas(y: Array, dim: int, points: Any) -> tuple[Any, int, Any]:
    """Those between each two points, along the last axis; the dim; the dtype of the result."""
    if y.dtype == np.bool_:
        raise Unsuited("booleans have no integral")
    axis, dtype = axis_of(dim, y.ndim), real(y)[1]
    values = np.moveaxis(y, axis, -1)
    if is_float(y):
        values = values.astype(np.float64)
        middle = values[..., :-1] + np.diff(values, axis=-1) / 2
    else:
        sums = values[..., 1:] + values[..., :-1]  # in their own type, which wraps
        middle = sums.astype(np.float64) / 2
    if not isinstance(points, np.ndarray) or not points.ndim:
        return points * middle, axis, dtype
    line = points if points.ndim == 1 else np.moveaxis(points, axis, -1)
    if is_float(points):
        dtype, line = np.promote_types(dtype, points.dtype), line.astype(np.float64)
    widths = np.diff(line, axis=-1)
    if is_float(y) or is_float(points):
        return widths * middle, axis, dtype
    kind = np.promote_types(y.dtype, points.dtype)
    return (sums.astype(kind) * widths.astype(kind)).astype(np.int64) / 2, axis, dtype


def trapezoid(y: Array, dim: int, dx: Any = 1, x: Any = None) -> Array:
    if x is None and y.dtype.kind in "iu" and y.size:
        values = np.moveaxis(y, axis_of(dim, y.ndim), -1)
        ends = (values[..., 0] + values[..., -1]).astype(np.float64)
        return cut((values.sum(-1, dtype=np.int64) - ends / 2) * dx, np.dtype(np.float32))
    areas, _, dtype = _areas(y, dim, dx if x is None else x)
    return cut(areas.sum(-1), dtype)


def cumulative_trapezoid(y: Array, dim: int, dx: Any = 1, x: Any = None) -> Array:
    areas, axis, dtype = _areas(y, dim, dx if x is None else x)
    return cut(np.moveaxis(np.cumsum(areas, -1), -1, axis), dtype)


def vander(x: Array, N: int | None, increasing: bool = True) -> Array:  # noqa: N803
    x, kind = np.atleast_1d(x), x.dtype if is_float(x) else np.dtype(np.int64)
    powers = np.arange(x.shape[-1] if N is None else N)
    made = x[..., None].astype(np.float64 if is_float(x) else kind) ** powers
    return cut(made if increasing else made[..., ::-1], kind)


TABLE: tuple[Row, ...] = (
    (
        "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
        "-> Tensor",
        nanmean,
    ),
    ("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", linalg_vecdot),
    ("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", renorm),
    *(
        (f"{name}.{kind}, *, {more}int dim=-1) -> Tensor", function)
        for name, function in (
            ("trapezoid", trapezoid),
            ("cumulative_trapezoid", cumulative_trapezoid),
        )
        for kind, more in (("dx(Tensor y", "Scalar dx=1, "), ("x(Tensor y, Tensor x", ""))
    ),
    ("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", vander),
    ("linalg_vander(Tensor x, *, int? N=None) -> Tensor", vander),
)
