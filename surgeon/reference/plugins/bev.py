"""Plugins of BEVFormer_tensorrt, by the PyTorch functions that it documents them with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators import grids
from surgeon.reference.operators.precision import narrow, wide
from surgeon.reference.plugins import regions

Array = NDArray[Any]
Said = Mapping[str, Any]


def grid_sampler(values: list[Any], said: Said) -> Array:
    """The borders are at -10 and 10, and coordinates are channels."""
    x, grid = values
    places = np.moveaxis(np.asarray(grid) / np.asarray(10, grid.dtype), 1, -1)
    mode, padding = said.get("interpolation_mode", 0), said.get("padding_mode", 0)
    found: Array = grids.grid_sampler(x, places, mode, padding, bool(said.get("align_corners", 0)))
    return found


def inverse(values: list[Any], said: Said) -> Array:
    """torch.linalg.inv."""
    try:
        return narrow(np.linalg.inv(wide(values[0])), values[0])
    except np.linalg.LinAlgError as error:
        raise Unsuited(str(error)) from None


def rotate(values: list[Any], said: Said) -> Array:
    """Every pixel is read where the turn around the center takes it, pixel by pixel."""
    image, angle, center = (wide(value) for value in values)
    turn = np.deg2rad(float(angle.reshape(())))
    _, tall, broad = image.shape
    row, column = np.mgrid[:tall, :broad] + 0.5
    right, down = column - center[0], row - center[1]
    x = center[0] + right * np.cos(turn) - down * np.sin(turn) - 0.5
    y = center[1] + right * np.sin(turn) + down * np.cos(turn) - 0.5
    if said["interpolation"] == 1:
        corners = [(np.rint(y), np.rint(x), np.ones_like(x))]
    else:
        corners = [
            (i, j, (1 - abs(y - i)) * (1 - abs(x - j)))
            for i in (np.floor(y), np.floor(y) + 1)
            for j in (np.floor(x), np.floor(x) + 1)
        ]
    found = np.zeros_like(image)
    for i, j, share in corners:
        there = (i >= 0) & (i < tall) & (j >= 0) & (j < broad)
        i, j = (np.where(there, at, 0).astype(int) for at in (i, j))
        found += image[:, i, j] * np.where(there, share, 0)
    return narrow(found, values[0])


_NAMES: Mapping[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "GridSampler2DTRT": grid_sampler,
    "GridSampler3DTRT": grid_sampler,
    "ModulatedDeformableConv2dTRT": regions.modulated_deform_conv,
    "RotateTRT": rotate,
}
TABLE: Mapping[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "InverseTRT": inverse,
    **_NAMES,
    **{f"{name}2": function for name, function in _NAMES.items()},
}
