"""Builders of the recipe `aten-nn`: PyTorch's layers that fell back, as standard operators."""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.aten_nn.resample import upsample

TABLE: Mapping[str, Callable[..., Any]] = {
    "upsample": upsample,
}
