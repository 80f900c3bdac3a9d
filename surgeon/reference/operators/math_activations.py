"""PyTorch operators: activations (torch.nn.functional)."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, erf, narrow, wide
from surgeon.reference.operators.shapes import axis_of


def _softplus(x: Any) -> Any:
    return np.logaddexp(0.0, x)


def _plain(function: Callable[[Any], Any]) -> Any:
    return lambda self: narrow(function(wide(self)), self)


def relu6(self: Array) -> Array:
    return hardtanh(self, 0, 6)


def hardtanh(self: Array, min_val: float, max_val: float) -> Array:
    low, high = np.asarray([min_val, max_val]).astype(self.dtype)
    return np.asarray(np.minimum(np.maximum(self, low), high))


def leaky_relu(self: Array, negative_slope: float) -> Array:
    x = wide(self)
    return narrow(np.where(x > 0, x, x * negative_slope), self)


def elu(self: Array, alpha: float, scale: float, input_scale: float) -> Array:
    x = wide(self)
    return narrow(np.where(x > 0, x * scale, scale * alpha * np.expm1(x * input_scale)), self)


def selu(self: Array) -> Array:
    return elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)


def celu(self: Array, alpha: float) -> Array:
    x = wide(self)
    return narrow(np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)), self)


def gelu(self: Array, approximate: str) -> Array:
    x = wide(self)
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return narrow(0.5 * x * (1 + np.tanh(inner)), self)
    return narrow(0.5 * x * (1 + erf(x / math.sqrt(2))), self)


def softplus(self: Array, beta: float, threshold: float) -> Array:
    x = wide(self)
    return narrow(np.where(x * beta > threshold, x, _softplus(x * beta) / beta), self)


def softshrink(self: Array, lambd: float) -> Array:
    x = wide(self)
    inside = np.where(np.isnan(x), x, 0.0)
    return narrow(np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, inside)), self)


def hardshrink(self: Array, lambd: float) -> Array:
    x = wide(self)
    bound = float(self.dtype.type(lambd))  # held against numbers of that dtype
    return narrow(np.where((x >= -bound) & (x <= bound), 0.0, x), self)


def threshold(self: Array, threshold: float, value: float) -> Array:
    return np.where(self <= threshold, np.asarray(value, self.dtype), self)


def prelu(self: Array, weight: Array) -> Array:
    x = wide(self)
    column = [1] * x.ndim
    if weight.size > 1:
        if x.ndim < 2 or x.shape[1] != weight.size:
            raise Unsuited(f"{weight.size} slopes for an input of shape {list(x.shape)}")
        column[1] = weight.size
    slope = wide(weight).reshape(column)
    return narrow(np.where(x > 0, x, x * slope), self)


def softmax(self: Array, dim: int, dtype: Any) -> Array:
    return _softmax(self, dim, dtype, log=False)


def log_softmax(self: Array, dim: int, dtype: Any) -> Array:
    return _softmax(self, dim, dtype, log=True)


def _softmax(self: Array, dim: int, dtype: Any, *, log: bool) -> Array:
    cast = self if dtype is None else self.astype(dtype)
    x = wide(cast)
    axis = axis_of(dim, x.ndim)
    if x.ndim == 0:
        return narrow(np.asarray(x - x if log else np.exp(x - x)), cast)  # NaN of an infinity too
    shifted = x - x.max(axis=axis, keepdims=True)
    total = np.exp(shifted).sum(axis=axis, keepdims=True)
    return narrow(shifted - np.log(total) if log else np.exp(shifted) / total, cast)


def safe_softmax(self: Array, dim: int, dtype: Any) -> Array:
    """Shares of what is not minus infinity; 0 where nothing is."""
    y = softmax(self, dim, dtype)
    none = np.isneginf(self.astype(np.float64)).all(axis=dim, keepdims=True)
    return np.where(none, np.zeros((), y.dtype), y)


def softmax_as_is(self: Array, dim: int, half_to_float: bool) -> Array:
    return softmax(self, dim, np.float32 if half_to_float else None)


def log_softmax_as_is(self: Array, dim: int, half_to_float: bool) -> Array:
    return log_softmax(self, dim, np.float32 if half_to_float else None)


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "log_sigmoid": lambda x: -_softplus(-x),
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
}
TABLE: tuple[Row, ...] = (
    *((f"{name}(Tensor self) -> Tensor", _plain(f)) for name, f in _PLAIN.items()),
    ("relu6(Tensor self) -> Tensor", relu6),
    ("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", hardtanh),
    ("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", leaky_relu),
    ("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", elu),
    ("selu(Tensor self) -> Tensor", selu),
    ("celu(Tensor self, Scalar alpha=1.0) -> Tensor", celu),
    ("gelu(Tensor self, *, str approximate='none') -> Tensor", gelu),
    ("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", softplus),
    ("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", softshrink),
    ("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", hardshrink),
    ("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", threshold),
    ("prelu(Tensor self, Tensor weight) -> Tensor", prelu),
    ("_prelu_kernel(Tensor self, Tensor weight) -> Tensor", prelu),
    ("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax),
    ("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", log_softmax),
    ("special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax),
    (
        "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        log_softmax,
    ),
    ("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", safe_softmax),
    ("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", softmax_as_is),
    ("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", log_softmax_as_is),
)
