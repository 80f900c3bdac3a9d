"""Operators of ONNX's own domain that the model's opset lacks: dropped ones, and later ones.

ONNX had some on trial before opset 10 and dropped them; others were registered by export scripts
before the opset that has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.aten_nn.grids import sampled
from surgeon.builders.bench import TYPE, Bench, Size
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused
from surgeon.standard import schema

_Form = Callable[[Bench, gs.Node], gs.Tensor]
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
_FILLED = (TYPE.FLOAT, TYPE.INT32, TYPE.INT64, TYPE.BOOL)


def dropped_operator(draft: Draft, match: Match) -> gs.Tensor:
    """An operator that ONNX had on trial, by what its documentation said."""
    return _DROPPED[match.root.op](Bench(draft), match.root)


def early_operator(draft: Draft, match: Match) -> gs.Tensor:
    """An operator of a later opset than the model's, spelled by those that the opset has."""
    node, c = match.root, Bench(draft)
    if schema(node.op, c.opset) is not None:
        raise Refused("ONNX has it at this opset")
    return _EARLY[node.op](c, node)


def _said(node: gs.Node, name: str, default: float | None = None) -> float:
    value = node.attrs.get(name, default)
    if not isinstance(value, (int, float)):
        raise Refused(f"it does not state its `{name}`")
    return float(value)


def _floats(c: Bench, node: gs.Node) -> tuple[gs.Tensor, int]:
    x = node.inputs[0]
    dtype = c.dtype(x)
    if dtype not in (TYPE.FLOAT, TYPE.FLOAT16, TYPE.DOUBLE):
        raise Refused("it is of floats alone")
    return x, dtype


def _times(c: Bench, x: gs.Tensor, factor: float, dtype: int) -> gs.Tensor:
    return x if factor == 1 else c.op("Mul", x, c.number(factor, dtype))


def _affine(c: Bench, node: gs.Node) -> gs.Tensor:
    x, dtype = _floats(c, node)
    y = _times(c, x, _said(node, "alpha", 1.0), dtype)
    beta = _said(node, "beta", 0.0)
    made: gs.Tensor = y if y is not x and not beta else c.op("Add", y, c.number(beta, dtype))
    return made


def _scale(c: Bench, node: gs.Node) -> gs.Tensor:
    x, dtype = _floats(c, node)
    made: gs.Tensor = c.op("Mul", x, c.number(_said(node, "scale"), dtype))
    return made


def _scaled_tanh(c: Bench, node: gs.Node) -> gs.Tensor:
    x, dtype = _floats(c, node)
    y = c.op("Tanh", _times(c, x, _said(node, "beta"), dtype))
    return _times(c, y, _said(node, "alpha"), dtype)


def _softplus(c: Bench, node: gs.Node) -> gs.Tensor:
    x, dtype = _floats(c, node)
    y = c.op("Softplus", _times(c, x, _said(node, "beta"), dtype))
    return _times(c, y, _said(node, "alpha"), dtype)


def _image_scaler(c: Bench, node: gs.Node) -> gs.Tensor:
    x, dtype = _floats(c, node)
    bias = np.asarray(node.attrs.get("bias", ()), np.float32).reshape(-1, 1, 1)
    shape = c.shape(x)
    if shape is None or len(shape) != 4 or shape[1] != len(bias):
        raise Refused("it lacks a `bias` for each channel of its images")
    y = _times(c, x, _said(node, "scale", 1.0), dtype)
    kind = np.dtype(parts.numpy_dtype(c.draft, x))
    made: gs.Tensor = c.op("Add", y, c.draft.constant(bias.astype(kind), "bias"))
    return made


def _crop(c: Bench, node: gs.Node) -> gs.Tensor:
    x = node.inputs[0]
    border = [int(n) for n in node.attrs.get("border", ())]
    sizes = [int(n) for n in node.attrs.get("scale", ())]
    if len(border) != 4 or len(sizes) not in (0, 2) or min([*border, *sizes]) < 0:
        raise Refused("it does not have four borders, and two sizes or none")
    if c.rank(x) != 4:
        raise Refused(f"its input has rank {c.rank(x)}, not 4")
    left, top, right, bottom = border
    for axis, first, last, place in ((2, top, bottom, 0), (3, left, right, 1)):
        if sizes:
            x = c.slice(x, axis, first, first + sizes[place])
        elif first or last:
            x = c.slice(x, axis, first, c.sub(c.size(x, axis), last))
    if x is node.inputs[0]:
        x = c.op("Identity", x)
    return x


