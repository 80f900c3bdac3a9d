"""A recipe of one rule, a model for it, and how often a rule fired."""

from __future__ import annotations

from typing import Any

import numpy as np
from truth import model_of

import surgeon
from surgeon.recipe import Recipe

F32 = np.float32


def recipe(rule: str, head: str = "", name: str = "r") -> Recipe:
    """A recipe of one rule, given as its lines."""
    lines = "\n".join(f"    {line}" for line in rule.strip().splitlines())
    return Recipe.parse(
        f"surgeon: 1\nname: {name}\n{head}rules:\n  - id: one\n    why: Because.\n{lines}\n"
    )


NEG = recipe(
    "exact: rounding\nmatch: y = Neg (x)\nreplace: y = Sub (@zero, x)\n"
    "let:\n  zero: const(0, like=x)"
)
MODEL = model_of("float[b,t] x", "a = Neg (x) y = Relu (a)", "y")
GUARDED = recipe(
    "exact: bit\nmatch: y = Neg (x)\nwhere:\n  - x.shape[1] % 32 == 0\nreplace: y = Mul (x, @k)\n"
    "let:\n  k: const(-1, like=x)"
)


def fired(*args: Any, **options: Any) -> int:
    return surgeon.apply(*args, verify=False, **options).report.fired.total()
