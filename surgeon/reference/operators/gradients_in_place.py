"""PyTorch operators: gradients of what reads parts of its input, or distances between its rows.

What was read goes back to where it was, among zeros; what was read twice is added up.
"""

# ruff: noqa: D103 - each function means what the derivative of its operator does, in TABLE

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def _scattered(gradient: Array, sizes: Sequence[int], place: Any) -> Array:
    """The gradient at a place among zeros."""
    found = np.zeros([int(n) for n in sizes], gradient.dtype)
    if found[place].shape != gradient.shape:
        raise Unsuited(f"{list(gradient.shape)} where {list(found[place].shape)} was read")
    found[place] = gradient
    return found


def _at(sizes: Sequence[int], dim: int, place: Any) -> tuple[Any, ...]:
    return tuple(place if axis == dim % len(sizes) else slice(None) for axis in range(len(sizes)))


def select_backward(grad_output: Array, input_sizes: list[int], dim: int, index: int) -> Array:
    return _scattered(grad_output, input_sizes, _at(input_sizes, dim, index))


def slice_backward(
    grad_output: Array, input_sizes: list[int], dim: int, start: int, end: int, step: int
) -> Array:
    return _scattered(grad_output, input_sizes, _at(input_sizes, dim, slice(start, end, step)))


def numbered(sizes: Sequence[int]) -> Array:
    """Each place's number, counted through."""
    return np.arange(math.prod(sizes)).reshape([int(n) for n in sizes])


def summed(gradient: Array, sizes: Sequence[int], places: Array) -> Array:
    """The gradient added up at the places that its elements were read from."""
    if places.shape != gradient.shape:
        raise Unsuited(f"{list(gradient.shape)} where {list(places.shape)} was read")
    weights = wide(gradient).reshape(-1)
    found = np.bincount(places.reshape(-1), weights, minlength=math.prod(sizes))
    return narrow(found.reshape([int(n) for n in sizes]), gradient)


def diagonal_backward(
    grad_output: Array, input_sizes: list[int], offset: int, dim1: int, dim2: int
) -> Array:
    places = np.diagonal(numbered(input_sizes), offset, dim1, dim2)
    return summed(grad_output, input_sizes, places)


def unfold_backward(
    grad_in: Array, input_sizes: list[int], dim: int, size: int, step: int
) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(numbered(input_sizes), size, dim)
    starts = np.arange(0, windows.shape[dim], step)
    return summed(grad_in, input_sizes, np.take(windows, starts, axis=dim))


def gather_backward(grad: Array, self: Array, dim: int, index: Array, sparse_grad: bool) -> Array:
    places = numbered(self.shape)[tuple(slice(n) for n in _room(self, index, dim))]
    return summed(grad, self.shape, np.take_along_axis(places, index, dim))


def _room(x: Array, index: Array, dim: int) -> list[int]:
    """How much of each axis `gather` looks at: all of `dim`, elsewhere what the index has."""
    lengths = list(index.shape)
    lengths[dim] = x.shape[dim]
    return lengths


def value_selecting_reduction_backward(
    grad: Array, dim: int, indices: Array, sizes: list[int], keepdim: bool
) -> Array:
    if not sizes:
        return grad
    if not keepdim:
        grad, indices = np.expand_dims(grad, dim), np.expand_dims(indices, dim)
    found = np.zeros([int(n) for n in sizes], grad.dtype)
    np.put_along_axis(found, indices, grad, dim)
    return found


def index_select_backward(grad: Array, self_sizes: list[int], dim: int, index: Array) -> Array:
    places = np.take(numbered(self_sizes), index.reshape(-1), axis=dim)
    return summed(grad, self_sizes, places)


