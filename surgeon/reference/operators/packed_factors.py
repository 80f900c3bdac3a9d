"""LAPACK's packed factors: triangles with pivots, and reflections."""

# ruff: noqa: D103, N803 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.linear_algebra import broad
from surgeon.reference.operators.precision import Array, Row, narrow, wide

_GROWTH = 1e6  # of lengths, by matrices that should leave them as they are
_ROUNDINGS = 8  # by so many of the dtype's, times the sides, two magnitudes must differ


def _each(function: Callable[[Any], tuple[Any, ...]], a: Any) -> tuple[Any, ...]:
    """A function of one matrix, of a batch of any shape."""
    lots = a.shape[:-2]
    flat = [function(one) for one in a.reshape(-1, *a.shape[-2:])] if a.size else []
    if not flat:
        empty = function(np.zeros(a.shape[-2:]))
        return tuple(np.zeros((*lots, *np.shape(e)), np.asarray(e).dtype) for e in empty)
    return tuple(
        np.stack([np.asarray(one[i]) for one in flat]).reshape((*lots, *np.shape(flat[0][i])))
        for i in range(len(flat[0]))
    )


def _crout(a: Any, rounding: float) -> tuple[Any, Any, int]:
    """One matrix, a column of L and a row of U at a time, each from what LAPACK has got before.

    Raises:
        Unsuited: Which pivot is larger is a matter of rounding.
    """
    a = a.copy()
    high, wide_ = a.shape
    pivots, info = [], 0
    close = rounding * _ROUNDINGS * max(high, wide_) * np.abs(a).max(initial=0.0)
    for k in range(min(high, wide_)):
        a[k:, k] -= a[k:, :k] @ a[:k, k]
        sizes = np.abs(a[k:, k])
        if not np.isfinite(sizes).all():
            raise Unsuited("its matrix is not finite")
        chosen = int(sizes.argmax())
        others = np.delete(sizes, chosen)
        top = sizes[chosen]
        if (0 < top <= close) or (top > 0 and (others > top - close).any()):
            raise Unsuited("which of two pivots is larger is a matter of rounding")
        pivots.append(k + chosen + 1)
        a[[k, k + chosen]] = a[[k + chosen, k]]
        if top == 0:
            info = info or k + 1
        else:
            a[k + 1 :, k] /= a[k, k]
        a[k, k + 1 :] -= a[k, :k] @ a[:k, k + 1 :]
    return a, np.array(pivots, np.int32), info


def lu_factor_ex(A: Array, pivot: bool = True, check_errors: bool = False) -> Any:
    if not pivot:
        raise Unsuited("LU without pivots is not on the CPU")
    rounding = float(np.finfo(A.dtype).eps)
    packed, pivots, info = _each(lambda one: _crout(one, rounding), wide(A))
    return narrow(packed, A), pivots.astype(np.int32), info.astype(np.int32)


def lu_factor(A: Array, pivot: bool) -> Any:
    return lu_factor_ex(A, pivot)[:2]


def lu_with_info(self: Array, pivot: bool, check_errors: bool) -> Any:
    return lu_factor_ex(self, pivot)


def linalg_lu(A: Array, pivot: bool) -> Any:
    packed, pivots = lu_factor(A, pivot)
    return lu_unpack(packed, pivots, True, True)


def _ordered(pivots: Any, high: int) -> Any:
    """P of one matrix: row r of P L U is row `order.index(r)` of L U."""
    order = list(range(high))
    for row, one in enumerate(pivots.tolist()):
        if not 1 <= one <= high:
            raise Unsuited("a pivot is no row")
        order[row], order[one - 1] = order[one - 1], order[row]
    made = np.zeros((high, high))
    made[order, range(high)] = 1
    return made


