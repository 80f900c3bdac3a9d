"""PyTorch's promotion of dtypes, as torch.result_type documents it, for the witness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Computed, is_float


def tensor(value: Any) -> Array:
    """A tensor or a Python number as an array."""
    return np.asarray(value)


def _kind(dtype: np.dtype[Any]) -> int:
    if dtype == np.bool_:
        return 0
    return 1 if dtype.kind in "iu" else 3 if dtype.kind == "c" else 2


def _joined(dtypes: list[np.dtype[Any]]) -> np.dtype[Any] | None:
    """The smallest dtype of the highest category that holds them; floats ignore integers."""
    if not dtypes:
        return None
    top = max(map(_kind, dtypes))
    alike = [d for d in dtypes if _kind(d) == top or (top == 3 and _kind(d) == 2)]
    found = alike[0]
    for dtype in alike[1:]:
        # of which numpy knows no common one
        halves = {found.name, dtype.name} == {"float16", "bfloat16"}
        found = np.dtype(np.float32) if halves else np.promote_types(found, dtype)
    return found


def mixed(tensors: Sequence[Array]) -> np.dtype[Any]:
    """The common dtype of tensors that all have dimensions, or all have none."""
    found = _joined([x.dtype for x in tensors])
    if found is None:
        raise Unsuited("the list is empty")
    return found


def _complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype of which a float's are the parts."""
    if dtype.name not in ("float32", "float64"):
        raise Unsuited(f"numpy has no complex values of {dtype.name}")
    return np.result_type(dtype, np.complex64)


def result_type(*operands: Any) -> np.dtype[Any]:
    """The common dtype: tensors with dimensions, then those without, then Python's numbers.

    A constant without dimensions in 64 bits is one of Python's: so exporters write them.
    """
    dimensioned, bare, numbers = [], [], []
    for operand in operands:
        array = tensor(operand)
        if array.dtype.kind not in "biufc" and not is_float(array):
            raise Unsuited(f"an operand is {array.dtype.name}")
        if array.ndim:
            dimensioned.append(array.dtype)
        elif isinstance(operand, Computed):
            bare.append(array.dtype)
        elif array.dtype in (np.float64, np.complex128):
            numbers.append(np.dtype(np.float32 if array.dtype == np.float64 else np.complex64))
        elif array.dtype in (np.int64, np.bool_):
            numbers.append(array.dtype)
        else:
            bare.append(array.dtype)
    found: np.dtype[Any] | None = None
    for level in (dimensioned, bare, numbers):
        joined = _joined(level)
        if joined is None or (found is not None and _kind(joined) <= _kind(found)):
            continue
        is_widened = found is not None and _kind(found) == 2 and _kind(joined) == 3
        found = _complex(found) if found is not None and is_widened else joined
    if found is None:
        raise Unsuited("there are no operands")
    return found


def common(self: Any, other: Any, *, floating: bool = False) -> tuple[Array, Array, np.dtype[Any]]:
    """Both operands rounded to their common dtype, floats then in float64, and that dtype."""
    dtype = result_type(self, other)
    if floating and dtype.kind in "biu":
        dtype = np.dtype(np.float32)
    a, b = tensor(self).astype(dtype), tensor(other).astype(dtype)
    if dtype.kind not in "biu":
        wide = np.complex128 if dtype.kind == "c" else np.float64
        a, b = a.astype(wide), b.astype(wide)
    return a, b, dtype


def between(start: Any, end: Any, share: Any) -> Any:
    """`lerp` of values in float64: from the nearer end, which shows where one is infinite."""
    with np.errstate(all="ignore"):
        way = end - start
        return np.where(abs(share) < 0.5, start + share * way, end - way * (1 - share))


def real(x: Array) -> tuple[Array, np.dtype[Any]]:
    """The values in float64 and the dtype of the result: integers count as float32."""
    if x.dtype.kind == "c":
        raise Unsuited(f"its input is {x.dtype.name}")
    dtype = x.dtype if is_float(x) else np.dtype(np.float32)
    return x.astype(dtype).astype(np.float64), dtype


def cut(x: Any, dtype: np.dtype[Any]) -> Array:
    """Rounded to a dtype; integers wrap."""
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype)


def reduced(errors: Any, reduction: int, dtype: np.dtype[Any]) -> Array:
    """A loss as PyTorch's `Reduction` has it: of each (0), their mean (1) or their sum."""
    if reduction == 0:
        return cut(errors, dtype)
    return cut(errors.mean() if reduction == 1 else errors.sum(), dtype)
