"""A model whose facts are held against its runs, and what such models are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from truth import model_of

F32 = np.float32
MAX = 2**63 - 1


def weights(*shape: int) -> Any:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=F32).reshape(shape)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


@dataclass(frozen=True)
class Case:
    """A model whose facts are held against its runs.

    Attributes:
        inputs: As text; names for dynamic dimensions.
        body: The nodes, which end in `y`.
        shape: What the shape of `y` prints as, where a test wants to see it.
        value: The same of its value.
        opsets: At which it is valid.
        constants: Initializers by name.
        at: Sizes; default a list of them.
        least: At how many sizes onnxruntime must have taken it.
        frozen: Whether it also runs with every dimension fixed.
    """

    inputs: str
    body: str
    shape: str | None = None
    value: str | None = None
    opsets: tuple[int, ...] = (13, 17, 21)
    constants: Mapping[str, Any] = field(default_factory=dict)
    at: tuple[Mapping[str, int], ...] = ()
    least: int = 3
    frozen: bool = True

    def proto(self, opset: int) -> onnx.ModelProto:
        return model_of(self.inputs, self.body, "y", opset, self.constants)


X1 = "float[b,c,t] x"
X2 = "float[b,c,h,w] x"
ALL = (9, 11, 13, 18, 21)
NEW = (13, 18, 21)
# A window larger than its padded input has no value in ONNX; onnxruntime computes something there.
ROOMY = tuple({"b": 2, "c": 3, "t": t, "h": t, "w": t + 2} for t in (5, 6, 7, 8, 9, 10))
W1, W2 = weights(4, 3, 3), weights(4, 3, 3, 2)


def multiples(step: int, *names: str) -> tuple[Mapping[str, int], ...]:
    """Sizes of which every one is a multiple of `step`."""
    return tuple({n: step * (1 + (i + j) % 4) for j, n in enumerate(names)} for i in range(4))
