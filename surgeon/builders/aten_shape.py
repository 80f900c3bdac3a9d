"""Builders of the recipe `aten-shape`."""

from collections.abc import Callable, Mapping
from typing import Any

TABLE: Mapping[str, Callable[..., Any]] = {}