def lu_unpack(LU_data: Array, LU_pivots: Array, unpack_data: bool, unpack_pivots: bool) -> Any:
    high, wide_ = LU_data.shape[-2:]
    none, short = np.zeros(0, LU_data.dtype), min(high, wide_)
    if LU_pivots.shape[-1] < short:
        raise Unsuited("there are fewer pivots than rows or columns")
    lower = upper = permutation = none
    if unpack_data:
        lower = np.tril(LU_data[..., :short], -1) + np.eye(high, short, dtype=LU_data.dtype)
        upper = np.triu(LU_data[..., :short, :])
    if unpack_pivots:
        made = (
            [_ordered(one, high) for one in LU_pivots[..., :short].reshape(-1, short)]
            if short
            else []
        )
        lots = LU_data.shape[:-2]
        whole = np.stack(made) if made else np.broadcast_to(np.eye(high), (*lots, high, high))
        permutation = whole.reshape(*lots, high, high).astype(LU_data.dtype)
    return permutation, lower, upper


def geqrf(self: Array) -> Any:
    def one(a: Any) -> tuple[Any, Any]:
        packed, taus = np.linalg.qr(a, "raw")
        return packed.T, taus

    packed, taus = _each(one, wide(self))
    return narrow(packed, self), narrow(taus, self)


def _whole(packed: Any, taus: Any) -> Any:
    """Q [..., high, high], as the product of matrices 1 - tau v v^H."""
    high, wide_ = packed.shape[-2:]
    if not taus.shape[-1] <= wide_ <= high:
        raise Unsuited("there are more reflections than columns, or more columns than rows")
    q = np.broadcast_to(np.eye(high), (*packed.shape[:-2], high, high))
    lengths = 1 + (np.abs(np.tril(packed, -1)) ** 2).sum(-2)[..., : taus.shape[-1]]
    growth = np.abs(1 - taus * lengths)
    if growth.size and not (np.maximum(growth, 1).prod(-1) <= _GROWTH).all():
        raise Unsuited("its matrices are so far from reflections that they grow beyond measure")
    for k in range(taus.shape[-1]):
        v = np.tril(packed, -1)[..., k : k + 1] + np.eye(high)[:, k : k + 1]
        q = q @ (np.eye(high) - taus[..., k, None, None] * v @ v.conj().swapaxes(-1, -2))
    return q


def householder_product(input: Array, tau: Array) -> Array:
    return narrow(_whole(broad(input), broad(tau))[..., : input.shape[-1]], input)


def orgqr(self: Array, input2: Array) -> Array:
    return householder_product(self, input2)


def ormqr(self: Array, input2: Array, input3: Array, left: bool, transpose: bool) -> Array:
    q, x = _whole(wide(self), wide(input2)), wide(input3)
    if x.shape[-2 if left else -1] != q.shape[-1] or self.shape[-1] != input2.shape[-1]:
        raise Unsuited("the sides of its matrices do not fit")
    q = q.swapaxes(-1, -2) if transpose else q
    return narrow(q @ x if left else x @ q, self)


_PIVOT = "bool pivot=True"
TABLE: tuple[Row, ...] = (
    (f"linalg_lu_factor(Tensor A, *, {_PIVOT}) -> (Tensor, Tensor)", lu_factor),
    (
        f"linalg_lu_factor_ex(Tensor A, *, {_PIVOT}, bool check_errors=False) "
        "-> (Tensor, Tensor, Tensor)",
        lu_factor_ex,
    ),
    (
        f"_lu_with_info(Tensor self, {_PIVOT}, bool check_errors=True) -> (Tensor, Tensor, Tensor)",
        lu_with_info,
    ),
    (f"linalg_lu(Tensor A, *, {_PIVOT}) -> (Tensor, Tensor, Tensor)", linalg_lu),
    (
        "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, "
        "bool unpack_pivots=True) -> (Tensor, Tensor, Tensor)",
        lu_unpack,
    ),
    ("geqrf(Tensor self) -> (Tensor, Tensor)", geqrf),
    ("linalg_householder_product(Tensor input, Tensor tau) -> Tensor", householder_product),
    ("orgqr(Tensor self, Tensor input2) -> Tensor", orgqr),
    (
        "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) "
        "-> Tensor",
        ormqr,
    ),
)
