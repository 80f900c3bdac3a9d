"""PyTorch operators: gradients of activations, as autograd calls them inside a model.

Each is the derivative of the documented function, by the chain rule: what comes from behind times
the slope.
"""

# ruff: noqa: D103 - each function means what the derivative of its operator does, in TABLE

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.operators.precision import Array, Row, erf, narrow, wide


def _sigmoid(x: Any) -> Any:
    return np.exp(-np.logaddexp(0.0, -x))


def _slope(slope: Callable[..., Any]) -> Callable[..., Array]:
    """What comes from behind (named as each schema has it) times a slope at what was read."""

    def run(gradient: Array, x: Array, *rest: Any) -> Array:
        with np.errstate(all="ignore"):
            return narrow(wide(gradient) * slope(wide(x), *rest), gradient)

    return run


_of_sigmoid = _slope(lambda y: y * (1 - y))
_of_tanh = _slope(lambda y: (1 - y) * (1 + y))


def _passing(passes: Callable[..., Any]) -> Callable[..., Array]:
    """What comes from behind where a condition holds, else zero."""

    def run(gradient: Array, x: Array, *rest: Any) -> Array:
        return np.where(passes(wide(x), *rest), gradient, np.zeros_like(gradient))

    return run


_of_threshold = _passing(lambda x, t: ~(x <= t))
_of_hardtanh = _passing(lambda x, low, high: ~((x <= low) | (x >= high)))
_of_shrink = _passing(lambda x, bound: ~((x >= -bound) & (x <= bound)))


def threshold_backward(grad_output: Array, self: Array, threshold: float) -> Array:
    if self.dtype.kind in "iu":
        return np.where(self <= int(threshold), np.zeros_like(grad_output), grad_output)
    return _of_threshold(grad_output, self, float(self.dtype.type(threshold)))


def sigmoid_backward(grad_output: Array, output: Array) -> Array:
    return _of_sigmoid(grad_output, output)


def tanh_backward(grad_output: Array, output: Array) -> Array:
    return _of_tanh(grad_output, output)


def elu_backward(
    grad_output: Array,
    alpha: float,
    scale: float,
    input_scale: float,
    is_result: bool,
    self_or_result: Array,
) -> Array:
    def slope(x: Any) -> Any:
        if is_result:  # y = scale alpha (e^(input_scale x) - 1)
            low = input_scale * (x + scale * alpha)
        else:
            low = scale * alpha * input_scale * np.exp(np.minimum(x, 0) * input_scale)
        return np.where(x <= 0, low, scale)

    return _slope(slope)(grad_output, self_or_result)


def old_elu_backward(
    grad_output: Array, alpha: float, scale: float, input_scale: float, output: Array
) -> Array:
    return elu_backward(grad_output, alpha, scale, input_scale, True, output)


def leaky_relu_backward(
    grad_output: Array, self: Array, negative_slope: float, self_is_result: bool = False
) -> Array:
    return _slope(lambda x: np.where(x > 0, 1.0, negative_slope))(grad_output, self)


def rrelu_with_noise_backward(
    grad_output: Array,
    self: Array,
    noise: Array,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
) -> Array:
    if training and upper - lower > 1e-6:
        return narrow(wide(grad_output) * wide(noise), grad_output)
    return leaky_relu_backward(grad_output, self, (lower + upper) / 2)


def prelu_kernel_backward(grad_output: Array, self: Array, weight: Array) -> tuple[Array, Array]:
    gradient, x = wide(grad_output), wide(self)
    with np.errstate(all="ignore"):
        of_input = np.where(x > 0, gradient, wide(weight) * gradient)
        of_weight = np.where(x > 0, 0.0, x * gradient)
    return narrow(of_input, self), narrow(of_weight, self)


def silu_backward(grad_output: Array, self: Array) -> Array:
    def slope(x: Any) -> Any:
        return _sigmoid(x) + x * _sigmoid(x) * _sigmoid(-x)

    return _slope(slope)(grad_output, self)


def mish_backward(grad_output: Array, self: Array) -> Array:
    def slope(x: Any) -> Any:
        bent = np.tanh(np.logaddexp(0.0, x))
        return bent + x * (1 - bent**2) * _sigmoid(x)

    return _slope(slope)(grad_output, self)


def gelu_backward(grad: Array, self: Array, approximate: str = "none") -> Array:
    def slope(x: Any) -> Any:
        if approximate == "tanh":
            inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
            bend = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
            return 0.5 * (1 + np.tanh(inner)) + 0.5 * x * bend / np.cosh(inner) ** 2
        share = 0.5 * (1 + erf(x / math.sqrt(2)))
        return share + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)

    return _slope(slope)(grad, self)


def hardtanh_backward(grad_output: Array, self: Array, min_val: float, max_val: float) -> Array:
    low, high = (float(self.dtype.type(n)) for n in (min_val, max_val))
    return _of_hardtanh(grad_output, self, low, high)


def hardsigmoid_backward(grad_output: Array, self: Array) -> Array:
    return _slope(lambda x: np.where((x > -3) & (x < 3), 1 / 6, 0.0))(grad_output, self)


def hardswish_backward(grad_output: Array, self: Array) -> Array:
    def slope(x: Any) -> Any:
        return np.where(x <= -3, 0.0, np.where(x < 3, (2 * x + 3) / 6, 1.0))

    return _slope(slope)(grad_output, self)


