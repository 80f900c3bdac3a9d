"""Batch normalisation: torch.nn.functional.batch_norm, and what it is called inside PyTorch."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

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
    if (variance + eps == 0).any():
        raise Unsuited("a variance that is nothing: what is made of it depends on the order")
    y = (x - mean.reshape(column)) / np.sqrt(variance.reshape(column) + eps)
    return narrow(affine(y, weight, bias, column), input)


def affine(y: Array, weight: Array | None, bias: Array | None, column: tuple[int, ...]) -> Array:
    """By a weight and a bias for each channel."""
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None and vector.shape != (y.shape[1],):
            raise Unsuited(f"its {name} has shape {list(vector.shape)}, not {[y.shape[1]]}")
    if weight is not None:
        y = y * wide(weight).reshape(column)
    return y if bias is None else y + wide(bias).reshape(column)


def native_batch_norm(
    input: Array,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    **given: Any,
) -> tuple[Array, Array, Array]:
    if training and running_mean is None and running_var is None:
        return by_batch(input=input, training=True, **given)
    if training or running_mean is None or running_var is None:
        raise Unsuited("it is in training mode")
    statistics: Any = {"running_mean": running_mean, "running_var": running_var}
    y = batch_norm(input=input, training=False, cudnn_enabled=False, **statistics, **given)
    empty = np.zeros(0, kind_of_statistics(input, running_mean, running_var, **given))
    return y, empty, empty


def kind_of_statistics(input: Array, *others: Array | None, **given: Any) -> np.dtype[Any]:
    """The dtype of the input; of halves in single precision where a parameter is."""
    named = [given.get(name) for name in ("weight", "bias")]
    kinds = {v.dtype for v in (*others, *named) if v is not None}
    single = np.dtype(np.float32)
    return single if single in kinds and input.itemsize == 2 else input.dtype


def without_training(**given: Any) -> tuple[Array, ...]:
    return native_batch_norm(training=False, **given)


def no_update(**given: Any) -> tuple[Array, ...]:
    """The last output is what a GPU's library reserves."""
    return *without_training(**given), np.zeros(0, np.uint8)


def functional(running_mean: Array, running_var: Array, **given: Any) -> tuple[Array, ...]:
    """The running statistics are given out, as they were where it does not train."""
    found = native_batch_norm(running_mean=running_mean, running_var=running_var, **given)
    return *found, running_mean, running_var


def by_batch(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """Without running statistics there are those of the batch."""
    x = np.moveaxis(wide(input), 1, -1).reshape(-1, input.shape[1])
    inverse = 1 / np.sqrt(x.var(axis=0) + eps)
    y = batch_norm(input, weight, bias, None, None, True, momentum, eps, cudnn_enabled=False)
    kind = np.zeros(0, kind_of_statistics(input, weight, bias))
    return y, narrow(x.mean(axis=0), kind), narrow(inverse, kind)


def batch_norm_impl_index(cudnn_enabled: bool, **given: Any) -> tuple[Array, ...]:
    return *native_batch_norm(**given), np.zeros(0, np.uint8), np.asarray(0)


def cudnn_batch_norm(
    exponential_average_factor: float, epsilon: float, **given: Any
) -> tuple[Array, ...]:
    return native_batch_norm(momentum=exponential_average_factor, eps=epsilon, **given)


_LAYER = "Tensor input, Tensor? weight, Tensor? bias"
TABLE: tuple[Row, ...] = (
    (
        "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
        "Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled)"
        " -> Tensor",
        batch_norm,
    ),
    (
        "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
        "Tensor? running_var, bool training, float momentum, float eps)"
        " -> (Tensor, Tensor, Tensor)",
        native_batch_norm,
    ),
    (
        f"_native_batch_norm_legit({_LAYER}, Tensor running_mean, Tensor running_var, "
        "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        native_batch_norm,
    ),
    (
        f"_native_batch_norm_legit.no_stats({_LAYER}, bool training, float momentum, float eps)"
        " -> (Tensor, Tensor, Tensor)",
        by_batch,
    ),
    (
        f"_native_batch_norm_legit_no_training({_LAYER}, Tensor running_mean, Tensor running_var, "
        "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        without_training,
    ),
    (
        f"_native_batch_norm_legit_functional({_LAYER}, Tensor running_mean, Tensor running_var, "
        "bool training, float momentum, float eps)"
        " -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
        functional,
    ),
    (
        f"_batch_norm_no_update({_LAYER}, Tensor? running_mean, Tensor? running_var, "
        "float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        no_update,
    ),
    (
        f"_batch_norm_impl_index({_LAYER}, Tensor? running_mean, Tensor? running_var, "
        "bool training, float momentum, float eps, bool cudnn_enabled)"
        " -> (Tensor, Tensor, Tensor, Tensor, int)",
        batch_norm_impl_index,
    ),
    *(
        (
            f"{name}(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, "
            "Tensor? running_var, bool training, float exponential_average_factor, "
            "float epsilon) -> (Tensor, Tensor, Tensor)",
            cudnn_batch_norm,
        )
        for name in ("cudnn_batch_norm", "miopen_batch_norm")
    ),
)