def _constant_fill(c: Bench, node: gs.Node) -> gs.Tensor:
    dtype = int(node.attrs.get("dtype", TYPE.FLOAT))
    if dtype not in _FILLED:
        raise Refused("it fills with what it was not made for: floats, integers and booleans")
    more: list[Size | int] = [int(n) for n in node.attrs.get("extra_shape", ())]
    value = _said(node, "value", 0.0)
    if not node.inputs:
        sizes: list[Size | int] = [int(n) for n in node.attrs.get("shape", ())]
        return c.filled([*sizes, *more], value, dtype)
    if "shape" in node.attrs:
        raise Refused("it has a shape and an input, of which it takes one alone")
    (x,) = node.inputs
    if not node.attrs.get("input_as_shape", 0):
        return c.filled([*c.sizes(x), *more], value, dtype)
    fact = c.facts.of(x)
    if fact.rank != 1:
        raise Refused("the shape that it reads is not known to be a list")
    if fact.value is not None:
        read: list[Size | int] = [c.scalar(c.slice(x, 0, i, i + 1)) for i in range(fact.value.size)]
        if all(isinstance(size, int) for size in read):
            return c.filled([*read, *more], value, dtype)
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    whole = c.concat([c.cast(x, TYPE.INT64), *([c.vector(more)] if more else [])], 0)
    made: gs.Tensor = c.op("ConstantOfShape", whole, value=np.asarray([value]).astype(kind))
    return made


def _gelu(c: Bench, node: gs.Node) -> gs.Tensor:
    x, _ = _floats(c, node)
    way = node.attrs.get("approximate", "none")
    if way in ("none", b"none"):
        return parts.gelu(c.draft, x)
    if way not in ("tanh", b"tanh"):
        raise Refused(f"its `approximate` is `{way}`, not `none` or `tanh`")
    return parts.spelled_tanh_gelu(c.draft, x)


def _grid_sample(c: Bench, node: gs.Node) -> gs.Tensor:
    x, grid = node.inputs
    mode = _word(node, "mode", _MODES, {"linear": 0, "cubic": 2})
    padding = _word(node, "padding_mode", _PADDINGS, {})
    if c.rank(x) not in (4, 5):
        raise Refused(f"its input has rank {c.rank(x)}, not 4 or 5")
    if mode == "nearest" and padding == "reflection":
        raise Refused("ONNX rounds before it reflects, and PyTorch after: which one is not said")
    corners = bool(node.attrs.get("align_corners", 0))
    made: gs.Tensor = sampled(c.draft, x, grid, mode, padding, corners=corners)
    return made


def _word(node: gs.Node, name: str, words: tuple[str, ...], others: Mapping[str, int]) -> str:
    """A mode by its word or, as PyTorch counts them, its number."""
    value = node.attrs.get(name, 0)
    value = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    place = others.get(value, value) if isinstance(value, str) else value
    if place in words:
        return str(place)
    if not isinstance(place, int) or not 0 <= place < len(words):
        raise Refused(f"its `{name}` is `{value}`, which nothing documents")
    return words[place]


def mish(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """x * tanh(log(1 + exp(x)))."""
    made: gs.Tensor = c.op("Mul", x, c.op("Tanh", c.op("Softplus", x)))
    return made


def _swish(c: Bench, node: gs.Node) -> gs.Tensor:
    x, dtype = _floats(c, node)
    inner = _times(c, x, _said(node, "alpha", 1.0), dtype)
    made: gs.Tensor = c.op("Mul", x, c.op("Sigmoid", inner))
    return made


def hard_swish(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """x * relu6(x + 3) / 6."""
    made: gs.Tensor = c.op("Mul", x, c.op("HardSigmoid", x, alpha=1 / 6))
    return made


_DROPPED: Mapping[str, _Form] = {
    "Affine": _affine,
    "ConstantFill": _constant_fill,
    "Crop": _crop,
    "ImageScaler": _image_scaler,
    "ParametricSoftplus": _softplus,
    "Scale": _scale,
    "ScaledTanh": _scaled_tanh,
}
_EARLY: Mapping[str, _Form] = {
    "Gelu": _gelu,
    "GridSample": _grid_sample,
    "HardSwish": lambda c, node: hard_swish(c, node.inputs[0]),
    "Mish": lambda c, node: mish(c, node.inputs[0]),
    "Swish": _swish,
}
