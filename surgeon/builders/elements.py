"""What is picked element by element: GatherElements, ReverseSequence, EyeLike, ArgMax, Unique."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import parts
from surgeon.builders.aten_shape.order import topk
from surgeon.builders.bench import LARGEST, TYPE, Bench, Size, same_length
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of, is_one_of, producer_of
from surgeon.rewrite import Draft, Refused

_FIRST_EQUAL_OF_FLOATS = 11
_FIRST_TOPK_OF_INTEGERS = 11
_COUNTED = 1 << 24  # up to here single precision has every whole number
_LARGEST_EYE = 1 << 16  # elements of one that is a constant
_LARGEST_MARK = 1 << 31  # a diagonal beyond this is beyond every length
_ORDERED = (TYPE.FLOAT, TYPE.DOUBLE, TYPE.INT32, TYPE.INT64)
_WHOLE = frozenset(
    {TYPE.INT8, TYPE.INT16, TYPE.INT32, TYPE.INT64, TYPE.UINT8, TYPE.UINT16, TYPE.UINT32, TYPE.BOOL}
)


def elements_as_gather(draft: Draft, match: Match) -> gs.Tensor:
    """GatherElements as a Gather of the line that the data are, by places counted in it."""
    c, node = Bench(draft), match.root
    data, indices = node.inputs
    axis = c.axis(int(attribute_of(node, "axis")), c.rank(data))
    return _by_places(c, data, indices, axis, c.sizes(indices))


def lines_as_gather(draft: Draft, match: Match) -> gs.Tensor:
    """GatherND as a Gather of lines, whose numbers are the sums of where their places begin."""
    c, node = Bench(draft), match.root
    data, indices = node.inputs
    batch, shape = int(attribute_of(node, "batch_dims")), c.shape(indices)
    depth = shape[-1] if shape else None
    if not isinstance(depth, int) or depth < 1:
        raise Refused("how many axes it indexes is not known")
    sizes = c.sizes(data)
    behind, last = batch + depth, c.rank(indices) - 1
    if behind == 1:
        whole: gs.Tensor = c.op("Gather", data, c.squeeze(indices, [last]), axis=0)
        return whole
    own = c.shape(data)
    for n in range(batch):
        if own is None or shape is None or dims.equal(own[n], shape[n]) is not True:
            raise Refused("whether its batches are of one size is known at run time only")
    steps = [c.product(sizes[n + 1 : behind]) for n in range(behind)]
    place: gs.Tensor | None = None
    for n in range(behind):
        along = _places(c, sizes[n], steps[n])
        if n < batch:
            along = _stood(c, along, last, n)
        elif depth == 1:
            along = c.op("Gather", along, c.squeeze(indices, [last]), axis=0)
        else:
            index = c.op("Gather", indices, c.number(n - batch, TYPE.INT64), axis=last)
            along = c.op("Gather", along, index, axis=0)
        place = along if place is None else c.op("Add", place, along)
    data = c.reshape(data, [c.product(sizes[:behind]), *sizes[behind:]])
    made: gs.Tensor = c.op("Gather", data, place, axis=0)
    return made


def reversed_as_gather(draft: Draft, match: Match) -> gs.Tensor:
    """ReverseSequence as a Gather of the line that its input is."""
    c, node = Bench(draft), match.root
    x, lengths = node.inputs
    time, batch = (int(attribute_of(node, key)) for key in ("time_axis", "batch_axis"))
    steps, given = c.size(x, time), draft.facts.array(lengths)
    if {time, batch} != {0, 1}:
        raise Refused("its axes are not the first two")
    if given is None:
        raise Refused("how much of a sequence is turned is computed at run time")
    if not isinstance(steps, int) or np.any(given > steps) or np.any(given < 0):
        raise Refused("a sequence may be shorter than what is turned of it")
    if c.size(x, batch) != given.size:
        raise Refused("how many sequences there are is known at run time only")
    count = np.arange(steps, dtype=np.int64).reshape(-1, 1)
    turned = np.where(count < given, given - 1 - count, count)
    turned = turned if time == 0 else turned.T
    places = turned.reshape(*turned.shape, *[1] * (c.rank(x) - 2))
    return _by_places(c, x, c.ints_of(places, "places"), time, c.sizes(x))


def reversed_as_slice(draft: Draft, match: Match) -> gs.Tensor:
    """ReverseSequence of sequences that are turned as a whole as a Slice backward."""
    c, node = Bench(draft), match.root
    x, lengths = node.inputs
    time = int(attribute_of(node, "time_axis"))
    shape = draft.facts.of(x).shape
    spread = producer_of(lengths)
    given = draft.facts.of(
        spread.inputs[0] if spread is not None and is_one_of(spread, {"Expand"}) else lengths
    ).value
    if given is None or shape is None:
        raise Refused("how much of a sequence is turned is computed at run time")
    if not all(dims.equal(each, shape[time]) is True for each in given.reshape(-1).tolist()):
        raise Refused("what is turned of a sequence is not provably all of it")
    return c.slice(x, time, -1, -LARGEST, -1)  # as PyTorch writes a flip


def _by_places(
    c: Bench, data: gs.Tensor, indices: gs.Tensor, axis: int, wanted: Sequence[Size | int]
) -> gs.Tensor:
    """Of each element: the one at its own place along all axes but one, and there at its index.

    The index is looked up in the places of its axis, so one from behind is counted from there, and
    one outside ends the run, as it did.
    """
    sizes = c.sizes(data)
    steps = [c.product(sizes[n + 1 :]) for n in range(len(sizes))]
    known = c.facts.array(indices)
    length, step = sizes[axis], steps[axis]
    if known is not None and isinstance(length, int) and isinstance(step, int):
        if np.any(known >= length) or np.any(known < -length):
            raise Refused("an index is outside its axis")
        place: gs.Tensor = c.ints_of((known.astype(np.int64) % max(length, 1)) * step, "places")
    else:
        place = c.op("Gather", _places(c, length, step), indices, axis=0)
    for n, size in enumerate(wanted):
        if n != axis and size != 1:
            beside = _places(c, size, steps[n])
            if not _covered(size, sizes[n]):  # more than there are end the run, as they did
                beside = c.op("Gather", _places(c, sizes[n], steps[n]), c.count(size), axis=0)
            place = c.op("Add", place, _stood(c, beside, len(sizes), n))
    made: gs.Tensor = c.op("Gather", c.flat(data), place, axis=0)
    return made


def _covered(some: Size | int, all_of: Size | int) -> bool:
    """Whether an axis is provably as long as that of the indices, or longer."""
    if isinstance(some, int) and isinstance(all_of, int):
        return some <= all_of
    return same_length(some, all_of)


def _places(c: Bench, length: Size | int, step: Size | int) -> gs.Tensor:
    """Where the elements of an axis begin in the line that a tensor is."""
    if isinstance(length, int) and isinstance(step, int):
        return c.ints_of(np.arange(length) * step, "places")
    count = c.count(length)
    return count if step == 1 else c.op("Mul", count, c.vector([step], "step"))


def _stood(c: Bench, line: gs.Tensor, rank: int, axis: int) -> gs.Tensor:
    """A line along an axis."""
    array = c.facts.array(line)
    if array is not None:
        return c.ints_of(array.reshape(-1, *[1] * (rank - 1 - axis)), "places")
    return c.unsqueeze(line, list(range(1, rank - axis)))


def eye_as_equal(draft: Draft, match: Match) -> gs.Tensor:
    """EyeLike as a constant, or as where a row's number is that of a column."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    if c.rank(x) != 2:
        raise Refused("its input is no matrix")
    dtype = attribute_of(node, "dtype")
    dtype = c.dtype(x) if dtype is None else int(dtype)
    if dtype not in FLOATS and dtype not in _WHOLE:
        raise Refused("few runtimes make what it is of out of truth values")
    rows, columns = c.sizes(x)
    offset = int(attribute_of(node, "k"))
    offset = max(-_LARGEST_MARK, min(offset, _LARGEST_MARK))  # beyond every length it is none
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= _LARGEST_EYE:
        kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
        return draft.constant(np.eye(rows, columns, k=offset).astype(kind), "eye")
    begun = c.unsqueeze(c.count(rows), [1])
    if offset:
        begun = c.op("Add", begun, c.number(offset, TYPE.INT64))
    return c.cast(c.op("Equal", begun, c.unsqueeze(c.count(columns), [0])), dtype)


