"""PyTorch's gradient of `grid_sample`: point by point, as the sampling itself is defined."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def _along(coordinate: float, size: int, *, border: bool, corners: bool) -> tuple[float, float]:
    """Where a coordinate lies, and its derivative."""
    rise = (size - 1) / 2 if corners else size / 2
    place = (coordinate + 1) * rise - (0.0 if corners else 0.5)
    if border and not 0 < place < size - 1:
        return min(max(place, 0.0), size - 1.0), 0.0
    return place, rise


def grid_sampler_backward(
    grad_output: Array,
    input: Array,
    grid: Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: list[bool],
) -> tuple[Array | None, ...]:
    if interpolation_mode != 0 or padding_mode not in (0, 1):
        raise Unsuited("only linear sampling between zeros or borders has its gradient here")
    if not np.isfinite(grid).all():
        raise Unsuited("a place is no number")
    x, behind, lengths = wide(input), wide(grad_output), input.shape[2:]
    of_input, of_grid = np.zeros(x.shape), np.zeros(grid.shape)
    for n, *at in np.ndindex(*grid.shape[:-1]):
        along = [
            _along(float(t), size, border=padding_mode == 1, corners=align_corners)
            for t, size in zip(grid[(n, *at)][::-1], lengths, strict=True)
        ]
        low = [int(np.floor(place)) for place, _ in along]
        back: Any = behind[(n, slice(None), *at)]
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


TABLE: tuple[Row, ...] = tuple(
    (
        f"grid_sampler_{n}d_backward(Tensor grad_output, Tensor input, Tensor grid, "
        "int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask)"
        " -> (Tensor, Tensor)",
        grid_sampler_backward,
    )
    for n in (2, 3)
)
