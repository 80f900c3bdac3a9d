"""Resampling: torch.nn.functional.interpolate, its antialiased forms, fold and unfold.

Coordinates as PyTorch documents them: aligned corners map ends on ends; else pixel middles are
scaled, by the factor that was given or by the quotient of the lengths.
"""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def _along(x: Array, axis: int, weights: Array) -> Array:
    """Every line of an axis times [out, in]."""
    return np.moveaxis(np.tensordot(weights, np.moveaxis(x, axis, 0), axes=(1, 0)), 0, axis)


def _source(out: int, length: int, scale: float | None, corners: bool) -> Array:
    at = np.arange(out, dtype=np.float64)
    if corners:
        return at * ((length - 1) / (out - 1)) if out > 1 else at * 0
    step = length / out if scale is None else 1.0 / scale
    return (at + 0.5) * step - 0.5


def _linear_weights(out: int, length: int, scale: float | None, corners: bool) -> Array:
    weights = np.zeros((out, length))
    for row, place in enumerate(_source(out, length, scale, corners)):
        place = min(max(place, 0.0), length - 1.0)
        left = int(place)
        weights[row, left] += 1 - (place - left)
        weights[row, min(left + 1, length - 1)] += place - left
    return weights


def _keys(distance: float, a: float) -> float:
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    if d < 2:
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return 0.0


def _cubic_weights(out: int, length: int, scale: float | None, corners: bool) -> Array:
    weights = np.zeros((out, length))
    for row, place in enumerate(_source(out, length, scale, corners)):
        base = math.floor(place)
        for tap in range(base - 1, base + 3):
            weights[row, min(max(tap, 0), length - 1)] += _keys(place - tap, -0.75)
    return weights


def _antialias(kernel: Callable[[float], float], reach: float) -> Callable[..., Array]:
    def weights_of(out: int, length: int, scale: float | None, corners: bool) -> Array:
        if corners:
            step = (length - 1) / (out - 1) if out > 1 else 0.0
        else:
            step = length / out if scale is None else 1.0 / scale
        stretch = max(step, 1.0)
        weights = np.zeros((out, length))
        for row in range(out):
            middle = step * (row + 0.5)
            low = max(int(middle - reach * stretch + 0.5), 0)
            high = min(int(middle + reach * stretch + 0.5), length)
            for at in range(low, high):
                weights[row, at] = kernel((at + 0.5 - middle) / stretch)
            weights[row] /= weights[row].sum()
        return weights

    return weights_of


_aa_linear = _antialias(lambda d: max(0.0, 1.0 - abs(d)), 1.0)
_aa_cubic = _antialias(lambda d: _keys(d, -0.5), 2.0)
_aa_lanczos = _antialias(lambda d: float(np.sinc(d) * np.sinc(d / 3)) if abs(d) < 3 else 0.0, 3.0)


def _sizes(
    x: Array, spatial: int, output_size: Sequence[int] | None, factors: Sequence[float] | None
) -> list[int]:
    if x.ndim != spatial + 2:
        raise Unsuited(f"its input has rank {x.ndim}, not {spatial + 2}")
    if output_size is not None and len(output_size):
        sizes = [int(n) for n in output_size]
    elif factors is not None:
        sizes = [math.floor(float(n) * float(f)) for n, f in zip(x.shape[2:], factors, strict=True)]
    else:
        raise Unsuited("neither its output size nor scale factors are given")
    if len(sizes) != spatial or min(sizes) < 1 or 0 in x.shape[1:]:
        raise Unsuited(f"an output of {sizes} from an input of {list(x.shape)}")
    return sizes


def unrounded(factors: Sequence[float] | None) -> list[float] | None:
    """Factors that the file holds in single precision, as they were typed: 0.9, or 5 / 6."""
    return None if factors is None else [_typed(float(factor)) for factor in factors]


def _typed(factor: float) -> float:
    kept = np.float32(factor)
    if kept != factor:
        return factor
    candidates = [round(factor, places) for places in range(7)]
    candidates += [round(factor * below) / below for below in range(2, 1001)]
    return next((c for c in candidates if np.float32(c) == kept), factor)


