"""What becomes of the batch where a value's shape changes, and its elements stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import onnx
from onnx import helper

from surgeon import dims
from surgeon.anybatch.flow import Flow, attribute, batched, counted, part_of
from surgeon.dims import Dim
from surgeon.frozen import Frozen

_EACH = frozenset("Cast Clip Exp Identity LeakyRelu Neg Relu Sigmoid Sqrt Tanh".split())


def transposed(flow: Flow, node: onnx.NodeProto) -> None:
    """The batch goes where its axis goes."""
    axis = batched(flow, node)
    rank = len(flow.shape(node.input[0]))
    order = next((list(each.ints) for each in node.attribute if each.name == "perm"), [])
    flow.places[node.output[0]] = (order or list(range(rank))[::-1]).index(axis)


def items_together(flow: Flow, name: str, outputs: Collection[str]) -> None:
    """An output whose items lie apart, with all of each item behind those of the one before.

    So detectors give boxes: rows of all places, and at each those of all items.

    Raises:
        Frozen: A size of it is not known, or the file's batch has several items, whose order in it
            no batch of another size keeps.
    """
    lead = flow.leads.pop(name, 1)
    if lead == 1:
        return
    if flow.size != 1:
        raise Frozen(
            f"the items of the output `{name}` lie apart, in an order of {flow.size} at once"
        )
    axis, shape = flow.places[name], flow.shape(name)
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) < len(shape):
        raise Frozen(f"the items of the output `{name}` lie apart, and its sizes are not known")
    front, rest, behind = sizes[:axis], sizes[axis] // lead, sizes[axis + 1 :]
    order = [*range(len(shape) + 2)]
    order[axis], order[axis + 1] = axis + 1, axis
    at, name = _made_apart(flow, name, outputs)
    later, flow.nodes = flow.nodes[at + 1 :], flow.nodes[: at + 1]
    inner, makes = flow.fresh(name), flow.nodes[at].output
    makes[[*makes].index(name)] = inner
    if name in outputs:  # what reads it inside reads it as it was
        for node in later:
            node.input[:] = [inner if each == name else each for each in node.input]
    apart = [*front, lead, -1, rest, *behind]
    sizes_apart = flow.add(f"{name}_apart", np.array(apart, np.int64))
    split = flow.op("Reshape", [inner, sizes_apart])
    turned = flow.op("Transpose", [split], perm=order)
    joined = flow.add(f"{name}_joined", np.array([*front, -1, *behind], np.int64))
    flow.nodes.append(helper.make_node("Reshape", [turned, joined], [name], name=f"{name}_joined"))
    flow.nodes += later


def _made_apart(flow: Flow, name: str, outputs: Collection[str]) -> tuple[int, str]:
    """The value whose items may be put together for an output, and where the node is that makes it.

    What treats each element by itself, for that output alone, comes behind it.
    """
    makers = {made: at for at, node in enumerate(flow.nodes) for made in node.output}
    readers = Counter(read for node in flow.nodes for read in node.input)
    while not readers[name] or name not in outputs:
        node = flow.nodes[makers[name]]
        if node.op_type not in _EACH or any(each in flow.places for each in node.input[1:]):
            break
        before = node.input[0]
        if before not in makers or before in outputs or readers[before] != 1:
            break
        name = before
    return makers[name], name


def reshaped(flow: Flow, node: onnx.NodeProto) -> None:
    """The batch goes where as many elements are in front of it."""
    axis = batched(flow, node)
    shape, after = flow.shape(node.input[0]), flow.shape(node.output[0])
    target = [*flow.vector(node.input[1])]
    if 0 in target and attribute(node, "allowzero", 0):
        raise Frozen("it is empty")
    if 0 in target and node.input[0] in flow.grown:
        raise Frozen("it copies sizes, and the batch is an axis more in front of them")
    front = dims.product(shape[:axis]) * flow.leads.get(node.input[0], 1)
    options = list(_options(after, front, flow.size))
    if not options:
        told = "" if isinstance(front, int) else ", of sizes that `--shape` may tell"
        raise Frozen(f"it mixes the batch with what is in front of it{told}")
    at, lead = flow.choose(options)
    empties = attribute(node, "allowzero", 0) and not all(isinstance(size, int) for size in target)
    copies = shape[axis] == after[at] and not empties
    written = _written(target, after, axis, at, copies=copies)
    if written != target:
        if not empties:
            kept = [each for each in node.attribute if each.name != "allowzero"]
            del node.attribute[:]
            node.attribute.extend(kept)
        node.input[1] = flow.written(node.input[1], written)
    flow.places[node.output[0]] = at
    if lead != 1:
        flow.leads[node.output[0]] = lead


def _options(after: Sequence[Dim], front: Dim, batch: int) -> Iterator[tuple[int, int]]:
    """Axes that the batch may lie in, with how many times: those where that is once come first."""
    found = []
    for at, size in enumerate(after):
        lead = dims.exact_quotient(front, dims.product(after[:at]))
        if lead is None or lead == 0:
            break
        if not isinstance(lead, int):
            continue
        if lead == 1 if not isinstance(size, int) else size > 0 and size % (lead * batch) == 0:
            found.append((at, lead))
    yield from sorted(found, key=lambda each: each[1] != 1)


def _written(
    target: Sequence[Dim], after: Sequence[Dim], axis: int, at: int, *, copies: bool
) -> list[Dim]:
    """The shape that Reshape is given, for any size of the axis that holds the batch.

    Args:
        target: As it is, for the batch of the file.
        after: What comes out, for that.
        axis: Where the batch is before.
        at: Where it is afterwards.
        copies: A 0 there gives the size that the axis has.
    """
    written = list(target)
    if axis != at and axis < len(target) and target[axis] == 0:
        raise Frozen("it copies the batch, and puts it elsewhere")
    if target[at] == 0 and at == axis:
        return written
    if -1 in target and target.index(-1) != at:
        other = target.index(-1)
        size = after[other]
        if not isinstance(size, int):
            if axis == at and copies:
                written[at] = 0  # as long as what came
                return written
            raise Frozen("two of the sizes that it makes are not known")
        written[other] = size
    written[at] = -1
    return written


def flattened(flow: Flow, node: onnx.NodeProto) -> None:
    """Flatten: the axes before one, and the others."""
    axis = batched(flow, node)
    shape = flow.shape(node.input[0])
    split = counted(attribute(node, "axis", 1), len(shape))
    front = dims.product(shape[:axis] if axis < split else shape[split:axis])
    if front != 1:
        raise Frozen("it mixes the batch with what is in front of it")
    flow.places[node.output[0]] = 0 if axis < split else 1


def squeezed(flow: Flow, node: onnx.NodeProto) -> None:
    """Squeeze: of other axes, which have to be named."""
    axis = batched(flow, node)
    shape = flow.shape(node.input[0])
    axes = flow.numbers(node, "axes", 1)
    if axes is None:
        gone = {at for at, size in enumerate(shape) if size == 1}
    else:
        gone = {counted(each, len(shape)) for each in axes}
    if axis in gone:
        raise Frozen("it takes the batch away")
    if axes is None:
        if not all(isinstance(size, int) for size in shape):
            raise Frozen("which axes it takes away depends on sizes")
        listed = sorted(gone)
        if flow.opset >= 13:
            node.input.append(flow.add(f"{node.output[0]}_axes", np.array(listed, np.int64)))
        else:
            node.attribute.append(helper.make_attribute("axes", listed))
    flow.places[node.output[0]] = axis - sum(each < axis for each in gone)


def unsqueezed(flow: Flow, node: onnx.NodeProto) -> None:
    """Unsqueeze: the batch moves behind what is put in front."""
    axis = batched(flow, node)
    axes = flow.numbers(node, "axes", 1) or []
    rank = len(flow.shape(node.input[0])) + len(axes)
    put = {counted(each, rank) for each in axes}
    left = [at for at in range(rank) if at not in put]
    flow.places[node.output[0]] = left[axis]


def joined(flow: Flow, node: onnx.NodeProto) -> None:
    """Concat along another axis; what all items share is there once for each."""
    held = [name for name in node.input if name in flow.places]
    axis, like = flow.places[held[0]], held[0]
    if any(flow.places[name] != axis for name in held):
        raise Frozen("its operands hold the batch along different axes")
    rank = len(flow.shape(like))
    if counted(attribute(node, "axis", 0), rank) == axis:
        raise Frozen("it puts something behind the batch")
    flow.alike(held)
    flow.joints[node.output[0]] = [*node.input], counted(attribute(node, "axis", 0), rank)
    for place, name in enumerate(node.input):
        if name not in flow.places:
            node.input[place] = flow.spread(name, axis, like, axis)
    flow.places[node.output[0]] = axis


def sliced(flow: Flow, node: onnx.NodeProto) -> None:
    """Slice of other axes."""
    axis = batched(flow, node)
    rank = len(flow.shape(node.input[0]))
    flow.places[node.output[0]] = axis
    axes = flow.numbers(node, "axes", 3)
    if axes and axis not in (counted(each, rank) for each in axes) and not _is_constant(flow, node):
        return
    starts = flow.numbers(node, "starts", 1) or []
    axes = axes or list(range(len(starts)))
    ends = flow.numbers(node, "ends", 2) or []
    steps = (flow.numbers(node, "steps", 4) if flow.opset >= 10 else None) or [1] * len(starts)
    taken = []
    for each, start, end, step in zip(axes, starts, ends, steps, strict=True):
        whole = start == 0 and step == 1 and end >= 2**31 - 1
        if counted(each, rank) == axis and not whole:
            raise Frozen("it takes some of the batch")
        if not whole:
            taken.append((counted(each, rank), start, end, step))
    if len(taken) == 1 and taken[0][3] == 1 and (part := _shared_part(flow, node, *taken[0][:3])):
        node.op_type, node.input[:] = "Identity", [part]
        del node.attribute[:]  # bounds, before opset 10
        del flow.places[node.output[0]]


def _is_constant(flow: Flow, node: onnx.NodeProto) -> bool:
    """Whether all but the first operand are."""
    return all(flow.is_constant(name) for name in node.input[1:] if name)


def _shared_part(flow: Flow, node: onnx.NodeProto, axis: int, start: int, end: int) -> str | None:
    """What a Slice takes, where that is of no item: a token that is put in front of each, say.

    Args:
        flow: The graph.
        node: The Slice.
        axis: The only one of which it takes a part, in steps of one.
        start: Of the part.
        end: Behind it.
    """
    name, done = node.input[0], list[tuple[str, list[str], int]]()
    size, rank = flow.shape(name)[axis], len(flow.shape(name))
    while name in flow.sums:  # each element by itself: the part of the sum is the sum of the parts
        operator, operands = flow.sums[name]
        held = [at for at, each in enumerate(operands) if each in flow.places]
        if len(held) != 1 or len(flow.shape(operands[held[0]])) != rank:
            return None
        name = operands[held[0]]
        done.append((operator, operands, held[0]))
    if name not in flow.joints or flow.joints[name][1] != axis or not isinstance(size, int):
        return None
    start, end = (min(max(each + size if each < 0 else each, 0), size) for each in (start, end))
    part = _part_at(flow, flow.joints[name][0], axis, start, end)
    if part is None or part[0] in flow.places:
        return None
    name = _cut(flow, part[0], axis, part[1], part[1] + end - start)
    for operator, operands, at in reversed(done):
        cut = [
            name if place == at else _beside(flow, each, rank, axis, start, end)
            for place, each in enumerate(operands)
        ]
        name = flow.op(operator, cut)
    return name


def _part_at(
    flow: Flow, parts: Sequence[str], axis: int, start: int, end: int
) -> tuple[str, int] | None:
    """The part of a Concat in which a range lies, and where in it."""
    before = 0
    for part in parts:
        size = flow.shape(part)[axis]
        if not isinstance(size, int):
            return None
        if before <= start < end <= before + size:
            return part, start - before
        before += size
    return None


def _beside(flow: Flow, name: str, rank: int, axis: int, start: int, end: int) -> str:
    """What goes with a range of the other operand."""
    own = axis - rank + len(flow.shape(name))
    if own < 0 or flow.shape(name)[own] == 1:
        return name
    return _cut(flow, name, own, start, end)


def _cut(flow: Flow, name: str, axis: int, start: int, end: int) -> str:
    """A range of a value along an axis."""
    if (start, end) == (0, flow.shape(name)[axis]):
        return name
    if flow.opset < 10:
        return flow.op("Slice", [name], axes=[axis], starts=[start], ends=[end])
    bounds = (
        (f"{name}_{what}", at) for what, at in (("start", start), ("end", end), ("axis", axis))
    )
    return flow.op("Slice", [name, *(flow.add(n, np.array([at], np.int64)) for n, at in bounds)])


def padded(flow: Flow, node: onnx.NodeProto) -> None:
    """Pad of other axes."""
    axis = batched(flow, node)
    rank = len(flow.shape(node.input[0]))
    pads = flow.numbers(node, "pads", 1) or []
    axes = [counted(a, rank) for a in flow.numbers(node, "axes", 3) or range(rank)]
    if axis in axes and (pads[axes.index(axis)] or pads[axes.index(axis) + len(axes)]):
        raise Frozen("it pads the batch")
    flow.places[node.output[0]] = axis


def expanded(flow: Flow, node: onnx.NodeProto) -> None:
    """Expand: a size of one leaves the batch as it is."""
    axis = batched(flow, node)
    shape = flow.shape(node.input[0])
    target = [*flow.vector(node.input[1])]
    at = axis + len(target) - len(shape)
    if at >= 0 and target[at] != 1:
        if target[at] != shape[axis]:
            raise Frozen("it repeats the batch")
        target[at] = 1
        node.input[1] = flow.written(node.input[1], target)
    flow.places[node.output[0]] = max(at, axis)


def asked(flow: Flow, node: onnx.NodeProto) -> None:
    """Shape: of the batch it goes on to tell what the file is for.

    Each item is computed as the file computes it, which knows of no others.
    """
    name, output = node.input[0], node.output[0]
    if node.op_type == "Shape" and flow.sizes_of_others(node):
        flow.nodes.append(node)
        return
    shape = flow.shape(name)
    first, last = part_of(node, len(shape))
    asked_for = shape[flow.places[name]]
    if node.op_type == "Size" or flow.is_given(output) or not isinstance(asked_for, int):
        raise Frozen(
            "it asks at run time for sizes that `--shape` may tell, the batch's among them"
        )
    sizes = shape[first:last]
    asks = onnx.NodeProto()
    asks.CopyFrom(node)
    asks.output[0] = flow.fresh(f"{output}_any")
    if not all(isinstance(size, int) for size in sizes):
        flow.nodes.append(asks)
    flow.nodes.append(helper.make_node("Identity", [flow.written(asks.output[0], sizes)], [output]))


def tiled(flow: Flow, node: onnx.NodeProto) -> None:
    """Tile of other axes."""
    axis = batched(flow, node)
    if flow.vector(node.input[1])[axis] != 1:
        raise Frozen("it repeats the batch")
    flow.places[node.output[0]] = axis


def resized(flow: Flow, node: onnx.NodeProto) -> None:
    """Resize and Upsample of other axes."""
    axis = batched(flow, node)
    if any(each.name == "axes" for each in node.attribute):
        named = next(list(each.ints) for each in node.attribute if each.name == "axes")
        if axis in [counted(each, len(flow.shape(node.input[0]))) for each in named]:
            raise Frozen("it names the batch among its axes")
    elif len(node.input) > 3 and node.input[3]:
        sizes = flow.vector(node.input[3])
        if sizes[axis] != flow.shape(node.input[0])[axis]:
            raise Frozen("it resizes the batch")
        node.input[3] = flow.sizes(sizes, axis, node.input[0], axis, of=node.input[3])
    else:
        place = 1 if node.op_type == "Upsample" or flow.opset < 11 else 2
        scales = next((list(e.floats) for e in node.attribute if e.name == "scales"), None)
        scales = scales or [float(each) for each in flow.constant(node.input[place]).ravel()]
        if scales[axis] != 1:
            raise Frozen("it resizes the batch")
    flow.places[node.output[0]] = axis
