"""What is picked, repeated and put by constants, in comparisons, parts and products."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import parts
from surgeon.builders.bench import LARGEST, TYPE, Bench
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_MOST_TIMES = 16
_MOST_ONES = 1 << 16  # elements of the ones that an Expand becomes a product with
_LARGEST_BLOCK = 4


def one_hot_as_equal(draft: Draft, match: Match) -> gs.Tensor:
    """OneHot of a known number of classes: where an index is that of a class."""
    c, node = Bench(draft), match.root
    indices, depth, values = node.inputs
    count, pair = draft.facts.array(depth), draft.facts.array(values)
    if count is None or pair is None:
        raise Refused("its number of classes or its values are computed at run time")
    classes = int(count.reshape(-1)[0])
    if c.dtype(indices) not in (TYPE.INT32, TYPE.INT64) or classes < 1:
        raise Refused("its indices are not of int32 or int64, or there is no class")
    if pair.dtype not in (np.float32, np.float64, np.int32, np.int64):
        raise Refused("few runtimes choose between its values")
    rank = c.rank(indices)
    axis = attribute_of(node, "axis")
    axis = c.axis(-1 if axis is None else int(axis), rank + 1)
    number = np.arange(classes).reshape(-1, *[1] * (rank - axis))
    kind = parts.numpy_dtype(draft, indices)
    index = c.unsqueeze(indices, [axis])
    here = c.op("Equal", index, draft.constant(number.astype(kind), "classes"))
    behind = draft.constant((number - classes).astype(kind), "from_behind")
    found = c.op("Or", here, c.op("Equal", index, behind))
    off, on = (draft.constant(pair[n], name) for n, name in enumerate(("off", "on")))
    y: gs.Tensor = c.op("Where", found, on, off)
    return y


def tile_as_concat(draft: Draft, match: Match) -> gs.Tensor:
    """Tile by constants: the same side by side, axis by axis."""
    c, node = Bench(draft), match.root
    x, repeats = node.inputs
    times = draft.facts.array(repeats)
    if times is None:
        raise Refused("how often is computed at run time")
    if any(n < 1 for n in times) or int(np.prod(times)) > _MOST_TIMES:
        raise Refused(f"it is not once to {_MOST_TIMES} times")
    made: gs.Tensor = x
    for axis, count in enumerate(times.tolist()):
        made = c.concat([made] * count, axis)
    if made is x:
        raise Refused("it is once along every axis")
    return made


def expand_as_product(draft: Draft, match: Match) -> gs.Tensor:
    """Expand along axes of known lengths: the product with ones of these."""
    c, node = Bench(draft), match.root
    x, y = node.inputs[0], node.outputs[0]
    if c.dtype(x) not in FLOATS and c.dtype(x) not in (TYPE.INT32, TYPE.INT64):
        raise Refused("few runtimes multiply what it is of")
    before, after = draft.facts.of(x).shape, draft.facts.of(y).shape
    if before is None or after is None:
        raise Refused("a shape is not known")
    ones = []
    for old, new in zip((*[1] * (len(after) - len(before)), *before), after, strict=True):
        if dims.equal(old, new) is True:
            ones.append(1)
        elif old == 1 and isinstance(new, int):
            ones.append(new)
        else:
            raise Refused("a length along which it repeats is known at run time only")
    draft.premises.append(node.inputs[1])
    if not 1 <= int(np.prod(ones)) <= _MOST_ONES:
        raise Refused("there would be very many ones, or none")
    made: gs.Tensor = c.op(
        "Mul", x, draft.constant(np.ones(ones, parts.numpy_dtype(draft, x)), "ones")
    )
    return made


def filled_as_expand(draft: Draft, match: Match) -> gs.Tensor:
    """ConstantOfShape: one number, repeated."""
    value = attribute_of(match.root, "value")
    array = (
        np.zeros(1, np.float32) if value is None else np.asarray(getattr(value, "values", value))
    )
    number = draft.constant(array.reshape(()), "number")
    made: gs.Tensor = draft.op("Expand", number, match.root.inputs[0])
    return made


def place_as_slice(draft: Draft, match: Match) -> gs.Tensor:
    """A Gather of one constant place: the part of one element, without its axis."""
    c, node = Bench(draft), match.root
    x, index = node.inputs
    place = draft.facts.array(index)
    if place is None or place.ndim:
        raise Refused("it is not of one constant place")
    if c.dtype(x) not in FLOATS:
        raise Refused("it is not of floats")
    start, axis = int(place), c.axis(int(attribute_of(node, "axis") or 0), c.rank(x))
    length = c.size(x, axis)
    end = LARGEST if start == -1 else start + 1
    if not isinstance(length, int) or not -length <= start < length:
        raise Refused("its place may not be there")
    return c.squeeze(c.slice(x, axis, start, end), [axis])


def blocks_as_slices(draft: Draft, match: Match) -> gs.Tensor:
    """SpaceToDepth: every so-many-th row and column, from each of the first ones."""
    c, node = Bench(draft), match.root
    x, step = node.inputs[0], int(attribute_of(node, "blocksize"))
    if not 1 < step <= _LARGEST_BLOCK:
        raise Refused(f"its blocks are not of 2 to {_LARGEST_BLOCK} rows")
    ends, axes, steps = [LARGEST] * 2, [2, 3], [step] * 2
    found = [
        c.op("Slice", x, *(c.ints(n) for n in ([row, column], ends, axes, steps)))
        for row in range(step)
        for column in range(step)
    ]
    return c.concat(found, 1)


def instance_norm_as_means(draft: Draft, match: Match) -> gs.Tensor:
    """InstanceNormalization in means, along all axes behind the channels.

    Halves are widened meanwhile, which hold no square from 256 on.
    """
    c, node = Bench(draft), match.root
    x, scale, shift = node.inputs
    rank, dtype = c.rank(x), c.dtype(x)
    if rank < 3:
        raise Refused("it has no axis behind the channels")
    axes = c.ints(range(2, rank), "axes")
    x = c.cast(x, TYPE.FLOAT) if dtype in HALVES else x
    epsilon = attribute_of(node, "epsilon")
    apart = c.op("Sub", x, c.op("ReduceMean", x, axes, keepdims=1))
    spread = c.op("ReduceMean", c.op("Mul", apart, apart), axes, keepdims=1)
    least = c.number(1e-5 if epsilon is None else epsilon, c.dtype(x))
    normal = c.cast(c.op("Div", apart, c.op("Sqrt", c.op("Add", spread, least))), dtype)
    by, beside = (_along_channels(c, value, rank) for value in (scale, shift))
    y: gs.Tensor = c.op("Add", c.op("Mul", normal, by), beside)
    return y


def _along_channels(c: Bench, x: gs.Tensor, rank: int) -> gs.Tensor:
    """A number for each channel, with axes of 1 behind."""
    array = c.facts.array(x)
    if array is None:
        return c.unsqueeze(x, list(range(1, rank - 1)))
    return c.draft.constant(array.reshape(-1, *[1] * (rank - 2)), "by_channel")
