"""Gradients of losses: what each element of the input had to do with the error, or their mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.entropy import gradient_of_likelihood
from surgeon.builders.aten_math.losses import MEAN
from surgeon.builders.aten_math.margins import (
    gradient_of_multi_margin,
    gradient_of_multilabel_margin,
)
from surgeon.builders.aten_math.reductions import element_count
from surgeon.builders.aten_math.work import Work
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

# What PyTorch divides by at least, in single precision (ATen/native/Loss.cpp).
_LEAST = float(np.float32(1e-12))


def _operands(work: Work) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
    """What comes from behind, the input and the target."""
    given = [work.args.first(), *(work.args.tensor(name) for name in ("self", "target"))]
    dtype, made = work.together(*given)
    if dtype not in FLOATS or work.dtype(given[1]) != dtype:
        raise Refused(f"PyTorch has no {work.name} of these dtypes")
    gradient, x, y = made
    return gradient, x, y


def _shared(work: Work, slopes: gs.Tensor) -> gs.Tensor:
    """Of a mean each element has its part."""
    if work.constant_of("reduction", MEAN) != MEAN:
        return slopes
    count = element_count(work, slopes, None, work.dtype(slopes))
    made: gs.Tensor = work.op("Div", slopes, float(count) if isinstance(count, int) else count)
    return made


def _of_squares(work: Work) -> gs.Tensor:
    """`mse_loss_backward`."""
    gradient, x, y = _operands(work)
    slopes = work.op("Mul", work.op("Sub", x, y), 2.0)
    return _shared(work, work.op("Mul", slopes, gradient))


def _of_bends(work: Work) -> gs.Tensor:
    """`smooth_l1_loss_backward` and `huber_loss_backward`, whose slopes are cut off at an end."""
    gradient, x, y = _operands(work)
    apart, dtype = work.op("Sub", x, y), work.dtype(x)
    of_huber = work.args.schema.takes("delta")
    end = float(work.args.value("delta" if of_huber else "beta"))
    low, high = (work.number(n, dtype) for n in (-end, end))
    steepest = end if of_huber else 1.0
    slopes = apart if of_huber or end == 0 else work.op("Div", apart, end)
    slopes = work.where(work.less(high, apart, or_equal=True), steepest, slopes)
    slopes = work.where(work.less(apart, low, or_equal=True), -steepest, slopes)
    return _shared(work, work.op("Mul", slopes, gradient))


def _of_soft_margin(work: Work) -> gs.Tensor:
    """`soft_margin_loss_backward`: -y / (1 + e^xy)."""
    gradient, x, y = _operands(work)
    share = work.op("Sigmoid", work.op("Neg", work.op("Mul", x, y)))
    slopes = work.op("Mul", work.op("Neg", y), share)
    return _shared(work, work.op("Mul", slopes, gradient))


def _of_cross_entropy(work: Work) -> gs.Tensor:
    """`binary_cross_entropy_backward`: (x - y) / (x (1 - x))."""
    gradient, x, y = _operands(work)
    dtype = work.dtype(x)
    rest = work.op("Sub", work.number(1, dtype), x)
    room = work.extreme("Max", work.op("Mul", rest, x), work.number(_LEAST, dtype))
    slopes = work.op("Div", work.op("Mul", gradient, work.op("Sub", x, y)), room)
    if (weight := work.args.optional("weight")) is not None:
        slopes = work.op("Mul", slopes, work.cast(weight, dtype))
    return _shared(work, slopes)


FUNCTIONS: Mapping[str, Callable[[Work], object]] = {
    "mse_loss_backward": _of_squares,
    **dict.fromkeys(("smooth_l1_loss_backward", "huber_loss_backward"), _of_bends),
    "soft_margin_loss_backward": _of_soft_margin,
    "binary_cross_entropy_backward": _of_cross_entropy,
    **dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward"), gradient_of_likelihood),
    "multi_margin_loss_backward": gradient_of_multi_margin,
    "multilabel_margin_loss_backward": gradient_of_multilabel_margin,
}
