"""PyTorch operators: losses of margins, counts and alignments (torch.nn.functional)."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_types import common, cut, reduced
from surgeon.reference.operators.precision import Array, Row, is_float, wide

_LONG = np.dtype(np.int64)


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What floats a loss of this dtype comes in."""
    return np.dtype(np.float32) if dtype.kind in "biu" else dtype


def _is(target: Array, number: int) -> Array:
    """Truth values are compared as integers; to unsigned ones -1 is 255."""
    if target.dtype == np.bool_:
        target = target.astype(np.int64)
    return np.asarray(target == np.asarray(number).astype(target.dtype))


def cosine_embedding_loss(
    input1: Array, input2: Array, target: Array, margin: float, reduction: int
) -> Array:
    a, b, dtype = common(input1, input2)
    if target.ndim > 1 or a.ndim != target.ndim + 1:
        raise Unsuited(f"ranks {a.ndim} and {target.ndim}")
    lengths = np.sqrt(((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12))
    cosine = (a * b).sum(-1) / lengths
    choices = [1 - cosine, np.clip(cosine - margin, 0, None)]
    return reduced(
        np.select([_is(target, 1), _is(target, -1)], choices, 0.0), reduction, _real(dtype)
    )


def margin_ranking_loss(
    input1: Array, input2: Array, target: Array, margin: float, reduction: int
) -> Array:
    a, b, dtype = common(input1, input2)
    if np.bool_ in (dtype, target.dtype):
        raise Unsuited("PyTorch subtracts no booleans")
    far, side, dtype = common(cut(a - b, dtype), -target)  # each of which wraps in its own dtype
    return reduced(np.clip(margin + side * far, 0, None), reduction, _real(dtype))


def hinge_embedding_loss(self: Array, target: Array, margin: float, reduction: int) -> Array:
    like, unlike = _is(target, 1), _is(target, -1)
    if self.dtype.kind in "iu" and reduction != 1:  # all of it is whole and wraps
        lack = np.maximum(np.full_like(self, int(margin)) - self, 0)
        errors = np.where(unlike, 0, self) + np.where(like, 0, lack)
        return reduced(errors.astype(self.dtype), reduction, self.dtype if not reduction else _LONG)
    # PyTorch rounds each step, and x + (margin - x) is the margin: its error is all that x had
    x = self if is_float(self) else wide(self)
    lack = np.maximum(np.asarray(margin, x.dtype) - x, 0)
    nothing = np.zeros_like(x)
    errors = np.where(unlike, nothing, x) + np.where(like, nothing, lack)
    return reduced(wide(errors), reduction, self.dtype)


def soft_margin_loss(self: Array, target: Array, reduction: int) -> Array:
    if not is_float(self):
        raise Unsuited(f"of {self.dtype.name}")
    x, y = wide(self), target.astype(self.dtype).astype(np.float64)
    return reduced(np.logaddexp(0, -x * y), reduction, self.dtype)


def multi_margin_loss(
    self: Array, target: Array, p: float, margin: float, weight: Array | None, reduction: int
) -> Array:
    rows = np.atleast_2d(wide(self))
    classes, found = rows.shape[-1], []
    for row, y in zip(rows, np.atleast_1d(target), strict=True):
        if not 0 <= y < classes:
            raise Unsuited("a target is no class")
        terms = [max(0.0, margin - row[y] + row[i]) ** p for i in range(classes) if i != y]
        found.append(sum(terms) * (1.0 if weight is None else float(weight[y])) / classes)
    errors = np.reshape(found, np.shape(target))
    return reduced(errors, reduction, self.dtype)


def multilabel_margin_loss(self: Array, target: Array, reduction: int) -> Array:
    rows = np.atleast_2d(wide(self))
    classes, found = rows.shape[-1], []
    for row, line in zip(rows, np.atleast_2d(target), strict=True):
        named = line[: list(line).index(-1)] if -1 in line else line
        if any(not 0 <= j < classes for j in named):
            raise Unsuited("a target is no class")
        others = [i for i in range(classes) if i not in named]
        found.append(sum(max(0.0, 1 - (row[j] - row[i])) for j in named for i in others) / classes)
    errors = np.asarray(found) if self.ndim == 2 else np.asarray(found[0])
    return reduced(errors, reduction, self.dtype)


def poisson_nll_loss(
    input: Array, target: Array, log_input: bool, full: bool, eps: float, reduction: int
) -> Array:
    x, y, dtype = common(input, target)
    truths = [one.dtype == np.bool_ for one in (input, target)]
    if all(truths) or (truths[0] and not log_input) or (truths[1] and full):
        raise Unsuited("PyTorch subtracts no booleans")
    both, x, y = (y * x).astype(np.float64), x.astype(np.float64), y.astype(np.float64)
    errors = np.exp(x) - both if log_input else x - y * np.log(x + eps)
    if full:
        large = np.where(y > 1, y, 1)
        more = large * np.log(large) - large + 0.5 * np.log(2 * math.pi * large)
        errors = errors + np.where(y > 1, more, 0)
    return reduced(errors, reduction, _real(dtype))


def _chance(probabilities: Any, labels: list[int], blank: int) -> float:
    """Of a text, by what is still to come at each step (Graves et al., 2006, beta)."""
    text = [blank, *(v for label in labels for v in (label, blank))]
    count = len(text)
    after = np.zeros(count)
    after[-2:] = 1
    for row in probabilities[:0:-1]:
        ahead = np.zeros(count)
        for s in range(count):
            ways = {s, min(s + 1, count - 1)}
            if s + 2 < count and text[s + 2] not in (blank, text[s]):
                ways.add(s + 2)
            ahead[s] = sum(after[w] * row[text[w]] for w in ways)
        after = ahead
    return float(sum(after[s] * probabilities[0][text[s]] for s in range(min(2, count))))


def _untold(logs: Any, text: list[int], blank: int) -> float:
    """Minus the logarithm of a text's chance; the greatest of each step is put back behind it."""
    if not len(logs):
        return math.inf if text else 0.0
    most = logs.max(axis=1, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    chance = _chance(np.exp(logs - most[:, None]), text, blank)
    fits = len(text) + sum(a == b for a, b in pairwise(text)) <= len(logs)
    if not chance and fits and np.isfinite(logs).all():
        raise Unsuited("its chances are too small for a double")
    return -math.log(chance) - float(most.sum()) if chance else math.inf


def ctc_loss(
    log_probs: Array,
    targets: Array,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Array:
    single = log_probs.ndim == 2
    x = wide(log_probs[:, None] if single else log_probs)
    steps = np.atleast_1d(np.asarray(input_lengths)).tolist()
    lengths = np.atleast_1d(np.asarray(target_lengths)).tolist()
    if len(steps) != x.shape[1] or len(lengths) != x.shape[1]:
        raise Unsuited("the lengths are not as many as the texts")
    if targets.ndim == 2 and len(targets) != x.shape[1]:
        raise Unsuited("the targets are not as many as the texts")
    if targets.ndim == 1 and not single:
        ends = np.cumsum(lengths)
        texts = [targets[end - n : end] for end, n in zip(ends, lengths, strict=True)]
    else:
        rows = targets.reshape(x.shape[1], -1)
        texts = [row[:n] for row, n in zip(rows, lengths, strict=True)]
    if min([*steps, *lengths], default=0) < 0:
        raise Unsuited("a length is negative")
    short = any(len(text) < n for text, n in zip(texts, lengths, strict=True))
    if short or any(t > x.shape[0] for t in steps):
        raise Unsuited("a length is longer than what it measures")
    if any(not 0 <= v < x.shape[2] for text in texts for v in text):
        raise Unsuited("a label is no class")
    found = [
        _untold(x[:t, i], list(text), blank)
        for i, (t, text) in enumerate(zip(steps, texts, strict=True))
    ]
    losses = np.asarray([0.0 if zero_infinity and v == math.inf else v for v in found])
    if reduction == 1:
        losses = losses / np.maximum(lengths, 1)
    elif single:
        losses = losses[0]
    return reduced(losses, reduction, log_probs.dtype)


def ctc_loss_forward(
    log_probs: Array,
    targets: Array,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    zero_infinity: bool,
) -> Any:
    """Of each text, infinities kept; what training keeps besides is left out."""
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, 0, False), None


_THREE = "(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean)"
_TWO = "(Tensor self, Tensor target"
_CTC = "(Tensor log_probs, Tensor targets, "
_KEPT = "int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)"
_REST = "int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor"
TABLE: tuple[Row, ...] = (
    (f"cosine_embedding_loss{_THREE} -> Tensor", cosine_embedding_loss),
    (f"margin_ranking_loss{_THREE} -> Tensor", margin_ranking_loss),
    (
        f"hinge_embedding_loss{_TWO}, float margin=1.0, int reduction=Mean) -> Tensor",
        hinge_embedding_loss,
    ),
    (f"soft_margin_loss{_TWO}, int reduction=Mean) -> Tensor", soft_margin_loss),
    (
        f"multi_margin_loss{_TWO}, Scalar p=1, Scalar margin=1, Tensor? weight=None, "
        "int reduction=Mean) -> Tensor",
        multi_margin_loss,
    ),
    (f"multilabel_margin_loss{_TWO}, int reduction=Mean) -> Tensor", multilabel_margin_loss),
    (
        "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, "
        "int reduction) -> Tensor",
        poisson_nll_loss,
    ),
    (f"ctc_loss.IntList{_CTC}int[] input_lengths, int[] target_lengths, {_REST}", ctc_loss),
    (f"ctc_loss.Tensor{_CTC}Tensor input_lengths, Tensor target_lengths, {_REST}", ctc_loss),
    (f"_ctc_loss{_CTC}int[] input_lengths, int[] target_lengths, {_KEPT}", ctc_loss_forward),
    (
        f"_ctc_loss.Tensor{_CTC}Tensor input_lengths, Tensor target_lengths, {_KEPT}",
        ctc_loss_forward,
    ),
)
