"""Range as part of a constant table, or as a sum of ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import LARGEST, TYPE, Bench
from surgeon.builders.number_bounds import Bounded, Bounds
from surgeon.dims import Dim
from surgeon.facts.fact import INTEGERS
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_LARGEST_TABLE = 1 << 18  # elements
_VIEWS = frozenset("Unsqueeze Squeeze Reshape Expand Identity Flatten".split())


@dataclass(frozen=True, slots=True)
class _Count:
    """A Range of whole numbers.

    Attributes:
        start: An integer tensor, or a number.
        limit: An integer tensor.
        step: Not 0.
        dtype: Of the result, which may be a float.
    """

    start: gs.Tensor | int
    limit: gs.Tensor
    step: int
    dtype: int


def range_of_numbers(draft: Draft, match: Match) -> gs.Tensor:
    """Range of lists of one, of the numbers in them."""
    facts, operands = draft.facts, list(match.root.inputs)
    lists = [facts.of(tensor).shape == (1,) for tensor in operands]
    if not any(lists):
        raise Refused("its operands are not known to be lists of one")
    zero = draft.constant([0], "axis")
    for place, tensor in enumerate(operands):
        if lists[place]:
            operands[place] = draft.op("Squeeze", tensor, zero)
    y: gs.Tensor = draft.op("Range", *operands)
    return y


def range_as_slice(draft: Draft, match: Match) -> gs.Tensor:
    """Range of a length that is known to have a bound: so many elements of a constant table."""
    c = Bench(draft)
    count = _count(c, match.root)
    low, high = _span(c, count)
    if high is None:
        raise Refused(_unbounded(c, count))
    return _counted(c, count, high, negative=low is None or low < 0)


def range_within_table(draft: Draft, match: Match) -> gs.Tensor:
    """Range from 0 that indexes a table of known size: beyond it the model has no value."""
    c, node = Bench(draft), match.root
    count = _count(c, node)
    low, high = _span(c, count)
    if high is not None:
        raise Refused("the bound of its length needs no table")
    if not isinstance(count.start, int) or count.start or count.step != 1:
        raise Refused("it does not count from 0 in ones")
    sizes = list(_indexed(c, node.outputs[0]))
    if not sizes:
        raise Refused("it indexes nothing of known size")
    return _counted(c, count, min(sizes), negative=low is None or low < 0)


def _count(c: Bench, node: gs.Node) -> _Count:
    dtype = c.dtype(node.inputs[0])
    begin, delta = (_number(c, t) for t in (node.inputs[0], node.inputs[2]))
    if delta is None or delta == 0:
        raise Refused("its step is known at run time only")
    if not abs(delta) <= LARGEST:
        raise Refused("its step is beyond what int64 counts both ways")
    limit = node.inputs[1]
    if dtype in FLOATS:
        producer = producer_of(limit)
        whole = begin is not None and begin == int(begin) and delta == int(delta)
        if producer is not None and producer.op == "Cast":
            limit = producer.inputs[0]
        if not whole or c.facts.of(limit).dtype not in INTEGERS:
            raise Refused("it counts in fractions, or to one, whose sums round as they may")
    return _Count(node.inputs[0] if begin is None else int(begin), limit, int(delta), dtype)


def _number(c: Bench, t: gs.Tensor) -> float | None:
    array = c.facts.array(t)
    return None if array is None or array.dtype == object else array.reshape(-1)[0].item()


def range_as_sums(draft: Draft, match: Match) -> gs.Tensor:
    """Range of any length: so many ones, of which each is given the sum of those before it."""
    c = Bench(draft)
    count = _count(c, match.root)
    low, _ = _span(c, count)
    length = _length(c, count, negative=low is None or low < 0)
    ones = c.op("ConstantOfShape", length, value=np.asarray([1], np.int64))
    y = c.op("CumSum", ones, c.number(0, TYPE.INT64), exclusive=1)
    if count.step != 1:
        y = c.op("Mul", y, c.number(count.step, TYPE.INT64))
    if not isinstance(count.start, int):
        start = c.op("Reshape", c.cast(count.start, TYPE.INT64), c.ints([], "scalar"))
        y = c.op("Add", y, start)
    elif count.start:
        y = c.op("Add", y, c.number(count.start, TYPE.INT64))
    return c.cast(y, count.dtype)


def fractions_as_sums(draft: Draft, match: Match) -> gs.Tensor:
    """Range in fractions, or between floats: a count of its elements, times the step.

    The number of elements is that of onnxruntime, which reckons in double precision. Its elements
    it adds up, and they drift: the product is what the standard says, and PyTorch computes.
    """
    c, node = Bench(draft), match.root
    start, limit, delta = node.inputs
    dtype = c.dtype(start)
    if dtype not in FLOATS:
        raise Refused("it counts in whole numbers, from one to another")
    first, end, step = (c.cast(t, TYPE.DOUBLE) for t in (start, limit, delta))
    many = c.op("Ceil", c.op("Div", c.op("Sub", end, first), step))
    many = c.cast(c.op("Max", many, c.number(0, TYPE.DOUBLE)), TYPE.INT64)
    length = c.op("Reshape", many, c.ints([1], "one"))
    ones = c.op("ConstantOfShape", length, value=np.asarray([1], np.int64))
    number = c.cast(c.op("CumSum", ones, c.number(0, TYPE.INT64), exclusive=1), dtype)
    return c.op("Add", c.op("Mul", number, delta), start)


def _length(c: Bench, count: _Count, *, negative: bool) -> gs.Tensor:
    """How many elements there are from start to limit, as int64[1]."""
    step, start = count.step, count.start
    a, b = (start if isinstance(start, int) else c.scalar(start)), c.scalar(count.limit)
    room = b if (a, step > 0) == (0, True) else c.sub(b, a) if step > 0 else c.sub(a, b)
    lines = room if abs(step) == 1 else c.div(c.add(room, abs(step) - 1), abs(step))
    length = c.vector([lines], "length")
    return c.op("Max", length, c.ints([0], "zero")) if negative else length


def _counted(c: Bench, count: _Count, high: int, *, negative: bool) -> gs.Tensor:
    """As many elements of a table of `high` as there are from start to limit."""
    step, start = count.step, count.start
    many = max(-(-high // abs(step)), 0)
    if many > _LARGEST_TABLE:
        raise Refused(f"a table of {many} elements would be a large constant")
    length = _length(c, count, negative=negative)  # a negative end would count from behind
    kind = onnx.helper.tensor_dtype_to_np_dtype(count.dtype)
    first = start if isinstance(start, int) else 0
    table = c.draft.constant((np.arange(many) * step + first).astype(kind), "table")
    y = c.op("Slice", table, c.ints([0], "starts"), length, c.ints([0], "axes"))
    if isinstance(start, int):
        return y
    return c.op("Add", y, c.op("Reshape", start, c.ints([], "scalar")))


def _indexed(c: Bench, t: gs.Tensor) -> Iterator[int]:
    """The sizes of what is indexed with the tensor's elements, however they are viewed."""
    for reader in t.outputs:
        if (reader.domain or "") not in STANDARD:
            continue
        if reader.op == "Gather" and len(reader.inputs) > 1 and reader.inputs[1] is t:
            shape = c.shape(reader.inputs[0])
            size = None if shape is None else shape[int(attribute_of(reader, "axis") or 0)]
            if isinstance(size, int):
                yield size
        elif reader.op in _VIEWS and reader.inputs[0] is t:
            yield from _indexed(c, reader.outputs[0])


