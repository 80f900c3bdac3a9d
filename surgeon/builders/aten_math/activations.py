"""Activations; where onnxruntime has an operator in single precision alone, double is composed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.functions import by_operator
from surgeon.builders.aten_math.functions import exp_less_one as expm1
from surgeon.builders.aten_math.work import BOOL, DOUBLE, FLOAT, HALF, Work
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def _input(work: Work) -> gs.Tensor:
    x = work.args.first()
    if work.dtype(x) not in FLOATS:
        raise Refused(f"PyTorch has no {work.name} of integers")
    return x


def relu(work: Work) -> gs.Tensor:
    """`relu`, also of integers."""
    x = work.args.tensor("self")
    if not work.facts.of(x).dtype or work.dtype(x) in FLOATS:
        made: gs.Tensor = work.draft.op("Relu", x)
        return made
    return work.extreme("Max", x, work.number(0, work.dtype(x)))


def bounded(work: Work, x: gs.Tensor, low: float, high: float) -> gs.Tensor:
    """x between two numbers, NaN kept; `high` where they are the wrong way round."""
    dtype = work.dtype(x)
    if low <= high and dtype in FLOATS and (work.opset >= 12 or dtype not in (DOUBLE, HALF)):
        made: gs.Tensor = work.op("Clip", x, float(low), float(high))
        return made
    upper = work.extreme("Max", x, work.number(low, dtype))
    return work.extreme("Min", upper, work.number(high, dtype))


def hardtanh(work: Work) -> gs.Tensor:
    """`hardtanh` and `relu6`."""
    x = work.args.tensor("self")
    if work.name == "relu6":
        return bounded(work, x, 0, 6)
    return bounded(work, x, work.constant_of("min_val", -1), work.constant_of("max_val", 1))


def leaky_relu(work: Work) -> gs.Tensor:
    """`leaky_relu`, and `rrelu` outside training, whose slope is the mean one."""
    x = _input(work)
    if work.name.startswith("rrelu"):
        if work.args.value("training"):
            raise Refused("it draws slopes at random: the model was exported for training")
        slope = (work.args.value("lower") + work.args.value("upper")) / 2
    else:
        slope = work.constant_of("negative_slope", 0.01)
    if work.dtype(x) != DOUBLE:
        made: gs.Tensor = work.op("LeakyRelu", x, alpha=float(slope))
        return made
    positive = work.op("Less", work.number(0, DOUBLE), x)
    return work.where(positive, x, work.op("Mul", x, float(slope)))


def elu(work: Work) -> gs.Tensor:
    """`elu` with its scales, `selu` and `celu`."""
    x = _input(work)
    alpha, scale, input_scale = 1.0, 1.0, 1.0
    if work.name == "selu":
        alpha, scale = 1.6732632423543772, 1.0507009873554805
    elif work.name == "celu":
        alpha = float(work.constant_of("alpha", 1))
        input_scale = 1 / alpha
    else:
        alpha = float(work.constant_of("alpha", 1))
        scale = float(work.constant_of("scale", 1))
        input_scale = float(work.constant_of("input_scale", 1))
    if work.dtype(x) != DOUBLE:
        if work.name == "selu":
            return work.op("Selu", x)
        if scale == 1 and input_scale == 1:
            return work.op("Elu", x, alpha=alpha)
    zero = work.number(0, work.dtype(x))
    # The exponent stays below zero, or e^x of what is not chosen would overflow.
    below = work.extreme("Min", x, zero)
    below = work.op("Mul", below, input_scale) if input_scale != 1 else below
    low = work.op("Mul", expm1(work, below), alpha * scale)
    high = work.op("Mul", x, scale) if scale != 1 else x
    return work.where(work.op("Less", zero, x), high, low)


def gelu(work: Work) -> gs.Tensor:
    """`gelu`, exact or by tanh."""
    x = _input(work)
    schema = work.args.schema
    kind = work.args.value("approximate") if schema.takes("approximate") else "none"
    if kind not in ("none", "tanh"):
        raise Refused(f"approximate {kind!r}")
    if work.opset >= 20 and work.dtype(x) != DOUBLE:
        return work.op("Gelu", x, approximate=kind)
    if kind == "none":
        inner = by_operator(work, "Erf", work.op("Mul", x, math.sqrt(0.5)))
    else:
        cube = work.op("Mul", work.op("Mul", work.op("Mul", x, x), x), 0.044715)
        inner = work.op("Mul", work.op("Add", x, cube), math.sqrt(2 / math.pi))
        inner = work.op("Tanh", inner)
    half = work.op("Mul", x, 0.5)
    return work.op("Mul", half, work.op("Add", inner, 1.0))


def silu(work: Work) -> gs.Tensor:
    """`silu`."""
    x = _input(work)
    return work.op("Mul", x, work.op("Sigmoid", x))


def log_one_plus_exp(work: Work, x: gs.Tensor) -> gs.Tensor:
    """log(1 + e^x) without overflow."""
    dtype = work.dtype(x)
    if dtype != DOUBLE:  # of halves onnxruntime takes the exponential first, which overflows
        return work.cast(work.op("Softplus", work.cast(x, FLOAT)), dtype)
    rest = work.op("Exp", work.op("Neg", work.op("Abs", x)))
    positive = work.extreme("Max", x, work.number(0, DOUBLE))
    return work.op("Add", positive, work.op("Log", work.op("Add", rest, 1.0)))


def softplus(work: Work) -> gs.Tensor:
    """`softplus`; above the threshold it is x."""
    x = _input(work)
    beta, threshold = work.constant_of("beta", 1), work.constant_of("threshold", 20)
    scaled = work.op("Mul", x, float(beta)) if beta != 1 else x
    y = log_one_plus_exp(work, scaled)
    y = work.op("Div", y, float(beta)) if beta != 1 else y
    if threshold >= 20 and work.dtype(x) != DOUBLE:
        return y  # the difference is below the rounding of what is left
    above = work.op("Less", work.number(threshold, work.dtype(x)), scaled)
    return work.where(above, x, y)


def log_sigmoid(work: Work) -> gs.Tensor:
    """`log_sigmoid`."""
    x = _input(work)
    return work.op("Neg", log_one_plus_exp(work, work.op("Neg", x)))


def mish(work: Work) -> gs.Tensor:
    """`mish`: x tanh(softplus(x))."""
    x = _input(work)
    if work.opset >= 18 and work.dtype(x) != DOUBLE:
        return work.op("Mish", x)
    return work.op("Mul", x, work.op("Tanh", log_one_plus_exp(work, x)))


def _hard_sigmoid(work: Work, x: gs.Tensor) -> gs.Tensor:
    if work.dtype(x) != DOUBLE:
        return work.op("HardSigmoid", x, alpha=1 / 6)
    return work.op("Div", bounded(work, work.op("Add", x, 3.0), 0, 6), 6.0)


def hardsigmoid(work: Work) -> gs.Tensor:
    """`hardsigmoid`."""
    return _hard_sigmoid(work, _input(work))


def hardswish(work: Work) -> gs.Tensor:
    """`hardswish`."""
    x = _input(work)
    if work.opset >= 14 and work.dtype(x) != DOUBLE:
        return work.op("HardSwish", x)
    return work.op("Mul", x, _hard_sigmoid(work, x))


def softshrink(work: Work) -> gs.Tensor:
    """`softshrink`: x less itself cut to [-lambd, lambd]."""
    x = _input(work)
    size = work.constant_of("lambd", 0.5)
    return work.op("Sub", x, bounded(work, x, -size, size))


def hardshrink(work: Work) -> gs.Tensor:
    """`hardshrink`."""
    x = _input(work)
    size = work.number(work.constant_of("lambd", 0.5), work.dtype(x))
    return work.where(work.less(work.op("Abs", x), size, or_equal=True), 0.0, x)


def threshold(work: Work) -> gs.Tensor:
    """`threshold`: `value` where x is not above."""
    x = work.args.tensor("self")
    bound = work.args.value("threshold")
    value = work.args.value("value")
    dtype = work.dtype(x)
    if dtype not in FLOATS and bound != int(bound):
        raise Refused("a threshold between integers")
    at_most = work.less(x, work.number(bound, dtype), or_equal=True)
    return work.where(at_most, float(value) if dtype in FLOATS else int(value), x)


def prelu(work: Work) -> gs.Tensor:
    """`prelu`: one slope, or one a channel (axis 1); its kernel has them as they broadcast."""
    x, weight = work.args.tensor("self"), work.args.tensor("weight")
    widens = False
    if work.name == "_prelu_kernel":
        rank, slopes = (work.facts.of(t).rank for t in (x, weight))
        widens = rank is None or slopes is None or slopes > rank
    else:
        weight = _slopes(work, x, weight)
    if work.dtype(x) != DOUBLE and not widens:
        return work.draft.op("PRelu", x, weight)
    positive = work.op("Less", work.number(0, work.dtype(x)), x)
    return work.where(positive, x, work.op("Mul", x, weight))


def _slopes(work: Work, x: gs.Tensor, weight: gs.Tensor) -> gs.Tensor:
    """One slope, or one a channel, as they broadcast."""
    count = work.facts.of(weight).shape
    if count is None or len(count) > 1:
        raise Refused("the shape of `weight` is not known")
    if work.facts.of(x).rank == 0:
        return work.draft.op("Reshape", weight, work.axes([]))
    if count in ((), (1,)) or work.rank(x) <= 2:
        return weight
    rank, array = work.rank(x), work.facts.array(weight)
    if array is not None:
        return work.draft.constant(array.reshape(-1, *[1] * (rank - 2)))
    return work.draft.op("Unsqueeze", weight, work.axes(range(1, rank - 1)))


def axis_of(work: Work, x: gs.Tensor, name: str = "dim", default: int = -1) -> int:
    """A dim counted from the front; a 0-d value counts as one of rank 1."""
    dim = int(work.constant_of(name, default))
    rank = max(work.rank(x), 1)
    if not -rank <= dim < rank:
        raise Refused(f"dim {dim} is outside the rank {rank}")
    return dim % rank


def softmax(work: Work) -> gs.Tensor:
    """`softmax` and `log_softmax` over any axis."""
    x = work.args.tensor("self")
    dtype = work.dtype_argument()
    if work.args.schema.takes("half_to_float") and work.args.value("half_to_float"):
        dtype = FLOAT  # as a GPU gives of halves
    x = work.cast(x, dtype) if dtype is not None else x
    if work.dtype(x) not in FLOATS:
        raise Refused(f"PyTorch has no {work.name} of integers")
    axis, rank = axis_of(work, x), work.rank(x)
    operator = "LogSoftmax" if work.name.endswith("log_softmax") else "Softmax"
    if rank == 0:  # of one element
        x = work.draft.op("Reshape", x, work.axes([1]))
    y = normalised_exponential(work, operator, x, axis)
    if work.name == "_safe_softmax":
        # where everything is masked the shares are 0, not NaN
        most = work.draft.op("ReduceMax", x, work.axes([axis]), keepdims=1)
        empty = work.equal(most, work.number(-np.inf, work.dtype(x)))
        y = work.where(empty, 0.0, y)
    return y if rank else work.draft.op("Reshape", y, work.axes([]))


def masked_softmax(work: Work) -> gs.Tensor:
    """`_masked_softmax`: shares of what the mask leaves; NaN where it leaves nothing."""
    x, mask = work.args.tensor("self"), work.args.tensor("mask")
    dtype, kind = work.dtype(x), work.args.value("mask_type")
    if dtype not in FLOATS or work.dtype(mask) != BOOL:
        raise Refused("PyTorch has it of floats under a mask of booleans alone")
    if work.rank(mask) == 2 and work.rank(x) == 4:
        if kind not in (0, 1):  # (rows, columns) for all, or (batch, columns)
            raise Refused(f"a mask of rank 2 for an input of rank 4, of mask_type {kind}")
        if kind == 1:
            mask = work.draft.op("Unsqueeze", mask, work.axes([1, 2]))
    elif work.rank(mask) != work.rank(x):
        raise Refused(f"a mask of rank {work.rank(mask)} for an input of rank {work.rank(x)}")
    axis = axis_of(work, x)
    x = work.where(mask, -np.inf, x)
    most = work.draft.op("ReduceMax", x, work.axes([axis]), keepdims=1)
    empty = work.equal(most, work.number(-np.inf, dtype))
    return work.where(empty, np.nan, normalised_exponential(work, "Softmax", x, axis))


def normalised_exponential(work: Work, operator: str, x: gs.Tensor, axis: int) -> gs.Tensor:
    """`Softmax` or `LogSoftmax` over an axis counted from the front."""
    rank = work.rank(x)
    if work.opset >= 13 or axis == rank - 1:
        return work.op(operator, x, axis=axis)
    swap = list(range(rank))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    moved = work.op("Transpose", x, perm=swap)
    return work.op("Transpose", work.op(operator, moved, axis=-1), perm=swap)


def glu(work: Work) -> gs.Tensor:
    """`glu`: one half times the sigmoid of the other."""
    x = _input(work)
    first, second = halves(work, x, axis_of(work, x))
    return work.op("Mul", first, work.op("Sigmoid", second))


def halves(work: Work, x: gs.Tensor, axis: int) -> tuple[gs.Tensor, gs.Tensor]:
    """A value cut in two along an axis."""
    shape = work.facts.of(x).shape
    length = shape[axis] if shape else None
    if isinstance(length, int):
        sizes = work.axes([length // 2, length // 2])
        first, second = work.draft.op("Split", x, sizes, outputs=2, axis=axis)
    elif work.opset >= 18:
        first, second = work.draft.op("Split", x, outputs=2, axis=axis, num_outputs=2)
    else:
        first, second = work.draft.op("Split", x, outputs=2, axis=axis)
    return first, second


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    "relu": relu,
    "relu6": hardtanh,
    "hardtanh": hardtanh,
    "leaky_relu": leaky_relu,
    **dict.fromkeys(("rrelu", "rrelu_with_noise"), leaky_relu),
    "elu": elu,
    "selu": elu,
    "celu": elu,
    "gelu": gelu,
    "silu": silu,
    "mish": mish,
    "softplus": softplus,
    "log_sigmoid": log_sigmoid,
    "log_sigmoid_forward": log_sigmoid,
    "hardsigmoid": hardsigmoid,
    "hardswish": hardswish,
    "softshrink": softshrink,
    "hardshrink": hardshrink,
    "threshold": threshold,
    "prelu": prelu,
    "_prelu_kernel": prelu,
    **dict.fromkeys(
        ("softmax", "log_softmax", "_softmax", "_log_softmax", "_safe_softmax"), softmax
    ),
    **dict.fromkeys(("special_softmax", "special_log_softmax"), softmax),
    "_masked_softmax": masked_softmax,
    "glu": glu,
}