def _weighted(
    x: Array,
    spatial: int,
    output_size: Sequence[int] | None,
    corners: bool,
    factors: Sequence[float | None] | None,
    weights: Callable[..., Array],
    given: Sequence[float] | None = None,
) -> Array:
    sizes = _sizes(x, spatial, output_size, given)
    y = wide(x)
    for axis, size in enumerate(sizes):
        scale = None if factors is None else factors[axis]
        scale = scale if scale is not None and scale > 0 else None
        length = x.shape[axis + 2]
        # ATen/native/UpSample.h copies an axis whose length stays, whatever factor was given, but
        # for the cubic that is not antialiased
        if size == length and (weights is not _cubic_weights or corners or scale in (None, 1.0)):
            continue
        y = _along(y, axis + 2, weights(size, length, scale, corners))
    return narrow(y, x)


def _nearest(
    x: Array,
    spatial: int,
    output_size: Sequence[int] | None,
    factors: Sequence[float | None] | None,
    given: Sequence[float] | None = None,
    *,
    middle: bool = False,
) -> Array:
    for axis, size in enumerate(_sizes(x, spatial, output_size, given)):
        length = x.shape[axis + 2]
        scale = None if factors is None else factors[axis]
        if scale is None or scale <= 0:
            step = np.float32(length) / np.float32(size)
        else:
            step = np.float32(1.0 / scale)
        at = np.arange(size, dtype=np.float32) + np.float32(0.5 if middle else 0.0)
        index = np.minimum((at * step).astype(np.int64), length - 1)
        x = np.take(x, index, axis=axis + 2)
    return x


_Resize = Callable[[Array, "list[int] | None", bool, "list[float | None]"], Array]
_INPUT = "Tensor self, SymInt[{}] output_size"


def _spelled(spatial: int, resize: _Resize, *, corners: bool) -> Callable[..., Array]:
    """A function whose parameters are named as in the schema by output size."""
    if spatial == 1:

        def one(self: Array, output_size: list[int], align_corners: bool, scales: float) -> Array:
            return resize(self, output_size, align_corners, [scales])

        def one_n(self: Array, output_size: list[int], scales: float) -> Array:
            return resize(self, output_size, False, [scales])

        return one if corners else one_n
    if spatial == 2:

        def two(
            self: Array,
            output_size: list[int],
            align_corners: bool,
            scales_h: float,
            scales_w: float,
        ) -> Array:
            return resize(self, output_size, align_corners, [scales_h, scales_w])

        def two_n(self: Array, output_size: list[int], scales_h: float, scales_w: float) -> Array:
            return resize(self, output_size, False, [scales_h, scales_w])

        return two if corners else two_n

    def three(
        self: Array,
        output_size: list[int],
        align_corners: bool,
        scales_d: float,
        scales_h: float,
        scales_w: float,
    ) -> Array:
        return resize(self, output_size, align_corners, [scales_d, scales_h, scales_w])

    def three_n(
        self: Array, output_size: list[int], scales_d: float, scales_h: float, scales_w: float
    ) -> Array:
        return resize(self, output_size, False, [scales_d, scales_h, scales_w])

    return three if corners else three_n


def _scales(spatial: int) -> str:
    names = ["scales"] if spatial == 1 else ["scales_d", "scales_h", "scales_w"][-spatial:]
    return "".join(f", float? {name}=None" for name in names)


def _row(name: str, spatial: int, weights: Callable[..., Array]) -> list[Row]:
    """The rows of an interpolating operator: two signatures share its name."""

    def resize(
        x: Array, size: list[int] | None, corners: bool, scales: list[float | None]
    ) -> Array:
        return _weighted(x, spatial, size, corners, scales, weights)

    def by_factor(
        input: Array,
        output_size: list[int] | None,
        align_corners: bool,
        scale_factors: list[float] | None,
    ) -> Array:
        factors = unrounded(scale_factors)
        return _weighted(input, spatial, output_size, align_corners, factors, weights, factors)

    return [
        (
            f"{name}.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
            "float[]? scale_factors) -> Tensor",
            by_factor,
        ),
        (
            f"{name}({_INPUT.format(spatial)}, bool align_corners{_scales(spatial)}) -> Tensor",
            _spelled(spatial, resize, corners=True),
        ),
    ]


def _nearest_row(name: str, spatial: int, *, middle: bool) -> list[Row]:
    def resize(
        x: Array, size: list[int] | None, corners: bool, scales: list[float | None]
    ) -> Array:
        return _nearest(x, spatial, size, scales, middle=middle)

    def by_factor(
        input: Array, output_size: list[int] | None, scale_factors: list[float] | None
    ) -> Array:
        factors = unrounded(scale_factors)
        return _nearest(input, spatial, output_size, factors, factors, middle=middle)

    return [
        (
            f"{name}.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
            by_factor,
        ),
        (
            f"{name}({_INPUT.format(spatial)}{_scales(spatial)}) -> Tensor",
            _spelled(spatial, resize, corners=False),
        ),
    ]


