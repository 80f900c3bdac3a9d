"""What the operators share: they compute in float64 and round once, at the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgeon.reference.errors import Unsuited

Array = NDArray[Any]
Row = tuple[str, Callable[..., Any]]  # a schema, and the function that means the same

erf: Callable[..., NDArray[np.float64]] = np.vectorize(math.erf, otypes=[np.float64])


class Computed(np.ndarray[Any, Any]):
    """A number without dimensions that a graph computes: it is a tensor, and none of Python's."""


def computed(value: Any) -> Any:
    """The value, marked as one that a graph computes where it has no dimensions."""
    bare = isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "bif"
    return value.view(Computed) if bare else value


def is_float(array: Array) -> bool:
    """Whether the dtype is a floating-point one, bfloat16 included (numpy calls that kind V)."""
    return array.dtype.kind == "f" or array.dtype.name in ("bfloat16", "float8_e4m3fn")


def wide(array: Array, *, name: str = "input") -> NDArray[np.float64]:
    """The array in float64.

    Raises:
        Unsuited: It holds integers or booleans, which the operator does not take.
    """
    if not is_float(array):
        raise Unsuited(f"its `{name}` is {array.dtype.name}")
    return array.astype(np.float64)


def narrow(array: Array, like: Array) -> Array:
    """The array in the dtype of another; what is too large for it becomes infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(array).astype(like.dtype, copy=False)