def place_of_extreme(draft: Draft, match: Match) -> gs.Tensor:
    """ArgMax or ArgMin: of the elements that are the extreme one, the place of the first or last.

    Those have their places counted from the far end, and all others the end itself: so what is
    found lies in the axis always.
    """
    c, node = Bench(draft), match.root
    x, last = node.inputs[0], bool(attribute_of(node, "select_last_index"))
    if not c.rank(x):
        raise Refused("its input has no axis")
    axis = c.axis(int(attribute_of(node, "axis")), c.rank(x))
    length = c.size(x, axis)
    if not isinstance(length, int) or not 0 < length <= _COUNTED:
        raise Refused("its axis is not known to be of 1 to 16777216 elements")
    x = _comparable(c, x)
    axes = c.ints([axis], "axes")
    extreme = c.op(node.op.replace("Arg", "Reduce"), x, axes, keepdims=1)
    if c.opset >= _FIRST_EQUAL_OF_FLOATS or c.dtype(x) not in FLOATS:
        here = c.op("Equal", x, extreme)
    else:
        here = c.op("Not", c.op("Less", *((x, extreme) if node.op == "ArgMax" else (extreme, x))))
    places = np.arange(length, dtype=np.float32)
    numbers = (places if last else places[::-1]).reshape(-1, *[1] * (c.rank(x) - 1 - axis))
    found = c.op("Mul", c.cast(here, TYPE.FLOAT), draft.constant(numbers.copy(), "places"))
    keeps = int(attribute_of(node, "keepdims"))
    found = c.op("ReduceMax", found, axes, keepdims=keeps)
    if not last:
        found = c.op("Sub", c.number(length - 1, TYPE.FLOAT), found)
    return c.cast(found, TYPE.INT64)


