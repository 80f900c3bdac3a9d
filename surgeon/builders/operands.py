"""Operands and attributes as the model's opset has them, where an exporter wrote others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.builders.aten_math.work import BOOL, INT64
from surgeon.builders.aten_shape.lists import MOST_PARTS, as_many
from surgeon.builders.bench import Bench
from surgeon.facts.fact import Array
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_ROUNDED = frozenset({"Floor", "Ceil", "Round"})
_STAYS_WHOLE = frozenset({"Add", "Sub", "Mul", "Max", "Min", "Neg", "Abs", "Concat"})
_TAKES = frozenset({"Unsqueeze", "Squeeze", "Reshape", "Identity", "Gather"})  # of one number
_OF_SIZES = frozenset({"Slice", "Expand", "Tile", "Reshape"})
_FIRST_FROM_BEHIND = 11  # the opset whose views count axes from behind too


def attributes_as_inputs(draft: Draft, match: Match) -> Any:
    """A standard operator with attributes that are inputs in the model's opset."""
    node = match.root
    inputs, attributes = list(node.inputs), dict(node.attrs)
    old = [move for move in opsets.MOVED[node.op] if move.attribute in attributes]
    if not old:  # an opset that has them as attributes has them as inputs in the newest form
        raise Refused("its attributes are its opset's")
    dtype = draft.facts.of(inputs[0]).dtype if inputs else 0
    numpy_dtype = onnx.helper.tensor_dtype_to_np_dtype(dtype) if dtype else None
    for move in old:
        inputs += [gs.Variable.empty()] * (move.index + 1 - len(inputs))
        if not inputs[move.index].is_empty():
            raise Refused(f"`{move.attribute}` is an attribute and an input")
        if move.like_input and not dtype:
            raise Refused("the dtype of its input is not known")
        value = move.constant(attributes.pop(move.attribute), numpy_dtype)
        inputs[move.index] = draft.constant(value, move.attribute)
    given = [None if t.is_empty() else t for t in inputs]
    return draft.op(node.op, *given, outputs=len(node.outputs), **attributes)


def without_axes(draft: Draft, match: Match) -> gs.Tensor:
    """A reduction whose axes are left out, over all of them or as it says of none."""
    node = match.root
    made: gs.Tensor = draft.op(node.op, node.inputs[0], **node.attrs)
    return made


def axes_from_front(draft: Draft, match: Match) -> gs.Tensor:
    """Unsqueeze and Squeeze below opset 11, whose axes ONNX counts from the front alone there.

    onnxruntime counts them from behind too, but its optimisations lose the axis behind a Reshape.
    """
    node, facts = match.root, draft.facts
    if facts.opset >= _FIRST_FROM_BEHIND:
        raise Refused("its opset counts axes from behind too")
    axes = facts.array(node.inputs[1])
    rank = facts.of(node.outputs[0] if node.op == "Unsqueeze" else node.inputs[0]).rank
    if axes is None or rank is None:
        raise Refused("its axes or its rank are not known")
    if not (axes < 0).any():
        raise Refused("no axis of it is counted from behind")
    made: gs.Tensor = draft.op(node.op, node.inputs[0], draft.constant(axes % rank, "axes"))
    return made


def squeeze_of_ones(draft: Draft, match: Match) -> gs.Tensor:
    """A Squeeze of axes of which some are longer than 1, which PyTorch leaves and ONNX refuses."""
    x, facts = match.root.inputs[0], draft.facts
    axes, shape = facts.array(match.root.inputs[1]), facts.of(x).shape
    if axes is None or not shape:
        raise Refused("its axes or its operand's shape are not known")
    named = [int(axis) % len(shape) for axis in axes.reshape(-1)]
    kept = [axis for axis in named if not isinstance(shape[axis], int) or shape[axis] == 1]
    if len(kept) == len(named):
        raise Refused("none of its axes is known to be longer than 1")
    if _mask_of(match.root) is not None or _places_of(draft, match.root) is not None:
        raise Refused("it takes a mask of several axes for one of a single axis")
    return draft.op("Squeeze", x, draft.constant(kept, "axes")) if kept else x


