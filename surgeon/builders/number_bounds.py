"""Bounds of whole numbers that are computed, from what computes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench
from surgeon.facts.fact import INTEGERS
from surgeon.match import attribute_of, producer_of

Bounds = tuple[int | None, int | None]
_NOTHING: Bounds = (None, None)
_DEPTH = 32  # nodes that are looked through
_WHOLE = 1 << 24  # up to here single precision has every whole number
_WIDE = (TYPE.FLOAT, TYPE.DOUBLE)
# Up to here a float of this type has every whole number.
_EXACT_UP_TO: dict[int, int] = {
    TYPE.FLOAT16: 1 << 11,
    TYPE.BFLOAT16: 1 << 8,
    TYPE.FLOAT: 1 << 24,
    TYPE.DOUBLE: 1 << 53,
}
_SAME_VALUES = frozenset(
    "Identity Reshape Squeeze Unsqueeze Flatten Transpose Expand Gather GatherND GatherElements "
    "Slice Tile ReduceMax ReduceMin".split()
)


class Bounded:
    """Bounds of every element of integer tensors, each asked once at each depth.

    Args:
        c: Its draft is told which nodes a bound rests on.
    """

    def __init__(self, c: Bench) -> None:
        self.c = c
        self._found: dict[tuple[int, int], Bounds] = {}

    def by(self, t: gs.Tensor | int, depth: int = _DEPTH) -> Bounds:
        """The least and the greatest that it may be; None where nothing tells."""
        if isinstance(t, int):
            return t, t
        if (id(t), depth) not in self._found:
            known = self._known(t)
            self._found[id(t), depth] = self._computed(t, depth) if known is None else known
        return self._found[id(t), depth]

    def _known(self, t: gs.Tensor) -> Bounds | None:
        """Of a tensor whose elements are known, as numbers or sizes; None of any other."""
        value = self.c.facts.of(t).value
        if value is not None and value.size:
            ends = [dims.bounds(v) for v in value.reshape(-1).tolist() if not isinstance(v, float)]
            if len(ends) == value.size:
                return _around(ends)
        array = self.c.facts.array(t)
        if array is None or not array.size or array.dtype.kind not in "iuf":
            return None
        if array.dtype.kind == "f" and not np.all(
            (array == np.rint(array)) & (abs(array) <= _WHOLE)
        ):
            return None
        return int(array.min()), int(array.max())

    def _computed(self, t: gs.Tensor, depth: int) -> Bounds:
        node = producer_of(t)
        if node is None or depth == 0:
            return _NOTHING
        c = self.c
        c.draft.leans.append(node)
        if node.op in ("ArgMax", "ArgMin"):
            shape = c.shape(node.inputs[0])
            axis = int(attribute_of(node, "axis") or 0)
            most = None if shape is None else dims.bounds(shape[axis])[1]
            return 0, None if most is None else most - 1
        inner = [self.by(x, depth - 1) for x in node.inputs if not x.is_empty()]
        if node.op in _SAME_VALUES:
            return inner[0]
        if node.op == "Cast":
            kind = c.facts.of(node.inputs[0]).dtype
            return (0, 1) if kind == TYPE.BOOL else _cut_to(inner[0], int(node.attrs["to"]))
        if node.op in ("Concat", "Where"):
            return _around(inner[1:] if node.op == "Where" else inner)
        if node.op in ("Add", "Sub"):
            (a, b), (x, y) = inner
            other = (x, y) if node.op == "Add" else (_negated(y), _negated(x))
            return _unwrapped((_sum(a, other[0]), _sum(b, other[1])), c.dtype(t))
        if node.op == "Mul":
            (a, b), (x, y) = inner
            if a is None or b is None or x is None or y is None:
                return _NOTHING
            ends = (a * x, a * y, b * x, b * y)
            return _unwrapped((min(ends), max(ends)), c.dtype(t))
        if node.op in ("Min", "Max"):
            if c.dtype(t) not in INTEGERS and any(None in bounds for bounds in inner):
                return _NOTHING  # what is NaN is beyond no bound
            lows = [low for low, _ in inner]
            highs = [high for _, high in inner]
            if node.op == "Min":  # one operand's upper bound is enough
                return _least(lows), _least([h for h in highs if h is not None] or [None])
            return _greatest([low for low in lows if low is not None] or [None]), _greatest(highs)
        return _NOTHING


def _around(several: Sequence[Bounds]) -> Bounds:
    """Bounds of all that have one of these."""
    return _least([low for low, _ in several]), _greatest([high for _, high in several])


def _cut_to(inner: Bounds, dtype: int) -> Bounds:
    """What is left of bounds in a dtype that may be too narrow for them, or round beyond them."""
    if dtype == TYPE.INT64:
        return inner
    if dtype in _EXACT_UP_TO:
        most = _EXACT_UP_TO[dtype]
        least = -most
    elif dtype in INTEGERS:
        limits = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(dtype))
        least, most = int(limits.min), int(limits.max)
    else:
        return _NOTHING
    low, high = inner
    fits = low is not None and high is not None and least <= low and high <= most
    return inner if fits else _NOTHING


def _unwrapped(bounds: Bounds, dtype: int) -> Bounds:
    """Bounds of a sum or product, unless its dtype does not hold it: then it may be anything."""
    low, high = bounds
    if dtype not in INTEGERS:
        if dtype not in _WIDE or low is None or high is None:
            return _NOTHING
        return bounds if low >= -_WHOLE and high <= _WHOLE else _NOTHING
    limits = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    wraps = (low is not None and low < limits.min) or (high is not None and high > limits.max)
    return _NOTHING if wraps else bounds


def _least(values: Sequence[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return min(known) if len(known) == len(values) else None


def _greatest(values: Sequence[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return max(known) if len(known) == len(values) else None


def _negated(value: int | None) -> int | None:
    return None if value is None else -value


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