def unique_as_runs(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """Unique of a line: in order, equal elements are a run, which begins with the first of them."""
    c, node = Bench(draft), match.root
    x, axis = node.inputs[0], attribute_of(node, "axis")
    rank, place = c.rank(x), 0
    if axis is not None:
        shape, place = c.shape(x), c.axis(int(axis), rank)
        if shape is None or any(d != 1 for n, d in enumerate(shape) if n != place):
            raise Refused("it is of slices, which have no order of their own")
    given = c.op("Reshape", x, c.ints([-1], "line")) if rank != 1 else x
    line = _comparable(c, given)
    length = c.size(line, 0)
    ordered, order = topk(c, line, 0, length, largest=False)
    begins = _begins(c, ordered, length)
    runs = c.squeeze(c.op("NonZero", begins), [0])
    first, turned = c.op("Gather", order, runs, axis=0), None
    if not attribute_of(node, "sorted"):
        first, turned = topk(c, first, 0, c.size(first, 0), largest=False)
    values: gs.Tensor = c.op("Gather", given, first, axis=0)
    if rank > 1 and axis is not None:
        values = c.op("Reshape", values, c.ints([-1 if n == place else 1 for n in range(rank)]))
    unread = c.ints([], "unread")
    read = [parts.is_read(draft, output) for output in node.outputs[2:]]
    number = _numbers(c, begins, order, turned) if any(read[:1]) else unread
    counts = _counts(c, runs, length, turned) if any(read[1:]) else unread
    return values, first, number, counts


def ordered_integers(draft: Draft, match: Match) -> tuple[gs.Tensor, gs.Tensor]:
    """TopK of integers below opset 11, which has it of floats alone."""
    c, node = Bench(draft), match.root
    x, count = node.inputs
    if c.opset >= _FIRST_TOPK_OF_INTEGERS:
        raise Refused("from opset 11 on TopK takes integers")
    if c.shape(count) not in ((1,), ()):
        raise Refused("its count is no single number")
    axis = attribute_of(node, "axis")
    place = c.axis(-1 if axis is None else int(axis), c.rank(x))
    return topk(c, x, place, c.scalar(count), largest=True)


def _numbers(c: Bench, begins: gs.Tensor, order: gs.Tensor, turned: gs.Tensor | None) -> gs.Tensor:
    """Of each element: the number of its run."""
    so_far = c.op("CumSum", c.cast(begins, TYPE.INT64), c.number(0, TYPE.INT64))
    numbers = c.op("Sub", so_far, c.ints([1], "one"))
    made: gs.Tensor = c.op("Gather", numbers, _inverse(c, order), axis=0)
    return made if turned is None else c.op("Gather", _inverse(c, turned), made, axis=0)


def _inverse(c: Bench, order: gs.Tensor) -> gs.Tensor:
    """Where each stands in an order."""
    return topk(c, order, 0, c.size(order, 0), largest=False)[1]


def _counts(c: Bench, runs: gs.Tensor, length: Size | int, turned: gs.Tensor | None) -> gs.Tensor:
    """How long each run is: up to where the next one begins, or the line ends."""
    ends = c.concat([c.slice(runs, 0, 1, LARGEST), c.vector([length], "end")], 0)
    if not isinstance(length, int) or not length:  # in a line of nothing no run ends
        ends = c.slice(ends, 0, 0, c.size(runs, 0))
    made: gs.Tensor = c.op("Sub", ends, runs)
    return made if turned is None else c.op("Gather", made, turned, axis=0)


def _comparable(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """In a type of which runtimes compare and order elements.

    Raises:
        Refused: None holds every value.
    """
    dtype = c.dtype(x)
    if dtype in _ORDERED:
        return x
    if dtype in FLOATS:
        return c.cast(x, TYPE.FLOAT)
    if dtype not in _WHOLE:
        raise Refused("few runtimes compare what it is of")
    return c.cast(x, TYPE.INT64 if dtype == TYPE.UINT32 else TYPE.INT32)


def _begins(c: Bench, line: gs.Tensor, length: Size | int) -> gs.Tensor:
    """Where an element of a line differs from the one before it; the first one does."""
    behind, before = c.slice(line, 0, 1, LARGEST), c.slice(line, 0, 0, -1)
    differs = c.op("Not", c.op("Equal", behind, before))
    if isinstance(length, int):
        first = c.draft.constant(np.ones(min(length, 1), np.bool_), "first")
    else:
        first = c.slice(c.filled([length], 1, TYPE.BOOL), 0, 0, 1)
    return c.concat([first, differs], 0)
