"""Caffe2's quantised operators, which PyTorch before 1.10 writes at opset 9, and its Range.

A quantised tensor is held by the floats that its levels stand for: what makes one rounds to
levels, and what reads one reads floats. Documents: Caffe2's operator catalogue, `Int8...`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.builders.levels import levels
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_DOMAIN = "org.pytorch._caffe2"
_PAIRS = 10  # the opset from which operators quantise
_PLANE = 4  # the rank of a batch of planes
_TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
_LEVELS = 255


def caffe2_int8(draft: Draft, match: Match) -> gs.Tensor:
    """Any operator of `_OPERATORS`, on quantised tensors or giving one."""
    c = Bench(draft)
    for node in draft.graph.nodes:  # half of them in floats would be no network at all
        if node.domain == _DOMAIN and (reason := _obstacle(c, node)) is not None:
            raise Refused(f"`{node.op}` at `{node.outputs[0].name}` {reason}")
    return _OPERATORS[match.root.op](c, match.root)


def caffe2_range(draft: Draft, match: Match) -> gs.Tensor:
    """`Range (stop)`: 0, 1 and so on up to a number, as PyTorch up to 1.11 counts along an axis."""
    c, stop = Bench(draft), match.root.inputs[0]
    if c.dtype(stop) != TYPE.INT64 or c.facts.of(stop).shape not in ((), (1,)):
        raise Refused("it does not count up to one number in int64")
    return c.count(c.scalar(stop))


def _obstacle(c: Bench, node: gs.Node) -> str | None:
    """Why an operator of the network, which this one may be, cannot be told in ONNX's."""
    if node.op == "Int8ResizeNearest":
        return "does not say how much larger its result is; export the network in floats"
    if node.op not in _OPERATORS:
        return "is not known"
    if node.op != "Int8Dequantize" and c.draft.surgery.gives_output(node):
        return "gives out a quantised tensor, of which ONNX has none"
    planes = node.op.startswith(("Int8Conv", "Int8AveragePool", "Int8MaxPool"))
    if planes and node.attrs.get("order", "NCHW") not in ("NHWC", b"NHWC"):
        return "does not have its channels last, as Caffe2 has them in quantised tensors"
    if node.op == "Int8AveragePool" and any(_window(node)["pads"]):
        return "does not say whether its pads count"
    if node.op == "Int8Concat" and not all(_is_alike(part, node) for part in node.inputs):
        return "has parts that are not known to have the scale and zero point of its result"
    return None


def _is_alike(part: gs.Tensor, joined: gs.Node) -> bool:
    """Whether a part has the levels of what it is joined to, or was found to before it was mended.

    Caffe2 joins no others; the exporter writes the scale of the first for all.
    """
    maker = maker_of(part)
    if maker is None or maker.domain != _DOMAIN:
        return maker is not None and getattr(maker, "drafted", False)
    return _scheme(maker) == _scheme(joined)


def _number(node: gs.Node, name: str, default: float) -> float:
    value = node.attrs.get(name, default)
    if not isinstance(value, (int, float)):
        raise Refused(f"its `{name}` is no number")
    return value


def _scheme(node: gs.Node) -> tuple[np.ndarray[Any, Any], int]:
    """The size of a step, and the level of 0."""
    scale = np.asarray(_number(node, "Y_scale", 1.0), np.float32)
    zero = int(_number(node, "Y_zero_point", 0))
    if not scale > 0 or not 0 <= zero <= _LEVELS:
        raise Refused("its scale or zero point is not of 8 bits")
    return scale, zero


def _rounded(c: Bench, node: gs.Node, x: gs.Tensor) -> gs.Tensor:
    """The floats at the levels next to a value's."""
    number, zero = _scheme(node)
    scale = c.draft.constant(number, "scale")
    if c.opset >= _PAIRS:
        level = c.draft.constant(np.asarray(zero, np.uint8), "zero_point")
        made: gs.Tensor = c.op(
            "DequantizeLinear", c.op("QuantizeLinear", x, scale, level), scale, level
        )
        return made
    shift = c.number(zero, TYPE.FLOAT)
    level = c.op("Sub", levels(c.draft, x, scale, shift, 0, _LEVELS), shift)
    found: gs.Tensor = c.op("Mul", level, scale)
    return found


