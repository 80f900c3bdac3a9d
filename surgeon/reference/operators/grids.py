"""Grids: torch.nn.functional.grid_sample and affine_grid."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def _mirror(place: float, low: float, high: float) -> float:
    """Reflected at both ends until it lies between them."""
    span = high - low
    if span <= 0:
        return 0.0
    inside = math.fmod(abs(place - low), 2 * span)
    return low + (inside if inside <= span else 2 * span - inside)


def _fit(place: float, size: int, padding: int, corners: bool) -> float:
    if padding == 0:
        return place
    if padding == 2:
        place = _mirror(place, 0, size - 1) if corners else _mirror(place, -0.5, size - 0.5)
    return min(max(place, 0.0), size - 1.0)


def _kernel(distance: float) -> float:
    d, a = abs(distance), -0.75
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def _taps(
    value: float, size: int, mode: int, padding: int, corners: bool
) -> list[tuple[int, float]]:
    """The elements of an axis that a coordinate of [-1, 1] reads, and their weights."""
    kind = np.asarray(value).dtype.type  # numpy before 2 made float64 of a float32 and a number
    one, two, n = kind(1), kind(2), kind(size)
    place = (value + one) / two * (n - one) if corners else ((value + one) * n - one) / two
    if mode == 2:
        base = math.floor(place)
        rows = [(k, _kernel(place - k)) for k in range(base - 1, base + 3)]
        rows = [(int(_fit(k, size, padding, corners)), w) for k, w in rows]
    else:
        place = _fit(place, size, padding, corners)
        if mode == 1:
            rows = [(round(place), 1.0)]
        else:
            base = math.floor(place)
            rows = [(base, 1 - (place - base)), (base + 1, place - base)]
    return [(k, w) for k, w in rows if 0 <= k < size]


def grid_sampler(
    input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    spatial = input.ndim - 2
    if spatial not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != spatial:
        raise Unsuited(f"a grid of {list(grid.shape)} over an input of {list(input.shape)}")
    if input.shape[0] != grid.shape[0]:
        raise Unsuited(f"grids of {grid.shape[0]} samples over {input.shape[0]}")
    if interpolation_mode == 2 and spatial == 3:
        raise Unsuited("volumes are not sampled bicubically")
    x, points = wide(input), wide(grid, name="grid")
    if grid.dtype == np.float32:
        points = grid  # where a point lies among thousands hangs on the rounding of its own dtype
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for batch in range(x.shape[0]):
        for at in np.ndindex(*grid.shape[1:-1]):
            place = points[batch][at][::-1]
            taps = [
                _taps(v, n, interpolation_mode, padding_mode, align_corners)
                for v, n in zip(place, x.shape[2:], strict=True)
            ]
            for corner in itertools.product(*taps):
                weight = math.prod(w for _, w in corner)
                where: tuple[Any, ...] = (batch, slice(None), *(k for k, _ in corner))
                target: tuple[Any, ...] = (batch, slice(None), *at)
                y[target] += weight * x[where]
    return narrow(y, input)


def affine_grid_generator(theta: Array, size: list[int], align_corners: bool) -> Array:
    spatial = len(size) - 2
    if theta.ndim != 3 or theta.shape[1:] != (spatial, spatial + 1):
        raise Unsuited(f"theta of shape {list(theta.shape)} for a size of {size}")
    if theta.shape[0] != size[0]:
        raise Unsuited(f"{theta.shape[0]} matrices for {size[0]} grids")
    axes = []
    for n in size[2:]:
        steps = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
        axes.append(steps if align_corners else steps * (n - 1) / n)
    mesh = np.meshgrid(*axes, indexing="ij")[::-1]
    points = np.stack([*mesh, np.ones(size[2:])], axis=-1)
    return narrow(np.einsum("...j,nij->n...i", points, wide(theta, name="theta")), theta)


def cudnn_grid_sampler(self: Array, grid: Array) -> Array:
    return grid_sampler(self, grid, 0, 0, True)


def cudnn_affine_grid_generator(
    theta: Array,
    N: int,  # noqa: N803 - as the schema has them
    C: int,  # noqa: N803
    H: int,  # noqa: N803
    W: int,  # noqa: N803
) -> Array:
    return affine_grid_generator(theta, [N, C, H, W], True)


_SAMPLER = (
    "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
    "bool align_corners=True)"  # torch 1.1 and 1.2 knew no other
)

TABLE: tuple[Row, ...] = (
    ("cudnn_grid_sampler(Tensor self, Tensor grid) -> Tensor", cudnn_grid_sampler),
    (
        "cudnn_affine_grid_generator(Tensor theta, int N, int C, int H, int W) -> Tensor",
        cudnn_affine_grid_generator,
    ),
    *(
        (f"{name}{_SAMPLER} -> Tensor", grid_sampler)
        for name in ("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
    ),
    (
        "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners=True) -> Tensor",
        affine_grid_generator,
    ),
)
