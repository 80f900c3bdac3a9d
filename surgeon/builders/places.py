"""Places in a tensor: those of NonZero without it, and constant ones."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import LARGEST, TYPE, Bench, Size, dim_of
from surgeon.builders.fills import number_of
from surgeon.builders.meshes import is_whole, lines_of
from surgeon.builders.parts import remainder
from surgeon.builders.views import as_shape, source_of
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused


def known_places(draft: Draft, match: Match) -> gs.Tensor:
    """NonZero of a vector of ones, which counts from 0."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    producer = producer_of(x)
    filled = producer is not None and producer.op == "ConstantOfShape" and c.facts.of(x).rank == 1
    if filled and np.all(number_of(producer)):
        if c.opset < 11:
            raise Refused("counting to a length of run time is Range, which needs opset 11")
        draft.premises.append(x)
        return c.unsqueeze(c.count(c.size(x, 0)), [0])
    raise Refused("where its input is not zero is known at run time only")


def places_of_mask(draft: Draft, match: Match) -> gs.Tensor:
    """NonZero as the smallest of the elements' numbers, as many as there are elements not zero.

    Every element has its number in row-major order, or, where it is zero, one that no element has.
    The `count` smallest in ascending order are the places; division gives them axis by axis. Before
    opset 11, whose TopK has no largest=0, Compress selects the numbers.
    """
    c, x = Bench(draft), match.root.inputs[0]
    if not c.rank(x):
        raise Refused("its input is a single number, of which NonZero has no places")
    sizes = c.sizes(x)
    total = c.product(sizes)
    mask = c.flat(c.cast(x, TYPE.BOOL))
    if c.opset >= 11:
        numbers = c.op("Where", mask, c.count(total), c.vector([total]))
        count = c.op("ReduceSum", c.cast(mask, TYPE.INT64), c.ints([0], "axes"), keepdims=1)
        places, _ = c.op("TopK", numbers, count, axis=0, largest=0, sorted=1, outputs=2)
    elif isinstance(total, int):
        places = c.op("Compress", c.count(total), mask, axis=0)
    else:
        raise Refused("counting to a length of run time is Range, which needs opset 11")
    if len(sizes) == 1:
        return c.unsqueeze(places, [0])
    behind = [c.product(sizes[axis + 1 :]) for axis in range(len(sizes))]
    first = sizes[0] if isinstance(sizes[0], int) else LARGEST  # its numbers are below it anyway
    return remainder(
        draft, c.op("Div", places, _column(c, behind)), _column(c, [first, *sizes[1:]])
    )


