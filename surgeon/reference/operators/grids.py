"""Grids: torch.nn.functional.grid_sample and affine_grid."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import itertools

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def _mirror(place: Array, low: float, high: float) -> Array:
    """Reflected at both ends until it lies between them."""
    span = high - low
    if span <= 0:
        return np.zeros(place.shape)
    inside = np.fmod(np.abs(place - place.dtype.type(low)).astype(np.float64), 2 * span)
    return np.asarray(low + np.where(inside <= span, inside, 2 * span - inside))


def _fit(place: Array, size: int, padding: int, corners: bool) -> Array:
    if padding == 0:
        return place
    if padding == 2:
        place = _mirror(place, 0, size - 1) if corners else _mirror(place, -0.5, size - 0.5)
    return np.clip(place, 0, size - 1)


def _kernel(distance: Array) -> Array:
    d, a = np.abs(distance), -0.75
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.asarray(np.where(d <= 1, near, np.where(d < 2, far, 0)))


def _taps(
    value: Array, size: int, mode: int, padding: int, corners: bool
) -> list[tuple[Array, Array]]:
    """The elements of an axis that coordinates of [-1, 1] read, and their weights.

    An element that there is none of has another place than 0 to size - 1.
    """
    one, two, n = (value.dtype.type(number) for number in (1, 2, size))
    place = (value + one) / two * (n - one) if corners else ((value + one) * n - one) / two
    if mode != 2:
        place = _fit(place, size, padding, corners)
    if not np.isfinite(place).all():
        raise ValueError("a point of the grid is not finite")
    place = place.astype(np.float64)
    if mode == 1:
        return [(_whole(np.rint(place), size), np.ones(place.shape))]
    base = np.floor(place)
    if mode == 0:
        return [(_whole(base, size), 1 - (place - base)), (_whole(base + 1, size), place - base)]
    near = [base + k for k in range(-1, 3)]
    return [(_whole(_fit(k, size, padding, corners), size), _kernel(place - k)) for k in near]


def _whole(place: Array, size: int) -> Array:
    return np.clip(place, -1, size).astype(np.int64)


def grid_sampler(
    input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    spatial = input.ndim - 2
    if spatial not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != spatial:
        raise Unsuited(f"a grid of {list(grid.shape)} over an input of {list(input.shape)}")
    if input.shape[0] != grid.shape[0]:
        raise Unsuited(f"grids of {grid.shape[0]} samples over {input.shape[0]}")
    if 0 in input.shape[2:]:
        raise Unsuited(f"nothing to sample in an input of {list(input.shape)}")
    if interpolation_mode == 2 and spatial == 3:
        raise Unsuited("volumes are not sampled bicubically")
    x, points = wide(input), wide(grid, name="grid")
    if grid.dtype == np.float32:
        points = grid  # where a point lies among thousands depends on the rounding of its own dtype
    taps = [
        _taps(points[..., -1 - axis], n, interpolation_mode, padding_mode, align_corners)
        for axis, n in enumerate(x.shape[2:])
    ]
    rows = np.moveaxis(x, 1, -1)
    samples = np.arange(len(x)).reshape(-1, *[1] * spatial)
    y = np.zeros((*grid.shape[:-1], x.shape[1]))
    for corner in itertools.product(*taps):
        there = np.ones(grid.shape[:-1], bool)
        weight = np.ones(grid.shape[:-1])
        for (place, share), n in zip(corner, x.shape[2:], strict=True):
            there &= (place >= 0) & (place < n)
            weight = weight * share
        weight, at = weight[there], tuple(place[there] for place, _ in corner)
        y[there] += weight[:, None] * rows[(np.broadcast_to(samples, there.shape)[there], *at)]
    return narrow(np.ascontiguousarray(np.moveaxis(y, -1, 1)), input)


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
