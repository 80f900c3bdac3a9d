"""Caffe2's quantised operators (its operator catalogue, `Int8...`), and its Range of one number.

A quantised tensor is the floats that its levels stand for: levels times the step, from the level of
0 on. Planes have their channels last.
"""

# ruff: noqa: D103 - each function means what is documented for the operator of its name

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited

DOMAINS = ("org.pytorch._caffe2",)
Array = np.ndarray[Any, Any]
Said = Mapping[str, Any]


def _step(said: Said) -> tuple[np.float32, int]:
    return np.float32(said.get("Y_scale", 1.0)), int(said.get("Y_zero_point", 0))


def _rounded(said: Said, x: Any) -> Array:
    step, zero = _step(said)
    level = np.clip(np.rint(np.asarray(x, np.float32) / step) + zero, 0, 255)
    return np.asarray((level - zero) * step, np.float32)


def _bytes(said: Said) -> Array:
    step, zero = _step(said)
    values = said["values"]
    found = np.frombuffer(values.encode() if isinstance(values, str) else values, np.uint8)
    return np.asarray((found.reshape(said["shape"]).astype(np.int64) - zero) * step, np.float32)


def _words(said: Said) -> Array:
    wide = np.asarray(said["values"], np.float64) * float(said.get("Y_scale", 1.0))
    return wide.reshape(said["shape"]).astype(np.float32)


def _pair(said: Said, many: str, one: str, default: int, count: int = 2) -> list[int]:
    found = said.get(many, said.get(one, default))
    return [int(found)] * count if isinstance(found, int) else [int(n) for n in found]


def _windows(said: Said, x: Array, fill: float, dilations: list[int]) -> Array:
    """[batch, rows, columns, places of the window, channels]."""
    kernel, stride = _pair(said, "kernels", "kernel", 1), _pair(said, "strides", "stride", 1)
    top, left, bottom, right = _pair(said, "pads", "pad", 0, 4)
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [(x.shape[1 + i] - reach[i]) // stride[i] + 1 for i in range(2)]
    if min(sizes) < 1:
        raise Unsuited("its window is larger than the plane")
    parts = []
    for row in range(0, reach[0], dilations[0]):
        for column in range(0, reach[1], dilations[1]):
            rows = slice(row, row + (sizes[0] - 1) * stride[0] + 1, stride[0])
            columns = slice(column, column + (sizes[1] - 1) * stride[1] + 1, stride[1])
            parts.append(x[:, rows, columns])
    return np.stack(parts, 3)


def conv(said: Said, x: Array, w: Array, b: Any = None) -> Array:
    groups = int(said.get("group", 1))
    seen = _windows(said, x.astype(np.float64), 0.0, _pair(said, "dilations", "dilation", 1))
    kernels = w.reshape(groups, w.shape[0] // groups, -1, w.shape[3]).astype(np.float64)
    if seen.shape[-1] != groups * w.shape[3]:
        raise Unsuited("its weights are of other channels")
    apart = seen.reshape(*seen.shape[:-1], groups, w.shape[3])
    y = np.einsum("nhwkgc,gokc->nhwgo", apart, kernels).reshape(*seen.shape[:3], -1)
    return _rounded(said, y if b is None else y + b)


def linear(said: Said, x: Array, w: Array, b: Any = None) -> Array:
    y = x.reshape(len(x), -1).astype(np.float64) @ w.astype(np.float64).T
    return _rounded(said, y if b is None else y + b)


def _with_relu(run: Callable[..., Array]) -> Callable[..., Array]:
    return lambda said, *values: np.maximum(run(said, *values), np.float32(0))


def average(said: Said, x: Array) -> Array:
    if any(_pair(said, "pads", "pad", 0, 4)):
        raise Unsuited("whether its pads count is not told")
    step, _ = _step(said)
    level = np.rint(x.astype(np.float64) / step)  # a mean of levels has halves, of floats hardly
    return np.asarray(np.rint(_windows(said, level, 0.0, [1, 1]).mean(3)) * step, np.float32)


def greatest(said: Said, x: Array) -> Array:
    return np.asarray(_windows(said, x, -np.inf, [1, 1]).max(3))


def add(said: Said, a: Array, b: Array) -> Array:
    return _rounded(said, a + b)


def cut(said: Said, x: Array) -> Array:
    places = [slice(None)] * x.ndim
    places[int(said["dim"])] = slice(int(said["start_idx"]), int(said["end_idx"]))
    return x[tuple(places)]


def reshape(said: Said, x: Array, shape: Any = None) -> Array:
    wanted = said["shape"] if shape is None else np.asarray(shape).tolist()
    return x.reshape([x.shape[at] if n == 0 else n for at, n in enumerate(wanted)])


TABLE: Mapping[str, Callable[..., Any]] = {
    "Int8Add": add,
    "Int8AddRelu": _with_relu(add),
    "Int8AveragePool": average,
    "Int8Concat": lambda said, *parts: _rounded(said, np.concatenate(parts, said.get("axis", 1))),
    "Int8Conv": conv,
    "Int8ConvRelu": _with_relu(conv),
    "Int8Dequantize": lambda said, x: x,
    "Int8FC": linear,
    "Int8FCRelu": _with_relu(linear),
    "Int8GivenIntTensorFill": _words,
    "Int8GivenTensorFill": _bytes,
    "Int8MaxPool": greatest,
    "Int8Quantize": _rounded,
    "Int8Relu": lambda said, x: np.maximum(x, np.float32(0)),
    "Int8Reshape": reshape,
    "Int8Sigmoid": lambda said, x: _rounded(said, 1 / (1 + np.exp(-x.astype(np.float64)))),
    "Int8Slice": cut,
    "Int8Transpose": lambda said, x: np.transpose(x, said.get("axes")),
    "Range": lambda said, stop: np.arange(stop.item(), dtype=stop.dtype),
}