# ------------------------------------------------------------------------------- fold and unfold


def im2col(
    self: Array,
    kernel_size: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Array:
    if self.ndim not in (3, 4):
        raise Unsuited(f"its input has rank {self.ndim}")
    x = self if self.ndim == 4 else self[None]
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    counts = _counts(x.shape[2:], kernel_size, dilation, [0, 0], stride)
    columns = []
    for i in range(kernel_size[0]):
        for j in range(kernel_size[1]):
            top, left = i * dilation[0], j * dilation[1]
            part = x[:, :, top :: stride[0], left :: stride[1]]
            columns.append(part[:, :, : counts[0], : counts[1]])
    lines = x.shape[1] * len(columns)
    y = np.stack(columns, axis=2).reshape(x.shape[0], lines, counts[0] * counts[1])
    return y if self.ndim == 4 else y[0]


def col2im(
    self: Array,
    output_size: list[int],
    kernel_size: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Array:
    if self.ndim not in (2, 3):
        raise Unsuited(f"its input has rank {self.ndim}")
    if self.dtype.kind == "c":  # sums are of either part by itself
        sizes = output_size, kernel_size, dilation, padding, stride
        real, imaginary = (col2im(part, *sizes) for part in (self.real, self.imag))
        return np.asarray(real + 1j * imaginary, self.dtype)
    if min(output_size) < 1:
        raise Unsuited(f"an output of {output_size}")
    x = self if self.ndim == 3 else self[None]
    counts = _counts(output_size, kernel_size, dilation, padding, stride)
    size = kernel_size[0] * kernel_size[1]
    if x.shape[1] % size or x.shape[2] != counts[0] * counts[1]:
        raise Unsuited(f"columns of shape {list(x.shape)} for an output of {output_size}")
    columns = wide(x).reshape(x.shape[0], -1, *kernel_size, *counts)
    y = np.zeros(
        (
            x.shape[0],
            columns.shape[1],
            *(n + 2 * p for n, p in zip(output_size, padding, strict=True)),
        )
    )
    for i, j, row, column in np.ndindex(*kernel_size, *counts):
        y[:, :, row * stride[0] + i * dilation[0], column * stride[1] + j * dilation[1]] += columns[
            :, :, i, j, row, column
        ]
    y = y[:, :, padding[0] : padding[0] + output_size[0], padding[1] : padding[1] + output_size[1]]
    return narrow(y if self.ndim == 3 else y[0], self)


def _counts(
    lengths: Sequence[int],
    kernel: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> list[int]:
    if min(*kernel, *stride) < 1:
        raise Unsuited(f"windows of {kernel} every {stride}")
    found = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(lengths, kernel, dilation, padding, stride, strict=True)
    ]
    if min(found) < 1:
        raise Unsuited(f"no window of {kernel} fits into {list(lengths)}")
    return found


_FOLD = "SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride"
_UNFOLD = "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride"

TABLE: tuple[Row, ...] = (
    *_row("upsample_linear1d", 1, _linear_weights),
    *_row("upsample_bilinear2d", 2, _linear_weights),
    *_row("upsample_trilinear3d", 3, _linear_weights),
    *_row("upsample_bicubic2d", 2, _cubic_weights),
    *_row("_upsample_bilinear2d_aa", 2, _aa_linear),
    *_row("_upsample_bicubic2d_aa", 2, _aa_cubic),
    *_row("_upsample_lanczos2d_aa", 2, _aa_lanczos),
    *(r for n in (1, 2, 3) for r in _nearest_row(f"upsample_nearest{n}d", n, middle=False)),
    *(r for n in (1, 2, 3) for r in _nearest_row(f"_upsample_nearest_exact{n}d", n, middle=True)),
    (f"im2col(Tensor self, {_UNFOLD}) -> Tensor", im2col),
    (f"thnn_im2col(Tensor self, {_UNFOLD}) -> Tensor", im2col),
    (f"col2im(Tensor self, {_FOLD}) -> Tensor", col2im),
    (f"thnn_col2im(Tensor self, {_FOLD}) -> Tensor", col2im),
)