def embedding_dense_backward(
    grad_output: Array,
    indices: Array,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Array:
    if scale_grad_by_freq:
        raise Unsuited("it weighs rows by how often they are read")
    found = np.zeros((num_weights, grad_output.shape[-1]))
    for row, gradient in zip(
        indices.reshape(-1), wide(grad_output).reshape(indices.size, -1), strict=True
    ):
        if not 0 <= row < num_weights:
            raise Unsuited(f"row {row} of {num_weights}")
        if row != padding_idx:
            found[row] += gradient
    return narrow(found, grad_output)


def embedding_backward(
    grad: Array,
    indices: Array,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Array:
    return embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


def cdist_backward(grad_output: Array, x1: Array, x2: Array, p: float, cdist: Array) -> Array:
    apart = wide(x1)[..., :, None, :] - wide(x2)[..., None, :, :]
    far, size = wide(cdist)[..., None], np.abs(apart)
    with np.errstate(all="ignore"):
        if math.isinf(p):
            share = np.sign(apart) * (
                wide(np.abs(x1[..., :, None, :] - x2[..., None, :, :])) == far
            )
        elif p == 0:
            share = np.zeros_like(apart)
        else:
            share = np.sign(apart) * np.where(size == 0, 0.0 if p < 1 else size, size) ** (p - 1)
            share = np.where(size == 0, np.sign(apart), share) / far ** (p - 1)
        share = np.where(far == 0, 0.0, share)
    return narrow((share * wide(grad_output)[..., None]).sum(axis=-2), x1)


def pdist_backward(grad_output: Array, self: Array, p: float, pdist: Array) -> Array:
    found = np.zeros(self.shape)
    for number, (i, j) in enumerate(combinations(range(len(self)), 2)):
        rows = (self[i : i + 1], self[j : j + 1])
        weight, far = (t[number : number + 1, None] for t in (grad_output, pdist))
        found[i] += wide(cdist_backward(weight, *rows, p, far))[0]
        found[j] += wide(cdist_backward(weight, *rows[::-1], p, far))[0]
    return narrow(found, self)


def trace_backward(grad: Array, sizes: list[int]) -> Array:
    found = np.zeros([int(n) for n in sizes], grad.dtype)
    np.fill_diagonal(found, grad)
    if found.shape[0] > found.shape[1]:  # numpy goes on below what is square
        found[found.shape[1] :] = 0
    return found


def masked_select_backward(grad: Array, input: Array, mask: Array) -> Array:
    found = np.zeros(np.broadcast_shapes(input.shape, mask.shape), grad.dtype)
    there = np.broadcast_to(mask.astype(np.bool_), found.shape)
    found[there] = grad[: int(there.sum())]
    return found


def masked_scatter_backward(grad_output: Array, mask: Array, sizes: list[int]) -> Array:
    found = np.zeros(math.prod(sizes), grad_output.dtype)
    read = grad_output[np.broadcast_to(mask.astype(np.bool_), grad_output.shape)]
    if read.size > found.size:
        raise Unsuited(f"{read.size} elements were written of {found.size}")
    found[: read.size] = read
    return found.reshape([int(n) for n in sizes])


def cummaxmin_backward(grad: Array, input: Array, indices: Array, dim: int) -> Array:
    if not input.ndim:
        return grad
    return summed(grad, input.shape, np.take_along_axis(numbered(input.shape), indices, dim))


def _unpooled(gradient: Array, x: Array, indices: Array, spatial: int) -> Array:
    planes = math.prod(x.shape[: x.ndim - spatial])
    plane = math.prod(x.shape[x.ndim - spatial :])
    if indices.size and not 0 <= indices.min() <= indices.max() < plane:
        raise Unsuited("an index is outside its plane")
    places = indices.reshape(planes, -1) + plane * np.arange(planes)[:, None]
    return summed(gradient.reshape(planes, -1), [planes, plane], places).reshape(x.shape)


def _max_pool(spatial: int) -> Callable[..., Array]:
    def run(grad_output: Array, self: Array, indices: Array, **_: Any) -> Array:
        return _unpooled(grad_output, self, indices, spatial)

    return run


_G = "Tensor grad_output, "
_MAX = (
    "Tensor self, int[{0}] kernel_size, int[{0}] stride, int[{0}] padding, int[{0}] dilation, "
    "bool ceil_mode, Tensor indices) -> Tensor"
)


TABLE: tuple[Row, ...] = (
    (
        f"select_backward({_G}SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
        select_backward,
    ),
    (
        f"slice_backward({_G}SymInt[] input_sizes, int dim, SymInt start, SymInt end, "
        "SymInt step) -> Tensor",
        slice_backward,
    ),
    (
        f"diagonal_backward({_G}SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
        diagonal_backward,
    ),
    (
        "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) "
        "-> Tensor",
        unfold_backward,
    ),
    (
        "gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) "
        "-> Tensor",
        gather_backward,
    ),
    (
        "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, "
        "SymInt[] sizes, bool keepdim) -> Tensor",
        value_selecting_reduction_backward,
    ),
    (
        "index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
        index_select_backward,
    ),
    (
        f"embedding_dense_backward({_G}Tensor indices, SymInt num_weights, SymInt padding_idx, "
        "bool scale_grad_by_freq) -> Tensor",
        embedding_dense_backward,
    ),
    (
        "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, "
        "bool scale_grad_by_freq, bool sparse) -> Tensor",
        embedding_backward,
    ),
    (f"_cdist_backward({_G}Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor", cdist_backward),
    (f"_pdist_backward({_G}Tensor self, float p, Tensor pdist) -> Tensor", pdist_backward),
    ("trace_backward(Tensor grad, SymInt[] sizes) -> Tensor", trace_backward),
    (
        "masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor",
        masked_select_backward,
    ),
    (
        f"masked_scatter_backward({_G}Tensor mask, SymInt[] sizes) -> Tensor",
        masked_scatter_backward,
    ),
    (
        "cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor",
        cummaxmin_backward,
    ),
    (f"max_pool2d_with_indices_backward({_G}{_MAX.format(2)}", _max_pool(2)),
    (f"max_pool3d_with_indices_backward({_G}{_MAX.format(3)}", _max_pool(3)),
    (f"adaptive_max_pool2d_backward({_G}Tensor self, Tensor indices) -> Tensor", _max_pool(2)),
    (f"adaptive_max_pool3d_backward({_G}Tensor self, Tensor indices) -> Tensor", _max_pool(3)),
    *(
        (
            f"fractional_max_pool{n}d_backward({_G}Tensor self, int[{n}] kernel_size, "
            f"int[{n}] output_size, Tensor indices) -> Tensor",
            _max_pool(n),
        )
        for n in (2, 3)
    ),
)
