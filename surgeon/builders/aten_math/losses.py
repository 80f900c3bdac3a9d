"""Losses: an error of every element, then its mean, its sum, or as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.reductions import reduce
from surgeon.builders.aten_math.vectors import distance_between
from surgeon.builders.aten_math.work import BOOL, INT64, Work
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

NONE, MEAN, SUM = 0, 1, 2  # PyTorch's Reduction (aten/src/ATen/core/Reduction.h)


def reduced(work: Work, errors: gs.Tensor) -> gs.Tensor:
    """The errors, their mean or their sum, as `reduction` says."""
    kind = work.constant_of("reduction", MEAN)
    if work.dtype(errors) not in FLOATS:
        if kind == MEAN:
            raise Refused("PyTorch has no mean of integers")
        errors = errors if kind == NONE else work.cast(errors, INT64)
    if kind == NONE:
        return errors
    operator = "ReduceMean" if kind == MEAN else "ReduceSum"
    return reduce(work, operator, errors, None, keepdim=False)


def _pair(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    dtype, (x, y) = work.together(work.args.tensor("self"), work.args.tensor("target"))
    if dtype not in FLOATS:
        raise Refused("PyTorch has no such loss of integers")
    return x, y


def mse(work: Work) -> gs.Tensor:
    """`mse_loss`."""
    apart = work.op("Sub", *_pair(work))
    return reduced(work, work.op("Mul", apart, apart))


def l1(work: Work) -> gs.Tensor:
    """`l1_loss`; of integers there is no mean, and they wrap."""
    dtype, pair = work.together(work.args.tensor("self"), work.args.tensor("target"))
    if dtype in FLOATS:
        return reduced(work, work.op("Abs", work.op("Sub", *pair)))
    if dtype == BOOL:
        raise Refused("PyTorch subtracts no booleans")
    return reduced(work, work.widely("Abs", work.widely("Sub", *pair)))


def smooth_l1(work: Work) -> gs.Tensor:
    """`smooth_l1_loss` (d^2 / 2 beta, then d - beta / 2) and `huber_loss` (delta times that)."""
    apart = work.op("Abs", work.op("Sub", *_pair(work)))
    name = "delta" if work.name == "huber_loss" else "beta"
    bend = float(work.constant_of(name, 1.0)) if work.args.schema.takes(name) else 1.0
    if bend == 0:
        return reduced(work, apart)
    scale = 1.0 if name == "delta" else 1 / bend
    square = work.op("Mul", work.op("Mul", apart, apart), 0.5 * scale)
    line = work.op("Sub", apart, 0.5 * bend)
    line = work.op("Mul", line, bend) if name == "delta" else line
    errors = work.where(work.op("Less", apart, bend), square, line)
    if name == "delta":  # PyTorch writes it into what is like its input
        errors = work.cast(errors, work.dtype(work.args.tensor("self")))
    return reduced(work, errors)


def kl_div(work: Work) -> gs.Tensor:
    """`kl_div`: target (log target - input); nothing where the target is 0."""
    x, y = _pair(work)
    if work.args.schema.takes("log_target") and work.args.value("log_target"):
        return reduced(work, work.op("Mul", work.op("Exp", y), work.op("Sub", y, x)))
    entropy = work.op("Mul", y, work.op("Log", y))
    entropy = work.where(work.equal(y, work.number(0, work.dtype(y))), 0.0, entropy)
    return reduced(work, work.op("Sub", entropy, work.op("Mul", y, x)))


def _weighted(work: Work, errors: gs.Tensor, dtype: int) -> gs.Tensor:
    """Each error times its weight; PyTorch multiplies in place, and so in the input's type."""
    weight = work.args.optional("weight")
    return errors if weight is None else work.op("Mul", errors, work.cast(weight, dtype))


def binary_cross_entropy(work: Work) -> gs.Tensor:
    """`binary_cross_entropy`: logarithms at least -100."""
    x, y = _pair(work)
    dtype = work.dtype(x)
    low = work.number(-100, dtype)
    one = work.number(1, dtype)
    first = work.extreme("Max", work.op("Log", x), low)
    second = work.extreme("Max", work.op("Log", work.op("Sub", one, x)), low)
    left = work.op("Mul", y, first)
    right = work.op("Mul", work.op("Sub", one, y), second)
    return reduced(work, _weighted(work, work.op("Neg", work.op("Add", left, right)), dtype))


def binary_cross_entropy_with_logits(work: Work) -> gs.Tensor:
    """`binary_cross_entropy_with_logits`: (1 - y) x + (1 + (w - 1) y) log(1 + e^-x)."""
    from surgeon.builders.aten_math.activations import log_one_plus_exp

    x, y = _pair(work)
    dtype = work.dtype(x)
    one = work.number(1, dtype)
    log = log_one_plus_exp(work, work.op("Neg", x))
    positive = work.args.optional("pos_weight")
    if positive is not None:
        positive = work.cast(positive, dtype)
        factor = work.op("Add", work.op("Mul", work.op("Sub", positive, one), y), one)
        log = work.op("Mul", factor, log)
    errors = work.op("Add", work.op("Mul", work.op("Sub", one, y), x), log)
    told = work.dtype(work.args.tensor("target"))
    if told in FLOATS:  # of which 1 - y is, and PyTorch writes all else into that
        errors, dtype = work.cast(errors, told), told
    return reduced(work, _weighted(work, errors, dtype))


def triplet_margin(work: Work) -> gs.Tensor:
    """`triplet_margin_loss`."""
    anchor, positive, negative = (
        work.args.tensor(name) for name in ("anchor", "positive", "negative")
    )
    far = distance_between(work, anchor, negative, keepdim=False)
    if work.args.value("swap"):
        _, (far, other) = work.together(
            far, distance_between(work, positive, negative, keepdim=False)
        )
        far = work.extreme("Min", far, other)
    margin = float(work.constant_of("margin", 1.0))
    _, (near, far) = work.together(distance_between(work, anchor, positive, keepdim=False), far)
    errors = work.op("Add", work.op("Sub", near, far), margin)
    zero = work.number(0, work.dtype(errors))
    return reduced(work, work.extreme("Max", errors, zero))


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    "mse_loss": mse,
    "l1_loss": l1,
    "smooth_l1_loss": smooth_l1,
    "huber_loss": smooth_l1,
    "kl_div": kl_div,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "triplet_margin_loss": triplet_margin,
}
