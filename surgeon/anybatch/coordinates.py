"""What becomes of the batch where places are told by coordinates, or by an index an element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from surgeon.anybatch.flow import Flow, attribute, counted
from surgeon.frozen import Frozen

_MASK_OF_ITEMS = 4  # axes of an Attention's mask for each item: items, heads, rows, columns


def by_element(flow: Flow, node: onnx.NodeProto) -> None:
    """GatherElements and ScatterElements: what all items share is there once for each."""
    held = [name for name in node.input if name in flow.places]
    axis, like = flow.places[held[0]], held[0]
    if any(flow.places[name] != axis for name in held):
        raise Frozen("its operands hold the batch along different axes")
    if axis == counted(attribute(node, "axis", 0), len(flow.shape(like))):
        raise Frozen("it goes along the batch")
    flow.alike(held)
    for place, name in enumerate(node.input):
        if name not in flow.places:
            node.input[place] = flow.spread(name, axis, like, axis)
    flow.places[node.output[0]] = axis


def scattered(flow: Flow, node: onnx.NodeProto) -> None:
    """ScatterND at constant coordinates.

    Where one of them is the place in the batch, which is 0 throughout, the batch goes behind all
    other axes, and is no coordinate any more.
    """
    data, _, updates = node.input
    at = flow.constant(node.input[1])
    rows, count, rank = at.shape[:-1], at.shape[-1], len(flow.shape(data))
    axis, beside = flow.places.get(data), flow.places.get(updates)
    if axis is None:
        assert beside is not None, "one of the two holds it"
        axis = _axis_for(flow, data, at, beside)
        data = node.input[0] = flow.spread(data, axis, updates, beside)
    elif axis < count and flow.shape(data)[axis] != 1:
        raise Frozen("it takes some of the batch")
    if axis >= count:  # whole slices are put there, and the batch is one of their axes
        within = len(rows) + axis - count
        if beside is None:
            node.input[2] = flow.spread(updates, within, data, axis)
        elif beside != within:
            raise Frozen("its operands hold the batch along different axes")
        flow.places[node.output[0]] = axis
        return
    rest = _without(flow, at, axis)
    if beside is None:
        node.input[2] = _once_each(flow, updates, data, axis)
    elif beside >= len(rows) or rows[beside] != 1:
        raise Frozen("its operands hold the batch along different axes")
    else:
        rest = rest.squeeze(beside)
        node.input[2] = _moved(flow, updates, beside, len(flow.shape(updates)) - 1)
    node.input[0] = _moved(flow, data, axis, rank - 1)
    node.input[1] = flow.add(f"{node.output[0]}_places", rest)
    _put_back(flow, node, rank - 1, axis, rank)


def gathered_nd(flow: Flow, node: onnx.NodeProto) -> None:
    """GatherND at constant coordinates, as `scattered`, or at some of each item."""
    data = node.input[0]
    if attribute(node, "batch_dims", 0):
        raise Frozen("it gathers by items")
    if node.input[1] in flow.places:
        _by_own_places(flow, node)
        return
    at = flow.constant(node.input[1])
    rows, count = at.shape[:-1], at.shape[-1]
    axis = flow.places[data]
    if axis >= count:
        flow.places[node.output[0]] = len(rows) + axis - count
        return
    if flow.shape(data)[axis] != 1:
        raise Frozen("it takes some of the batch")
    rest = _without(flow, at, axis)
    ones = [place for place, size in enumerate(rows) if size == 1]
    if not ones:
        raise Frozen("what it gathers has no axis for the batch")
    place = flow.choose(ones)
    rank = len(flow.shape(data))
    node.input[0] = _moved(flow, data, axis, rank - 1)
    node.input[1] = flow.add(f"{node.output[0]}_places", rest.squeeze(place))
    _put_back(flow, node, len(rows) - 1 + rank - count, place, len(rows) + rank - count)


def gathered_rows(flow: Flow, node: onnx.NodeProto) -> None:
    """Gather of constant places along the axis that holds the batch: of each item's own.

    The places have an axis of one, which becomes the batch's.
    """
    data, axis = node.input[0], flow.places[node.input[0]]
    shape, at = flow.shape(data), flow.constant(node.input[1])
    ones = [place for place, size in enumerate(at.shape) if size == 1]
    if flow.size != 1 or not ones:
        raise Frozen("it takes some of the batch")
    place = flow.choose(ones)
    node.input[0] = _rows_apart(flow, data, axis)
    node.input[1] = flow.add(f"{node.output[0]}_places", at.squeeze(place))
    next(each for each in node.attribute if each.name == "axis").i = axis + 1
    _put_back(flow, node, axis, axis + place, len(shape) + at.ndim - 1)


def _by_own_places(flow: Flow, node: onnx.NodeProto) -> None:
    """GatherND at coordinates of which the first is the place in the batch, others each item's."""
    data, at = node.input
    parts, joint = flow.joints.get(at, ([""], 0))
    shape, count = flow.shape(at), flow.shape(at)[-1]
    if joint != len(shape) - 1 or not flow.is_constant(parts[0]):
        raise Frozen(f"`{at}` is computed")
    first = flow.constant(parts[0])
    if first.shape[-1] != 1 or first.any() or not _of_items(flow, data):
        raise Frozen("it takes some of the batch")
    if not _of_items(flow, at) or not isinstance(count, int):
        raise Frozen("its operands hold the batch along different axes")
    rest = flow.add(f"{at}_coordinates", np.arange(1, count))
    _gather_of_each(flow, node, data, flow.op("Gather", [at, rest], axis=len(shape) - 1))


