"""What is about operators, opsets or formats that the oldest dependencies do not have yet."""

from __future__ import annotations

import onnx
import pytest

RECIPES = {  # bundled ones whose cases, or patterns, are about such, and the opset that brings them
    "attention-decompose": 28,
    "opset-24-forms": 28,
    "swish-decompose": 28,
}


def needs_opset(opset: int) -> None:
    """Skip the test where the installed onnx does not know this opset."""
    known = onnx.defs.onnx_opset_version()
    if known < opset:
        pytest.skip(f"needs opset {opset}, and onnx {onnx.__version__} ends at {known}")


def needs_recipe(name: str) -> None:
    """Skip the test where the installed onnx does not know what a recipe is about."""
    needs_opset(RECIPES.get(name, 0))
