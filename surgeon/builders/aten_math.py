"""Builders of the recipe `aten-math`."""

from collections.abc import Callable, Mapping
from typing import Any

TABLE: Mapping[str, Callable[..., Any]] = {}