def softplus_backward(
    grad_output: Array, self: Array, beta: float, threshold: float, output: Array | None = None
) -> Array:
    def slope(x: Any) -> Any:
        return np.where(x * beta > threshold, 1.0, _sigmoid(x * beta))

    return _slope(slope)(grad_output, self)


def softshrink_backward(grad_output: Array, self: Array, lambd: float) -> Array:
    return _of_shrink(grad_output, self, float(self.dtype.type(lambd)))


def hardshrink_backward(grad_out: Array, self: Array, lambd: float) -> Array:
    return _of_shrink(grad_out, self, float(self.dtype.type(lambd)))


def log_sigmoid_backward(grad_output: Array, self: Array, buffer: Array) -> Array:
    return _slope(lambda x: _sigmoid(-x))(grad_output, self)


def logit_backward(grad_output: Array, self: Array, eps: float | None) -> Array:
    def slope(x: Any) -> Any:
        inside = 1 / (x * (1 - x))
        if eps is None or eps < 0:
            return np.where((x < 0) | (x > 1), np.nan, inside)
        low, high = (float(self.dtype.type(n)) for n in (eps, 1 - eps))
        return np.where((x < low) | (x > high), 0.0, inside)

    return _slope(slope)(grad_output, self)


def glu_backward(grad_output: Array, self: Array, dim: int) -> Array:
    first, second = np.split(wide(self), 2, axis=dim)
    gradient = wide(grad_output)
    other = gradient * first * _sigmoid(second) * _sigmoid(-second)
    return narrow(np.concatenate([gradient * _sigmoid(second), other], axis=dim), self)


def softmax_backward_data(grad_output: Array, output: Array, dim: int, input_dtype: Any) -> Array:
    gradient, y = wide(grad_output), wide(output)
    total = (gradient * y).sum(axis=dim, keepdims=True) if y.ndim else gradient * y
    found = narrow(y * gradient - y * total, output)
    return _as_input(found, input_dtype)


def log_softmax_backward_data(
    grad_output: Array, output: Array, dim: int, input_dtype: Any
) -> Array:
    gradient, y = wide(grad_output), wide(output)
    total = gradient.sum(axis=dim, keepdims=True) if y.ndim else gradient
    return _as_input(narrow(gradient - np.exp(y) * total, output), input_dtype)


def _as_input(found: Array, input_dtype: Any) -> Array:
    if isinstance(input_dtype, np.ndarray) and input_dtype.ndim:  # the input itself, before 1.11
        return found.astype(input_dtype.dtype)
    return found.astype(input_dtype) if isinstance(input_dtype, np.dtype) else found


def native_dropout_backward(grad_output: Array, mask: Array, scale: float) -> Array:
    return narrow(wide(grad_output) * mask.astype(np.float64) * scale, grad_output)


_G = "Tensor grad_output, "


TABLE: tuple[Row, ...] = (
    (f"threshold_backward({_G}Tensor self, Scalar threshold) -> Tensor", threshold_backward),
    (f"sigmoid_backward({_G}Tensor output) -> Tensor", sigmoid_backward),
    (f"tanh_backward({_G}Tensor output) -> Tensor", tanh_backward),
    (
        f"elu_backward({_G}Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
        "Tensor self_or_result) -> Tensor",
        elu_backward,
    ),
    (
        f"elu_backward({_G}Scalar alpha, Scalar scale, Scalar input_scale, Tensor output) "
        "-> Tensor",
        old_elu_backward,
    ),
    (
        f"leaky_relu_backward({_G}Tensor self, Scalar negative_slope, bool self_is_result=False) "
        "-> Tensor",
        leaky_relu_backward,
    ),
    (
        f"rrelu_with_noise_backward({_G}Tensor self, Tensor noise, Scalar lower, Scalar upper, "
        "bool training, bool self_is_result) -> Tensor",
        rrelu_with_noise_backward,
    ),
    (
        f"_prelu_kernel_backward({_G}Tensor self, Tensor weight) -> (Tensor, Tensor)",
        prelu_kernel_backward,
    ),
    (f"silu_backward({_G}Tensor self) -> Tensor", silu_backward),
    (f"mish_backward({_G}Tensor self) -> Tensor", mish_backward),
    ("gelu_backward(Tensor grad, Tensor self, *, str approximate='none') -> Tensor", gelu_backward),
    ("infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) -> Tensor", gelu_backward),
    (
        f"hardtanh_backward({_G}Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
        hardtanh_backward,
    ),
    (f"hardsigmoid_backward({_G}Tensor self) -> Tensor", hardsigmoid_backward),
    (f"hardswish_backward({_G}Tensor self) -> Tensor", hardswish_backward),
    (
        f"softplus_backward({_G}Tensor self, Scalar beta, Scalar threshold, "
        "Tensor? output=None) -> Tensor",
        softplus_backward,
    ),
    (f"softshrink_backward({_G}Tensor self, Scalar lambd) -> Tensor", softshrink_backward),
    (
        "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
        hardshrink_backward,
    ),
    (f"log_sigmoid_backward({_G}Tensor self, Tensor? buffer) -> Tensor", log_sigmoid_backward),
    (f"logit_backward({_G}Tensor self, float? eps=None) -> Tensor", logit_backward),
    (f"glu_backward({_G}Tensor self, int dim) -> Tensor", glu_backward),
    (
        f"_softmax_backward_data({_G}Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        softmax_backward_data,
    ),
    (
        f"_log_softmax_backward_data({_G}Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        log_softmax_backward_data,
    ),
    (f"native_dropout_backward({_G}Tensor mask, float scale) -> Tensor", native_dropout_backward),
)