def _column(c: Bench, sizes: list[Size | int]) -> gs.Tensor:
    """Sizes one below the other, to divide by: of no elements there is nothing to divide."""
    known = [max(size, 1) for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        return c.ints_of(np.asarray(known).reshape(-1, 1), "lengths")
    column = c.unsqueeze(c.vector(sizes), [1])
    return c.op("Max", column, c.ints([1], "one"))


def places_as_gather(draft: Draft, match: Match) -> gs.Tensor:
    """GatherND of rows as Gather; of every place of the first axes, in their order, as a view.

    The latter is how `mask[batch, position]` is exported, whose indices are counts that are
    expanded against each other.
    """
    c, node = Bench(draft), match.root
    data, indices = node.inputs
    shape, out, whole = c.shape(data), c.shape(node.outputs[0]), c.shape(indices)
    if attribute_of(node, "batch_dims") or shape is None or out is None or whole is None:
        raise Refused("it has batch dimensions, or a shape is not known")
    if whole[-1] == 1:
        found = source_of(indices, c.facts, whole[:-1])
        if found is None or (found[0] is indices and c.facts.array(indices) is None):
            raise Refused("no view of its indices is without their last axis")
        return c.op("Gather", data, as_shape(draft, indices, whole[:-1]), axis=0)
    lines = lines_of(c, indices, shape, read=True)
    if not all(is_whole(line, d) for line, d in zip(lines, shape, strict=False)):
        raise Refused("it takes a part of the axes that it indexes")
    draft.premises.append(indices)
    for axis, (line, length) in enumerate(zip(lines, shape, strict=False)):
        if line.limit is not None and dims.equal(line.limit, length) is not True:
            assert line.counted is not None
            data = c.op("Gather", data, line.counted, axis=axis)  # whether it is all comes later
    used = [line.along for line in lines]
    if (
        data is not node.inputs[0] and None not in used
    ):  # a Reshape may not infer lengths of nothing
        return c.unsqueeze(data, [axis for axis in range(len(whole) - 1) if axis not in used])
    return as_shape(draft, data, out)


def all_written(draft: Draft, match: Match) -> gs.Tensor:
    """ScatterND that writes every place of the axes that it indexes, in order: what it writes."""
    c, node = Bench(draft), match.root
    data, indices, updates = node.inputs
    shape = c.shape(data)
    if attribute_of(node, "reduction") not in (None, "none", b"none") or shape is None:
        raise Refused("it combines what it writes with what is there, or a shape is not known")
    lines = lines_of(c, indices, shape)
    if not all(is_whole(line, d) for line, d in zip(lines, shape, strict=False)):
        raise Refused("it writes a part of the axes that it indexes")
    draft.premises.append(indices)
    return as_shape(draft, updates, shape)


def gather_constant_places(draft: Draft, match: Match) -> gs.Tensor:
    """GatherND with constant indices as Gather: one axis, or the first few joined to one."""
    c, node = Bench(draft), match.root
    data, indices = node.inputs[0], c.facts.array(node.inputs[1])
    if indices is None or indices.dtype == object:
        raise Refused("its indices are known at run time only")
    if attribute_of(node, "batch_dims"):
        raise Refused("it has batch dimensions")
    depth = int(indices.shape[-1])
    shape = c.shape(data)
    if shape is None:
        raise Refused(f"the rank of `{data.name}` is not known")
    if depth == 1:
        return c.op("Gather", data, c.ints_of(indices[..., 0]), axis=0)
    lengths = [d for d in shape[:depth] if isinstance(d, int)]
    if len(lengths) < depth:
        raise Refused("a dimension that it indexes is known at run time only; see `--shape`")
    places = np.where(indices < 0, indices + np.asarray(lengths), indices)
    line = np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), lengths)
    flat = c.reshape(data, [int(np.prod(lengths)), *c.sizes(data)[depth:]])
    return c.op("Gather", flat, c.ints_of(line), axis=0)


def counted_down(draft: Draft, match: Match) -> gs.Tensor:
    """Elements from one down to the first, which a Range counts, as a Slice in steps back.

    Counted from -1 there are none; a Slice from there takes the last, and all in front of it.
    onnxruntime's own optimisations make a Slice of such a Gather too, up to -1, which is the last
    element there: of nothing.
    """
    c, node = Bench(draft), match.root
    x, axis = node.inputs[0], int(attribute_of(node, "axis") or 0)
    start, limit, step = match.nodes[1].inputs
    end, by = c.facts.array(limit), c.facts.array(step)
    if end is None or by is None or end.item() != -1 or by.item() >= 0:
        raise Refused("it does not count down to 0")
    first = c.scalar(start)
    known = dim_of(first)
    low = None if known is None else dims.bounds(known)[0]
    rank, shape = c.rank(x), c.shape(x)
    # the last place is -1 of an axis of nothing alone, of which a Slice takes nothing
    is_last = known is not None and shape is not None and dims.equal(known + 1, shape[axis]) is True
    if low is None or (low < 0 and not is_last):
        raise Refused("it may begin below 0")
    bounds = (c.ints([n]) for n in (-LARGEST, axis % rank, int(by.item())))
    y: gs.Tensor = c.op("Slice", x, c.vector([first]), *bounds)
    return y


def counted_from_end(draft: Draft, match: Match) -> gs.Tensor:
    """Gather of an index that is computed from the length of its axis: counted from the end."""
    root, facts = match.root, draft.facts
    data, index = root.inputs
    shape, known = facts.of(data).shape, facts.of(index).value
    if facts.opset < 11:
        raise Refused("an index counts from the end from opset 11 on")
    if shape is None or known is None or facts.array(index) is not None:
        raise Refused("its index is constant, or how it is computed is not known")
    axis = int(attribute_of(root, "axis") or 0) % len(shape)
    places = []
    for entry in known.reshape(-1).tolist():
        past = entry - shape[axis]
        # Below zero, the index of a shorter axis would be counted from the end itself.
        if not isinstance(past, int) or past >= 0 or (past < -1 and not dims.not_negative(entry)):
            raise Refused(f"its index {entry} of {shape[axis]} is known at run time only")
        places.append(past)
    indices = draft.constant(np.array(places, np.int64).reshape(known.shape), "index")
    y: gs.Tensor = draft.op("Gather", data, indices, axis=axis)
    return y
