"""PyTorch operators: losses (torch.nn.functional)."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_norms import pairwise_distance
from surgeon.reference.operators.math_reductions import logsumexp
from surgeon.reference.operators.math_types import common, reduced
from surgeon.reference.operators.precision import Array, Row, is_float, narrow, wide


def mse_loss(self: Array, target: Array, reduction: int) -> Array:
    a, b, dtype = common(self, target)
    return reduced((a - b) ** 2, reduction, dtype)


def l1_loss(self: Array, target: Array, reduction: int) -> Array:
    a, b, dtype = common(self, target)
    if dtype == np.bool_ or (dtype.kind in "iu" and reduction == 1):
        raise Unsuited(f"of {dtype.name}")
    if dtype.kind in "iu":  # a sum of integers has 64 bits
        return reduced(np.abs(a - b), reduction, np.dtype(np.int64) if reduction else dtype)
    return reduced(np.abs(a - b), reduction, dtype)


def smooth_l1_loss(self: Array, target: Array, reduction: int, beta: float) -> Array:
    a, b, dtype = common(self, target)
    apart = np.abs(a - b)
    if beta == 0:
        return reduced(apart, reduction, dtype)
    errors = np.where(apart < beta, 0.5 * apart**2 / beta, apart - 0.5 * beta)
    return reduced(errors, reduction, dtype)


def huber_loss(self: Array, target: Array, reduction: int, delta: float) -> Array:
    a, b, dtype = common(self, target)
    apart = np.abs(a - b)
    errors = np.where(apart <= delta, 0.5 * apart**2, delta * (apart - 0.5 * delta))
    if not is_float(self):
        raise Unsuited(f"of {dtype.name}")
    return reduced(errors, reduction, self.dtype)  # which PyTorch writes it into


def kl_div(self: Array, target: Array, reduction: int, log_target: bool) -> Array:
    x, y, dtype = common(self, target)
    if log_target:
        shares = np.exp(y)
        if dtype == np.float32:  # what has no number there has none in the sum
            with np.errstate(over="ignore"):
                shares = shares.astype(dtype).astype(y.dtype)
        return reduced(shares * (y - x), reduction, dtype)
    return reduced(np.where(y == 0, 0.0, y * np.log(y)) - y * x, reduction, dtype)


def binary_cross_entropy(self: Array, target: Array, weight: Array | None, reduction: int) -> Array:
    x, y, dtype = common(self, target)
    errors = -(y * np.maximum(np.log(x), -100) + (1 - y) * np.maximum(np.log(1 - x), -100))
    return reduced(errors if weight is None else errors * weight, reduction, dtype)


def binary_cross_entropy_with_logits(
    self: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: int
) -> Array:
    x, y, dtype = common(self, target)
    positive = 1.0 if pos_weight is None else pos_weight.astype(np.float64)
    errors = positive * y * np.logaddexp(0, -x) + (1 - y) * np.logaddexp(0, x)
    dtype = target.dtype if is_float(target) else dtype  # as 1 - y is, and all is written there
    return reduced(errors if weight is None else errors * weight, reduction, dtype)


def nll_loss(
    self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int
) -> Array:
    if (self.ndim, target.ndim) == (1, 0):  # one sample by itself
        found = nll_loss(self[None], target[None], weight, reduction, ignore_index)
        return found.reshape(())
    if self.ndim < 2 or target.ndim != self.ndim - 1:
        raise Unsuited(f"ranks {self.ndim} and {target.ndim}")
    kept = target != ignore_index
    if ((target < 0) | (target >= self.shape[1]))[kept].any():
        raise Unsuited("a target is no class")
    index = np.where(kept, target, 0)[:, None]
    weights = np.ones(self.shape[1]) if weight is None else wide(weight)
    of_target: Array = np.where(kept, weights[index[:, 0]], 0.0)
    chosen = np.take_along_axis(wide(self), index, 1)[:, 0]
    errors: Array = np.where(kept, -chosen * of_target, 0.0)
    if reduction == 1:
        return narrow(np.asarray(np.divide(errors.sum(), of_target.sum())), self)
    return reduced(errors, reduction, self.dtype)


def cross_entropy_loss(
    self: Array,
    target: Array,
    weight: Array | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
) -> Array:
    """Between shares of the classes; a class is a share of 1."""
    if self.ndim == 1:  # one sample by itself
        one = self[None], target[None], weight, reduction, ignore_index, label_smoothing
        return cross_entropy_loss(*one).reshape(())
    if self.ndim < 2:
        raise Unsuited(f"an input of rank {self.ndim}")
    x, classes = np.moveaxis(wide(self), 1, -1), self.shape[1]
    logs = x - logsumexp(x, -1, True)
    each = np.ones(classes) if weight is None else wide(weight)
    whole = not is_float(target)
    if whole:
        kept = target != ignore_index
        if ((target < 0) | (target >= classes))[kept].any():
            raise Unsuited("a target is no class")
        shares = np.eye(classes)[np.where(kept, target, 0)] * kept[..., None]
    else:
        kept, shares = np.ones(x.shape[:-1], bool), np.moveaxis(wide(target), 1, -1)
    total = (shares * each).sum(-1).sum() if whole else float(kept.sum())
    shares = shares * (1 - label_smoothing) + label_smoothing / classes * kept[..., None]
    terms = np.where(shares == 0, 0.0, -shares * logs * each)
    if reduction == 1:
        return narrow(np.asarray(terms.sum() / total), self)
    return reduced(terms.sum(-1), reduction, self.dtype)


def triplet_margin_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float,
    p: float,
    eps: float,
    swap: bool,
    reduction: int,
) -> Array:
    def between(x: Array, y: Array) -> Array:
        return pairwise_distance(x, y, p, eps, keepdim=False)

    far = between(anchor, negative)
    far = np.minimum(far, between(positive, negative)) if swap else far
    near, far, dtype = common(between(anchor, positive), far)
    return reduced(np.maximum(near - far + margin, 0), reduction, dtype)


_PAIR = "(Tensor self, Tensor target, int reduction=Mean"
_NLL = (
    "(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
    "int ignore_index=-100) -> Tensor"
)
TABLE: tuple[Row, ...] = (
    (f"mse_loss{_PAIR}) -> Tensor", mse_loss),
    (f"l1_loss{_PAIR}) -> Tensor", l1_loss),
    (f"smooth_l1_loss{_PAIR}, float beta=1.0) -> Tensor", smooth_l1_loss),
    (f"huber_loss{_PAIR}, float delta=1.0) -> Tensor", huber_loss),
    (f"kl_div{_PAIR}, *, bool log_target=False) -> Tensor", kl_div),
    (
        "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, "
        "int reduction=Mean) -> Tensor",
        binary_cross_entropy,
    ),
    (
        "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, "
        "Tensor? pos_weight=None, int reduction=Mean) -> Tensor",
        binary_cross_entropy_with_logits,
    ),
    *((f"{name}{_NLL}", nll_loss) for name in ("nll_loss", "nll_loss2d", "nll_loss_nd")),
    (
        "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
        "int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
        cross_entropy_loss,
    ),
    (
        "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
        "float p=2, float eps=1e-06, bool swap=False, int reduction=Mean) -> Tensor",
        triplet_margin_loss,
    ),
)
