"""Pooling windows: torch.nn.functional.avg_pool and max_pool, of one, two and three axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide

_AT_ONCE = 1 << 20  # elements under windows


def _count(length: int, reach: int, stride: int, padding: int, ceil_mode: bool) -> int:
    if reach < 1 or stride < 1:
        raise Unsuited(f"windows of {reach} every {stride}")
    room = length + 2 * padding - reach
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= length + padding:
        count -= 1  # a window must begin inside the input or the padding before it
    if count < 1 or padding * 2 > reach:
        raise Unsuited(f"windows of {reach} padded by {padding} over {length}")
    return count


def _plane(self: Array, axes: int) -> tuple[int, ...]:
    if self.ndim not in (axes + 1, axes + 2):
        raise Unsuited(f"its input has rank {self.ndim}")
    return self.shape[-axes:]


def _average(
    self: Array,
    axes: int,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    plane, stride = _plane(self, axes), stride or kernel_size
    x = self if self.dtype == np.int64 else wide(self)
    counts = [
        _count(n, k, s, p, ceil_mode)
        for n, k, s, p in zip(plane, kernel_size, stride, padding, strict=True)
    ]
    y = np.empty((*self.shape[:-axes], *counts), x.dtype)
    for at in np.ndindex(*counts):
        box, count = averaged(at, plane, kernel_size, stride, padding, pads=count_include_pad)
        divisor = divisor_override or count
        total = x[box].sum(axis=tuple(range(-axes, 0)))
        if x.dtype.kind == "f":
            y[(..., *at)] = total / divisor
        else:  # C++ rounds a quotient of integers towards 0, and a double would not hold it
            sign = np.sign(total) * np.sign(divisor)
            y[(..., *at)] = sign * (np.abs(total) // abs(divisor))
    return narrow(y, self)


def averaged(
    at: Sequence[int],
    plane: Sequence[int],
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    *,
    pads: bool,
) -> tuple[tuple[Any, ...], int]:
    """The elements under a window, and how many it counts, with the padding or without."""
    whole, inside = 1, 1
    box: list[Any] = [...]
    for i, n, k, s, p in zip(at, plane, kernel_size, stride, padding, strict=True):
        start, end = i * s - p, min(i * s - p + k, n + p)
        here = slice(max(start, 0), min(end, n))
        whole, inside = whole * (end - start), inside * (here.stop - here.start)
        box.append(here)
    return tuple(box), whole if pads else inside


def _maximum(
    self: Array,
    axes: int,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
) -> tuple[Array, Array]:
    plane, stride = _plane(self, axes), stride or kernel_size
    taps = []
    for n, k, s, p, d in zip(plane, kernel_size, stride, padding, dilation, strict=True):
        starts = np.arange(_count(n, d * (k - 1) + 1, s, p, ceil_mode)) * s - p
        # padding is never the largest: the nearest element of the window stands in for it again
        first = starts + -(-np.maximum(-starts, 0) // d) * d
        last = np.minimum(starts + d * (k - 1), starts + (n - 1 - starts) // d * d)
        if (first > last).any():
            raise Unsuited("a window lies in the padding alone")
        each = starts[:, None] + d * np.arange(k)
        taps.append(np.clip(each, first[:, None], last[:, None]))
    counts = [len(t) for t in taps]
    numbered = np.arange(math.prod(plane), dtype=np.int64).reshape(1, *plane)
    places = _windows(numbered, taps)
    samples = self.reshape(-1, *plane)
    values = np.empty((len(samples), *counts), self.dtype)
    indices = np.empty(values.shape, np.int64)
    some = max(1, _AT_ONCE // max(places.size, 1))
    for start in range(0, len(samples), some):  # not all: the windows are many times the samples
        part = slice(start, start + some)
        windows = _windows(samples[part], taps)
        best = np.argmax(windows, axis=-1)[..., None]
        values[part] = np.take_along_axis(windows, best, -1)[..., 0]
        indices[part] = np.take_along_axis(places, best, -1)[..., 0]
    shape = (*self.shape[:-axes], *counts)
    return values.reshape(shape), indices.reshape(shape)


def _windows(planes: Any, taps: list[Any]) -> Any:
    """What stands under each window, in a line, row by row [planes, counts, taps of one]."""
    counts, rank = [each.shape for each in taps], len(taps)
    under = planes[(slice(None), *np.ix_(*(each.reshape(-1) for each in taps)))]
    apart = under.reshape([len(planes), *(n for shape in counts for n in shape)])
    order = [0, *range(1, 2 * rank, 2), *range(2, 2 * rank + 1, 2)]
    return apart.transpose(order).reshape(
        len(planes), *(n for n, _ in counts), math.prod(taps for _, taps in counts)
    )


def _first_places(sample: Any, length: int, kernel: int, count: int) -> list[int]:
    """Where the windows of a fractional pooling begin, in the arithmetic of the sample's dtype."""
    kind = sample.dtype.type
    room = length - kernel
    step = kind(room) / kind(max(count - 1, 1))
    drift = int(sample * step)
    starts = [int((kind(i) + sample) * step) - drift for i in range(count - 1)]
    if room < 0 or any(not 0 <= start <= room for start in starts):
        raise Unsuited(f"windows of {kernel} begin outside {length}")
    return [*starts, room]


