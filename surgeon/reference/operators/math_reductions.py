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
_EXACT = 2.0**53


def axes_of(x: Array, dim: Dims) -> tuple[int, ...] | None:
    """Axes for numpy; None or an empty list is all of them."""
    given = [dim] if isinstance(dim, int) else list(dim or ())
    axes = {axis_of(d, x.ndim) for d in given}
    return tuple(sorted(axes)) if axes and x.ndim else None


def over(function: Callable[..., Any], x: Array, dim: Dims, keepdim: bool) -> Any:
    """One of numpy's reductions (`np.sum`, say) over ATen's dims."""
    return function(x, axis=axes_of(x, dim), keepdims=keepdim)


def _accumulated(x: Array, dtype: Any) -> tuple[Array, np.dtype[Any]]:
    """The input as it is added up, and the dtype of the result: integers go into int64."""
    result = np.dtype(dtype) if dtype is not None else x.dtype if is_float(x) else np.dtype("i8")
    x = x.astype(result)
    return (x.astype(np.float64) if is_float(x) else x), result


def sum_(self: Array, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Array:
    x, result = _accumulated(self, dtype)
    return cut(over(np.sum, x, dim, keepdim), result)


def nansum(self: Array, dim: Dims, keepdim: bool, dtype: Any) -> Array:
    x = np.where(np.isnan(self), 0, self).astype(self.dtype) if is_float(self) else self
    return sum_(x, dim, keepdim, dtype)


def prod(self: Array, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Array:
    x, result = _accumulated(self, dtype)
    if x.dtype.kind in "iu":
        size = over(np.prod, np.abs(x.astype(np.float64)), dim, keepdim)
        if (size > _EXACT).any():  # onnxruntime multiplies integers in double precision
            raise Unsuited("a product of integers is beyond 2^53")
    return cut(over(np.prod, x, dim, keepdim), result)


def mean(self: Array, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Array:
    x = self if dtype is None else self.astype(dtype)
    return narrow(over(np.mean, wide(x), dim, keepdim), x)


def amax(self: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    return np.asarray(over(np.max, self, dim, keepdim))


def amin(self: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    return np.asarray(over(np.min, self, dim, keepdim))


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


def _truth(function: Callable[..., Any]) -> Callable[..., Array]:
    def run(self: Array, dim: Dims = None, keepdim: bool = False) -> Array:
        found = self.astype(bool)
        if not isinstance(dim, (list, tuple)) or dim:  # a list of no dims reduces nothing here
            found = over(function, found, dim, keepdim)
        return np.asarray(found).astype(np.uint8 if self.dtype == np.uint8 else np.bool_)

    return run


any_, all_ = _truth(np.any), _truth(np.all)


def count_nonzero(self: Array, dim: Dims = None) -> Array:
    return np.asarray((self != 0).sum(axis=axes_of(self, dim), dtype=np.int64))


def _variance(x: Array, dim: Dims, correction: float, *, keepdim: bool) -> tuple[Any, Any]:
    if x.dtype.kind == "c":  # both parts vary
        both = [_variance(part, dim, correction, keepdim=keepdim) for part in (x.real, x.imag)]
        return both[0][0] + both[1][0], both[0][1] + 1j * both[1][1]
    values = wide(x)
    center = over(np.mean, values, dim, True)
    squares = over(np.sum, (values - center) ** 2, dim, keepdim)
    count = values.size // max(1, center.size)
    mean = over(np.mean, values, dim, keepdim)
    return squares / np.float64(max(count - correction, 0)), mean


def _deviation(name: str, form: str) -> Callable[..., Any]:
    """`var`, `std`, `var_mean` or `std_mean` by one of their three signatures."""

    def finish(self: Array, dim: Dims, correction: float, keepdim: bool) -> Any:
        found, middle = _variance(self, dim, correction, keepdim=keepdim)
        found = np.sqrt(found) if name.startswith("std") else found
        if name.endswith("_mean"):
            return narrow(found, self.real), narrow(middle, self)
        return narrow(found, self.real)

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


def logsumexp(self: Array, dim: Dims, keepdim: bool) -> Array:
    x, dtype = real(self)
    axes = axes_of(x, dim)
    for axis in range(x.ndim) if axes is None else axes:
        x = np.logaddexp.reduce(x, axis=axis, keepdims=True)
    return cut(x if keepdim else x.squeeze(axes), dtype)


def median_of_nothing(dtype: Any) -> Array:
    """What PyTorch fills the result with: NaN, as C makes an integer of it by way of int32."""
    if dtype.kind in "iu":
        return np.asarray(np.iinfo(dtype if dtype.itemsize > 2 else np.int32).min).astype(dtype)
    return np.asarray(np.nan, dtype)


def median(self: Array) -> Array:
    if not self.size:
        return median_of_nothing(self.dtype)
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
    *(
        (f"{name}(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp)
        for name in ("logsumexp", "special_logsumexp")
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
