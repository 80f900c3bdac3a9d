"""What the operators share: they compute in float64 and round once, at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from surgeon.reference.errors import Unsuited

Array = NDArray[Any]
_BLOCK = 1 << 14  # elements: what stays near the processor is read faster
Row = tuple[str, Callable[..., Any]]  # a schema, and the function that means the same

# erf by W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23
# (1969), in three ranges; numerator and denominator from the highest power on.
_NEAR = (
    (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
     3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
     2.84423683343917062e3),
)  # fmt: skip
_AMID = (
    (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
     2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
     1.23033935479799725e3),
    (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
     1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3,
     1.23033935480374942e3),
)  # fmt: skip
_FAR = (
    (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
     1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4),
    (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1,
     6.05183413124413191e-2, 2.33520497626869185e-3),
)  # fmt: skip


def erf(x: Any) -> NDArray[np.float64]:
    """The error function, to a rounding or two in float64."""
    whole = np.asarray(x, np.float64)
    lines = whole.reshape(-1)
    made = np.empty_like(lines)
    for begin in range(0, lines.size, _BLOCK):
        made[begin : begin + _BLOCK] = _erf(lines[begin : begin + _BLOCK])
    return made.reshape(whole.shape)


def _erf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    size = np.abs(x)
    near = np.minimum(size, 0.5)
    square = near * near
    inner = near * _quotient(_NEAR, square)
    amid = np.clip(size, 0.46875, 4.0)
    rest = np.exp(-amid * amid) * _quotient(_AMID, amid)
    if (size > 4.0).any():
        far = np.clip(size, 4.0, 6.0)  # from there on it is 1
        falling = 1 / (far * far)
        tail = falling * _quotient(_FAR, falling)
        rest = np.where(
            size > 4.0, np.exp(-far * far) * (1 / math.sqrt(math.pi) - tail) / far, rest
        )
    found: NDArray[np.float64] = np.copysign(np.where(size <= 0.46875, inner, 1 - rest), x)
    return found


def _quotient(
    polynomials: Sequence[Sequence[float]], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """One polynomial by the other, in place: `polyval` takes twice the time."""
    above, below = (_horner(polynomial, x) for polynomial in polynomials)
    above /= below
    return above


def _horner(polynomial: Sequence[float], x: NDArray[np.float64]) -> NDArray[np.float64]:
    made = np.full_like(x, polynomial[0])
    for factor in polynomial[1:]:
        made *= x
        made += factor
    return made


class Computed(np.ndarray[Any, Any]):
    """A number without dimensions that a graph computes: it is a tensor, and none of Python's."""


def computed(value: Any) -> Any:
    """The value, marked as one that a graph computes where it has no dimensions."""
    bare = isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "bif"
    return value.view(Computed) if bare else value


def is_float(array: Array) -> bool:
    """Whether the dtype is a floating-point one, bfloat16 included (numpy calls that kind V)."""
    return array.dtype.kind == "f" or array.dtype.name in ("bfloat16", "float8_e4m3fn")


def limits(dtype: np.dtype[Any]) -> Any:
    """What numpy's `finfo` tells of a floating-point dtype, and of bfloat16 too."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


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