def _span(c: Bench, count: _Count) -> Bounds:
    """The least and the greatest distance from start to limit, in the direction of the step."""
    a, b = _value(c, count.start), _value(c, count.limit)
    if a is not None and b is not None:
        room = b - a if count.step > 0 else a - b
        low, high = dims.bounds(room)
        return (0 if dims.not_negative(room) else low), high
    bounded = Bounded(c)
    ends = bounded.by(count.start), bounded.by(count.limit)
    (least, most), (low, high) = ends if count.step > 0 else ends[::-1]
    return (
        None if low is None or most is None else low - most,
        None if high is None or least is None else high - least,
    )


def _value(c: Bench, t: gs.Tensor | int) -> Dim | None:
    if isinstance(t, int):
        return t
    value = c.facts.of(t).value
    if value is None or value.size != 1 or value.dtype.kind == "f":
        return None
    found: Dim = value.reshape(-1).tolist()[0]
    return found


def _unbounded(c: Bench, count: _Count) -> str:
    ends = [_value(c, t) or 0 for t in (count.start, count.limit)]
    names = sorted({name for end in ends for name in dims.symbols(end)})
    if names:
        bounds = ", ".join(f"`--assume '{name} <= 512'`" for name in names)
        return f"no upper bound of its length is known; give one, as with {bounds}"
    return (
        f"its length is computed from data (`{count.limit.name}`) of no known bound; to count "
        "to a fixed length instead would change the shape of what reads it"
    )
