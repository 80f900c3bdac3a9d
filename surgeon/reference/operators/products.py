"""PyTorch operators: matrix products, contractions, distances."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import functools
import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_types import result_type
from surgeon.reference.operators.precision import Array, Row, is_float, narrow
from surgeon.reference.operators.shapes import axis_of


def _wide(x: Array) -> Array:
    if x.dtype.kind == "c":
        return x.astype(np.complex128)
    return x.astype(np.float64) if is_float(x) else x


def _product(a: Array, b: Array) -> Array:
    if a.dtype == np.bool_:
        raise Unsuited("its operands are booleans")
    return narrow(_times(_wide(a), _wide(b)), a)


def _times(a: Array, b: Array) -> Array:
    """As numpy's `matmul`, which takes the rows in front of one matrix a plane at a time."""
    if a.ndim < 3 or b.ndim != 2:
        whole: Array = np.matmul(a, b)
        return whole
    rows: Array = np.matmul(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), b)
    return rows.reshape(*a.shape[:-1], b.shape[1])


def matmul(self: Array, other: Array) -> Array:
    return _product(self, other)


def mm(self: Array, mat2: Array) -> Array:
    return _product(self, mat2)


def mm_in(self: Array, mat2: Array, out_dtype: Any) -> Array:
    return _product(self.astype(out_dtype), mat2)


def addmm_in(self: Array, mat1: Array, mat2: Array, out_dtype: Any, beta: Any, alpha: Any) -> Array:
    return addmm(self.astype(out_dtype), mat1, mat2, beta, alpha)


def baddbmm_in(
    self: Array, batch1: Array, batch2: Array, out_dtype: Any, beta: Any, alpha: Any
) -> Array:
    return addmm_in(self, batch1, batch2, out_dtype, beta, alpha)


def mv(self: Array, vec: Array) -> Array:
    return _product(self, vec)


def dot(self: Array, tensor: Array) -> Array:
    return np.asarray(_product(self, tensor))


def vdot(self: Array, other: Array) -> Array:
    return np.asarray(_product(self, other))


def inner(self: Array, other: Array) -> Array:
    return narrow(np.inner(_wide(self), _wide(other)), self)


def outer(self: Array, vec2: Array) -> Array:
    dtype = result_type(self, vec2)
    return np.outer(self.astype(dtype), vec2.astype(dtype))


def _scaled_sum(self: Array, total: Array, beta: Any, alpha: Any) -> Array:
    if not is_float(self) and self.dtype.kind != "c":
        beta, alpha = int(beta), int(alpha)
    whole = _wide(total) * alpha
    given = np.broadcast_to(_wide(self), whole.shape)  # though it counts for nothing
    return narrow(whole if beta == 0 else given * beta + whole, self)


def addmm(self: Array, mat1: Array, mat2: Array, beta: Any, alpha: Any) -> Array:
    return _scaled_sum(self, np.matmul(_wide(mat1), _wide(mat2)), beta, alpha)


def addmv(self: Array, mat: Array, vec: Array, beta: Any, alpha: Any) -> Array:
    return addmm(self, mat, vec, beta, alpha)


def baddbmm(self: Array, batch1: Array, batch2: Array, beta: Any, alpha: Any) -> Array:
    return addmm(self, batch1, batch2, beta, alpha)


def addbmm(self: Array, batch1: Array, batch2: Array, beta: Any, alpha: Any) -> Array:
    return _scaled_sum(self, np.matmul(_wide(batch1), _wide(batch2)).sum(0), beta, alpha)


def addr(self: Array, vec1: Array, vec2: Array, beta: Any, alpha: Any) -> Array:
    """Of several dtypes, each as the one that they have in common."""
    dtype = result_type(self, vec1, vec2)
    whole = np.outer(_wide(vec1.astype(dtype)), _wide(vec2.astype(dtype)))
    return _scaled_sum(self.astype(dtype), whole, beta, alpha)


def linear(input: Array, weight: Array, bias: Array | None) -> Array:
    y = _times(_wide(input), _wide(weight).T)
    return narrow(y if bias is None else y + _wide(bias), input)


def chain_matmul(matrices: list[Array]) -> Array:
    return narrow(functools.reduce(np.matmul, map(_wide, matrices)), matrices[0])


def multi_dot(tensors: list[Array]) -> Array:
    return chain_matmul(tensors)