def gathered_own(flow: Flow, node: onnx.NodeProto, along: int) -> None:
    """Gather of each item's own places: the row behind a text's last word, say.

    Args:
        flow: The graph.
        node: The Gather.
        along: Its axis: that of the batch, which holds the rows of all items, or the next.
    """
    data, at = node.input
    rows = along == 0 and flow.size == 1 and flow.places.get(data) == 0
    if not _of_items(flow, at) or not (rows or (along == 1 and _of_items(flow, data))):
        raise Frozen("its operands hold the batch along different axes")
    if rows:
        data = _rows_apart(flow, data, 0)
    rank = len(flow.shape(at))
    # in the file the places' axis of the batch is one beside that of the data
    _gather_of_each(flow, node, data, flow.unsqueezed(at, [1, rank + 1] if along else [rank]))


def _rows_apart(flow: Flow, name: str, axis: int) -> str:
    """The value with the rows of each item behind the batch, of an axis that holds those of all.

    Raises:
        Frozen: The sizes from there on are not known.
    """
    sizes = flow.shape(name)[axis:]
    if not all(isinstance(size, int) for size in sizes):
        raise Frozen(f"the sizes of `{name}` are not known")
    rows = flow.add(f"{name}_rows", np.array([*[0] * axis, -1, *sizes], np.int64))
    return flow.op("Reshape", [name, rows])


def _of_items(flow: Flow, name: str) -> bool:
    """Whether the first axis is the batch, and the file's is one."""
    return flow.size == 1 and flow.places.get(name) == 0 and flow.shape(name)[0] == 1


def _gather_of_each(flow: Flow, node: onnx.NodeProto, data: str, places: str) -> None:
    """Write a node as the GatherND that takes of each item what its coordinates say.

    Raises:
        Frozen: The opset has none that knows of items.
    """
    if flow.opset < 12:
        raise Frozen(
            "it takes of each item by its own places, which GatherND does from opset 12 on"
        )
    output = node.output[0]
    node.CopyFrom(helper.make_node("GatherND", [data, places], [output], node.name, batch_dims=1))
    flow.places[output] = 0


def attended(flow: Flow, node: onnx.NodeProto) -> None:
    """Attention: the batch is the first axis of all but a mask, which items may share."""
    mask = node.input[3] if len(node.input) > 3 else ""
    for place, name in enumerate(node.input):
        if name and name in flow.places and flow.places[name] != 0:
            raise Frozen("the batch is not its first axis")
        if name and name not in flow.places and place != 3:
            raise Frozen(f"`{name}` is shared")
    shape = flow.shape(mask) if mask else ()
    if mask in flow.places and len(shape) < _MASK_OF_ITEMS:
        raise Frozen(f"the first axis of `{mask}` is none of items to it")
    if mask not in flow.places and len(shape) >= _MASK_OF_ITEMS and shape[0] != 1:
        node.input[3] = flow.spread(mask, 0, node.input[0], 0, broadcast=True)
    flow.places.update(dict.fromkeys(filter(None, node.output), 0))


def _axis_for(flow: Flow, data: str, at: np.ndarray, updates: int) -> int:
    """The axis of a shared value that what is put into it has the batch along."""
    rows, count = at.ndim - 1, int(at.shape[-1])
    if updates >= rows:
        return updates - rows + count
    shape = flow.shape(data)
    for axis in range(count):
        if shape[axis] == 1 and not at[..., axis].any():
            return axis
    raise Frozen(f"`{data}` has no axis for the batch")


def _without(flow: Flow, at: np.ndarray, axis: int) -> np.ndarray:
    """Coordinates but that of the batch, which is 0."""
    if flow.size != 1 or at.shape[-1] == 1:
        raise Frozen("it goes along the batch")
    if at[..., axis].any():
        raise Frozen("it takes some of the batch")
    return np.delete(at, axis, -1)


def _once_each(flow: Flow, name: str, like: str, like_axis: int) -> str:
    """A value that all items share, once for each of them, along a new last axis."""
    shape = flow.shape(name)
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) < len(shape):
        raise Frozen(f"the sizes of `{name}` are not known")
    one = flow.op("Reshape", [name, flow.add(f"{name}_shape", np.array([*sizes, 1], np.int64))])
    return flow.op("Expand", [one, flow.sizes([*sizes, 0], len(sizes), like, like_axis)])


def _moved(flow: Flow, name: str, axis: int, to: int) -> str:
    """The value with one axis elsewhere."""
    return name if axis == to else flow.op("Transpose", [name], perm=_order(axis, to, to + 1))


def _order(axis: int, to: int, rank: int) -> Sequence[int]:
    """The order of axes in which one is elsewhere."""
    order = [each for each in range(rank) if each != axis]
    order.insert(to, axis)
    return order


def _put_back(flow: Flow, node: onnx.NodeProto, at: int, axis: int, rank: int) -> None:
    """Have the batch, which is at one axis of what a node gives, where it is to be."""
    output = node.output[0]
    flow.places[output] = axis
    if axis != at:
        node.output[0] = flow.fresh(f"{output}_aside")
        back = _order(at, axis, rank)
        flow.behind.append(helper.make_node("Transpose", [node.output[0]], [output], perm=back))
