"""PyTorch operators: arithmetic."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from surgeon.reference.operators.precision import Row

TABLE: tuple[Row, ...] = ()