def einsum(equation: str, tensors: list[Array], path: Any = None) -> Array:
    if tensors[0].dtype.kind in "iub" and _sums_one_alone(equation, [t.shape for t in tensors]):
        tensors = [t.astype(np.int64) for t in tensors]  # as `sum` gives them, unlike `bmm`
    equation = _without_ellipsis(equation, [t.ndim for t in tensors])
    return narrow(np.einsum(equation, *map(_wide, tensors)), tensors[0])


def _without_ellipsis(equation: str, ranks: Sequence[int]) -> str:
    """The equation with a letter for each axis of an ellipsis that its output lacks.

    PyTorch sums over them, numpy refuses it.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    if not arrow or "..." not in left or "..." in right:
        return equation
    free = [letter for letter in string.ascii_letters if letter not in left]
    terms = []
    for term, rank in zip(left.split(","), ranks, strict=True):
        count = rank - len(term.replace("...", ""))
        terms.append(term.replace("...", "".join(free[:count][::-1])))
    return f"{','.join(terms)}->{right}"


def _sums_one_alone(equation: str, shapes: list[tuple[int, ...]]) -> bool:
    """Whether a letter that is summed is longer than 1 in one operand only."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    letters = {one for one in left if one.isalpha()}
    gone = [one for one in letters if (one not in right if arrow else left.count(one) > 1)]
    if len(terms) == 1:
        return bool(gone)
    longer = []
    for letter in gone:
        having = [pair for pair in zip(terms, shapes, strict=True) if letter in pair[0]]
        longer.append(sum(_size_of(letter, *pair) != 1 for pair in having))
    if 1 in longer and max(longer) > 1:
        raise Unsuited("it sums some integers in their own dtype, and others in int64")
    return 1 in longer


def _size_of(letter: str, term: str, shape: tuple[int, ...]) -> int:
    """The length of the axis of a letter, which counts from behind after an ellipsis."""
    before = term.partition("...")[0]
    return shape[term.index(letter) - (0 if letter in before else len(term))]


def tensordot(self: Array, other: Array, dims_self: list[int], dims_other: list[int]) -> Array:
    one, two = _wide(self), _wide(other)
    for left, right in zip(dims_self, dims_other, strict=True):  # an axis of one is spread
        if one.shape[left] == 1:
            two = two.sum(right, keepdims=True)
        elif two.shape[right] == 1:
            one = one.sum(left, keepdims=True)
    return narrow(np.tensordot(one, two, (dims_self, dims_other)), self)


def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None) -> Array:
    if (input1.shape[-1], input2.shape[-1]) != weight.shape[1:]:  # which einsum may broadcast
        raise Unsuited("its operands have other sizes than its weight")
    if input1.shape[:-1] != input2.shape[:-1]:
        raise Unsuited("its operands have different batches")
    y = np.einsum("...i,oij,...j->...o", _wide(input1), _wide(weight), _wide(input2))
    return narrow(y if bias is None else y + bias, input1)


def cross(self: Array, other: Array, dim: int | None) -> Array:
    a, b = np.broadcast_arrays(self, other)
    axis = a.shape.index(3) if dim is None else axis_of(dim, a.ndim)
    lengths = self.shape[axis - a.ndim], other.shape[axis - a.ndim]
    if lengths != (3, 3):  # numpy spreads one element, and makes a number of two
        raise ValueError(f"vectors of {lengths[0]} and {lengths[1]} elements have no cross product")
    return np.cross(a, b, axis=axis)


def linalg_cross(self: Array, other: Array, dim: int) -> Array:
    return cross(self, other, dim)


def cdist(x1: Array, x2: Array, p: float, compute_mode: int | None) -> Array:
    difference = np.abs(_wide(x1)[..., :, None, :] - _wide(x2)[..., None, :, :])
    if p == 0:
        return narrow(np.minimum(np.ceil(difference), 1).sum(-1), x1)  # NaN stays
    if np.isinf(p):
        return narrow(difference.max(-1, initial=0), x1)
    return narrow((difference**p).sum(-1) ** (1 / p), x1)


def matrix_power(self: Array, n: int) -> Array:
    try:
        return narrow(np.linalg.matrix_power(_wide(self), n), self)
    except np.linalg.LinAlgError as error:
        raise Unsuited(str(error)) from None


_SCALES = "*, Scalar beta=1, Scalar alpha=1) -> Tensor"