def _quantize(c: Bench, node: gs.Node) -> gs.Tensor:
    if c.dtype(node.inputs[0]) != TYPE.FLOAT:
        raise Refused("only single precision is quantised here")
    return _rounded(c, node, node.inputs[0])


def _dequantize(c: Bench, node: gs.Node) -> gs.Tensor:
    x: gs.Tensor = _floats(c, node)
    return x


def _floats(c: Bench, node: gs.Node, at: int = 0) -> gs.Tensor:
    """A quantised operand, which has become floats."""
    x = operand(node, at)
    if x is None:
        raise Refused("an operand is missing")
    maker = maker_of(x)
    if c.facts.of(x).dtype != TYPE.FLOAT or (maker is not None and maker.domain == _DOMAIN):
        raise Refused(f"`{x.name}` is not known to be quantised")
    return x


def _filled(c: Bench, node: gs.Node) -> gs.Tensor:
    """`Int8GivenTensorFill`: levels in the bytes of a text, as weights stand in the file."""
    shape = [int(n) for n in node.attrs.get("shape", ())]
    values = node.attrs.get("values")
    number, zero = _scheme(node)
    if isinstance(values, str):
        values = values.encode()
    if not isinstance(values, bytes) or len(values) != int(np.prod(shape)):
        raise Refused("its bytes do not fill its shape")
    array = np.frombuffer(values, np.uint8).reshape(shape)
    if c.opset < _PAIRS:
        return c.draft.constant((array - np.float32(zero)) * number, "weights")
    return _weights(c, array, number, zero)


def _weights(c: Bench, array: Any, number: Any, zero: Any) -> gs.Tensor:
    level = c.draft.constant(np.asarray(zero, np.uint8), "zero_point")
    made: gs.Tensor = c.op(
        "DequantizeLinear",
        c.draft.constant(np.ascontiguousarray(array), "levels"),
        c.draft.constant(np.asarray(number, np.float32), "scale"),
        level,
    )
    return made


def _filled_wide(c: Bench, node: gs.Node) -> gs.Tensor:
    """`Int8GivenIntTensorFill`: levels of 32 bits, of a bias."""
    shape = [int(n) for n in node.attrs.get("shape", ())]
    values = np.asarray(node.attrs.get("values", ()), np.int64)
    scale = float(_number(node, "Y_scale", 1.0))
    if values.size != int(np.prod(shape)) or _number(node, "Y_zero_point", 0):
        raise Refused("its numbers do not fill its shape")
    return c.draft.constant(np.asarray(values.reshape(shape) * scale, np.float32), "bias")


def _conv(c: Bench, node: gs.Node) -> gs.Tensor:
    """Of channels that come last, and weights [out, rows, columns, in]."""
    attributes = _window(node)
    attributes.update(
        {k: list(map(int, node.attrs[k])) for k in ("dilations",) if k in node.attrs},
        group=int(_number(node, "group", 1)),
    )
    x = c.permute(_planes(c, node), _TO_NCHW)
    w = _channels_first(c, _floats(c, node, 1))
    bias = [_floats(c, node, 2)] if operand(node, 2) is not None else []
    y = c.op("Conv", x, w, *bias, **attributes)
    if node.op.endswith("Relu"):
        y = c.op("Relu", y)
    return c.permute(_rounded(c, node, y), _TO_NHWC)


def _channels_first(c: Bench, w: gs.Tensor) -> gs.Tensor:
    """Constant weights, turned in the file and not while it runs."""
    maker = maker_of(w)
    if maker is not None and maker.op == "DequantizeLinear" and len(maker.inputs) == 3:
        found = [c.facts.array(value) for value in maker.inputs]
        if all(array is not None for array in found):
            array, scale, zero = (np.asarray(each) for each in found)
            c.draft.premises.append(w)
            return _weights(c, array.transpose(_TO_NCHW), scale, zero)
    known = c.facts.array(w)
    if known is not None:
        return c.draft.constant(np.ascontiguousarray(known.transpose(_TO_NCHW)), "weights")
    return c.permute(w, _TO_NCHW)


def _planes(c: Bench, node: gs.Node) -> gs.Tensor:
    x = _floats(c, node)
    if c.rank(x) != _PLANE:
        raise Refused("it is not of planes")
    return x


