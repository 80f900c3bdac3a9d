"""Compares arrays: one table of tolerances, and the error always measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from surgeon.verify.measure import Measured, finfo
from surgeon.verify.verdict import OutputCheck

# Allowed error of a whole model and of one rewrite, relative to the output's own spread. Measured
# on DyMN exports against PyTorch: 1e-5 (float32). What is not in the table has to be equal.
TOLERANCES: Mapping[str, tuple[float, float]] = {
    "float64": (1e-9, 1e-12),
    "complex128": (1e-9, 1e-12),
    "float32": (1e-4, 2e-5),
    "complex64": (1e-4, 2e-5),
    "float16": (2e-2, 4e-3),
    "bfloat16": (5e-2, 3e-2),
    "float8_e4m3fn": (2e-1, 2e-1),
    "float8_e4m3fnuz": (2e-1, 2e-1),
    "float8_e5m2": (4e-1, 4e-1),
    "float8_e5m2fnuz": (4e-1, 4e-1),
}
# An error of so many roundings of the largest magnitude is rounding, however small the spread.
ROUNDINGS = 4
Exact = Literal["bit", "rounding"]


def compare_arrays(
    name: str,
    expected: Any,
    actual: Any,
    *,
    exact: Exact | None = None,
    tolerance: float | None = None,
    averaged: float = 0.0,
) -> OutputCheck:
    """How `actual` agrees with `expected`.

    Args:
        name: The output's name.
        expected: An array, or a list of arrays.
        actual: The same.
        exact: `bit` for identical numbers, `rounding` for one rewrite's tolerance; a whole
            model's, where it is left out.
        tolerance: Relative to the spread, in place of the table's; of one rewrite's bytes, which
            stand for quantized numbers, at least a unit.
        averaged: The largest magnitude of what was added up to it, where that may be more than it
            is itself, as in an average or a Sigmoid: its rounding is that of what was added.
    """
    if isinstance(expected, list) or isinstance(actual, list):
        return _compare_lists(name, expected, actual, exact=exact, tolerance=tolerance)
    want, have = np.asarray(expected), np.asarray(actual)
    if fault := _different_kind(want, have):
        return faulty(name, want, fault)
    if (known := TOLERANCES.get(want.dtype.name)) is None:
        return _compare_exactly(name, want, have, bytes_within=tolerance if exact else None)
    allowed = known[1 if exact else 0] if tolerance is None else tolerance
    check = _compare_floats(name, want, have, allowed, averaged, places=exact is None)
    if exact == "bit":
        same = _same_bits(want, have)
        fault = None if same or check.max_absolute or check.fault else "zeros of another sign"
        return replace(check, tolerance=0.0, agrees=same, fault=check.fault or fault)
    return check


def compare_drawn(name: str, expected: Any, actual: Any, *, sized: bool) -> OutputCheck:
    """Whether what is drawn or never set is of one kind: dtype and shape; no matter its numbers.

    Args:
        name: The output's name.
        expected: An array, or a list of arrays.
        actual: The same.
        sized: Whether its sizes are drawn at random too: then its rank is compared.
    """
    if isinstance(expected, list) or isinstance(actual, list):
        fault = None if type(expected) is type(actual) else "one is a list, the other is not"
    else:
        want, have = np.asarray(expected), np.asarray(actual)
        if sized and want.ndim == have.ndim:
            have = np.broadcast_to(np.zeros((), have.dtype), want.shape)
        fault = _different_kind(want, have)
    if fault:
        return faulty(name, expected, fault)
    kind = "list" if isinstance(expected, list) else np.asarray(expected).dtype.name
    weak = "it is drawn at random, or never set"
    return OutputCheck(name, kind, 0.0, 0.0, 0.0, 0.0, agrees=True, weak=weak)


def _different_kind(want: Any, have: Any) -> str | None:
    texts = [array.dtype.kind in "OUS" for array in (want, have)]
    if want.dtype != have.dtype and not all(texts):
        return f"its dtype is {have.dtype.name}, not {want.dtype.name}"
    if want.shape != have.shape:
        return f"its shape is {list(have.shape)}, not {list(want.shape)}"
    return None


def faulty(name: str, want: Any, fault: str) -> OutputCheck:
    """The check of an output that differs in more than numbers."""
    kind = getattr(getattr(want, "dtype", None), "name", "list")
    return OutputCheck(name, kind, math.inf, math.inf, math.inf, 0.0, agrees=False, fault=fault)


def _is_nothing(value: Any) -> bool:
    return not value if isinstance(value, list) else np.asarray(value).size == 0


def _compare_lists(name: str, expected: Any, actual: Any, **options: Any) -> OutputCheck:
    if not isinstance(expected, list) or not isinstance(actual, list):
        # a table of no rows, and a list of no maps
        if _is_nothing(expected) and _is_nothing(actual):
            return OutputCheck(name, "list", 0.0, 0.0, 0.0, 0.0, agrees=True, weak="it is empty")
        return faulty(name, expected, "one is a list, the other is not")
    if len(expected) != len(actual):
        return faulty(name, expected, f"a list of {len(actual)}, not of {len(expected)}")
    pairs = zip(expected, actual, strict=True)
    checks = [compare_arrays(name, want, have, **options) for want, have in pairs]
    if not checks:
        return OutputCheck(name, "list", 0.0, 0.0, 0.0, 0.0, agrees=True, weak="it is empty")
    return worst(checks)


def _compare_exactly(
    name: str, want: Any, have: Any, bytes_within: float | None = None
) -> OutputCheck:
    """Equal; or, of one approximate rewrite, quantized numbers a unit off, or by so much."""
    agrees = bool(np.array_equal(want, have))
    distance = relative = 0.0
    if not agrees and want.dtype.kind in "biu":
        measured = Measured(want, have)
        distance, spread = measured.error, measured.spread
        relative = distance / spread if spread else distance
        if bytes_within is not None and want.dtype.itemsize == 1 and want.dtype.kind in "iu":
            agrees = distance <= max(1.0, bytes_within * spread)
    fault = None if agrees else f"{int((want != have).sum())} of {want.size} values differ"
    weak = "it is empty" if want.size == 0 else None
    kind = "string" if want.dtype.kind in "OUS" else want.dtype.name
    return OutputCheck(name, kind, distance, relative, 0.0, 0.0, agrees, weak, fault)


def _compare_floats(
    name: str, want: Any, have: Any, allowed: float, averaged: float, *, places: bool
) -> OutputCheck:
    if np.array_equal(want, have):  # most are: what follows takes 20 times as long
        weak = None if np.isfinite(want).any() else "it holds no finite number"
        weak = weak if want.size else "it is empty"
        return OutputCheck(name, want.dtype.name, 0.0, 0.0, 0.0, allowed, agrees=True, weak=weak)
    measured = Measured(want, have, places=places)
    weak = None
    doubted = False
    if want.size == 0:
        weak = "it is empty"
    elif not measured.finite:
        doubted = bool(np.isnan(want).all())  # whatever is done to it, a NaN stays one
        weak = "it is NaN throughout" if doubted else "it holds no finite number"
    for what, count in measured.elsewhere.items():
        if count:
            expected, found = (_said(number) for number in measured.first[what])
            alone = "place" if count == 1 else "places"
            fault = f"{what} at {count} {alone} of one side alone: {found} where it was {expected}"
            return replace(faulty(name, want, fault), tolerance=allowed, weak=weak)
    largest, spread = measured.error, measured.spread
    resolution = float(finfo(want.dtype).eps)
    floor = ROUNDINGS * resolution * max(measured.magnitude, averaged)
    relative = largest / spread if spread else (0.0 if largest == 0.0 else math.inf)
    if weak is None and largest and floor > 0.1 * spread:
        weak = "it varies by little more than rounding"
    return OutputCheck(
        name=name,
        dtype=want.dtype.name,
        max_absolute=largest,
        max_relative=relative,
        ulp=measured.ulp,
        tolerance=allowed,
        agrees=largest <= max(allowed * spread, floor),
        weak=weak,
        doubted=doubted,
    )


def _said(number: Any) -> str:
    return f"{number:.3g}".replace("nan", "NaN")


def _same_bits(want: Any, have: Any) -> bool:
    """Equal, zeros by sign too; a NaN equals any NaN."""
    whole = np.dtype(f"u{want.dtype.itemsize}") if want.dtype.itemsize <= 8 else np.dtype(np.uint8)
    a, b = np.ascontiguousarray(want), np.ascontiguousarray(have)
    if whole.itemsize != a.dtype.itemsize:
        return a.tobytes() == b.tobytes()
    same = a.reshape(-1).view(whole) == b.reshape(-1).view(whole)
    return bool(same.all() or (same | (np.isnan(a) & np.isnan(b)).reshape(-1)).all())


def worst(checks: Sequence[OutputCheck]) -> OutputCheck:
    """The check that agrees least; weak only where all are."""
    chosen = max(checks, key=lambda c: (not c.agrees, c.fault is not None, c.max_relative))
    return chosen if all(c.weak for c in checks) else replace(chosen, weak=None)
