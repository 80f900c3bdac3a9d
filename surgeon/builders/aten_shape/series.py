"""Lines of numbers that depend on constants alone: powers, windows, frequencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.aten_shape.creation import computed_line
from surgeon.facts.fact import Array
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

_LARGEST = 1 << 20
_COSINES = {"hann": (0.5, 0.5), "hamming": (0.54, 0.46)}  # alpha and beta, where nothing is said


def _constant(c: Call, values: Array) -> gs.Tensor:
    dtype = c.wanted_dtype(TYPE.FLOAT)
    if dtype not in FLOATS:
        raise Refused("in integers its rounding is the device's own")
    return c.draft.constant(
        np.asarray(values, np.float64).astype(onnx.helper.tensor_dtype_to_np_dtype(dtype)), "line"
    )


def _logspace(c: Call) -> gs.Tensor:
    base = float(c.value("base"))
    if any(c.facts.array(c.tensor(name)) is None for name in ("start", "end", "steps")):
        dtype = c.wanted_dtype(TYPE.FLOAT)
        if dtype not in FLOATS:
            raise Refused("in integers its rounding is the device's own")
        exponents = computed_line(c, dtype)
        return c.cast(c.op("Pow", c.number(base, c.dtype(exponents)), exponents), dtype)
    start, end, steps = float(c.value("start")), float(c.value("end")), c.integer("steps")
    line = np.asarray([start]) if steps == 1 else np.linspace(start, end, steps)
    return _constant(c, base**line)


def _number(c: Call, name: str, default: float) -> float:
    return float(c.value(name)) if c.args.schema.takes(name) else default


def _cosine(c: Call, kind: str) -> tuple[float, float]:
    alpha, beta = _COSINES[kind]
    return _number(c, "alpha", alpha), _number(c, "beta", beta)


def _computed_window(c: Call, length: Size, *, periodic: bool) -> gs.Tensor:
    """A window whose length comes at run time; one number alone is 1."""
    kind, dtype = c.node.op.removesuffix("_window"), c.wanted_dtype(TYPE.FLOAT)
    if dtype not in FLOATS:
        raise Refused("in integers its rounding is the device's own")
    compute = TYPE.DOUBLE if dtype == TYPE.DOUBLE else TYPE.FLOAT

    def number(value: float) -> gs.Tensor:
        return c.number(value, compute)

    def wave(share: gs.Tensor, turns: int) -> gs.Tensor:
        made: gs.Tensor = c.op("Cos", c.op("Mul", share, number(2 * np.pi * turns)))
        return made

    gaps = c.op("Max", c.vector([length if periodic else c.sub(length, 1)]), c.ints([1], "one"))
    share = c.op("Div", c.cast(c.count(length), compute), c.cast(gaps, compute))
    if kind in _COSINES:
        alpha, beta = _cosine(c, kind)
        line = c.op("Sub", number(alpha), c.op("Mul", wave(share, 1), number(beta)))
    elif kind == "blackman":
        line = c.op("Sub", number(0.42), c.op("Mul", wave(share, 1), number(0.5)))
        line = c.op("Add", line, c.op("Mul", wave(share, 2), number(0.08)))
    elif kind == "bartlett":
        from_middle = c.op("Sub", c.op("Mul", share, number(2)), number(1))
        line = c.op("Sub", number(1), c.op("Abs", from_middle))
    else:
        raise Refused("`window_length` is known at run time only, and ONNX has no Bessel functions")
    alone = c.op("Less", c.vector([length]), c.ints([2], "two"))
    return c.cast(c.where(alone, number(1), line), dtype)


def _window(c: Call) -> gs.Tensor:
    """Of one period where periodic: as of one more, and without the last."""
    periodic = not c.args.schema.takes("periodic") or bool(c.value("periodic"))
    length = c.counted("window_length")
    if not isinstance(length, int):
        return _computed_window(c, length, periodic=periodic)
    if length > _LARGEST:
        raise Refused(f"a window of {length} numbers")
    if length < 2:
        return _constant(c, np.ones(length))
    whole = length + 1 if periodic else length
    angle = 2 * np.pi * np.arange(whole) / (whole - 1)
    kind = c.node.op.removesuffix("_window")
    if kind in _COSINES:
        alpha, beta = _cosine(c, kind)
        line = alpha - beta * np.cos(angle)
    elif kind == "blackman":
        line = 0.42 - 0.5 * np.cos(angle) + 0.08 * np.cos(2 * angle)
    elif kind == "bartlett":
        line = 1 - np.abs(angle / np.pi - 1)
    else:
        line = np.kaiser(whole, _number(c, "beta", 12.0))
    return _constant(c, line[:length])


def _frequencies(c: Call) -> gs.Tensor:
    count, step = c.counted("n"), float(c.value("d"))
    if not isinstance(count, int):
        return _computed_frequencies(c, count, step)
    if count > _LARGEST:
        raise Refused(f"{count} frequencies")
    line = np.arange(count // 2 + 1)
    if c.node.op == "fft_fftfreq":
        line = (np.arange(count) + count // 2) % count - count // 2
    return _constant(c, line / (count * step))


def _computed_frequencies(c: Call, count: Size, step: float) -> gs.Tensor:
    """Of a number that is known at run time; in whole numbers up to the division."""
    if c.node.op == "fft_fftfreq":
        line = c.count(count)
        less = c.op("Sub", line, count.tensor)
        half = c.vector([c.div(c.add(count, 1), 2)])
        line = c.op("Where", c.op("Less", line, half), line, less)
    else:
        line = c.count(c.add(c.div(count, 2), 1))
    dtype = c.wanted_dtype(TYPE.FLOAT)
    whole = c.op("Mul", c.cast(count.tensor, dtype), c.number(step, dtype))
    made: gs.Tensor = c.op("Div", c.cast(line, dtype), whole)
    return made


_WINDOWS = ("hann", "hamming", "blackman", "bartlett", "kaiser")
LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "logspace": _logspace,
    **dict.fromkeys((f"{name}_window" for name in _WINDOWS), _window),
    **dict.fromkeys(("fft_fftfreq", "fft_rfftfreq"), _frequencies),
}
