"""NonZero and what reads it: masked values as Where, masked reductions, and counts.

What is computed from a selection, and then reduced or written back where it came from, is computed
on the whole tensor and masked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench, Size
from surgeon.builders.fills import number_of
from surgeon.builders.scatter import one_dtype
from surgeon.builders.selections import (
    Reader,
    Selection,
    mask_of_places,
    stripped,
    unequal,
)
from surgeon.builders.spelled import axes_of
from surgeon.dims import Dim
from surgeon.facts.fact import same_dims
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_SUMS = frozenset("ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum".split())


def _beside(c: Bench, mask: gs.Tensor, after: int) -> gs.Tensor:
    """The mask as booleans, with axes of 1 for those behind it."""
    rank = c.rank(mask)
    return c.unsqueeze(c.cast(mask, TYPE.BOOL), range(rank, rank + after))


# ------------------------------------------------------------------ reductions


def masked_reduce(draft: Draft, match: Match) -> gs.Tensor:
    """A reduction of what a mask selects: of the whole tensor, neutral where the mask is not."""
    c, node = Bench(draft), match.root
    reader, t = Reader(c), node.inputs[0]
    found = reader.selection(t)
    if found is None:
        raise Refused(reader.why or "what it reduces is not provably what a mask selects")
    rank, dtype = c.rank(t), c.dtype(t)
    axes = axes_of(c, node)
    if found.axis not in axes:
        raise Refused("it does not reduce over the places that the mask selects")
    if dtype == TYPE.BOOL or (node.op == "ReduceMean" and dtype not in FLOATS):
        raise Refused("it reduces booleans" if dtype == TYPE.BOOL else "a mean of integers")
    extra = c.rank(found.mask) - 1
    inside = [a + (extra if a > found.axis else 0) for a in axes if a != found.axis]
    inside += range(found.axis, found.axis + extra + 1)
    whole = reader.whole(t)
    neutral = c.number(_neutral(node.op, dtype), dtype)
    x = c.where(_beside(c, found.mask, rank - 1 - found.axis), whole, neutral)
    if node.op == "ReduceMean":
        y = _mean(c, x, found, inside, dtype)
    else:
        y = c.op(node.op, x, c.ints(sorted(inside), "axes"), keepdims=0)
    return c.unsqueeze(y, sorted(axes)) if attribute_of(node, "keepdims") else y


def _mean(c: Bench, x: gs.Tensor, found: Selection, inside: list[int], dtype: int) -> gs.Tensor:
    """Sum by count, in single precision at least: half precision counts to 2048.

    The mean of nothing is 0: the standard leaves it open, and onnxruntime has it so.
    """
    wide = int(TYPE.DOUBLE if dtype == TYPE.DOUBLE else TYPE.FLOAT)
    total = c.op("ReduceSum", c.cast(x, wide), c.ints(sorted(inside), "axes"), keepdims=0)
    held = c.op("ReduceSum", c.cast(c.cast(found.mask, TYPE.BOOL), wide), keepdims=0)
    count = c.op("Max", held, c.number(1, wide))
    taken = range(found.axis, found.axis + c.rank(found.mask))
    others = c.product([c.size(x, axis) for axis in inside if axis not in taken])
    if isinstance(others, Size):
        length = c.op("Reshape", others.tensor, c.ints([], "scalar"))
        count = c.op("Mul", count, c.cast(length, wide))
    elif others != 1:
        count = c.op("Mul", count, c.number(others, wide))
    return c.cast(c.op("Div", total, count), dtype)


def _neutral(op: str, dtype: int) -> Any:
    if op in _SUMS:
        return 0
    if op == "ReduceProd":
        return 1
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    least = op == "ReduceMin"  # of a minimum the greatest value is neutral
    if dtype in FLOATS:
        return np.inf if least else -np.inf
    return np.iinfo(kind).max if least else np.iinfo(kind).min


# ------------------------------------------------------------------ writing back


def mask_written_to(c: Bench, node: gs.Node) -> tuple[gs.Tensor, tuple[Dim, ...]]:
    """The mask at whose places a ScatterND writes, and the dimensions of its data behind those.

    Raises:
        Refused: It writes elsewhere, or that is not proven.
    """
    data, indices = node.inputs[:2]
    one_dtype(c, node)
    mask = mask_of_places(c, indices)
    if mask is None:
        raise Refused("its indices are not provably the places of a mask")
    shape, covered = c.shape(data), c.shape(mask)
    if shape is None or covered is None or not same_dims(shape[: len(covered)], covered):
        raise Refused(unequal(mask))
    return mask, shape[len(covered) :]


def masked_put(draft: Draft, match: Match) -> gs.Tensor:
    """ScatterND at the places of a mask: the new values where it holds, and the data elsewhere."""
    c, node = Bench(draft), match.root
    _, indices, updates = node.inputs
    mask, behind = mask_written_to(c, node)
    after = len(behind)
    flat = _made_flat(c, updates, mask, indices) if after == 0 else None
    if flat is not None:
        new, mask, after = flat
    else:
        new = _new_values(c, updates, mask, indices, after)
    return written(c, node, mask, new, after)


def masked_put_lines(draft: Draft, match: Match) -> gs.Tensor:
    """ScatterElements at the places of a mask, the same ones all over its axis: `index_copy`."""
    c, node = Bench(draft), match.root
    data, indices, updates = node.inputs
    one_dtype(c, node)
    rank, shape, given = c.rank(data), c.shape(data), c.shape(updates)
    axis = int(attribute_of(node, "axis") or 0) % rank
    mask = _mask_of_lines(c, indices, axis)
    if mask is None:
        raise Refused("its indices are not provably the places of a mask, alike beside its axis")
    covered = c.shape(mask)
    if shape is None or covered is None or not same_dims(shape[axis : axis + 1], covered):
        raise Refused(unequal(mask))
    beside = [i for i in range(rank) if i != axis]  # indices and updates have one shape
    if given is None or any(dims.equal(given[i], shape[i]) is not True for i in beside):
        raise Refused("that its updates cover the data beside its axis is not provable")
    reader = Reader(c)
    found = reader.selection(updates)
    if found is None or found.axis != axis or found.mask is not mask:
        raise Refused(reader.why or "its updates are not made of what the same mask selects")
    return written(c, node, mask, reader.whole(updates), rank - 1 - axis)


def _mask_of_lines(c: Bench, indices: gs.Tensor, axis: int) -> gs.Tensor | None:
    """The mask of one axis whose places stand along `axis`, the same ones along every other."""
    node = producer_of(indices)
    line = node.inputs[0] if node is not None and node.op == "Expand" else indices
    shape, behind = c.shape(line), producer_of(line)
    if shape is None or any(d != 1 for i, d in enumerate(shape) if i != axis):
        return None
    while behind is not None and behind.op in ("Unsqueeze", "Reshape") and len(shape) > 1:
        line, behind = behind.inputs[0], producer_of(behind.inputs[0])
        if c.facts.of(line).rank == 1:
            break
    found = mask_of_places(c, line) if c.facts.of(line).rank == 1 else None
    return found if found is not None and c.facts.of(found).rank == 1 else None


def written(c: Bench, node: gs.Node, mask: gs.Tensor, new: gs.Tensor, after: int) -> gs.Tensor:
    """The new values where the mask holds, with what is there already, if the node says so."""
    data, reduction = node.inputs[0], str(attribute_of(node, "reduction") or "none")
    if reduction != "none":
        new = c.op({"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}[reduction], data, new)
    return c.where(_beside(c, mask, after), new, data)


def _new_values(
    c: Bench, updates: gs.Tensor, mask: gs.Tensor, indices: gs.Tensor, after: int
) -> gs.Tensor:
    """What is written, for every place, whether the mask holds there or not."""
    reader = Reader(c)
    cut = cut_to(c, updates, indices)
    sliced, updates = cut is not None, updates if cut is None else cut
    found, node = reader.selection(updates), producer_of(updates)
    if found is None and node is not None and node.op == "Expand":
        lines = node.inputs[0]  # a line for each place already: repeated along other axes only
        found = reader.selection(lines) if c.facts.of(lines).rank == after + 1 else None
    else:
        lines = updates
    if found is not None and found.axis == 0 and found.mask is mask:
        return reader.whole(lines)
    if sliced and after == 0 and c.rank(updates) == 1:
        return _in_order(c, updates, mask)
    if node is not None and node.op == "Expand" and not sliced:
        value = node.inputs[0]
        dims_ = c.shape(value)
        if dims_ is not None and len(dims_) <= after:
            return value
        if dims_ is not None and len(dims_) == after + 1 and dims_[0] == 1:
            return c.squeeze(value, [0])
    if node is not None and node.op == "ConstantOfShape" and not sliced:
        return c.draft.constant(number_of(node).reshape(()), "value")
    raise Refused(
        reader.why or "its updates are neither one value nor made of what the same mask selects"
    )


def _made_flat(
    c: Bench, updates: gs.Tensor, mask: gs.Tensor, indices: gs.Tensor
) -> tuple[gs.Tensor, gs.Tensor, int] | None:
    """Lines made flat, put where their mask is repeated along them: all lines, their mask, axes.

    So exporters write `y[m] = v` with a mask for the axes in front: one for every element.
    """
    cut = cut_to(c, updates, indices)
    reader, t = Reader(c), updates if cut is None else cut
    node, repeated = producer_of(t), producer_of(mask)
    if node is None or node.op != "Reshape" or repeated is None or repeated.op != "Expand":
        return None
    found, line = reader.selection(node.inputs[0]), producer_of(repeated.inputs[0])
    if found is None or found.axis != 0 or c.facts.of(t).rank != 1 or line is None:
        return None
    after, shape, one = c.rank(node.inputs[0]) - 1, c.shape(found.mask), c.shape(line.outputs[0])
    if line.op not in ("Unsqueeze", "Reshape") or shape is None or one is None:
        return None
    if stripped(c, line.inputs[0]) is not found.mask or not same_dims(one, (*shape, *[1] * after)):
        return None
    whole = reader.whole(node.inputs[0])
    return (whole, found.mask, after) if same_dims(c.shape(whole), c.shape(mask)) else None


def cut_to(c: Bench, updates: gs.Tensor, indices: gs.Tensor) -> gs.Tensor | None:
    """What is sliced to as many elements as the mask has places, from the first on."""
    node, rows = producer_of(updates), c.shape(indices)
    if node is None or node.op != "Slice" or rows is None:
        return None
    bounds: list[Any] = [0, None, 0, 1]  # start, end, axis, step
    for place, tensor in enumerate(node.inputs[1:]):
        if not tensor.is_empty():
            value = c.facts.of(tensor).value
            if value is None or value.size != 1:
                return None
            bounds[place] = value.reshape(-1).tolist()[0]
    start, end, axis, step = bounds
    whole = (start, axis, step) == (0, 0, 1) and dims.equal(end, rows[0]) is True
    return node.inputs[0] if whole else None


def _in_order(c: Bench, source: gs.Tensor, mask: gs.Tensor) -> gs.Tensor:
    """The source's elements one after the other at the places of the mask, as masked_scatter."""
    flat = c.op("Reshape", c.cast(mask, TYPE.BOOL), c.ints([-1], "target"))
    number = c.op("CumSum", c.cast(flat, TYPE.INT64), c.draft.constant(np.asarray(0), "axis"))
    first = c.draft.constant(
        np.zeros(1, onnx.helper.tensor_dtype_to_np_dtype(c.dtype(source))), "first"
    )
    picked = c.op("Gather", c.concat([first, source], 0), number, axis=0)
    return c.reshape(picked, c.sizes(mask))


