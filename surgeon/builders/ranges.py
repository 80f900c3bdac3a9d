"""Range as part of a constant table or as a sum of ones, and parts of a shape without Gather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import LARGEST, TYPE, Bench
from surgeon.builders.selections import producer_of
from surgeon.dims import Dim
from surgeon.facts.fact import INTEGERS
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_LARGEST_TABLE = 1 << 18  # elements
_DEPTH = 32  # nodes that are looked through for the bounds of a number
_LONGEST_LIST = 8  # sizes
Bounds = tuple[int | None, int | None]
_VIEWS = frozenset("Unsqueeze Squeeze Reshape Expand Identity Flatten".split())
_SAME_VALUES = frozenset(
    "Identity Reshape Squeeze Unsqueeze Flatten Transpose Expand Gather GatherND GatherElements "
    "Slice Tile ReduceMax ReduceMin".split()
)


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
        if (reader.domain or "") not in ("", "ai.onnx"):
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
    ends = _bounds(c, count.start), _bounds(c, count.limit)
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


def _bounds(c: Bench, t: gs.Tensor | int, depth: int = _DEPTH) -> Bounds:
    """Bounds of every element of an integer tensor, from what computes it."""
    if isinstance(t, int):
        return t, t
    if (known := _known_bounds(c, t)) is not None:
        return known
    node = producer_of(t)
    if node is None or depth == 0:
        return None, None
    c.draft.leans.append(node)
    if node.op in ("ArgMax", "ArgMin"):
        shape = c.shape(node.inputs[0])
        axis = int(attribute_of(node, "axis") or 0)
        most = None if shape is None else dims.bounds(shape[axis])[1]
        return 0, None if most is None else most - 1
    inner = [_bounds(c, x, depth - 1) for x in node.inputs if not x.is_empty()]
    if node.op in _SAME_VALUES:
        return inner[0]
    if node.op == "Cast":
        kind = c.facts.of(node.inputs[0]).dtype
        return (0, 1) if kind == TYPE.BOOL else _cut_to(inner[0], int(node.attrs["to"]))
    if node.op in ("Concat", "Where"):
        taken = inner[1:] if node.op == "Where" else inner
        return _around(taken)
    if node.op in ("Add", "Sub"):
        (a, b), (x, y) = inner
        other = (x, y) if node.op == "Add" else (_negated(y), _negated(x))
        return _sum(a, other[0]), _sum(b, other[1])
    if node.op in ("Min", "Max"):
        lows = [low for low, _ in inner]
        highs = [high for _, high in inner]
        if node.op == "Min":  # one operand's upper bound is enough
            return _least(lows), _least([h for h in highs if h is not None] or [None])
        return _greatest([low for low in lows if low is not None] or [None]), _greatest(highs)
    return None, None


def _known_bounds(c: Bench, t: gs.Tensor) -> Bounds | None:
    """Bounds of a tensor whose elements are known, as numbers or sizes; None of any other."""
    value = c.facts.of(t).value
    if value is not None and value.size:
        ends = [dims.bounds(v) for v in value.reshape(-1).tolist() if not isinstance(v, float)]
        if len(ends) == value.size:
            return _around(ends)
    array = c.facts.array(t)
    if array is not None and array.size and array.dtype.kind in "iu":
        return int(array.min()), int(array.max())
    return None


def _around(several: Sequence[Bounds]) -> Bounds:
    """Bounds of all that have one of these."""
    return _least([low for low, _ in several]), _greatest([high for _, high in several])


def _cut_to(inner: Bounds, dtype: int) -> Bounds:
    """What is left of bounds in a dtype that may be too narrow for them."""
    if dtype not in INTEGERS or dtype == TYPE.INT64:
        return inner
    limits = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    low, high = inner
    fits = low is not None and high is not None and limits.min <= low and high <= limits.max
    return inner if fits else (None, None)


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


# ------------------------------------------------------------------ parts of a shape


def part_of_shape(draft: Draft, match: Match) -> gs.Tensor:
    """Gather or Slice of a shape at constant places: Shape of those axes, or a Slice before 15."""
    c, node = Bench(draft), match.root
    source = producer_of(node.inputs[0])
    if source is None or source.op != "Shape":
        raise Refused("what it takes from is no Shape")
    x = source.inputs[0]
    if node.op == "Slice" and c.opset < 15:
        raise Refused("it is a Slice already")
    rank = c.rank(x)
    begin, end, _ = slice(attribute_of(source, "start") or 0, source.attrs.get("end")).indices(rank)
    axes = list(range(begin, max(begin, end)))
    picked, scalar = _picked(c, node, len(axes))
    runs: list[list[int]] = []
    for axis in (axes[i] for i in picked):
        if runs and axis == runs[-1][-1] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    if not runs:
        raise Refused("it takes nothing")
    if len(runs) > 1 and c.opset < 15:
        raise Refused("it takes several parts, which needs Shape with start and end, of opset 15")
    parts = [_part(c, x, node.inputs[0], run, axes, rank) for run in runs]
    y = c.concat(parts, 0)
    return c.squeeze(y, [0]) if scalar else y


def _part(
    c: Bench, x: gs.Tensor, shape: gs.Tensor, run: list[int], axes: list[int], rank: int
) -> gs.Tensor:
    if c.opset >= 15:
        bounds = {"end": run[-1] + 1} if run[-1] + 1 < rank else {}
        return c.op("Shape", x, **({"start": run[0]} if run[0] else {}), **bounds)
    place = axes.index(run[0])
    return c.slice(shape, 0, place, place + len(run))


def _picked(c: Bench, node: gs.Node, count: int) -> tuple[list[int], bool]:
    """The places taken, from the front, and whether it is one that becomes a scalar."""
    given = [c.facts.array(t) for t in node.inputs[1:] if not t.is_empty()]
    if any(a is None or a.dtype == object for a in given):
        raise Refused("what it takes is known at run time only")
    arrays = [a for a in given if a is not None]
    if node.op == "Gather":
        if arrays[0].ndim > 1:
            raise Refused("it gives more than a line of sizes")
        places = [int(i) for i in arrays[0].reshape(-1)]
        if any(not -count <= i < count for i in places):
            raise Refused("it takes what is not there")
        return [i % count for i in places], arrays[0].ndim == 0
    start, end = (int(a.reshape(-1)[0]) for a in arrays[:2])
    steps = node.inputs[4:]  # axes in front of them may be left out
    if any(not t.is_empty() and c.facts.array(t) != 1 for t in steps):
        raise Refused("it takes sizes in steps")
    return list(range(count))[slice(start, min(end, LARGEST))], False


def sizes_as_numbers(draft: Draft, match: Match) -> gs.Tensor:
    """Arithmetic of a short list of sizes, size by size, each a number of its own."""
    c, node = Bench(draft), match.root
    y = draft.facts.of(node.outputs[0])
    many = y.shape[0] if y.shape is not None and len(y.shape) == 1 else None
    if y.dtype != TYPE.INT64 or not isinstance(many, int) or not 1 <= many <= _LONGEST_LIST:
        raise Refused("it makes no short list of int64")
    lists = [_numbers(c, t, many) for t in node.inputs]
    made = [c.op(node.op, *pair) for pair in zip(*lists, strict=True)]
    return c.concat([c.unsqueeze(t, [0]) for t in made], 0)


def _numbers(c: Bench, t: gs.Tensor, many: int) -> list[gs.Tensor]:
    """Each element of a list as a scalar, one for all where it is broadcast."""
    array, producer = c.facts.array(t), producer_of(t)
    if array is not None and array.dtype != object:
        return [c.number(v, TYPE.INT64) for v in np.broadcast_to(array, (many,)).tolist()]
    shape = c.shape(t)
    if shape not in ((1,), (many,)):
        raise Refused(f"`{t.name}` is no list of as many")
    if producer is not None and producer.op == "Unsqueeze":
        return [producer.inputs[0]] * many
    places = [0 if shape == (1,) else i for i in range(many)]
    while producer is not None and producer.op in ("Gather", "Slice"):
        source = c.shape(producer.inputs[0])
        if source is None or len(source) != 1 or not isinstance(source[0], int):
            raise Refused(f"`{t.name}` is taken from no list of known length")
        picked, _ = _picked(c, producer, source[0])
        places, t = [picked[i] for i in places], producer.inputs[0]
        producer = producer_of(t)
    if producer is None or producer.op not in ("Shape", "Concat"):
        raise Refused(f"`{t.name}` holds no sizes that a Shape gives")
    return [c.op("Gather", t, c.number(i, TYPE.INT64), axis=0) for i in places]
