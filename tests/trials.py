"""A rewrite that is tried on a small model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from truth import model_of

import surgeon
from surgeon.authoring import rule
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused
from surgeon.surgery import Result

F32 = np.float32
Build = Callable[[Draft, Mapping[str, Any]], Any]
W = np.linspace(-1, 1, 2 * 3 * 3 * 3, dtype=F32).reshape(2, 3, 3, 3)
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sub": ("float[b,t] x, float[t] z", "y = Sub (x, z)", {}),
    "softmax": ("float[b,c,t] x", "y = Softmax <axis = 1> (x)", {}),
    "concat": ("float[b,t] x, float[b,t] z", "y = Concat <axis = 1> (x, z)", {}),
    "pool": (
        "float[b,c,h,w] x",
        "y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)",
        {},
    ),
    "conv": (
        "float[b,3,h,w] x",
        "y = Conv <pads = [1, 1, 1, 1]> (x, k, c)",
        {"k": W, "c": np.array([1, 2], F32)},
    ),
    "halves": (
        "float[b,t] x",
        "s = Shape (x) i = Gather (s, one) h = Div (i, two) y = Slice (x, zero, h, one)",
        {"one": np.array([1]), "two": np.array([2]), "zero": np.array([0])},
    ),
    "gemm": ("float[b,3] x", "y = Gemm (x, k, c)", {"k": W[0, 0], "c": np.ones(3, F32)}),
    "spread": (
        "float[p,2] a, float[r,2] b",
        "e = Add (a, b) f = Relu (a) y = Concat <axis = 0> (f, e)",
        {},
    ),
    "cast": ("float[b] x", "y = Cast <to = 6> (x)", {}),
    "mean": ("float[b,c,t] x", "y = ReduceMean <axes = [2]> (x)", {}),
    "bool": ("float[b] x, float[b] z", "y = Less (x, z)", {}),
    "transpose": ("float[b,t,t] x", "y = Transpose <perm = [0, 2, 1]> (x)", {}),
    "split": ("float[b,4] x", "y, q = Split <axis = 1> (x, s)", {"s": np.array([1, 3])}),
}


def attempt(model: str, match: str, build: Build, *, exact: str = "rounding") -> Result:
    """Apply a rule of that replacement to the model."""

    @rule(match, exact=exact)
    def planted(draft: Draft, found: Match) -> Any:
        if found.root.made:
            raise Refused("it was made here")
        return build(draft, found.values)

    inputs, body, constants = MODELS[model]
    outputs = "y q" if model == "split" else "y"
    return surgeon.apply(model_of(inputs, body, outputs, 17, constants), planted)


def op(name: str, *operands: str, **attributes: Any) -> Build:
    """A builder of one node of these operands."""
    return lambda d, v: d.op(name, *(v[o] for o in operands), **attributes)
