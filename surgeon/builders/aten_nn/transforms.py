"""Fourier transforms along an axis, as products with cosines and sines."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.parts import Array, Length
from surgeon.rewrite import Draft, Refused


class Complex(NamedTuple):
    """A value in two parts; the imaginary one is None for a real value."""

    real: gs.Tensor
    imaginary: gs.Tensor | None


def scale_of(norm: Any, size: int, *, inverse: bool) -> float:
    """What the sum is multiplied by; `backward` when it is not said."""
    if norm == "ortho":
        return 1.0 / math.sqrt(size)
    divides = inverse if norm in (None, "backward") else not inverse
    return 1.0 / size if divides else 1.0


def angles_of(rows: int, columns: int, size: int) -> Array:
    """2 pi k t / n, the product reduced first so that it stays exact."""
    return np.outer(np.arange(rows), np.arange(columns)) % size * (2 * math.pi / size)


def transform(
    draft: Draft,
    value: Complex,
    axis: int,
    size: int | None,
    norm: Any,
    *,
    inverse: bool = False,
    half: bool = False,
) -> Complex:
    """The transform along an axis.

    Args:
        draft: Where the nodes go.
        value: What is transformed, real or complex.
        axis: The axis, from 0.
        size: How many elements count, zeros behind the last; None for as many as there are.
        norm: PyTorch's word for what the sum is divided by.
        inverse: Whether it goes back.
        half: Whether the half that is the other's conjugate is left out.
    """
    rank = parts.rank_of(draft, value.real)
    dtype = parts.numpy_dtype(draft, value.real)
    if not parts.is_float(dtype):
        raise Refused(f"no standard form transforms {dtype.name}")
    length = parts.lengths_of(draft, value.real, rank)[axis]
    if length.static is None:
        if size is not None or norm is not None:
            raise Refused(f"axis {axis} has {length.dim} elements; fix it with `--shape`")
        matrices = _computed_matrices(draft, length, dtype, inverse=inverse, half=half)
    else:
        whole = size or length.static
        matrices = matrices_of(draft, length.static, whole, dtype, norm, inverse=inverse, half=half)
    cosine, sine = matrices

    def along(part: gs.Tensor, matrix: Any) -> gs.Tensor:
        return parts.multiply_axis(draft, part, axis, rank, matrix)

    # (a + ib)(c + is) summed over the axis, s with its sign
    if value.imaginary is None:
        return Complex(along(value.real, cosine), along(value.real, sine))
    real = draft.op("Sub", along(value.real, cosine), along(value.imaginary, sine))
    imaginary = draft.op("Add", along(value.real, sine), along(value.imaginary, cosine))
    return Complex(real, imaginary)


def real_inverse(
    draft: Draft, value: Complex, axis: int, size: int | None, norm: Any, *, inverse: bool = True
) -> gs.Tensor:
    """Back from half a spectrum: a product with cosines less one with sines.

    `inverse` says which way `norm` is to be read.
    """
    rank = parts.rank_of(draft, value.real)
    length = parts.lengths_of(draft, value.real, rank)[axis].static
    if length is None:
        raise Refused(f"axis {axis} has a length known at run time; fix it with `--shape`")
    size = size or 2 * (length - 1)
    dtype = parts.numpy_dtype(draft, value.real)
    cosine, sine = half_inverse(length, size, scale_of(norm, size, inverse=inverse))
    y = parts.multiply_axis(
        draft, value.real, axis, rank, parts.constant_matrix(draft, cosine.T, dtype)
    )
    if value.imaginary is None:
        return y
    minus = parts.multiply_axis(
        draft, value.imaginary, axis, rank, parts.constant_matrix(draft, sine.T, dtype)
    )
    return draft.op("Sub", y, minus)


def matrices_of(
    draft: Draft,
    length: int,
    size: int,
    dtype: np.dtype[Any],
    norm: Any,
    *,
    inverse: bool,
    half: bool,
) -> tuple[Any, Any]:
    """The cosines and signed sines [frequencies, length] of a transform over `size` elements."""
    rows = size // 2 + 1 if half else size
    angles = angles_of(rows, length, size)
    scale = scale_of(norm, size, inverse=inverse)
    kept = (np.arange(length) < size) * scale
    cosine = np.cos(angles) * kept
    sine = np.sin(angles) * kept * (1 if inverse else -1)
    return parts.constant_matrix(draft, cosine, dtype), parts.constant_matrix(draft, sine, dtype)


def _computed_matrices(
    draft: Draft, length: Length, dtype: np.dtype[Any], *, inverse: bool, half: bool
) -> tuple[Any, Any]:
    """The same over a length that is known at run time."""
    number = int(onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def make(function: str, sign: int, turned: bool) -> gs.Tensor:
        size = length.make()
        rows = length
        if half:
            two, one = draft.constant([2], "two"), draft.constant([1], "one")
            rows = Length(None, lambda: draft.op("Add", draft.op("Div", size, two), one))
        k = parts.unsqueeze(draft, parts.counting(draft, rows), 0 if turned else 1)
        t = parts.unsqueeze(draft, parts.counting(draft, length), 1 if turned else 0)
        product = draft.op("Mul", k, t)
        turns = draft.op("Mul", draft.op("Div", product, size), size)
        rest = draft.op("Cast", draft.op("Sub", product, turns), to=number)
        wide = draft.op("Cast", size, to=number)
        step = draft.op("Div", draft.constant(np.array([2 * math.pi], dtype), "turn"), wide)
        matrix = draft.op(function, draft.op("Mul", rest, step))
        if inverse:
            matrix = draft.op("Div", matrix, wide)
        return draft.op("Neg", matrix) if sign < 0 else matrix

    return (
        lambda turned: make("Cos", 1, turned),
        lambda turned: make("Sin", 1 if inverse else -1, turned),
    )


def half_inverse(length: int, size: int, scale: float) -> tuple[Array, Array]:
    """[length, size]: cosines and sines of the half spectrum, twice where there is a conjugate."""
    counts = np.full(length, 2.0)
    counts[0] = 1
    if size % 2 == 0 and size // 2 < length:
        counts[size // 2] = 1
    counts[size // 2 + 1 :] = 0
    angles = angles_of(length, size, size)
    weight = (counts * scale)[:, None]
    return np.cos(angles) * weight, np.sin(angles) * weight