def int_mm(self: Array, mat2: Array) -> Array:
    if {self.dtype.name, mat2.dtype.name} != {"int8"}:
        raise Unsuited(f"its operands are {self.dtype.name} and {mat2.dtype.name}")
    wide = self.astype(np.int64) @ mat2.astype(np.int64)
    return wide.astype(np.int32)


def grouped_mm(
    self: Array, mat2: Array, offs: Array | None, bias: Array | None, out_dtype: Any
) -> Array:
    if bias is not None or self.dtype != mat2.dtype or not is_float(self):
        raise Unsuited("it has a bias, or operands of no floats or of different ones")
    dtype = self.dtype if out_dtype is None else out_dtype
    a, b = _wide(self), _wide(mat2)
    if offs is None:
        if (a.ndim, b.ndim) != (3, 3):
            raise Unsuited("it has no limits of its groups")
        return np.asarray(np.matmul(a, b)).astype(dtype)
    ends = [int(n) for n in offs]
    length = b.shape[1] if a.ndim == 3 else a.shape[1] if b.ndim == 2 else a.shape[0]
    if (a.ndim, b.ndim) == (3, 3) or sorted(ends) != ends or ends[:1] < [0] or ends[-1] != length:
        raise Unsuited("its limits do not rise to the last place, or it has too many axes")
    parts = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    if a.ndim == 3:
        made = np.concatenate([x @ b[:, part] for x, part in zip(a, parts, strict=True)], 1)
    elif b.ndim == 3:
        made = np.concatenate([a[part] @ w for w, part in zip(b, parts, strict=True)])
    else:
        made = np.stack([a[:, part] @ b[part] for part in parts])
    return np.asarray(made).astype(dtype)


def weight_int8pack_mm(self: Array, mat2: Array, scales: Array) -> Array:
    if mat2.dtype != np.int8 or mat2.ndim != 2 or not is_float(self):
        raise Unsuited("its weight is no matrix of int8, or its input of no floats")
    return narrow((_wide(self) @ mat2.T.astype(np.float64)) * _wide(scales), self)


TABLE: tuple[Row, ...] = (
    (
        "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, "
        "ScalarType? out_dtype=None) -> Tensor",
        grouped_mm,
    ),
    ("_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor", weight_int8pack_mm),
    ("_int_mm(Tensor self, Tensor mat2) -> Tensor", int_mm),
    ("matmul(Tensor self, Tensor other) -> Tensor", matmul),
    ("linalg_matmul(Tensor self, Tensor other) -> Tensor", matmul),
    ("mm(Tensor self, Tensor mat2) -> Tensor", mm),
    ("bmm(Tensor self, Tensor mat2) -> Tensor", mm),
    ("mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", mm_in),
    ("bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", mm_in),
    ("mv(Tensor self, Tensor vec) -> Tensor", mv),
    ("dot(Tensor self, Tensor tensor) -> Tensor", dot),
    ("vdot(Tensor self, Tensor other) -> Tensor", vdot),
    ("inner(Tensor self, Tensor other) -> Tensor", inner),
    ("outer(Tensor self, Tensor vec2) -> Tensor", outer),
    ("ger(Tensor self, Tensor vec2) -> Tensor", outer),
    (f"addmm(Tensor self, Tensor mat1, Tensor mat2, {_SCALES}", addmm),
    (
        f"addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, {_SCALES}",
        addmm_in,
    ),
    (f"addmv(Tensor self, Tensor mat, Tensor vec, {_SCALES}", addmv),
    (f"baddbmm(Tensor self, Tensor batch1, Tensor batch2, {_SCALES}", baddbmm),
    (
        f"baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, {_SCALES}",
        baddbmm_in,
    ),
    (f"addbmm(Tensor self, Tensor batch1, Tensor batch2, {_SCALES}", addbmm),
    (f"addr(Tensor self, Tensor vec1, Tensor vec2, {_SCALES}", addr),
    ("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", linear),
    ("chain_matmul(Tensor[] matrices) -> Tensor", chain_matmul),
    ("linalg_multi_dot(Tensor[] tensors) -> Tensor", multi_dot),
    ("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", einsum),
    (
        "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
        tensordot,
    ),
    (
        "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
        bilinear,
    ),
    ("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", cross),
    ("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", linalg_cross),
    ("cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor", cdist),
    ("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", cdist),
    ("matrix_power(Tensor self, int n) -> Tensor", matrix_power),
    ("linalg_matrix_power(Tensor self, int n) -> Tensor", matrix_power),
)
