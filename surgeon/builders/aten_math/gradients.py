"""Gradients of activations, which models leave whose result is a derivative (forces of an energy).

Formulas: PyTorch's derivatives (tools/autograd/derivatives.yaml names the operators).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.activations import axis_of, halves, log_one_plus_exp
from surgeon.builders.aten_math.functions import by_operator
from surgeon.builders.aten_math.work import BOOL, Work
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def _pair(work: Work, name: str = "self") -> tuple[gs.Tensor, gs.Tensor]:
    """What comes from behind, and what the activation read or gave."""
    gradient = work.args.first()
    x = work.args.tensor(name)
    if work.dtype(x) not in FLOATS or work.dtype(gradient) != work.dtype(x):
        raise Refused(f"PyTorch has no {work.name} of these dtypes")
    return gradient, x


def _no(work: Work, condition: gs.Tensor, gradient: gs.Tensor) -> gs.Tensor:
    """The gradient, but zero where the condition holds."""
    return work.where(condition, work.number(0, work.dtype(gradient)), gradient)


def _one_minus(work: Work, x: gs.Tensor) -> gs.Tensor:
    made: gs.Tensor = work.op("Sub", work.number(1, work.dtype(x)), x)
    return made


def _within(work: Work, x: gs.Tensor, low: float, high: float, *, closed: bool) -> gs.Tensor:
    """Where x lies between two numbers; nowhere for NaN."""
    least, most = (work.number(n, work.dtype(x)) for n in (low, high))
    above = work.less(least, x, or_equal=closed)
    made: gs.Tensor = work.op("And", above, work.less(x, most, or_equal=closed))
    return made


def _threshold(work: Work) -> gs.Tensor:
    gradient, x = work.args.first(), work.args.tensor("self")
    dtype = work.dtype(x)
    if dtype == BOOL or work.dtype(gradient) != dtype:
        raise Refused(f"PyTorch has no {work.name} of these dtypes")
    limit = work.given_number("threshold", dtype)
    return _no(work, work.less(x, limit, or_equal=True), gradient)


def _sigmoid(work: Work) -> gs.Tensor:
    gradient, y = _pair(work, "output")
    slope = work.op("Mul", y, _one_minus(work, y))
    made: gs.Tensor = work.op("Mul", gradient, slope)
    return made


def _tanh(work: Work) -> gs.Tensor:
    gradient, y = _pair(work, "output")
    made: gs.Tensor = work.op("Mul", gradient, _one_minus(work, work.op("Mul", y, y)))
    return made


def _elu(work: Work) -> gs.Tensor:
    """`elu_backward`, of what elu read or, as `is_result` says, gave."""
    known = work.args.schema.takes("self_or_result")
    gradient, x = _pair(work, "self_or_result" if known else "output")
    alpha, scale, input_scale = (
        float(work.args.value(n)) for n in ("alpha", "scale", "input_scale")
    )
    if not known or work.args.value("is_result"):
        slope = work.op("Mul", work.op("Add", x, alpha * scale), input_scale)
    else:
        low = work.extreme("Min", x, work.number(0, work.dtype(x)))
        slope = work.op("Mul", work.op("Exp", work.op("Mul", low, input_scale)), alpha * scale)
        slope = work.op("Mul", slope, input_scale)
    low = work.op("Mul", gradient, slope)
    below = work.less(x, work.number(0, work.dtype(x)), or_equal=True)
    return work.where(below, low, work.op("Mul", gradient, scale))


def _leaky(work: Work, slope: float) -> gs.Tensor:
    gradient, x = _pair(work)
    positive = work.less(work.number(0, work.dtype(x)), x)
    return work.where(positive, gradient, work.op("Mul", gradient, slope))


def _leaky_relu(work: Work) -> gs.Tensor:
    return _leaky(work, float(work.args.value("negative_slope")))


def _rrelu(work: Work) -> gs.Tensor:
    """In training by the slopes that were drawn (`noise`), else by the mean one."""
    low, high = (float(work.args.value(n)) for n in ("lower", "upper"))
    if work.args.value("training") and high - low > 1e-6:
        made: gs.Tensor = work.op("Mul", _pair(work)[0], work.args.tensor("noise"))
        return made
    return _leaky(work, (low + high) / 2)


def _prelu(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """Of the input and of the weight, which has its shape or broadcasts."""
    gradient, x = _pair(work)
    zero = work.number(0, work.dtype(x))
    positive = work.less(zero, x)
    first = work.where(positive, gradient, work.op("Mul", work.args.tensor("weight"), gradient))
    return first, work.where(positive, zero, work.op("Mul", x, gradient))


def _silu(work: Work) -> gs.Tensor:
    gradient, x = _pair(work)
    gate = work.op("Sigmoid", x)
    rest = work.op("Mul", x, _one_minus(work, gate))
    made: gs.Tensor = work.op("Mul", gradient, work.op("Mul", gate, work.op("Add", rest, 1.0)))
    return made


def _mish(work: Work) -> gs.Tensor:
    gradient, x = _pair(work)
    bent = work.op("Tanh", log_one_plus_exp(work, x))
    slope = _one_minus(work, work.op("Mul", bent, bent))
    slope = work.op("Mul", work.op("Mul", x, work.op("Sigmoid", x)), slope)
    made: gs.Tensor = work.op("Mul", gradient, work.op("Add", bent, slope))
    return made


def _gelu(work: Work) -> gs.Tensor:
    gradient, x = _pair(work)
    told = work.args.schema.takes("approximate")
    kind = work.args.value("approximate") if told else "none"
    square = work.op("Mul", x, x)
    if kind == "none":
        inner = by_operator(work, "Erf", work.op("Mul", x, math.sqrt(0.5)))
        share = work.op("Mul", work.op("Add", inner, 1.0), 0.5)
        density = work.op("Exp", work.op("Mul", square, -0.5))
        rest = work.op("Mul", work.op("Mul", x, density), 1 / math.sqrt(2 * math.pi))
    elif kind == "tanh":
        width, cubic = math.sqrt(2 / math.pi), 0.044715
        inner = work.op("Mul", x, work.op("Add", work.op("Mul", square, cubic * width), width))
        bent = work.op("Tanh", inner)
        share = work.op("Mul", work.op("Add", bent, 1.0), 0.5)
        slope = work.op("Add", work.op("Mul", square, 3 * cubic * width), width)
        slope = work.op("Mul", _one_minus(work, work.op("Mul", bent, bent)), slope)
        rest = work.op("Mul", work.op("Mul", x, 0.5), slope)
    else:
        raise Refused(f"approximate {kind!r}")
    made: gs.Tensor = work.op("Mul", gradient, work.op("Add", share, rest))
    return made


def _hardtanh(work: Work) -> gs.Tensor:
    gradient, x = _pair(work)
    low, high = (
        work.number(float(work.args.value(n)), work.dtype(x)) for n in ("min_val", "max_val")
    )
    outside = work.op("Or", work.less(x, low, or_equal=True), work.less(high, x, or_equal=True))
    return _no(work, outside, gradient)


def _hardsigmoid(work: Work) -> gs.Tensor:
    gradient, x = _pair(work)
    inside = _within(work, x, -3, 3, closed=False)
    zero = work.number(0, work.dtype(x))
    return work.where(inside, work.op("Mul", gradient, 1 / 6), zero)


def _hardswish(work: Work) -> gs.Tensor:
    """Its slope at -3 and at 3 is that of the flat and of the straight side, as from 2.13 on."""
    gradient, x = _pair(work)
    low, high = (work.number(n, work.dtype(x)) for n in (-3, 3))
    bent = work.op("Mul", gradient, work.op("Add", work.op("Div", x, 3.0), 0.5))
    upper = work.where(work.less(x, high), bent, gradient)
    return _no(work, work.less(x, low, or_equal=True), upper)


def _softplus(work: Work) -> gs.Tensor:
    gradient, x = _pair(work)
    beta, threshold = (float(work.args.value(n)) for n in ("beta", "threshold"))
    scaled = work.op("Mul", x, beta) if beta != 1 else x
    above = work.less(work.number(threshold, work.dtype(x)), scaled)
    return work.where(above, gradient, work.op("Mul", gradient, work.op("Sigmoid", scaled)))


def _shrink(work: Work) -> gs.Tensor:
    gradient, x = _pair(work)
    bound = float(work.args.value("lambd"))
    return _no(work, _within(work, x, -bound, bound, closed=True), gradient)


def _log_sigmoid(work: Work) -> gs.Tensor:
    gradient, x = _pair(work)
    made: gs.Tensor = work.op("Mul", gradient, work.op("Sigmoid", work.op("Neg", x)))
    return made


def _logit(work: Work) -> gs.Tensor:
    gradient, x = _pair(work)
    eps = work.args.value("eps")
    slope = work.op("Div", gradient, work.op("Mul", x, _one_minus(work, x)))
    low, high = (0.0, 1.0) if eps is None or eps < 0 else (float(eps), 1 - float(eps))
    other = math.nan if eps is None or eps < 0 else 0.0
    first, last = (work.number(n, work.dtype(x)) for n in (low, high))
    outside = work.op("Or", work.less(x, first), work.less(last, x))
    return work.where(outside, work.number(other, work.dtype(x)), slope)


def _glu(work: Work) -> gs.Tensor:
    gradient, x = _pair(work)
    axis = axis_of(work, x)
    first, gate = halves(work, x, axis)
    gate = work.op("Sigmoid", gate)
    kept = work.op("Mul", gradient, gate)
    other = work.op("Mul", work.op("Mul", kept, _one_minus(work, gate)), first)
    made: gs.Tensor = work.op("Concat", kept, other, axis=axis)
    return made


def _softmax(work: Work) -> gs.Tensor:
    """`_softmax_backward_data` and `_log_softmax_backward_data`; in the dtype of the input."""
    gradient, y = _pair(work, "output")
    rank = work.rank(y)
    axes = work.axes([int(work.args.value("dim")) % max(rank, 1)])

    def total(x: gs.Tensor) -> gs.Tensor:
        made: gs.Tensor = work.op("ReduceSum", x, axes, keepdims=1) if rank else x
        return made

    if work.name.startswith("_log"):
        made = work.op("Sub", gradient, work.op("Mul", work.op("Exp", y), total(gradient)))
    else:
        mean = total(work.op("Mul", gradient, y))
        made = work.op("Mul", work.op("Sub", gradient, mean), y)
    if work.args.schema.takes("input_dtype"):
        return work.cast(made, work.dtype_argument("input_dtype") or work.dtype(y))
    return made


def _dropout(work: Work) -> gs.Tensor:
    gradient = work.args.tensor("grad_output")
    if work.dtype(gradient) not in FLOATS:
        raise Refused("the gradient of a dropout is of floats")
    mask = work.cast(work.args.tensor("mask"), work.dtype(gradient))
    kept = work.op("Mul", gradient, mask)
    made: gs.Tensor = work.op("Mul", kept, float(work.args.value("scale")))
    return made


FUNCTIONS: Mapping[str, Callable[[Work], object]] = {
    "threshold_backward": _threshold,
    "sigmoid_backward": _sigmoid,
    "tanh_backward": _tanh,
    "elu_backward": _elu,
    "leaky_relu_backward": _leaky_relu,
    "rrelu_with_noise_backward": _rrelu,
    "_prelu_kernel_backward": _prelu,
    "silu_backward": _silu,
    "mish_backward": _mish,
    **dict.fromkeys(("gelu_backward", "infinitely_differentiable_gelu_backward"), _gelu),
    "hardtanh_backward": _hardtanh,
    "hardsigmoid_backward": _hardsigmoid,
    "hardswish_backward": _hardswish,
    "softplus_backward": _softplus,
    **dict.fromkeys(("softshrink_backward", "hardshrink_backward"), _shrink),
    "log_sigmoid_backward": _log_sigmoid,
    "logit_backward": _logit,
    "glu_backward": _glu,
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), _softmax),
    "native_dropout_backward": _dropout,
}
