"""PyTorch operators: gradients of losses (derivatives of torch.nn.functional's definitions)."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.margins import multilabel_margin_loss
from surgeon.reference.operators.math_losses import nll_loss
from surgeon.reference.operators.math_types import common, cut
from surgeon.reference.operators.precision import Array, Row, is_float, narrow, wide


def _slope(grad_output: Array, self: Array, slopes: Any, reduction: int) -> Array:
    """Of each element by what comes from behind; of a mean each has its part."""
    if not is_float(self) or grad_output.dtype != self.dtype:
        raise Unsuited(f"of {self.dtype.name} and {grad_output.dtype.name}")
    found = slopes * wide(grad_output)
    return cut(found / found.size if reduction == 1 else found, self.dtype)


def mse_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int) -> Array:
    a, b, _ = common(self, target)
    return _slope(grad_output, self, 2 * a - 2 * b, reduction)


def smooth_l1_loss_backward(
    grad_output: Array, self: Array, target: Array, reduction: int, beta: float
) -> Array:
    a, b, _ = common(self, target)
    apart = a - b
    sides = [apart <= -beta, apart >= beta]  # without a bend nothing apart is below
    slopes = np.select(sides, [-1.0, 1.0], np.divide(apart, beta) if beta else apart)
    return _slope(grad_output, self, slopes, reduction)


def huber_loss_backward(
    grad_output: Array, self: Array, target: Array, reduction: int, delta: float
) -> Array:
    a, b, _ = common(self, target)
    return _slope(grad_output, self, np.clip(a - b, -delta, delta), reduction)


def soft_margin_loss_backward(
    grad_output: Array, self: Array, target: Array, reduction: int
) -> Array:
    a, b, _ = common(self, target)
    slopes = -b * np.exp(-np.logaddexp(0, a * b))
    return _slope(grad_output, self, slopes, reduction)


def binary_cross_entropy_backward(
    grad_output: Array, self: Array, target: Array, weight: Array | None, reduction: int
) -> Array:
    a, b, _ = common(self, target)
    slopes = (a - b) / np.maximum(a - a * a, np.float32(1e-12))
    slopes = slopes if weight is None else slopes * wide(weight)
    return _slope(grad_output, self, slopes, reduction)


def nll_loss_forward(
    self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int
) -> tuple[Array, Array]:
    """The weights of the targets are added up, but where each loss stays by itself."""
    loss = nll_loss(self, target, weight, reduction, ignore_index)
    if reduction == 0 and self.ndim > 1:
        return loss, np.asarray(0, self.dtype)
    counted = [t for t in np.atleast_1d(target).reshape(-1) if t != ignore_index]
    total = sum(1.0 if weight is None else float(weight[t]) for t in counted)
    return loss, narrow(np.asarray(total, np.float64), self)


def nll_loss_backward(
    grad_output: Array,
    self: Array,
    target: Array,
    weight: Array | None,
    reduction: int,
    ignore_index: int,
    total_weight: Array,
) -> Array:
    found = np.zeros(self.shape)
    rows = found[None] if self.ndim == 1 else found
    labels = np.atleast_1d(target)
    behind = np.broadcast_to(wide(grad_output), labels.shape)
    for at in np.ndindex(*labels.shape):
        label = labels[at]
        if label == ignore_index:
            continue
        if not 0 <= label < rows.shape[1]:
            raise Unsuited("a target is no class")
        share = behind[at] * (1.0 if weight is None else float(weight[label]))
        share = share / float(total_weight) if reduction == 1 else share
        rows[(at[0], label, *at[1:])] = -share
    return narrow(found, self)


def multi_margin_loss_backward(
    grad_output: Array,
    self: Array,
    target: Array,
    p: float,
    margin: float,
    weight: Array | None,
    reduction: int,
) -> Array:
    rows, labels = np.atleast_2d(wide(self)), np.atleast_1d(target)
    behind = np.broadcast_to(wide(grad_output).reshape(-1), labels.shape)
    found = np.zeros(rows.shape)
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        scale = p * behind[i] / len(row) * (1.0 if weight is None else float(weight[label]))
        for j, value in enumerate(row):
            room = margin - row[label] + value
            if j != label and room > 0:
                found[i, j] += scale * room ** (p - 1)
                found[i, label] -= scale * room ** (p - 1)
    found = found / len(rows) if reduction == 1 else found
    return cut(found.reshape(self.shape), self.dtype)


def _names(target: Array) -> list[list[int]]:
    lines = [list(map(int, line)) for line in np.atleast_2d(target)]
    return [line[: line.index(-1)] if -1 in line else line for line in lines]


def multilabel_margin_loss_forward(
    self: Array, target: Array, reduction: int
) -> tuple[Array, Array]:
    """And which classes are named."""
    named = np.zeros(np.atleast_2d(target).shape)
    for row, names in zip(named, _names(target), strict=True):
        row[names] = 1
    loss = multilabel_margin_loss(self, target, reduction)
    return loss, cut(named.reshape(target.shape), self.dtype)


def multilabel_margin_loss_backward(
    grad_output: Array, self: Array, target: Array, reduction: int, is_target: Array
) -> Array:
    rows = np.atleast_2d(wide(self))
    behind = np.broadcast_to(wide(grad_output).reshape(-1), (len(rows),))
    found = np.zeros(rows.shape)
    for i, (row, names) in enumerate(zip(rows, _names(target), strict=True)):
        for name in names:
            for other in sorted(set(range(len(row))) - set(names)):
                if 1 - row[name] + row[other] > 0:
                    found[i, other] += behind[i] / len(row)
                    found[i, name] -= behind[i] / len(row)
    found = found / len(rows) if reduction == 1 else found
    return cut(found.reshape(self.shape), self.dtype)


_THREE = "(Tensor grad_output, Tensor self, Tensor target, int reduction"
_NLL = "Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index"
TABLE: tuple[Row, ...] = (
    (f"mse_loss_backward{_THREE}) -> Tensor", mse_loss_backward),
    (f"smooth_l1_loss_backward{_THREE}, float beta) -> Tensor", smooth_l1_loss_backward),
    (f"huber_loss_backward{_THREE}, float delta) -> Tensor", huber_loss_backward),
    (f"soft_margin_loss_backward{_THREE}) -> Tensor", soft_margin_loss_backward),
    (
        "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, "
        "Tensor? weight=None, int reduction=Mean) -> Tensor",
        binary_cross_entropy_backward,
    ),
    *(
        (f"{name}_forward({_NLL}) -> (Tensor, Tensor)", nll_loss_forward)
        for name in ("nll_loss", "nll_loss2d")
    ),
    *(
        (
            f"{name}_backward(Tensor grad_output, {_NLL}, Tensor total_weight) -> Tensor",
            nll_loss_backward,
        )
        for name in ("nll_loss", "nll_loss2d")
    ),
    (
        "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, "
        "Scalar margin, Tensor? weight=None, int reduction=Mean) -> Tensor",
        multi_margin_loss_backward,
    ),
    (
        "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction)"
        " -> (Tensor, Tensor)",
        multilabel_margin_loss_forward,
    ),
    (
        f"multilabel_margin_loss_backward{_THREE}, Tensor is_target) -> Tensor",
        multilabel_margin_loss_backward,
    ),
)