def expand_but_kept(draft: Draft, match: Match) -> gs.Tensor:
    """An Expand to sizes of which some are -1: those axes stay as they are.

    A target of 1 keeps an axis, whatever its length.
    """
    x, sizes = match.root.inputs
    known = draft.facts.array(sizes)
    entries = draft.facts.of(sizes).value if known is None else known
    said = [] if entries is None else entries.reshape(-1).tolist()
    kept = np.array([isinstance(size, int) and size == -1 for size in said])
    if not kept.any():
        raise Refused("none of its sizes is known to be -1")
    if known is None:
        one = draft.constant([1], "one")
        target: gs.Tensor = draft.op("Where", draft.constant(kept, "kept"), one, sizes)
    else:
        target = draft.constant(np.where(kept, 1, known), "sizes")
    made: gs.Tensor = draft.op("Expand", x, target)
    return made


def slice_bounds(draft: Draft, match: Match) -> gs.Tensor:
    """A Slice whose bounds are int32 here and int64 there: int64 all, as ONNX wants one type."""
    c = Bench(draft)
    x, *bounds = match.root.inputs
    given = [t for t in bounds if not t.is_empty()]
    if len({c.dtype(t) for t in given}) < 2:
        raise Refused("its bounds are of one type")
    for bound in given:
        if c.dtype(bound) in FLOATS and not _is_whole(draft, bound):
            _refuse_other_readers(draft, bound)
    made: gs.Tensor = c.op(
        "Slice", x, *(None if t.is_empty() else c.cast(t, INT64) for t in bounds)
    )
    return made


def _is_whole(draft: Draft, number: gs.Tensor) -> bool:
    """Whether a number in floats is a whole one, by the nodes that make it."""
    waiting, seen = [number], set[int]()
    while waiting:
        number = waiting.pop()
        if id(number) in seen or number.is_empty():
            continue
        seen.add(id(number))
        known, node = draft.facts.array(number), producer_of(number)
        if known is not None:
            if (known != np.trunc(known)).any():
                return False
            continue
        if node is None or node.domain:
            return False
        given = draft.facts.of(node.inputs[0]).dtype if node.op == "Cast" else 0
        if node.op in _ROUNDED or (given and given not in FLOATS):
            continue
        if node.op not in _STAYS_WHOLE | _TAKES:
            return False
        waiting += node.inputs if node.op in _STAYS_WHOLE else node.inputs[:1]
    return True


def _refuse_other_readers(draft: Draft, bound: gs.Tensor) -> None:
    """Refuse a bound that lost its `int()` where its fraction is, or may be, read elsewhere."""
    known = draft.facts.array(bound) is not None  # and what else read it may be folded
    node = producer_of(bound)
    while node is not None and not node.domain and node.op in _TAKES:
        bound = node.inputs[0]
        node = producer_of(bound)
    if known or not _is_only_cut(draft, bound):
        raise Refused(
            f"the exporter lost the `int()` of its bound `{bound.name}`, and what else reads that"
            " has its fraction; compute it by `//`"
        )


def _is_only_cut(draft: Draft, number: gs.Tensor) -> bool:
    """Whether all that reads a number reads a whole one: bounds, sizes, and Casts to integers."""
    waiting, seen = [number], set[int]()
    while waiting:
        number = waiting.pop()
        if id(number) in seen:
            continue
        seen.add(id(number))
        if draft.surgery.is_output(number):
            return False
        for node in number.outputs:
            if node.op in _TAKES and not node.domain and node.inputs[0] is number:
                waiting.append(node.outputs[0])
            elif node.op == "Cast":
                if node.attrs["to"] in FLOATS:
                    return False
            elif node.op not in _OF_SIZES or node.domain or node.inputs[0] is number:
                return False
    return True


def dynamic_slice(draft: Draft, match: Match) -> gs.Tensor:
    """A DynamicSlice, whose bounds may be an Unsqueeze of nothing: from the start, to the end."""
    x, starts, ends, axes = match.root.inputs
    if _of_nothing(starts):
        starts = draft.constant([0], "start")
    if _of_nothing(ends):
        ends = draft.constant([np.iinfo(np.int64).max], "end")
    made: gs.Tensor = draft.op("Slice", x, starts, ends, axes)
    return made


def upsample_as_resize(draft: Draft, match: Match) -> gs.Tensor:
    """An Upsample where there is none any more, as the Resize of its coordinates."""
    x, scales = match.root.inputs[:2]
    how: dict[str, Any] = {"mode": attribute_of(match.root, "mode") or "nearest"}
    if how["mode"] == "nearest":
        how["nearest_mode"] = "floor"
    region = draft.constant(np.zeros(0, np.float32), "roi")
    made: gs.Tensor = draft.op(
        "Resize", x, region, scales, **how, coordinate_transformation_mode="asymmetric"
    )
    return made


