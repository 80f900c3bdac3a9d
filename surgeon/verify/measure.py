"""How far two arrays of floats are apart, block by block: they may be as large as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

_BLOCK = 1 << 13  # elements: what is made of a block stays in a processor's cache
_PLACES: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"NaN": np.isnan, "inf": np.isposinf, "-inf": np.isneginf}
)
_COMPLEX: Mapping[str, Callable[[Any], Any]] = MappingProxyType({"NaN": np.isnan, "inf": np.isinf})


class Measured:
    """The distance of two arrays of one shape and one dtype, where both are finite.

    Args:
        want: What is expected: floats, complex or whole numbers.
        have: What is there.
        places: Whether the distance in units of the last place is wanted, which takes as long as
            all the rest.

    Attributes:
        error: The largest distance.
        ulp: The largest distance in units of the last place; 0 of whole numbers, and unless wanted.
        magnitude: The largest of the expected.
        spread: Their largest distance from their mean; their magnitude where all are equal.
        finite: How many of the expected are finite.
        elsewhere: Of NaN and the infinities, at how many places one has them and the other not.
        first: Of these, the first such place: what is expected there, and what is.
    """

    def __init__(self, want: Any, have: Any, *, places: bool = True) -> None:
        self.error = self.ulp = self.magnitude = 0.0
        self.finite = 0
        info = finfo(want.dtype) if places and want.dtype.kind not in "biu" else None
        plain = want.dtype.kind != "c"
        tests = _PLACES if plain else _COMPLEX
        self.elsewhere = dict.fromkeys(tests, 0)
        self.first: dict[str, tuple[Any, Any]] = {}
        total: Any = 0.0
        low, high = np.inf, -np.inf
        first, constant = None, True
        for e, a in _blocks(want, have):
            finite = np.isfinite(e)
            if not (finite.all() and np.isfinite(a).all()):  # few blocks: each test is a pass
                for what, test in tests.items():
                    apart = np.flatnonzero(test(e) != test(a))
                    self.elsewhere[what] += apart.size
                    if apart.size:
                        self.first.setdefault(what, (e[apart[0]], a[apart[0]]))
                e, a = e[finite], a[finite]
            if not e.size:
                continue
            with np.errstate(invalid="ignore", over="ignore"):  # where only one is finite
                error = np.abs(e - a)
            self.finite += e.size
            largest = float(error.max())
            self.error = max(self.error, largest)
            if info is not None and largest:
                self.ulp = max(self.ulp, _ulp(e if plain else np.abs(e), error, info))
            if plain:
                low, high = min(low, float(e.min())), max(high, float(e.max()))
            else:
                self.magnitude = max(self.magnitude, float(np.abs(e).max()))
                first = e[0] if first is None else first
                constant = constant and bool((e == first).all())
            total += e.sum()
        if self.finite and plain:
            self.magnitude, constant = max(abs(low), abs(high)), low == high
        if constant:
            self.spread = self.magnitude
        elif plain:
            mean = total / self.finite
            self.spread = float(max(high - mean, mean - low))
        else:
            self.spread = _spread(want, have, total / self.finite)


def finfo(dtype: Any) -> Any:
    """As numpy's, for bfloat16 and the float8 kinds too."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def _blocks(want: Any, have: Any) -> Iterator[tuple[Any, Any]]:
    """Both arrays in turn, a block of each, as float64 or complex128."""
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    one, other = (np.ascontiguousarray(array).reshape(-1) for array in (want, have))
    for start in range(0, one.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        yield one[block].astype(wide), other[block].astype(wide)


def _spread(want: Any, have: Any, mean: Any) -> float:
    largest = 0.0
    for e, _ in _blocks(want, have):
        largest = max(largest, float(np.abs(e[np.isfinite(e)] - mean).max(initial=0.0)))
    return largest


def _ulp(expected: Any, error: Any, info: Any) -> float:
    """The error in units of the last place of the expected value."""
    _, exponent = np.frexp(expected)
    unit = np.maximum(np.ldexp(1.0, exponent - 1 - info.nmant), float(info.smallest_subnormal))
    found = float((error / unit).max())
    return float(np.ceil(found))
