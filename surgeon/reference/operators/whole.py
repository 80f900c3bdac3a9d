"""PyTorch operators: answers about tensors as a whole, and sums or shares of what is asked for."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.choices import isclose
from surgeon.reference.operators.math_reductions import over
from surgeon.reference.operators.math_types import cut
from surgeon.reference.operators.precision import Array, Row, is_float, narrow, wide
from surgeon.reference.operators.products import addmm
from surgeon.reference.operators.shapes import axis_of


def _of_one_dtype(a: Array, b: Array) -> None:
    if a.dtype != b.dtype:
        raise Unsuited(f"its operands are {a.dtype.name} and {b.dtype.name}")


def equal(self: Array, other: Array) -> Array:
    _of_one_dtype(self, other)
    return np.asarray(self.shape == other.shape and bool((self == other).all()))


def allclose(self: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    _of_one_dtype(self, other)
    return np.asarray(bool(isclose(self, other, rtol, atol, equal_nan).all()))


def is_same_size(self: Array, other: Array) -> Array:
    return np.asarray(self.shape == other.shape)


def is_floating_point(self: Array) -> Array:
    return np.asarray(is_float(self))


def is_complex(self: Array) -> Array:
    return np.asarray(self.dtype.kind == "c")


def is_signed(self: Array) -> Array:
    return np.asarray(self.dtype.kind not in "bu")


def sum_to_size(self: Array, size: list[int] | None) -> Array:
    """What lands on each element of a smaller tensor when that is broadcast."""
    if size is None:
        return self
    try:
        places = np.arange(int(np.prod(size))).reshape(size)
        wide_places = np.broadcast_to(places, self.shape)
    except ValueError as error:
        raise Unsuited(str(error)) from None
    if size and list(self.shape) == list(size):  # one number is summed even of one number
        return self
    kept = is_float(self) or self.dtype.kind == "c"
    kind = np.complex128 if self.dtype.kind == "c" else np.float64 if kept else np.int64
    total = np.zeros(places.size, kind)
    np.add.at(total, wide_places.reshape(-1), self.reshape(-1).astype(total.dtype))
    made = total.reshape(size)
    return narrow(made, self) if kept else made


def norm_except_dim(v: Array, pow: int, dim: int) -> Array:
    size = np.abs(wide(v))
    if dim == -1:
        return narrow(np.asarray(np.linalg.norm(size.reshape(-1), pow)), v)
    axis = axis_of(dim, v.ndim)
    lines = np.moveaxis(size, axis, 0).reshape(v.shape[axis], -1)
    shape = [-1 if i == axis else 1 for i in range(v.ndim)]
    return narrow(np.linalg.norm(lines, pow, 1).reshape(shape), v)


def powsum(self: Array, ord: float, dim: list[int] | None, keepdim: bool, dtype: Any) -> Array:
    x = self if dtype is None else self.astype(dtype)
    size = np.abs(wide(x))
    powers = (size != 0) * 1.0 if ord == 0 else size**ord
    return narrow(over(np.sum, powers, dim, keepdim), x)


def add_relu(self: Array, other: Any, alpha: float) -> Array:
    like = np.asarray(other)
    if is_float(self):
        return narrow(np.maximum(wide(self) + like.astype(np.float64) * alpha, 0), self)
    if is_float(like):
        raise Unsuited("integers and a float")
    return cut(np.maximum(self + (like * int(alpha)).astype(self.dtype), 0), self.dtype)


def addmm_activation(
    self: Array, mat1: Array, mat2: Array, beta: Any, alpha: Any, use_gelu: bool
) -> Array:
    if use_gelu:
        raise Unsuited("its GELU is one formula on a CPU and another on a GPU")
    y = addmm(self, mat1, mat2, beta, alpha)
    return np.where(y > 0, y, np.where(np.isnan(y), y, 0)).astype(y.dtype)


def masked_softmax(self: Array, mask: Array, dim: int | None, mask_type: int | None) -> Array:
    if mask.ndim == 2 and self.ndim == 4:
        if mask_type not in (0, 1):
            raise Unsuited(f"a mask of rank 2, of mask_type {mask_type}")
        mask = mask[:, None, None, :] if mask_type else mask
    elif mask.shape != self.shape:
        raise Unsuited("the mask has another shape")
    axis = axis_of(-1 if dim is None else dim, self.ndim)
    kept = ~np.broadcast_to(mask, self.shape)
    x = np.where(kept, wide(self), -np.inf)
    with np.errstate(invalid="ignore"):
        shares = np.exp(x - x.max(axis, keepdims=True))
        return narrow(shares / shares.sum(axis, keepdims=True), self)


_PAIR = "(Tensor self, Tensor other"
_FUNCTIONS: tuple[tuple[str, Callable[..., Array]], ...] = (
    (f"equal{_PAIR})", equal),
    (
        f"allclose{_PAIR}, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)",
        allclose,
    ),
    (f"is_same_size{_PAIR})", is_same_size),
    ("is_floating_point(Tensor self)", is_floating_point),
    ("is_complex(Tensor self)", is_complex),
    ("is_signed(Tensor self)", is_signed),
    ("sum_to_size(Tensor self, SymInt[] size)", sum_to_size),
    ("_grad_sum_to_size(Tensor self, SymInt[]? size)", sum_to_size),
    ("norm_except_dim(Tensor v, int pow=2, int dim=0)", norm_except_dim),
    (
        "linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None)",
        powsum,
    ),
    (f"_add_relu.Tensor{_PAIR}, *, Scalar alpha=1)", add_relu),
    ("_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1)", add_relu),
    (
        "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, "
        "Scalar alpha=1, bool use_gelu=False)",
        addmm_activation,
    ),
    (
        "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None)",
        masked_softmax,
    ),
)
TABLE: tuple[Row, ...] = tuple((f"{schema} -> Tensor", f) for schema, f in _FUNCTIONS)
