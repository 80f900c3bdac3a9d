"""PyTorch operators that move between sizes, grids and spectra."""

from __future__ import annotations

from surgeon.reference.operators import grids, regions, resampling, spectra
from surgeon.reference.operators.precision import Row

TABLE: tuple[Row, ...] = (*grids.TABLE, *regions.TABLE, *resampling.TABLE, *spectra.TABLE)