def _window(node: gs.Node) -> dict[str, Any]:
    """The kernel, strides and pads, which may be one number each."""
    found: dict[str, Any] = {}
    for name, one, many, count, default in (
        ("kernel_shape", "kernel", "kernels", 2, None),
        ("strides", "stride", "strides", 2, 1),
        ("pads", "pad", "pads", 4, 0),
    ):
        value = node.attrs.get(many, node.attrs.get(one, default))
        if value is None:
            raise Refused("it does not state its kernel")
        found[name] = [value] * count if isinstance(value, int) else [int(v) for v in value]
    return found


def _linear(c: Bench, node: gs.Node) -> gs.Tensor:
    x, w = _floats(c, node), _floats(c, node, 1)
    if c.rank(x) != 2 or int(_number(node, "axis", 1)) != 1:
        raise Refused("it flattens what is no matrix")
    bias = [_floats(c, node, 2)] if operand(node, 2) is not None else []
    y = c.op("Gemm", x, w, *bias, transB=1)
    if node.op.endswith("Relu"):
        y = c.op("Relu", y)
    return _rounded(c, node, y)


def _add(c: Bench, node: gs.Node) -> gs.Tensor:
    y = c.op("Add", _floats(c, node), _floats(c, node, 1))
    if node.op.endswith("Relu"):
        y = c.op("Relu", y)
    return _rounded(c, node, y)


def _average(c: Bench, node: gs.Node) -> gs.Tensor:
    window = _window(node)
    x = c.permute(_planes(c, node), _TO_NCHW)
    # means of levels, as half of a level is met often: of floats next to it rounding would decide
    scale = c.draft.constant(_scheme(node)[0], "scale")
    level = c.op("AveragePool", c.op("Round", c.op("Div", x, scale)), **window)
    return c.permute(c.op("Mul", c.op("Round", level), scale), _TO_NHWC)


def _greatest(c: Bench, node: gs.Node) -> gs.Tensor:
    x = c.permute(_planes(c, node), _TO_NCHW)
    return c.permute(c.op("MaxPool", x, **_window(node)), _TO_NHWC)


def _reshape(c: Bench, node: gs.Node) -> gs.Tensor:
    target = operand(node, 1)
    if target is None:
        target = c.ints([int(n) for n in node.attrs.get("shape", ())])
    made: gs.Tensor = c.op("Reshape", _floats(c, node), target)
    return made


def _transpose(c: Bench, node: gs.Node) -> gs.Tensor:
    axes = node.attrs.get("axes")
    x = _floats(c, node)
    order = list(range(c.rank(x)))[::-1] if axes is None else [int(axis) for axis in axes]
    return c.permute(x, order)


def _slice(c: Bench, node: gs.Node) -> gs.Tensor:
    names = ("dim", "start_idx", "end_idx")
    if not all(isinstance(node.attrs.get(name), int) for name in names):
        raise Refused("it does not say what it cuts")
    axis, start, end = (int(node.attrs[name]) for name in names)
    return c.slice(_floats(c, node), axis, start, end)


def _concat(c: Bench, node: gs.Node) -> gs.Tensor:
    parts = [_floats(c, node, at) for at in range(len(node.inputs))]
    return _rounded(c, node, c.concat(parts, int(_number(node, "axis", 1))))


def _sigmoid(c: Bench, node: gs.Node) -> gs.Tensor:
    return _rounded(c, node, c.op("Sigmoid", _floats(c, node)))


def _relu(c: Bench, node: gs.Node) -> gs.Tensor:
    made: gs.Tensor = c.op("Relu", _floats(c, node))
    return made


_OPERATORS: Mapping[str, Callable[[Bench, gs.Node], gs.Tensor]] = {
    "Int8Add": _add,
    "Int8AddRelu": _add,
    "Int8AveragePool": _average,
    "Int8Concat": _concat,
    "Int8Conv": _conv,
    "Int8ConvRelu": _conv,
    "Int8Dequantize": _dequantize,
    "Int8FC": _linear,
    "Int8FCRelu": _linear,
    "Int8GivenIntTensorFill": _filled_wide,
    "Int8GivenTensorFill": _filled,
    "Int8MaxPool": _greatest,
    "Int8Quantize": _quantize,
    "Int8Relu": _relu,
    "Int8Reshape": _reshape,
    "Int8Sigmoid": _sigmoid,
    "Int8Slice": _slice,
    "Int8Transpose": _transpose,
}
