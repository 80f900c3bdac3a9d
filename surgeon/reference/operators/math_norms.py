"""PyTorch operators: norms of vectors and matrices, and distances, which are norms."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.linear_algebra import broad
from surgeon.reference.operators.math_reductions import Dims, axes_of
from surgeon.reference.operators.math_types import common, cut
from surgeon.reference.operators.precision import Array, Row, narrow, wide
from surgeon.reference.operators.shapes import axis_of


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
    axes = (axis_of(dim[0], x.ndim), axis_of(dim[1], x.ndim))
    if not isinstance(ord, str) and 0 in (x.shape[axis] for axis in axes):
        raise Unsuited("of no values none is the greatest")
    norm = np.linalg.norm(broad(x), ord, axis=axes, keepdims=keepdim)
    return narrow(np.asarray(norm), x.real)


def dist(self: Array, other: Array, p: float) -> Array:
    a, b, dtype = common(self, other, floating=True)
    kind = np.zeros(0, dtype).real.dtype  # of complex values a real one
    return cut(_p_norm(a - b, float(p), None, keepdim=False), kind)


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
    kind = np.zeros(0, dtype).real.dtype  # of complex values a real one
    return cut(_p_norm(apart, float(p), -1, keepdim=keepdim), kind)


def cosine_similarity(x1: Array, x2: Array, dim: int, eps: float) -> Array:
    a, b, dtype = common(x1, x2, floating=True)
    a, b = np.broadcast_arrays(a, b)
    axis = axis_of(dim, a.ndim)
    least = float(np.asarray(eps).astype(dtype))  # nothing, in halves
    sizes = [np.maximum(np.sqrt((x * x).sum(axis=axis)), least) for x in (a, b)]
    return cut((a * b).sum(axis=axis) / (sizes[0] * sizes[1]), dtype)


TABLE: tuple[Row, ...] = (
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
)
