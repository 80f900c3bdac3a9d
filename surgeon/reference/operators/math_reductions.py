"""PyTorch operators: reductions, orders and running results."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_types import common, cut, real
from surgeon.reference.operators.precision import Array, Row, is_float, narrow, wide
from surgeon.reference.operators.shapes import axis_of

Dims = int | Sequence[int] | None


def axes_of(x: Array, dim: Dims) -> tuple[int, ...] | None:
    """Axes for numpy; None or an empty list is all of them."""
    given = [dim] if isinstance(dim, int) else list(dim or ())
    axes = {axis_of(d, x.ndim) for d in given}
    return tuple(sorted(axes)) if axes and x.ndim else None


def _accumulated(x: Array, dtype: Any) -> tuple[Array, np.dtype[Any]]:
    """The input as it is added up, and the dtype of the result: integers go into int64."""
    result = np.dtype(dtype) if dtype is not None else x.dtype if is_float(x) else np.dtype("i8")
    x = x.astype(result)
    return (x.astype(np.float64) if is_float(x) else x), result


def sum_(self: Array, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Array:
    x, result = _accumulated(self, dtype)
    return cut(x.sum(axis=axes_of(x, dim), keepdims=keepdim), result)


def nansum(self: Array, dim: Dims, keepdim: bool, dtype: Any) -> Array:
    x = np.where(np.isnan(self), 0, self).astype(self.dtype) if is_float(self) else self
    return sum_(x, dim, keepdim, dtype)


def prod(self: Array, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Array:
    x, result = _accumulated(self, dtype)
    return cut(x.prod(axis=axes_of(x, dim), keepdims=keepdim), result)


def mean(self: Array, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Array:
    x = self if dtype is None else self.astype(dtype)
    return narrow(wide(x).mean(axis=axes_of(x, dim), keepdims=keepdim), x)


def amax(self: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    return np.asarray(self.max(axis=axes_of(self, dim), keepdims=keepdim))


def amin(self: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    return np.asarray(self.min(axis=axes_of(self, dim), keepdims=keepdim))


def aminmax(self: Array, dim: Dims, keepdim: bool) -> tuple[Array, Array]:
    return amin(self, dim, keepdim), amax(self, dim, keepdim)


def _arg(function: Callable[..., Any]) -> Callable[..., Array]:
    def run(self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
        if self.ndim == 0:
            return np.asarray(0, np.int64)
        if dim is None:
            found = np.asarray(function(self), np.int64)
            return found.reshape([1] * self.ndim) if keepdim else found
        return np.asarray(function(self, axis=axis_of(dim, self.ndim), keepdims=keepdim), np.int64)

    return run


argmax, argmin = _arg(np.argmax), _arg(np.argmin)  # numpy too takes the first, and NaN before all


def max_dim(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    return amax(self, dim, keepdim), argmax(self, dim, keepdim)


def min_dim(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    return amin(self, dim, keepdim), argmin(self, dim, keepdim)


def max_other(self: Array, other: Array) -> Array:
    a, b, dtype = common(self, other)
    return cut(np.maximum(a, b), dtype)


def min_other(self: Array, other: Array) -> Array:
    a, b, dtype = common(self, other)
    return cut(np.minimum(a, b), dtype)


def any_(self: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    found = self.astype(bool).any(axis=axes_of(self, dim), keepdims=keepdim)
    return np.asarray(found).astype(np.uint8 if self.dtype == np.uint8 else np.bool_)


def all_(self: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    found = self.astype(bool).all(axis=axes_of(self, dim), keepdims=keepdim)
    return np.asarray(found).astype(np.uint8 if self.dtype == np.uint8 else np.bool_)


def count_nonzero(self: Array, dim: Dims = None) -> Array:
    return np.asarray((self != 0).sum(axis=axes_of(self, dim), dtype=np.int64))


def _variance(x: Array, dim: Dims, correction: float, *, keepdim: bool) -> tuple[Any, Any]:
    values, axes = wide(x), axes_of(x, dim)
    center = values.mean(axis=axes, keepdims=True)
    squares = ((values - center) ** 2).sum(axis=axes, keepdims=keepdim)
    count = values.size // max(1, center.size)
    return squares / np.float64(max(count - correction, 0)), values.mean(
        axis=axes, keepdims=keepdim
    )


def _deviation(name: str, form: str) -> Callable[..., Any]:
    """`var`, `std`, `var_mean` or `std_mean` by one of their three signatures."""

    def finish(self: Array, dim: Dims, correction: float, keepdim: bool) -> Any:
        found, middle = _variance(self, dim, correction, keepdim=keepdim)
        found = np.sqrt(found) if name.startswith("std") else found
        if name.endswith("_mean"):
            return narrow(found, self), narrow(middle, self)
        return narrow(found, self)

    def whole(self: Array, unbiased: bool) -> Any:
        return finish(self, None, float(unbiased), False)

    def by_dim(self: Array, dim: Dims, unbiased: bool, keepdim: bool) -> Any:
        return finish(self, dim, float(unbiased), keepdim)

    def corrected(self: Array, dim: Dims, correction: float | None, keepdim: bool) -> Any:
        return finish(self, dim, 1.0 if correction is None else correction, keepdim)

    forms: dict[str, Callable[..., Any]] = {
        "whole": whole,
        "dim": by_dim,
        "correction": corrected,
    }
    return forms[form]


def _p_norm(x: Any, p: float, axes: Any, *, keepdim: bool) -> Any:
    size = np.abs(x)
    if p == np.inf:
        return size.max(axis=axes, keepdims=keepdim)
    if p == -np.inf:
        return size.min(axis=axes, keepdims=keepdim)
    if p == 0:
        return (x != 0).sum(axis=axes, keepdims=keepdim)
    return (size**p).sum(axis=axes, keepdims=keepdim) ** (1 / p)


def norm(
    self: Array, p: float | None = 2, dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Array:
    x = self if dtype is None else self.astype(dtype)
    order = 2.0 if p is None else float(p)
    return narrow(np.asarray(_p_norm(wide(x), order, axes_of(x, dim), keepdim=keepdim)), x)


def frobenius_norm(self: Array, dim: Dims, keepdim: bool) -> Array:
    return norm(self, 2, dim, keepdim)


def vector_norm(self: Array, ord: float, dim: Dims, keepdim: bool, dtype: Any) -> Array:
    return norm(self, ord, dim, keepdim, dtype)


def linalg_norm(self: Array, ord: Any, dim: Dims, keepdim: bool, dtype: Any) -> Array:
    axes = axes_of(self, dim) or tuple(range(self.ndim))
    if isinstance(ord, str) or (ord is not None and len(axes) != 1):
        given = list(range(self.ndim)) if dim is None else dim
        return matrix_norm(self, ord, given, keepdim, dtype)
    return norm(self, ord, dim, keepdim, dtype)


def matrix_norm(self: Array, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Array:
    x = self if dtype is None else self.astype(dtype)
    if len(dim) != 2:
        raise Unsuited(f"a matrix norm over dims {dim}")
    axes = tuple(axis_of(d, x.ndim) for d in dim)
    if ord in (2, -2) and 0 in (x.shape[axis] for axis in axes):
        raise Unsuited("of no singular values none is the greatest")
    return narrow(np.asarray(np.linalg.norm(wide(x), ord, axis=axes, keepdims=keepdim)), x)


def logsumexp(self: Array, dim: Dims, keepdim: bool) -> Array:
    x, dtype = real(self)
    axes = axes_of(x, dim)
    for axis in range(x.ndim) if axes is None else axes:
        x = np.logaddexp.reduce(x, axis=axis, keepdims=True)
    return cut(x if keepdim else x.squeeze(axes), dtype)


def dist(self: Array, other: Array, p: float) -> Array:
    a, b, dtype = common(self, other, floating=True)
    return cut(_p_norm(a - b, float(p), None, keepdim=False), dtype)


def pairwise_distance(x1: Array, x2: Array, p: float, eps: float, keepdim: bool) -> Array:
    a, b, dtype = common(x1, x2)
    if dtype == np.bool_:
        raise Unsuited("PyTorch subtracts no booleans")
    apart = a - b
    if dtype.kind in "iu":  # which wrap, and are float32 from there on
        dtype = np.dtype(np.float32)
        apart = (apart.astype(dtype) + dtype.type(eps)).astype(np.float64)
    else:
        apart = apart + eps
    return cut(_p_norm(apart, float(p), -1, keepdim=keepdim), dtype)


def cosine_similarity(x1: Array, x2: Array, dim: int, eps: float) -> Array:
    a, b, dtype = common(x1, x2, floating=True)
    a, b = np.broadcast_arrays(a, b)
    axis = axis_of(dim, a.ndim)
    sizes = [np.maximum(np.sqrt((x * x).sum(axis=axis)), eps) for x in (a, b)]
    return cut((a * b).sum(axis=axis) / (sizes[0] * sizes[1]), dtype)


def median(self: Array) -> Array:
    if not self.size:
        raise Unsuited("its input has no elements")
    return median_dim(self.reshape(-1), 0, False)[0]


def median_dim(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    if self.ndim == 0:
        return self, np.asarray(0, np.int64)
    axis = axis_of(dim, self.ndim)
    value, index = kthvalue(self, (self.shape[axis] + 1) // 2, axis, True)
    if is_float(self):
        strange = np.isnan(self)
        spoiled = strange.any(axis=axis, keepdims=True)
        value = np.where(spoiled, np.asarray(np.nan, self.dtype), value)
        index = np.where(spoiled, strange.argmax(axis=axis, keepdims=True), index)
    return (value, index) if keepdim else (value.squeeze(axis), index.squeeze(axis))


def kthvalue(self: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, Array]:
    if self.ndim == 0:
        return self, np.asarray(0, np.int64)
    axis = axis_of(dim, self.ndim)
    if not 1 <= k <= self.shape[axis]:
        raise Unsuited(f"the {k}-th of {self.shape[axis]} elements")
    order = np.argsort(self, axis=axis, kind="stable")  # numpy too puts NaN last
    index = np.take(order, [k - 1], axis=axis)
    value = np.take_along_axis(self, index, axis)
    return (value, index) if keepdim else (value.squeeze(axis), index.squeeze(axis))


def cumsum(self: Array, dim: int, dtype: Any) -> Array:
    x, result = _accumulated(self, dtype)
    axis = axis_of(dim, x.ndim)
    return cut(np.cumsum(x, axis=axis) if x.ndim else x, result)


def cumprod(self: Array, dim: int, dtype: Any) -> Array:
    x, result = _accumulated(self, dtype)
    axis = axis_of(dim, x.ndim)
    return cut(np.cumprod(x, axis=axis) if x.ndim else x, result)


def logcumsumexp(self: Array, dim: int) -> Array:
    x = wide(self)
    return narrow(np.logaddexp.accumulate(x, axis=axis_of(dim, x.ndim)) if x.ndim else x, self)


def _running(wins: Callable[[Any, Any], Any]) -> Callable[..., tuple[Array, Array]]:
    def run(self: Array, dim: int) -> tuple[Array, Array]:
        if self.ndim == 0:
            return self, np.asarray(0, np.int64)
        axis = axis_of(dim, self.ndim)
        x = np.moveaxis(self, axis, 0)
        values, index = x.copy(), np.zeros(x.shape, np.int64)
        for i in range(1, len(x)):
            new, old = x[i], values[i - 1]
            later = (new != new) | ((old == old) & wins(new, old))
            values[i] = np.where(later, new, old)
            index[i] = np.where(later, i, index[i - 1])
        return np.moveaxis(values, 0, axis), np.moveaxis(index, 0, axis)

    return run


_DIMS = "(Tensor self, int[1]? dim{}, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
_WHOLE = "(Tensor self, *, ScalarType? dtype=None) -> Tensor"
_MANY = "(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor"
_ONE = "(Tensor self, int dim, bool keepdim=False)"
_SCAN = "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"
_ANY = "(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"


TABLE: tuple[Row, ...] = (
    (f"sum{_WHOLE}", sum_),
    (f"sum.dim_IntList{_DIMS.format('')}", sum_),
    (f"nansum{_WHOLE}", lambda self, dtype: nansum(self, None, False, dtype)),
    (f"nansum{_DIMS.format('=None')}", nansum),
    (f"prod{_WHOLE}", prod),
    (
        "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None)"
        " -> Tensor",
        prod,
    ),
    (f"mean{_WHOLE}", mean),
    (f"mean.dim{_DIMS.format('')}", mean),
    (f"amax{_MANY}", amax),
    (f"amin{_MANY}", amin),
    ("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor, Tensor)", aminmax),
    ("max(Tensor self) -> Tensor", amax),
    (f"max.dim{_ONE} -> (Tensor, Tensor)", max_dim),
    ("max.other(Tensor self, Tensor other) -> Tensor", max_other),
    ("min(Tensor self) -> Tensor", amin),
    (f"min.dim{_ONE} -> (Tensor, Tensor)", min_dim),
    ("min.other(Tensor self, Tensor other) -> Tensor", min_other),
    ("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", argmax),
    ("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", argmin),
    *((f"{name}(Tensor self) -> Tensor", f) for name, f in (("any", any_), ("all", all_))),
    *((f"{name}.dim{_ONE} -> Tensor", f) for name, f in (("any", any_), ("all", all_))),
    *((f"{name}.dims{_ANY}", f) for name, f in (("any", any_), ("all", all_))),
    ("count_nonzero.dim_IntList(Tensor self, int[]? dim=None) -> Tensor", count_nonzero),
    *(
        (f"{name}{signature} -> Tensor", _deviation(name, form))
        for name in ("var", "std", "var_mean", "std_mean")
        for form, signature in (
            ("whole", "(Tensor self, bool unbiased=True)"),
            (
                "dim",
                ".dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)",
            ),
            (
                "correction",
                ".correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
                "bool keepdim=False)",
            ),
        )
    ),
    ("norm.Scalar(Tensor self, Scalar p=2) -> Tensor", norm),
    (
        "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
        norm,
    ),
    ("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType? dtype=None) -> Tensor", norm),
    ("frobenius_norm(Tensor self) -> Tensor", norm),
    (
        "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
        frobenius_norm,
    ),
    (
        "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
        vector_norm,
    ),
    (
        "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
        linalg_norm,
    ),
    (
        "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
        linalg_norm,
    ),
    *(
        (
            f"linalg_matrix_norm{kind} ord{default}, int[] dim=[-2,-1], bool keepdim=False, *, "
            "ScalarType? dtype=None) -> Tensor",
            matrix_norm,
        )
        for kind, default in (("(Tensor self, Scalar", ""), (".str_ord(Tensor self, str", "='fro'"))
    ),
    *(
        (f"{name}(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp)
        for name in ("logsumexp", "special_logsumexp")
    ),
    ("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", dist),
    (
        "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False)"
        " -> Tensor",
        pairwise_distance,
    ),
    (
        "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
        cosine_similarity,
    ),
    ("median(Tensor self) -> Tensor", median),
    (f"median.dim{_ONE} -> (Tensor, Tensor)", median_dim),
    (
        "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor, Tensor)",
        kthvalue,
    ),
    (f"cumsum{_SCAN}", cumsum),
    (f"cumprod{_SCAN}", cumprod),
    ("logcumsumexp(Tensor self, int dim) -> Tensor", logcumsumexp),
    ("cummax(Tensor self, int dim) -> (Tensor, Tensor)", _running(np.greater_equal)),
    ("cummin(Tensor self, int dim) -> (Tensor, Tensor)", _running(np.less_equal)),
)
