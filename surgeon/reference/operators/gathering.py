"""PyTorch operators: tensors of unequal lengths in one, and indices that a mask makes count."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.borders import pad as padded
from surgeon.reference.operators.linear_algebra import inverse, solve
from surgeon.reference.operators.math_types import mixed
from surgeon.reference.operators.precision import Array, Row, narrow, wide
from surgeon.reference.operators.shapes import axis_of


def pad_sequence(
    sequences: list[Array], batch_first: bool, padding_value: float, padding_side: str = "right"
) -> Array:
    first, longest = sequences[0], max(len(s) for s in sequences)
    made = np.full((len(sequences), longest, *first.shape[1:]), padding_value, first.dtype)
    for row, sequence in zip(made, sequences, strict=True):
        start = longest - len(sequence) if padding_side == "left" else 0
        row[start : start + len(sequence)] = sequence
    return made if batch_first else made.swapaxes(0, 1)


def chunk_cat(tensors: list[Array], dim: int, num_chunks: int) -> Array:
    axis = axis_of(dim, min(t.ndim for t in tensors))
    columns = []
    for tensor in tensors:
        each = -(-tensor.shape[axis] // num_chunks)
        lines = np.moveaxis(tensor, axis, 0)
        chunks = []
        for i in range(num_chunks):
            chunk = np.zeros((each, *lines.shape[1:]), tensor.dtype)
            given = lines[i * each : (i + 1) * each]
            chunk[: len(given)] = given
            chunks.append(np.moveaxis(chunk, 0, axis).reshape(*tensor.shape[:axis], -1))
        columns.append(np.stack(chunks, axis))
    return np.concatenate(columns, -1, dtype=mixed(columns))


def flatten_dense_tensors(tensors: list[Array]) -> Array:
    return np.concatenate([t.reshape(-1) for t in tensors], dtype=mixed(tensors))


def unflatten_dense_tensors(flat: Array, tensors: list[Array]) -> list[Array]:
    found, at = [], 0
    for like in tensors:
        found.append(flat[at : at + like.size].reshape(like.shape))
        at += like.size
    return found


def nonzero_static(self: Array, size: int, fill_value: int) -> Array:
    made = np.full((size, self.ndim), fill_value, np.int64)
    found = np.argwhere(self)[:size]
    made[: len(found)] = found
    return made


def unsafe_masked_index(self: Array, mask: Array, indices: list[Array | None], fill: Any) -> Array:
    taken = self[_within(self, indices)]
    return np.where(mask, taken, np.asarray(fill).astype(self.dtype))


def unsafe_masked_index_put_accumulate(
    self: Array, mask: Array, indices: list[Array | None], values: Array
) -> Array:
    made = self.copy()
    np.add.at(made, _within(self, indices), np.where(mask, values, 0).astype(self.dtype))
    return made


def _within(x: Array, indices: list[Array | None]) -> tuple[Any, ...]:
    if 0 in x.shape:
        raise Unsuited("its input has no elements")
    return tuple(
        slice(None) if index is None else np.clip(index, -x.shape[axis], x.shape[axis] - 1)
        for axis, index in enumerate(indices)
    )


def dim_arange(like: Array, dim: int) -> Array:
    return np.arange(like.shape[axis_of(dim, like.ndim)])


def pad_enum(self: Array, pad: list[int], mode: int, value: float | None) -> Array:
    words = ("reflect", "replicate", "circular", "constant")
    if not 0 <= mode < len(words):
        raise Unsuited(f"mode {mode}")
    return padded(self, pad, words[mode], value)


def trilinear(
    i1: Array,
    i2: Array,
    i3: Array,
    expand1: list[int],
    expand2: list[int],
    expand3: list[int],
    sumdim: list[int],
    unroll_dim: int,
) -> Array:
    pairs = ((i1, expand1), (i2, expand2), (i3, expand3))
    a, b, c = (np.expand_dims(wide(t), tuple(axes)) for t, axes in pairs)
    return narrow((a * b * c).sum(tuple(sumdim)), i1)


def linear_combination(input: Array, coefficients: Array) -> Array:
    if input.dtype == coefficients.dtype and input.dtype.kind in "iu":  # they wrap
        return np.tensordot(coefficients, input, 1)
    return narrow(np.tensordot(wide(coefficients), wide(input), 1), input)


def tensorsolve(self: Array, other: Array, dims: list[int] | None) -> Array:
    rank = self.ndim
    back = [axis_of(d, rank) for d in dims or []]
    a = np.moveaxis(self, back, range(rank - len(back), rank))
    shape = a.shape[other.ndim :]
    side = int(np.prod(shape))
    if a.size != side * side or other.size != side:
        raise Unsuited("it is no square matrix")
    return solve(a.reshape(side, side), other.reshape(-1)).reshape(shape)


def tensorinv(self: Array, ind: int) -> Array:
    rows, columns = self.shape[:ind], self.shape[ind:]
    if not rows or np.prod(rows) != np.prod(columns):
        raise Unsuited("it is no square matrix")
    return inverse(self.reshape(int(np.prod(rows)), -1)).reshape(*columns, *rows)


_INDICES = "(Tensor self, Tensor mask, Tensor?[] indices, "
TABLE: tuple[Row, ...] = (
    (
        "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, "
        'str padding_side="right") -> Tensor',
        pad_sequence,
    ),
    ("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", chunk_cat),
    ("flatten_dense_tensors(Tensor[] tensors) -> Tensor", flatten_dense_tensors),
    (
        "unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]",
        unflatten_dense_tensors,
    ),
    (
        "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
        nonzero_static,
    ),
    (f"_unsafe_masked_index{_INDICES}Scalar fill) -> Tensor", unsafe_masked_index),
    (
        f"_unsafe_masked_index_put_accumulate{_INDICES}Tensor values) -> Tensor",
        unsafe_masked_index_put_accumulate,
    ),
    ("_dim_arange(Tensor like, int dim) -> Tensor", dim_arange),
    ("_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor", pad_enum),
    (
        "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, "
        "int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
        trilinear,
    ),
    (
        "_compute_linear_combination(Tensor input, Tensor coefficients) -> Tensor",
        linear_combination,
    ),
    (
        "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
        tensorsolve,
    ),
    ("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", tensorinv),
)
