"""Activations that onnxruntime fuses into other operators, by name, in numpy.

Source: onnxruntime's `fused_activation.cc`, and the operators of ONNX that they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array

_FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    "": lambda y: y,
    "Clip": lambda y, low, high: np.clip(y, low, high),
    "Elu": lambda y, alpha=1.0: np.where(y < 0, alpha * np.expm1(np.minimum(y, 0)), y),
    "HardSigmoid": lambda y, alpha=0.2, beta=0.5: np.clip(alpha * y + beta, 0, 1),
    "HardSwish": lambda y: y * np.clip(y / 6 + 0.5, 0, 1),
    "LeakyRelu": lambda y, alpha=0.01: np.where(y < 0, alpha * y, y),
    "Relu": lambda y: np.maximum(y, 0),
    "Sigmoid": lambda y: 1 / (1 + np.exp(-y)),
    "Tanh": np.tanh,
}


def activated(name: str | bytes, y: Array, numbers: Sequence[Any] = ()) -> Array:
    """The activation of a sum in double precision.

    Raises:
        Unsuited: It is not known here.
    """
    name = name.decode() if isinstance(name, bytes) else name
    if name not in _FUNCTIONS:
        raise Unsuited(f"its activation is {name}")
    with np.errstate(over="ignore"):
        made: Array = _FUNCTIONS[name](y, *numbers)
    return made
