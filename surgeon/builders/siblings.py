"""Equal work on one value, done at once: these look at the other readers of the root's operand."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.lists import MOST_PARTS, as_many
from surgeon.builders.bench import Bench
from surgeon.builders.chains import lone_cut
from surgeon.builders.jointly import handed_out
from surgeon.builders.own_constants import own_weight
from surgeon.facts.fact import Array, same_dims
from surgeon.match import Match, attribute_of, is_one_of, producer_of
from surgeon.rewrite import Draft, Refused

_MOST_READERS = 512  # of a value that Slices cut


def merge_gemms(draft: Draft, match: Match) -> gs.Tensor:
    """Gemms with constant weights on one input as one Gemm and a Split."""
    root = match.root
    x = root.inputs[0]
    siblings = [root]
    for node in x.outputs:
        if node is root or getattr(node, "gone", False) or any(node is s for s in siblings):
            continue
        same = is_one_of(node, {"Gemm"}) and node.inputs[0] is x and _alike(draft, root, node)
        if same and draft.holds(node):
            siblings.append(node)
    parts = [
        (weight, bias, node)
        for node in siblings
        if (found := _operands(draft, node))
        for weight, bias in [found]
    ]
    if len(parts) < 2 or parts[0][2] is not root:
        raise Refused("no other Gemm with constant operands reads its input")
    order = _as_joined([node.outputs[0] for _, _, node in parts])
    parts = [parts[index] for index in order]
    # weights as [outputs, inputs], as transB = 1 has them
    weight = np.concatenate([w for w, _, _ in parts])
    bias = np.concatenate([b for _, b, _ in parts])
    sizes = [w.shape[0] for w, _, _ in parts]
    whole = draft.op(
        "Gemm", x, draft.constant(weight, "weight"), draft.constant(bias, "bias"), transB=1
    )
    pieces = draft.op("Split", whole, draft.constant(sizes, "sizes"), outputs=len(sizes), axis=1)
    return handed_out(draft, root, [node for _, _, node in parts], pieces)


def merge_products(draft: Draft, match: Match) -> gs.Tensor:
    """MatMuls with constant weights on one input, and what is added to each, as one and a Split."""
    root = match.root
    product = root if root.op == "MatMul" else match.nodes[1]
    x = product.inputs[0]
    rank = draft.facts.of(x).rank
    others = [n for n in x.outputs if is_one_of(n, {"MatMul"}) and n is not product]
    others = [n for n in others if n.inputs[0] is x]
    if rank is None or rank < 2 or not others:
        raise Refused("no other product reads its input, or the input is a vector")
    parts = [_part(draft, product)]
    for node in filter(draft.holds, others):
        with suppress(Refused):
            parts.append(_part(draft, node))
    end, weight, _ = parts[0]
    parts = [part for part in parts if part[1].dtype == weight.dtype]
    sums = sum(node.op == "Add" for node, _, _ in parts)
    if root is product and sums:
        raise Refused("it goes with what is added to it, or to its siblings")
    if end is not root:
        raise Refused("what is added is no vector, or makes the product larger")
    if len(parts) + sums <= 2 + bool(sums):
        raise Refused("too few products with constant weights read its input")
    order = _as_joined([node.outputs[0] for node, _, _ in parts])
    parts = [parts[index] for index in order]
    sizes = [w.shape[1] for _, w, _ in parts]
    y = draft.op("MatMul", x, draft.constant(np.concatenate([w for _, w, _ in parts], 1), "weight"))
    if sums:
        y = draft.op("Add", y, draft.constant(np.concatenate([b for *_, b in parts]), "bias"))
    pieces = draft.op("Split", y, draft.constant(sizes, "sizes"), outputs=len(sizes), axis=rank - 1)
    return handed_out(draft, root, [node for node, _, _ in parts], pieces)


def _as_joined(made: Sequence[gs.Tensor]) -> list[int]:
    """In which order to make values at once: that in which a Concat joins them, if one does."""
    readers = {id(n): n for t in made for n in t.outputs if is_one_of(n, {"Concat"})}
    most, places = 0, dict[int, int]()
    for reader in readers.values():
        found = {id(tensor): place for place, tensor in enumerate(reader.inputs)}
        count = sum(id(tensor) in found for tensor in made)
        if count > most:
            most, places = count, found
    return sorted(range(len(made)), key=lambda i: places.get(id(made[i]), len(places)))


def _part(draft: Draft, product: gs.Node) -> tuple[gs.Node, Array, Array]:
    """A MatMul with a constant [K, N], or the Add behind it, the weight and a bias [N].

    Raises:
        Refused: Its weight is no such constant, or the model gives the product out.
    """
    facts, made = draft.facts, product.outputs[0]
    weight = own_weight(draft, product)
    if weight.ndim != 2 or weight.dtype.kind != "f":
        raise Refused("its weight is no matrix of floats")
    end, bias = product, np.zeros(weight.shape[1], weight.dtype)
    behind = made.outputs[0] if len(made.outputs) == 1 else None
    if behind is not None and is_one_of(behind, {"Add"}) and draft.holds(behind):
        other = behind.inputs[1] if behind.inputs[0] is made else behind.inputs[0]
        summand = facts.array(other)
        kept = same_dims(facts.of(made).shape, facts.of(behind.outputs[0]).shape)
        if summand is not None and kept and summand.size in (1, *summand.shape[-1:]):
            end, bias = behind, np.array(np.broadcast_to(summand.reshape(-1), bias.shape))
    if draft.surgery.is_output(made) or draft.surgery.is_output(end.outputs[0]):
        raise Refused("the model gives it out")
    return end, weight, bias


def slices_as_split(draft: Draft, match: Match) -> gs.Tensor:
    """Slices of one axis at constant bounds that tile it as one Split."""
    root, facts = match.root, draft.facts
    x = root.inputs[0]
    shape = facts.of(x).shape
    mine = _bounds(draft, root)
    if shape is None or mine is None:
        raise Refused("its bounds are not constant, or its step is not 1")
    axis = mine[0]
    if not isinstance(shape[axis], int):
        raise Refused(f"axis {axis} is {shape[axis]}: the sizes of a Split are constant")
    if mine[1] > 0 or len(x.outputs) > _MOST_READERS:  # each would look at all the others
        raise Refused("it is not the first of its axis, or very many read what it cuts")
    found: dict[tuple[int, int], list[gs.Node]] = {}
    for node in x.outputs:
        known = is_one_of(node, {"Slice"}) and node.inputs[0] is x
        if not known or getattr(node, "gone", False):
            continue
        bounds = _bounds(draft, node) if node is root or draft.holds(node) else None
        twin = bounds is not None and bounds[1:] in found
        if twin and (node is root or draft.surgery.is_output(node.outputs[0])):
            raise Refused("two equal slices are read apart")
        if bounds is not None and bounds[0] == axis:
            found.setdefault(bounds[1:], []).append(node)
    order = sorted(found)
    ends = [0, *[end for _, end in order]]
    if len(order) < 2 or [start for start, _ in order] != ends[:-1] or ends[-1] != shape[axis]:
        raise Refused(f"the slices of axis {axis} do not tile it")
    sizes = [end - start for start, end in order]
    pieces = draft.op("Split", x, draft.constant(sizes, "sizes"), outputs=len(sizes), axis=axis)
    nodes = [(node, piece) for key, piece in zip(order, pieces, strict=True) for node in found[key]]
    return handed_out(draft, root, *zip(*nodes, strict=True))


def _bounds(draft: Draft, node: gs.Node) -> tuple[int, int, int] | None:
    """(axis, start, end) of a Slice of one axis with step 1 and constant bounds.

    None of an old one that the sweep has not come to: its bounds are attributes yet.
    """
    facts = draft.facts
    shape = facts.of(node.inputs[0]).shape
    cut = lone_cut(facts, node)
    if shape is None or cut is None:
        return None
    *ends, axis, step = cut
    axis %= len(shape)
    size = shape[axis]
    if step != 1 or not isinstance(size, int):
        return None
    start, end = (min(max(n + size if n < 0 else n, 0), size) for n in ends)
    return (axis, start, end) if start < end else None


def _alike(draft: Draft, first: gs.Node, second: gs.Node) -> bool:
    same = all(
        attribute_of(first, key) == attribute_of(second, key) for key in ("alpha", "beta", "transA")
    )
    return same and not draft.surgery.is_output(second.outputs[0])


def _operands(draft: Draft, node: gs.Node) -> tuple[Array, Array] | None:
    """Weight as [outputs, inputs] and bias as [outputs], with alpha and beta taken in."""
    facts = draft.facts
    if attribute_of(node, "transA") or draft.surgery.is_output(node.outputs[0]):
        return None
    weight = facts.array(node.inputs[1])
    if weight is None or weight.dtype.kind != "f":
        return None
    if not attribute_of(node, "transB"):
        weight = weight.T
    bias: Array | None = np.zeros(weight.shape[0], weight.dtype)
    if len(node.inputs) > 2 and not node.inputs[2].is_empty():
        bias = facts.array(node.inputs[2])
        if bias is None or bias.size not in (1, weight.shape[0]):
            return None
        if bias.ndim > 1 and bias.shape[-1] != bias.size:
            return None  # a column: it differs from row to row of the product
        bias = np.broadcast_to(bias.reshape(-1), weight.shape[:1])
    assert bias is not None
    alpha, beta = attribute_of(node, "alpha"), attribute_of(node, "beta")
    if alpha != 1:
        weight = (weight.astype(np.float64) * alpha).astype(weight.dtype)
    if beta != 1:
        bias = (bias.astype(np.float64) * beta).astype(weight.dtype)
    return np.ascontiguousarray(weight), np.ascontiguousarray(bias)


def split_with_sizes(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """A Split into equal parts, of which the last may be shorter, with their sizes."""
    node = match.root
    shape, count = draft.facts.of(node.inputs[0]).shape, len(node.outputs)
    axis = int(attribute_of(node, "axis") or 0)
    if shape is None or not isinstance(whole := shape[axis], int):
        raise Refused("the length of its axis is not known")
    if not 1 < count <= MOST_PARTS:
        raise Refused(f"it has one part, or more than {MOST_PARTS}")
    each = -(-whole // count)
    sizes = [each] * (count - 1) + [whole - each * (count - 1)]
    if sizes[-1] < 0:
        raise Refused("its parts are more than there is")
    made = draft.op(
        "Split", node.inputs[0], draft.constant(sizes, "sizes"), outputs=count, axis=axis
    )
    return as_many(made, MOST_PARTS)


def parts_of_part(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """A Split of one part of a Split along the same axis, as one Split of the whole."""
    root = match.root
    part = root.inputs[0]
    outer = producer_of(part)
    rank = draft.facts.of(part).rank
    if outer is None or rank is None or not draft.holds(outer):
        raise Refused("how many axes it has is not known, or its Split is not in this graph")
    if len(part.outputs) > 1 or draft.surgery.is_output(part):
        raise Refused("the part is read otherwise too")
    axis = int(attribute_of(outer, "axis") or 0) % rank
    if int(attribute_of(root, "axis") or 0) % rank != axis:
        raise Refused("it parts another axis")
    place = next(i for i, other in enumerate(outer.outputs) if other is part)
    parts = [*outer.outputs[:place], *root.outputs, *outer.outputs[place + 1 :]]
    if len(parts) > MOST_PARTS:
        raise Refused(f"together there are more than {MOST_PARTS} parts")
    sizes = [shape[axis] if (shape := draft.facts.of(t).shape) else None for t in parts]
    if not all(isinstance(size, int) for size in sizes):
        raise Refused("the size of a part is not known")
    made = draft.op(
        "Split",
        outer.inputs[0],
        draft.constant(sizes, "sizes"),
        outputs=len(parts),
        axis=axis,
    )
    end = place + len(root.outputs)
    pairs = zip(outer.outputs, [*made[:place], part, *made[end:]], strict=True)
    draft.also.append((outer, [pair for pair in pairs if pair[0] is not part]))
    return as_many(made[place:end], MOST_PARTS)


def parts_as_slices(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """A Split into parts of several sizes, each as a Slice."""
    node, c = match.root, Bench(draft)
    x, count = node.inputs[0], len(node.outputs)
    sizes = draft.facts.array(node.inputs[1])
    if sizes is None:
        raise Refused("the sizes of its parts are not known")
    if len(set(sizes.tolist())) == 1:
        raise Refused("its parts are of one size")
    if count > MOST_PARTS:
        raise Refused(f"it has more than {MOST_PARTS} parts")
    axis = int(attribute_of(node, "axis") or 0) % c.rank(x)
    ends = np.cumsum(sizes).tolist()
    made = [c.slice(x, axis, begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    return as_many(made, MOST_PARTS)
