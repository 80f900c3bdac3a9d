"""Builders of the recipe `aten-nn`."""

from collections.abc import Callable, Mapping
from typing import Any

TABLE: Mapping[str, Callable[..., Any]] = {}
