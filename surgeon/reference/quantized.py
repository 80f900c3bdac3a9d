"""Operators on quantised tensors: in floats, and rounded to levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from surgeon.reference.arguments import Call
from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array
from surgeon.reference.operators.quantizing import Quantized

Run = Callable[[Call, Sequence[Any]], Any]
# The arguments of operators that are of quantised tensors alone, and of the operator of floats
# (aten/src/ATen/native/quantized/library.cpp). What ends in `_relu` is followed by ReLU.
_OWN: Mapping[str, str] = {
    **{
        f"conv{n}d": f"x w bias stride padding dilation groups scale zero: conv{n}d "
        "x w bias stride padding dilation groups"
        for n in (1, 2, 3)
    },
    **{
        f"conv_transpose{n}d": "x w bias stride padding output_padding dilation groups scale "
        f"zero: conv_transpose{n}d x w bias stride padding output_padding groups dilation"
        for n in (1, 2, 3)
    },
    **dict.fromkeys(
        ("batch_norm", "batch_norm1d", "batch_norm2d", "batch_norm3d"),
        "x weight bias mean var eps scale zero: "
        "batch_norm x weight bias mean var false nought eps false",
    ),
    "linear": "x w bias scale zero: linear x w bias",
    "add": "x y scale zero: add x y",
    "mul": "x y scale zero: mul x y",
    "matmul": "x y scale zero: matmul x y",
    "cat": "x dim scale zero: cat x dim",
    "hardswish": "x scale zero: hardswish x",
    "sigmoid": "x scale zero: sigmoid x",
    "elu": "x scale zero alpha beta gamma: elu x alpha beta gamma",
    "celu": "x scale zero alpha: celu x alpha",
    "leaky_relu": "x slope inplace scale zero: leaky_relu x slope",
    "prelu": "x weight scale zero: prelu x weight",
    "softmax": "x dim scale zero: softmax x dim none",
    "layer_norm": "x shape weight bias eps scale zero: layer_norm x shape weight bias eps",
    "group_norm": "x groups weight bias eps scale zero: group_norm x groups weight bias eps",
    "instance_norm": "x weight bias eps scale zero: "
    "instance_norm x weight bias none none true nought eps false",
}
_CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "nought": 0.0, "none": None}
# What has 256 levels of its own: sigmoids from 0 to 1, tanh from -1 to 1.
_UNIT = frozenset({"sigmoid", "hardsigmoid"})


def first(values: Sequence[Any]) -> Quantized | None:
    """The first quantised operand, or element of a list that is the first operand."""
    for value in values:
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, Quantized):
            return value
    return None


def execute(call: Call, values: Sequence[Any], like: Quantized, run: Run) -> Any:
    """An operator on operands of which some are quantised.

    Args:
        call: What the node asks for.
        values: Its operands.
        like: The first of them that is quantised.
        run: Executes the operator of floats.

    Raises:
        Unsuited: It is not defined of such a tensor.
    """
    if call.operator in _READ:
        return _READ[call.operator](like)
    floats = [plain(value) for value in values]
    base = call.operator if call.operator in _OWN else call.operator.removesuffix("_relu")
    names, _, form = _OWN.get(base, "").partition(":")
    if form and len(names.split()) == len(values):
        given = dict(zip(names.split(), floats, strict=True))
        operator, *order = form.split()
        made = run(Call(operator, "", {}), [{**_CONSTANTS, **given}[name] for name in order])
        if base != call.operator:
            made = np.maximum(made, np.float32(0))
        return like.rounded(made, given["scale"], given["zero"])
    return rounded(call.operator, run(call, floats), like)


def rounded(operator: str, made: Any, like: Quantized) -> Any:
    """What an operator made of floats, quantised as its operand was; whole numbers stay."""
    if isinstance(made, (list, tuple)):
        return type(made)(rounded(operator, each, like) for each in made)
    if not isinstance(made, np.ndarray) or made.dtype != np.float32:
        return made
    signed = like.whole.dtype == np.int8
    if operator.lower() in _UNIT:
        return like.rounded(made, 1 / 256, -128 if signed else 0)
    if operator.lower() == "tanh":
        return like.rounded(made, 2 / 256, 0 if signed else 128)
    return like.rounded(made)


def plain(value: Any) -> Any:
    """The value, what is quantised in floats."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.floats if isinstance(value, Quantized) else value


def _of_all(x: Quantized, values: Array, dtype: Any) -> Array:
    """The one number that goes with all elements."""
    if x.axis is not None:
        raise Unsuited("its scales stand along an axis")
    return values.reshape(-1)[:1].reshape(()).astype(dtype)


def _of_places(x: Quantized, values: Any, dtype: Any) -> Array:
    """What it holds for the places of its axis."""
    if x.axis is None:
        raise Unsuited("it has one scale")
    return np.asarray(values, dtype)


_READ: Mapping[str, Callable[[Quantized], Array]] = {
    "dequantize": lambda x: x.floats,
    "int_repr": lambda x: x.whole,
    "q_scale": lambda x: _of_all(x, x.scale, np.float64),
    "q_zero_point": lambda x: _of_all(x, x.zero, np.int64),
    "q_per_channel_axis": lambda x: _of_places(x, x.axis, np.int64),
    "q_per_channel_scales": lambda x: _of_places(x, x.scale, np.float64),
    "q_per_channel_zero_points": lambda x: _of_places(x, x.zero, np.int64),
}
