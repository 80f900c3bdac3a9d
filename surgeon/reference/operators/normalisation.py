"""Normalisation and activations: torch.nn.functional.group_norm, layer_norm, relu."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.batch_norms import affine, batch_norm, kind_of_statistics
from surgeon.reference.operators.linear_algebra import broad
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def group_norm(
    input: Array,
    num_groups: int,
    weight: Array | None,
    bias: Array | None,
    eps: float,
    cudnn_enabled: bool,
) -> Array:
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise Unsuited(f"{num_groups} groups over an input of shape {list(input.shape)}")
    x = wide(input)
    grouped = x.reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)
    mean = grouped.mean(axis=2, keepdims=True)
    variance = grouped.var(axis=2, keepdims=True)
    y = ((grouped - mean) / np.sqrt(variance + eps)).reshape(x.shape)
    return narrow(affine(y, weight, bias, (-1, *[1] * (x.ndim - 2))), input)


def instance_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Array:
    if not use_input_stats:
        return batch_norm(
            input, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled
        )
    if input.ndim < 3:
        raise Unsuited(f"its input has rank {input.ndim}")
    x = wide(input)
    axes = tuple(range(2, x.ndim))
    spread = np.sqrt(x.var(axis=axes, keepdims=True) + eps)
    y = (x - x.mean(axis=axes, keepdims=True)) / spread
    return narrow(affine(y, weight, bias, (-1, *[1] * (x.ndim - 2))), input)


def native_group_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    N: int,  # noqa: N803
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    eps: float,
) -> tuple[Array, Array, Array]:
    if input.size != N * C * HxW:
        raise Unsuited(f"{N} x {C} x {HxW} elements of a shape {list(input.shape)}")
    rows = wide(input).reshape(N, group, C * HxW // group)
    y = group_norm(input, group, weight, bias, eps, cudnn_enabled=True)
    inverse = (rows.var(axis=-1) + eps) ** -0.5
    kind = np.zeros(0, kind_of_statistics(input, weight, bias))
    return y, narrow(rows.mean(axis=-1), kind), narrow(inverse, kind)


def fused_rms_norm(
    input: Array, normalized_shape: list[int], weight: Array | None, eps: float | None
) -> tuple[Array, Array]:
    axes = tuple(range(-len(normalized_shape), 0))
    sums_in = _sums_in(input)
    least = float(np.finfo(sums_in).eps) if eps is None else eps
    inverse = (np.square(wide(input)).mean(axis=axes, keepdims=True) + least) ** -0.5
    return rms_norm(input, normalized_shape, weight, eps), inverse.astype(sums_in)


def _sums_in(x: Array) -> type[np.floating[Any]]:
    """The dtype in which PyTorch adds up: of halves float32."""
    return np.float64 if x.dtype in (np.float64, np.complex128) else np.float32


def weight_norm_interface(v: Array, g: Array, dim: int) -> tuple[Array, Array]:
    lines = np.moveaxis(wide(v), dim, 0).reshape(v.shape[dim], -1)
    return weight_norm(v, g, dim), narrow(np.linalg.norm(lines, axis=1).reshape(g.shape), v)


def native_layer_norm(
    input: Array,
    normalized_shape: list[int],
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> tuple[Array, Array, Array]:
    count = len(normalized_shape)
    if list(input.shape[-count:]) != normalized_shape:
        raise Unsuited(f"it normalises {normalized_shape} of {list(input.shape)}")
    x = wide(input)
    axes = tuple(range(-count, 0))
    mean = x.mean(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(x.var(axis=axes, keepdims=True) + eps)
    y = (x - mean) * inverse
    if weight is not None:
        y = y * wide(weight)
    if bias is not None:
        y = y + wide(bias)
    kind = np.zeros(0, kind_of_statistics(input, weight, bias))
    return narrow(y, input), narrow(mean, kind), narrow(inverse, kind)


def layer_norm(
    input: Array,
    normalized_shape: list[int],
    weight: Array | None,
    bias: Array | None,
    eps: float,
    cudnn_enable: bool,
) -> Array:
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


def rms_norm(
    input: Array, normalized_shape: list[int], weight: Array | None, eps: float | None
) -> Array:
    count = len(normalized_shape)
    if list(input.shape[-count:]) != normalized_shape:
        raise Unsuited(f"it normalises {normalized_shape} of {list(input.shape)}")
    x = broad(input)
    if eps is None:
        eps = float(np.finfo(_sums_in(input)).eps)
    y = x / np.sqrt((x * x).mean(axis=tuple(range(-count, 0)), keepdims=True) + eps)
    return narrow(y if weight is None else y * broad(weight), input)


def weight_norm(v: Array, g: Array, dim: int) -> Array:
    x = wide(v)
    axes = tuple(i for i in range(x.ndim) if dim == -1 or i != dim % x.ndim)
    norm = np.sqrt((x * x).sum(axis=axes, keepdims=True))
    return narrow(x * (wide(g) / norm), v)


def glu(self: Array, dim: int) -> Array:
    if self.ndim == 0 or self.shape[dim] % 2:
        raise Unsuited(f"it halves axis {dim} of {list(self.shape)}")
    first, second = np.split(wide(self), 2, axis=dim)
    return narrow(first / (1 + np.exp(-second)), self)


def relu(self: Array) -> Array:
    if self.dtype == np.bool_:
        raise Unsuited("its input is bool")
    # Not maximum(x, 0): that would turn -0.0 into 0.0 or keep it, as the machine likes.
    return np.where(self <= 0, np.zeros((), self.dtype), self)


TABLE: tuple[Row, ...] = (
    (
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
        "float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
        group_norm,
    ),
    ("glu(Tensor self, int dim=-1) -> Tensor", glu),
    (
        "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
        "Tensor? running_var, bool use_input_stats, float momentum, float eps, "
        "bool cudnn_enabled) -> Tensor",
        instance_norm,
    ),
    (
        "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
        "Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
        layer_norm,
    ),
    (
        "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, "
        "Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
        native_layer_norm,
    ),
    (
        "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, "
        "SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
        native_group_norm,
    ),
    (
        "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps)"
        " -> (Tensor, Tensor)",
        fused_rms_norm,
    ),
    (
        "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
        weight_norm_interface,
    ),
    ("relu(Tensor self) -> Tensor", relu),
    (
        "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
        "float? eps=None) -> Tensor",
        rms_norm,
    ),
    ("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", weight_norm),
)
