"""`arange`: how many numbers PyTorch counts, and which, where any of its bounds is computed.

PyTorch counts in double precision, or where the result is int64 in integers, whatever the bounds
are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.facts.fact import INTEGERS, Array
from surgeon.rewrite import Refused

LARGEST_CONSTANT = 1 << 16  # elements of a constant made here
_BOUNDS = (("start", 0), ("end", None), ("step", 1))


def known(c: Call, name: str, default: Any) -> Any:
    """A number where it is known, else None."""
    given = c.args.given.get(name)
    if given is None:
        return default
    if isinstance(given, list) or c.facts.array(given) is None:
        return None
    return c.value(name)


def arange(c: Call) -> gs.Tensor:
    """As a constant, by `Range`, or below opset 11 by counting ones."""
    numbers = [known(c, name, default) for name, default in _BOUNDS]
    kinds = {c.facts.of(t).dtype for t in _given(c)}
    whole = kinds <= INTEGERS
    dtype = c.wanted_dtype(TYPE.INT64 if whole else TYPE.FLOAT)
    if numbers[2] == 0:
        raise Refused("its step is 0")
    if None not in numbers:
        array = _counted(numbers, dtype)
        if array.size <= LARGEST_CONSTANT:
            kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
            return c.draft.constant(array.astype(kind), "range")
    if whole or dtype == TYPE.INT64:
        return _whole(c, dtype)
    if dtype in INTEGERS or c.opset < 11:
        return _by_double(c, dtype)
    return _range(c, dtype, numbers)


def _given(c: Call) -> list[gs.Tensor]:
    """The bounds that are tensors."""
    return [t for name, _ in _BOUNDS if isinstance(t := c.args.given.get(name), gs.Tensor)]


def _counted(numbers: list[Any], dtype: int) -> Array:
    start, end, step = numbers
    if dtype == TYPE.INT64:
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise Refused("its step is 0 in integers")
        count = -((start - end) // step)
    else:
        count = math.ceil((end - start) / step)
    index = np.arange(max(count, 0), dtype=np.int64)
    if dtype in INTEGERS:
        return np.asarray(int(start) + index * int(step))
    return np.asarray(start + index.astype(np.float64) * step)


def _whole(c: Call, dtype: int) -> gs.Tensor:
    """In int64; what is a fraction is cut."""
    first, last, by = (
        _integer(c, t) if isinstance(t := c.args.given.get(name), gs.Tensor) else default or 0
        for name, default in _BOUNDS
    )
    if by == 1 and first == 0:
        return c.cast(c.count(last), dtype)
    if by == 0:
        raise Refused("its step is 0 in integers")
    if not isinstance(by, int) and c.opset >= 11:
        numbers = [c.op("Reshape", c.vector([v]), c.ints([], "scalar")) for v in (first, last, by)]
        return c.cast(c.op("Range", *numbers), dtype)
    if isinstance(by, int):
        room = c.sub(last, first) if by > 0 else c.sub(first, last)
        count = c.div(c.add(room, abs(by) - 1), abs(by))
    else:
        count = _quotient(c, c.sub(last, first), by)
    steps = c.op("Mul", c.count(count), c.vector([by], "step"))
    return c.cast(c.op("Add", steps, c.vector([first], "start")), dtype)


def _integer(c: Call, bound: gs.Tensor) -> Size | int:
    array = c.facts.array(bound)
    return c.scalar(bound) if array is None else int(array.reshape(()))


def _quotient(c: Call, room: Size | int, by: Size) -> Size:
    """The room by a step of the same sign, rounded up: one more where something is left over."""

    def make() -> gs.Tensor:
        all_, step = c.vector([room]), by.tensor
        full = c.op("Div", all_, step)
        left = c.op("Sub", all_, c.op("Mul", full, step))
        more = c.cast(c.cast(left, TYPE.BOOL), TYPE.INT64)
        made: gs.Tensor = c.op("Add", full, more)
        return made

    return Size(None, make)


def _number(c: Call, name: str, default: float, dtype: int) -> gs.Tensor:
    """A bound as a number of a dtype."""
    given = c.args.given.get(name)
    if not isinstance(given, gs.Tensor):
        return c.number(default, dtype)
    if (array := c.facts.array(given)) is not None:
        return c.number(array.reshape(()), dtype)
    number = c.cast(given, dtype)
    if c.facts.of(given).rank == 0:
        return number
    made: gs.Tensor = c.op("Reshape", number, c.ints([], "scalar"))
    return made


def _by_double(c: Call, dtype: int) -> gs.Tensor:
    """As many as PyTorch counts, in integers where the result is."""
    start, end, step = (_number(c, n, d or 0, TYPE.DOUBLE) for n, d in _BOUNDS)
    room = c.op("Ceil", c.op("Div", c.op("Sub", end, start), step))
    count = c.op("Reshape", c.cast(room, TYPE.INT64), c.ints([1], "one"))
    index = c.count(Size(None, lambda: count))
    if dtype in INTEGERS:
        start, step = c.cast(start, TYPE.INT64), c.cast(step, TYPE.INT64)
    else:
        index = c.cast(index, TYPE.DOUBLE)
    return c.cast(c.op("Add", c.op("Mul", index, step), start), dtype)


def _range(c: Call, dtype: int, numbers: list[Any]) -> gs.Tensor:
    """`Range`, in single precision where that cannot count another number of them."""
    exact = [n is None or float(np.float32(n)) == float(n) for n in numbers]
    unrounded = all(exact) and numbers[0] == 0 and not _is_double(c, numbers)
    single = dtype != TYPE.DOUBLE and unrounded
    compute = TYPE.FLOAT if single else TYPE.DOUBLE
    parts = [_number(c, name, default or 0, compute) for name, default in _BOUNDS]
    return c.cast(c.op("Range", *parts), dtype)


def _is_double(c: Call, numbers: list[Any]) -> bool:
    """Whether a bound that is computed has digits which single precision lacks."""
    return any(
        n is None and c.facts.of(c.tensor(name)).dtype == TYPE.DOUBLE
        for n, (name, _) in zip(numbers, _BOUNDS, strict=True)
    )
