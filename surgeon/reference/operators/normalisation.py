"""Normalisation and activations: torch.nn.functional.batch_norm, group_norm, relu."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Array:
    if input.ndim < 2:
        raise Unsuited(f"its input has rank {input.ndim}")
    x = wide(input)
    column = (-1, *[1] * (x.ndim - 2))
    if training or running_mean is None or running_var is None:
        axes = (0, *range(2, x.ndim))
        mean, variance = x.mean(axis=axes), x.var(axis=axes)
    else:
        mean, variance = wide(running_mean), wide(running_var)
    if mean.shape != (x.shape[1],) or variance.shape != (x.shape[1],):
        raise Unsuited(f"{x.shape[1]} channels, and statistics of shape {list(mean.shape)}")
    y = (x - mean.reshape(column)) / np.sqrt(variance.reshape(column) + eps)
    return narrow(_affine(y, weight, bias, column), input)


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
    grouped = x.reshape(x.shape[0], num_groups, -1)
    mean = grouped.mean(axis=2, keepdims=True)
    variance = grouped.var(axis=2, keepdims=True)
    y = ((grouped - mean) / np.sqrt(variance + eps)).reshape(x.shape)
    return narrow(_affine(y, weight, bias, (-1, *[1] * (x.ndim - 2))), input)


def _affine(y: Array, weight: Array | None, bias: Array | None, column: tuple[int, ...]) -> Array:
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None and vector.shape != (y.shape[1],):
            raise Unsuited(f"its {name} has shape {list(vector.shape)}, not {[y.shape[1]]}")
    if weight is not None:
        y = y * wide(weight).reshape(column)
    return y if bias is None else y + wide(bias).reshape(column)


def relu(self: Array) -> Array:
    if self.dtype == np.bool_:
        raise Unsuited("its input is bool")
    # Not maximum(x, 0): that would turn -0.0 into 0.0 or keep it, as the machine likes.
    return np.where(self <= 0, np.zeros((), self.dtype), self)


TABLE: tuple[Row, ...] = (
    (
        "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
        "Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled)"
        " -> Tensor",
        batch_norm,
    ),
    (
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
        "float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
        group_norm,
    ),
    ("relu(Tensor self) -> Tensor", relu),
)