def _fractional(axes: int) -> Callable[..., tuple[Array, Array]]:
    def function(
        self: Array, kernel_size: list[int], output_size: list[int], random_samples: Array
    ) -> tuple[Array, Array]:
        plane = _plane(self, axes)
        x = self.reshape(-1, self.shape[-axes - 1], *plane)
        if random_samples.dtype != self.dtype or not np.isfinite(random_samples).all():
            raise Unsuited("its samples are no numbers of its dtype")
        if len(random_samples) < len(x) or random_samples.shape[1:] != (x.shape[1], axes):
            raise Unsuited(f"its samples have the shape {list(random_samples.shape)}")
        shape = (*x.shape[:2], *output_size)
        values, indices = np.empty(shape, self.dtype), np.empty(shape, np.int64)
        for image, channel in np.ndindex(*x.shape[:2]):
            drawn = random_samples[image, channel]
            rows = [
                _first_places(u, *sizes)
                for u, *sizes in zip(
                    drawn[::-1] if axes == 2 else drawn,
                    plane,
                    kernel_size,
                    output_size,
                    strict=True,
                )
            ]
            for at in np.ndindex(*output_size):
                best = None
                corner = [row[i] for row, i in zip(rows, at, strict=True)]
                for tap in np.ndindex(*kernel_size):
                    place = tuple(a + b for a, b in zip(corner, tap, strict=True))
                    one = x[(image, channel, *place)]
                    if best is None or one > best[0] or np.isnan(one):
                        best = one, int(np.ravel_multi_index(place, plane))
                assert best is not None
                values[(image, channel, *at)], indices[(image, channel, *at)] = best
        shape = (*self.shape[:-axes], *output_size)
        return values.reshape(shape), indices.reshape(shape)

    return function


def _averages(axes: int) -> Callable[..., Array]:
    def function(
        self: Array,
        kernel_size: list[int],
        stride: list[int],
        padding: list[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None = None,
    ) -> Array:
        return _average(
            self, axes, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )

    return function


def _maxima(axes: int, *, indices: bool) -> Callable[..., Array | tuple[Array, Array]]:
    def function(
        self: Array,
        kernel_size: list[int],
        stride: list[int],
        padding: list[int],
        dilation: list[int],
        ceil_mode: bool,
    ) -> Array | tuple[Array, Array]:
        found = _maximum(self, axes, kernel_size, stride, padding, dilation, ceil_mode)
        return found if indices else found[0]

    return function


def _sizes(axes: int) -> str:
    return f"Tensor self, int[{axes}] kernel_size, int[{axes}] stride=[], int[{axes}] padding=0"


def _rows(axes: int) -> list[Row]:
    average = f"{_sizes(axes)}, bool ceil_mode=False, bool count_include_pad=True"
    if axes > 1:
        average += ", int? divisor_override=None"
    maximum = f"{_sizes(axes)}, int[{axes}] dilation=1, bool ceil_mode=False"
    return [
        (f"avg_pool{axes}d({average}) -> Tensor", _averages(axes)),
        (f"max_pool{axes}d({maximum}) -> Tensor", _maxima(axes, indices=False)),
        (
            f"max_pool{axes}d_with_indices({maximum}) -> (Tensor, Tensor)",
            _maxima(axes, indices=True),
        ),
    ]


TABLE: tuple[Row, ...] = (
    *_rows(1),
    *_rows(2),
    *_rows(3),
    *(
        (
            f"fractional_max_pool{axes}d(Tensor self, int[{axes}] kernel_size, "
            f"int[{axes}] output_size, Tensor random_samples) -> (Tensor, Tensor)",
            _fractional(axes),
        )
        for axes in (2, 3)
    ),
)