def _of_nothing(bound: gs.Tensor) -> bool:
    producer = producer_of(bound)
    if producer is None or producer.op != "Unsqueeze":
        return False
    return all(t.is_empty() for t in producer.inputs[:1])


def joined_but_nothing(draft: Draft, match: Match) -> gs.Tensor:
    """A Concat without operands of shape [0] beside such of another rank, which PyTorch skips."""
    facts, inputs = draft.facts, match.root.inputs
    shapes = [facts.of(t).shape for t in inputs]
    kept = [t for t, shape in zip(inputs, shapes, strict=True) if shape != (0,)]
    ranks = {facts.of(t).rank for t in kept}
    if not kept or len(kept) == len(inputs) or ranks & {None, 1}:
        raise Refused("it has no operand of shape [0] beside such of another rank")
    made: gs.Tensor = draft.op("Concat", *kept, **match.root.attrs) if len(kept) > 1 else kept[0]
    return made


def sizes_said_once(draft: Draft, match: Match) -> gs.Tensor:
    """A Concat of sizes, of which a list stands there once for every axis, as if it were a number.

    PyTorch writes so what a scripted interpolation is given as `size=x.shape[2:]`.
    """
    facts, inputs = draft.facts, match.root.inputs
    ranks = [facts.of(t).rank for t in inputs]
    if sorted(set(ranks), key=str) != [1, 2] or match.root.attrs.get("axis") != 0:
        raise Refused("it does not join lists of sizes with rows of them")
    parts = [
        t if rank == 1 else _said_once(draft, t) for t, rank in zip(inputs, ranks, strict=True)
    ]
    made: gs.Tensor = draft.op("Concat", *parts, axis=0)
    return made


def _said_once(draft: Draft, rows: gs.Tensor) -> gs.Tensor:
    """The list of sizes that each of as many rows is."""
    facts, kind = draft.facts, draft.facts.of(rows).dtype
    known = facts.array(rows)
    if known is not None:
        if known.shape[0] != known.shape[1] or (known != known[0]).any():
            raise Refused("its rows are not one list of sizes for every axis")
        return draft.constant(known[0], "sizes")
    maker = producer_of(rows)
    while maker is not None and maker.op == "Cast":
        behind = maker.inputs[0].inputs
        maker = behind[0] if behind else None
    sizes = None
    if maker is not None and maker.op == "Concat" and maker.attrs.get("axis") == 0:
        sizes = _of_one_row(draft, maker.inputs)
    if sizes is None:
        raise Refused("its rows are not one list of sizes for every axis")
    if facts.of(sizes).dtype != kind:
        sizes = draft.op("Cast", sizes, to=kind)
    return sizes


def _of_one_row(draft: Draft, rows: Sequence[gs.Tensor]) -> gs.Tensor | None:
    """The list that each of the rows is, as many rows as it has elements."""
    one = rows[0]
    row = producer_of(one)
    if row is None or row.op != "Unsqueeze" or any(t is not one for t in rows):
        return None
    fits = draft.facts.of(one).shape == (1, len(rows)) and draft.facts.of(row.inputs[0]).rank == 1
    found: gs.Tensor = row.inputs[0]
    return found if fits else None


def split_to_the_rest(draft: Draft, match: Match) -> Any:
    """A Split into equal parts that are more than there is: the last part is what is left.

    `torch.split` makes it so; the exporters write equal parts where they do not know the length.
    """
    node = match.root
    x, sizes = node.inputs
    shape, axis = draft.facts.of(x).shape, node.attrs.get("axis", 0)
    parts = draft.facts.array(sizes)
    if parts is None or not 1 < len(parts) == len(node.outputs) or len(set(parts.tolist())) != 1:
        raise Refused("its parts are not known to be equally long")
    if shape is None or not isinstance(whole := shape[axis], int):
        raise Refused(f"the length of axis {axis} is not known")
    rest = whole - int(parts[:-1].sum())
    if not 0 < rest < parts[-1]:
        raise Refused(f"{len(parts)} parts of {parts[0]} are not the whole of {whole} and a rest")
    cut = draft.constant([*parts[:-1], rest], "sizes")
    made = draft.op("Split", x, cut, axis=axis, outputs=len(parts))
    return as_many(made, MOST_PARTS)


