"""PyTorch's gradient of `grid_sample`: point by point, as the sampling itself is defined."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def _along(coordinate: Any, size: int, *, padding: int, corners: bool) -> tuple[float, float]:
    """Where a coordinate lies, and its derivative.

    As in the sampling itself that depends on the rounding of the coordinate's own dtype.
    """
    one, two, n = (coordinate.dtype.type(number) for number in (1, 2, size))
    rise = (size - 1) / 2 if corners else size / 2
    place = (
        (coordinate + one) / two * (n - one) if corners else ((coordinate + one) * n - one) / two
    )
    if padding == 2:
        low = one * 0 if corners else -one / two
        span, apart = (n - one if corners else n), place - low
        far = np.fmod(np.abs(apart), two * span) if span else one * 0
        turned = (apart < 0) != (far > span)  # mirrored at one end or at the other
        rise = -rise if turned else rise
        place = low + (far if far <= span else two * span - far)
    if padding and not 0 < place < size - 1:
        return min(max(float(place), 0.0), size - 1.0), 0.0
    return float(place), rise


_NEAR = np.poly1d([1.25, -2.25, 0, 1])  # Keys' kernel with a = -0.75, of a distance up to 1
_FAR = np.poly1d([-0.75, 3.75, -6, 3])  # and of one from there to 2


def _cubic(
    x: Any, of_input: Any, back: Any, point: Any, *, padding: int, corners: bool
) -> list[float]:
    """Adds what a point gives back to the image [C, H, W]; its own gradient, rows first."""
    lengths, taps = x.shape[1:], []
    for coordinate, size in zip(point[::-1], lengths, strict=True):
        place, rise = _along(coordinate, size, padding=0, corners=corners)
        row = []
        for k in range(int(np.floor(place)) - 1, int(np.floor(place)) + 3):
            apart = place - k
            kernel = _NEAR if abs(apart) <= 1 else _FAR
            slope = kernel.deriv()(abs(apart)) * np.sign(apart) * rise
            row.append((_inside(k, size, padding, corners), kernel(abs(apart)), slope))
        taps.append(row)
    slopes = [0.0, 0.0]
    for (i, u, du), (j, v, dv) in product(*taps):
        if 0 <= i < lengths[0] and 0 <= j < lengths[1]:
            of_input[:, i, j] += back * u * v
            worth = float(back @ x[:, i, j])
            slopes[0] += worth * du * v
            slopes[1] += worth * u * dv
    return slopes


def _inside(k: int, size: int, padding: int, corners: bool) -> int:
    """The element that stands for the k-th: itself, the nearest, or its mirror image."""
    if padding == 2:
        row = [*range(size), *(range(size - 2, 0, -1) if corners else range(size - 1, -1, -1))]
        k = row[k % len(row)]
    return min(max(k, 0), size - 1) if padding == 1 else k


def grid_sampler_backward(
    grad_output: Array,
    input: Array,
    grid: Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: list[bool],
) -> tuple[Array | None, ...]:
    if interpolation_mode == 2 and input.ndim != 4:
        raise Unsuited("volumes are not sampled bicubically")
    if not np.isfinite(grid).all():
        raise Unsuited("a place is no number")
    x, behind, lengths = wide(input), wide(grad_output), input.shape[2:]
    of_input, of_grid = np.zeros(x.shape), np.zeros(grid.shape)
    for n, *at in np.ndindex(*grid.shape[:-1]):
        back: Any = behind[(n, slice(None), *at)]
        if interpolation_mode == 2:
            slopes = _cubic(
                x[n], of_input[n], back, grid[(n, *at)], padding=padding_mode, corners=align_corners
            )
            of_grid[(n, *at)] = slopes[::-1]
            continue
        along = [
            _along(t, size, padding=padding_mode, corners=align_corners)
            for t, size in zip(grid[(n, *at)][::-1], lengths, strict=True)
        ]
        if interpolation_mode == 1:
            nearest = [int(np.rint(place)) for place, _ in along]
            if all(0 <= i < size for i, size in zip(nearest, lengths, strict=True)):
                of_input[(n, slice(None), *nearest)] += back
            continue
        low = [int(np.floor(place)) for place, _ in along]
        for corner in product((0, 1), repeat=len(lengths)):
            where = [first + step for first, step in zip(low, corner, strict=True)]
            if any(not 0 <= i < size for i, size in zip(where, lengths, strict=True)):
                continue
            shares = [1 - abs(place - i) for (place, _), i in zip(along, where, strict=True)]
            of_input[(n, slice(None), *where)] += back * np.prod(shares)
            worth = float(back @ x[(n, slice(None), *where)])
            for axis, step in enumerate(corner):
                rest = np.prod([s for i, s in enumerate(shares) if i != axis])
                slope = worth * rest * along[axis][1] * (1 if step else -1)
                of_grid[(n, *at, len(lengths) - 1 - axis)] += slope
    made = (narrow(of_input, input), narrow(of_grid, grid))
    return tuple(t if asked else None for t, asked in zip(made, output_mask, strict=True))


def affine_grid_generator_backward(grad: Array, size: list[int], align_corners: bool) -> Array:
    lengths = grad.shape[1:-1]
    if list(lengths) != [int(n) for n in size[2:]]:
        raise Unsuited(f"a gradient of {list(grad.shape)} for a size of {size}")
    found = np.zeros((grad.shape[0], len(lengths), len(lengths) + 1))
    for at in np.ndindex(*lengths):
        point = [
            (2 * i - (n - 1)) / (max(n - 1, 1) if align_corners else n)
            for i, n in zip(at, lengths, strict=True)
        ]
        found += wide(grad)[(slice(None), *at)][..., None] * np.asarray([*point[::-1], 1.0])
    return narrow(found, grad)


def cudnn_affine_grid_generator_backward(
    grad: Array,
    N: int,  # noqa: N803 - as the schema has them
    C: int,  # noqa: N803
    H: int,  # noqa: N803
    W: int,  # noqa: N803
) -> Array:
    return affine_grid_generator_backward(grad, [N, C, H, W], True)


_OF_SAMPLING: tuple[Row, ...] = tuple(
    (
        f"grid_sampler_{n}d_backward(Tensor grad_output, Tensor input, Tensor grid, "
        "int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask)"
        " -> (Tensor, Tensor)",
        grid_sampler_backward,
    )
    for n in (2, 3)
)
TABLE: tuple[Row, ...] = (
    *_OF_SAMPLING,
    (
        "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
        affine_grid_generator_backward,
    ),
    (
        "cudnn_affine_grid_generator_backward(Tensor grad, int N, int C, int H, int W) -> Tensor",
        cudnn_affine_grid_generator_backward,
    ),
)
