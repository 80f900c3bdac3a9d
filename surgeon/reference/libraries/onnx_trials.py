"""Operators that ONNX had on trial and dropped, and such as files have before their opset.

Documents: ONNX 1.2, "Operators", experimental ones; ONNX, "Operators", those that came later.
"""

# ruff: noqa: D103 - each function means what ONNX documents for the operator of its name

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from surgeon.reference.early import DOMAIN
from surgeon.reference.errors import NoWitness, Unsuited
from surgeon.reference.operators import grids, products
from surgeon.reference.operators.precision import narrow, wide
from surgeon.reference.plugins import authors

Array = np.ndarray[Any, Any]
_MODES = {"bilinear": 0, "linear": 0, "nearest": 1, "bicubic": 2, "cubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}
_NUMBERS = {str(number): number for number in range(3)}  # as PyTorch counts both


def expand(attributes: Mapping[str, Any], x: Array, sizes: Array) -> Array:
    """As PyTorch does it: of axes that are counted from behind, -1 is the size that is there."""
    new = len(sizes) - x.ndim
    if (sizes < -1).any() or (sizes[: max(new, 0)] < 0).any():
        raise Unsuited(f"{sizes.tolist()} are no sizes of an array of {x.ndim} axes")
    kept = [x.shape[axis - new] if size < 0 else size for axis, size in enumerate(sizes.tolist())]
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(kept))).copy()


def einsum(attributes: Mapping[str, Any], *operands: Array) -> Array:
    """As PyTorch does it, which sums over the axes of an ellipsis that the output lacks."""
    found: Array = products.einsum(_text(attributes["equation"]), list(operands))
    return found


def upsample(attributes: Mapping[str, Any], x: Array, scales: Array) -> Array:
    """Element i is that at i / scale, or in linear mode a share of it and of the next."""
    if len(scales) != x.ndim or not (np.isfinite(scales) & (scales > 0)).all():
        raise Unsuited(f"{scales.tolist()} are no scales of {x.ndim} axes")
    for axis, scale in enumerate(np.asarray(scales, np.float32)):
        length = x.shape[axis]
        at = np.arange(int(np.float32(length) * scale), dtype=np.float32) / scale
        below = np.minimum(at.astype(np.int64), length - 1)
        low = np.take(x, below, axis)
        if scale != 1 and attributes.get("mode", "nearest") != "nearest":
            share = np.expand_dims(at - below, tuple(range(1, x.ndim - axis)))
            high = np.take(x, np.minimum(below + 1, length - 1), axis)
            low = np.asarray(low + share * (high - low), x.dtype)
        x = low
    return x


def constant_fill(attributes: Mapping[str, Any], shape: Any = None) -> Array:
    if shape is None:
        sizes = list(attributes["shape"])
    elif attributes.get("input_as_shape", 0):
        sizes = np.asarray(shape).astype(np.int64).tolist()
    else:
        sizes = list(np.shape(shape))
    sizes += list(attributes.get("extra_shape", ()))
    kind = onnx.helper.tensor_dtype_to_np_dtype(int(attributes.get("dtype", 1)))
    return np.full(sizes, attributes.get("value", 0.0)).astype(kind)


def affine(attributes: Mapping[str, Any], x: Any) -> Array:
    return narrow(wide(x) * attributes.get("alpha", 1.0) + attributes.get("beta", 0.0), x)


def scale(attributes: Mapping[str, Any], x: Any) -> Array:
    return narrow(wide(x) * attributes.get("scale", 1.0), x)


def scaled_tanh(attributes: Mapping[str, Any], x: Any) -> Array:
    return narrow(np.tanh(wide(x) * attributes["beta"]) * attributes["alpha"], x)


def parametric_softplus(attributes: Mapping[str, Any], x: Any) -> Array:
    return narrow(np.logaddexp(0, wide(x) * attributes["beta"]) * attributes["alpha"], x)


def image_scaler(attributes: Mapping[str, Any], x: Any) -> Array:
    scaled = wide(x) * attributes.get("scale", 1.0)
    for channel, bias in enumerate(attributes["bias"]):
        scaled[:, channel] += bias
    return narrow(scaled, x)


def crop(attributes: Mapping[str, Any], x: Any) -> Array:
    left, top, right, bottom = attributes["border"]
    height, width = x.shape[2:]
    end, edge = height - bottom, width - right
    if attributes.get("scale"):
        end, edge = top + attributes["scale"][0], left + attributes["scale"][1]
    if not (top <= end <= height and left <= edge <= width):
        raise Unsuited("it crops more than there is")
    return np.asarray(x[:, :, top:end, left:edge])


def gelu(attributes: Mapping[str, Any], x: Any) -> Array:
    value = wide(x)
    if _text(attributes.get("approximate", "none")) == "tanh":
        inner = math.sqrt(2 / math.pi) * (value + 0.044715 * value**3)
        return narrow(value * (1 + np.tanh(inner)) / 2, x)
    share = np.vectorize(lambda v: math.erfc(-v / math.sqrt(2)) / 2, otypes=[np.float64])
    return narrow(value * share(value), x)


def swish(attributes: Mapping[str, Any], x: Any) -> Array:
    value = wide(x)
    return narrow(value * np.exp(-np.logaddexp(0, -attributes.get("alpha", 1.0) * value)), x)


def grid_sample(attributes: Mapping[str, Any], x: Any, grid: Any) -> Array:
    mode = _text(attributes.get("mode", "bilinear"))
    padding = _text(attributes.get("padding_mode", "zeros"))
    way, border = (
        {**known, **_NUMBERS}.get(said) for said, known in ((mode, _MODES), (padding, _PADDINGS))
    )
    if way is None or border is None:
        raise NoWitness("GridSample", where="", why=f"its modes are {mode} and {padding}")
    corners = bool(attributes.get("align_corners", 0))
    found: Array = grids.grid_sampler(x, grid, way, border, corners)
    return found


def erfc(attributes: Mapping[str, Any], x: Any) -> Array:
    return narrow(np.vectorize(math.erfc, otypes=[np.float64])(wide(x)), x)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _alone(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda attributes, x: function([x], attributes)


DROPPED: Mapping[str, Callable[..., Any]] = {
    "Affine": affine,
    "ConstantFill": constant_fill,
    "Crop": crop,
    "ImageScaler": image_scaler,
    "ParametricSoftplus": parametric_softplus,
    "Scale": scale,
    "ScaledTanh": scaled_tanh,
}
TENSORFLOW: Mapping[str, Callable[..., Any]] = {"Erfc": erfc}
EARLY: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    DOMAIN: {
        "Einsum": einsum,
        "Expand": expand,
        "Gelu": gelu,
        "GridSample": grid_sample,
        "HardSwish": _alone(authors.hard_swish),
        "Mish": _alone(authors.mish),
        "Swish": swish,
        "Upsample": upsample,
    }
}