def gather_under_mask(draft: Draft, match: Match) -> gs.Tensor:
    """A Gather of booleans, as PyTorch 1.4 writes `x[mask]`: the elements under the mask.

    The mask covers the first axes; what it covers becomes one axis.
    """
    x, mask = match.root.inputs
    c = Bench(draft)
    if c.dtype(mask) != BOOL:
        raise Refused("its indices are no booleans")
    return _under_mask(c, x, mask, int(attribute_of(match.root, "axis") or 0))


def gather_of_places(draft: Draft, match: Match) -> gs.Tensor:
    """A Gather of the places of a mask of several axes, as PyTorch writes `x[mask]` below opset 11.

    It takes every mask for one of a single axis and squeezes its places so, which fails.
    """
    x, places = match.root.inputs
    c = Bench(draft)
    node = producer_of(places)
    while node is not None and node.op in ("Cast", "Identity"):
        node = producer_of(node.inputs[0])
    squeezed = node if node is not None and node.op == "Squeeze" else None
    if squeezed is not None and _places_of(draft, squeezed) is not None:
        axis = int(attribute_of(match.root, "axis") or 0)
        return _at_places(c, x, squeezed.inputs[0], axis)
    mask = None if squeezed is None else _mask_of(squeezed)
    if mask is None:
        raise Refused("its indices are no squeezed places of a mask")
    if c.rank(mask) < 2:
        raise Refused("its mask has a single axis")
    return _under_mask(c, x, c.cast(mask, BOOL), int(attribute_of(match.root, "axis") or 0))


def _mask_of(squeeze: gs.Node) -> gs.Tensor | None:
    """The mask whose places, one a row, a Squeeze reads."""
    turned = producer_of(squeeze.inputs[0])
    if turned is None or turned.op != "Transpose":
        return None
    found = producer_of(turned.inputs[0])
    by_row = list(turned.attrs.get("perm") or (1, 0)) == [1, 0]
    mask: gs.Tensor | None = (
        found.inputs[0] if by_row and found is not None and found.op == "NonZero" else None
    )
    return mask


def _places_of(draft: Draft, squeeze: gs.Node) -> Array | None:
    """The places of a constant mask of several axes, one a row, of which a Squeeze drops an axis.

    What made them is folded. Below opset 11 no exporter but PyTorch's squeezes such a list, and of
    masks alone.
    """
    places = draft.facts.array(squeeze.inputs[0])
    if draft.facts.opset >= 11 or places is None or places.dtype != np.int64 or places.ndim != 2:
        return None
    axes = draft.facts.array(squeeze.inputs[1]) if len(squeeze.inputs) > 1 else None
    dropped = None if axes is None else axes.reshape(-1).tolist()
    return places if dropped in ([1], [-1]) and places.shape[1] > 1 else None


def _at_places(c: Bench, x: gs.Tensor, listed: gs.Tensor, axis: int) -> gs.Tensor:
    """The elements at places of as many axes from `axis` on, which become one."""
    places = c.facts.array(listed)
    depth, sizes = 0 if places is None else places.shape[1], c.sizes(x)
    axis += len(sizes) if axis < 0 else 0
    along = [size for size in sizes[axis : axis + depth] if isinstance(size, int)]
    if places is None or len(along) < depth or ((places < 0) | (places >= along)).any():
        raise Refused("the sizes of what it reads are not known to be those of a mask")
    lines = c.reshape(x, [*sizes[:axis], math.prod(along), *sizes[axis + depth :]])
    steps = [math.prod(along[i + 1 :]) for i in range(depth)]
    # of the list itself, and not of its numbers: the check then sees the Squeeze that fails
    index = c.op("Mul", listed, c.ints(steps, "steps"))
    index = c.op("ReduceSum", index, c.ints([1], "axes"), keepdims=0)
    made: gs.Tensor = c.op("Gather", lines, index, axis=axis)
    return made


def _under_mask(c: Bench, x: gs.Tensor, mask: gs.Tensor, axis: int) -> gs.Tensor:
    """The elements under a mask of as many axes from `axis` on, which become one."""
    depth, sizes = c.rank(mask), c.sizes(x)
    axis += len(sizes) if axis < 0 else 0
    if not 0 < depth <= len(sizes) - axis:
        raise Refused(f"a mask of rank {depth} for axis {axis}")
    behind = axis + depth
    lines = c.reshape(x, [*sizes[:axis], c.product(sizes[axis:behind]), *sizes[behind:]])
    made: gs.Tensor = c.op("Compress", lines, c.flat(mask), axis=axis)
    return made