# ------------------------------------------------------------------ counts


def masked_count(draft: Draft, match: Match) -> gs.Tensor:
    """The shape of a selection, or of the places of a mask: the count is a sum of the mask."""
    c, node = Bench(draft), match.root
    t = node.inputs[0]
    found = Reader(c).selection(t)
    producer = producer_of(t)
    if found is not None:
        mask, axis = found.mask, found.axis
    elif producer is not None and producer.op == "NonZero":
        mask, axis = stripped(c, producer.inputs[0]), 1
    elif (behind := mask_of_places(c, t)) is not None:
        mask, axis = behind, 0
    else:
        raise Refused("it is not provably the shape of what a mask selects")
    total = c.op("ReduceSum", c.cast(c.cast(mask, TYPE.BOOL), TYPE.INT64), keepdims=0)
    count = c.op("Reshape", total, c.ints([1], "one"))
    lengths = [Size(None, lambda: count) if i == axis else d for i, d in enumerate(_plain(c, t))]
    if node.op == "Size":
        sizes = c.product(lengths)
        return c.op("Reshape", c.vector([sizes]), c.ints([], "scalar"))
    start, end = int(attribute_of(node, "start") or 0), node.attrs.get("end")
    return c.vector(lengths[start : None if end is None else int(end)])


def _plain(c: Bench, t: gs.Tensor) -> list[Size | int]:
    """The lengths, of which all but that of the packed axis must be numbers."""
    sizes = c.sizes(t)
    if sum(isinstance(size, Size) for size in sizes) > 1:
        raise Refused("another of its lengths is known at run time only")
    return sizes
