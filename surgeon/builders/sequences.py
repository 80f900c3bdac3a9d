"""Sequences that a model makes itself, in standard operators on tensors."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.bodies.listed import elements, part, reading
from surgeon.facts.fact import INT64, Fact
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_READERS = frozenset({"SequenceAt", "SequenceLength", "ConcatFromSequence"})
_AT_PLACES = frozenset({"SequenceAt", "SequenceLength"})
_UNREAD = 16  # parts that nobody may read, of one Split
_LONGEST = 64  # items of a list that is written out anew


def parts_as_list(draft: Draft, match: Match) -> gs.Tensor:
    """A Split, and its parts in a list that is read at once."""
    node, s = match.root, match.root.outputs[0]
    if draft.surgery.is_output(s) or any(
        reader.op not in _READERS
        or (reader.op == "SequenceAt" and draft.facts.array(reader.inputs[1]) is None)
        for reader in s.outputs
    ):
        raise Refused("its list goes where a list is needed")
    x: gs.Tensor = node.inputs[0]
    axis, sizes = int(attribute_of(node, "axis")), _sizes(draft, node)
    if len(sizes) > len(s.outputs) + _UNREAD:
        raise Refused(f"most of its {len(sizes)} parts are read by nothing")
    spare = _spare(draft, s, sizes)
    kept = [size for place, size in enumerate(sizes) if place not in spare]
    parts: list[gs.Tensor] = [x]
    if len(kept) > 1:
        counts = draft.constant(kept, "sizes")
        parts = list(draft.op("Split", x, counts, axis=axis, outputs=len(kept)))
    for place in spare:
        bounds = (draft.constant([n], name) for n, name in ((0, "start"), (0, "end")))
        nothing = draft.op("Slice", x, *bounds, draft.constant([axis], "axes"))
        parts.insert(place, nothing)
    if not attribute_of(node, "keepdims") and _drops_axis(draft, node):
        axes = draft.constant([axis], "axes")
        parts = [draft.op("Squeeze", part, axes) for part in parts]
    items: gs.Tensor = draft.op("SequenceConstruct", *parts)
    return items


def _spare(draft: Draft, s: gs.Tensor, sizes: list[int]) -> list[int]:
    """The places of parts without elements that nothing takes: runtimes refuse a Split into such.

    So `chunk` is written of a length that gives fewer chunks than were asked for.
    """
    if any(reader.op == "ConcatFromSequence" for reader in s.outputs):
        return []
    taken: set[int] = set()
    for reader in s.outputs:
        if reader.op == "SequenceAt":
            index = draft.facts.array(reader.inputs[1])
            taken.update(() if index is None else (index.reshape(-1) % len(sizes)).tolist())
    spare = [place for place, size in enumerate(sizes) if not size and place not in taken]
    return spare if len(sizes) > len(spare) + 1 else []


def _drops_axis(draft: Draft, node: gs.Node) -> bool:
    """Whether its parts are elements without the axis: without sizes, and of 1 as a number too.

    ONNX's text says that `keepdims` is not looked at beside sizes; onnxruntime looks at it beside a
    number, and PyTorch's exporter writes so what a script unbinds.
    """
    each = None if len(node.inputs) < 2 else draft.facts.array(node.inputs[1])
    return len(node.inputs) < 2 or (each is not None and each.shape == () and int(each) == 1)


def _sizes(draft: Draft, node: gs.Node) -> list[int]:
    """How large the parts are.

    Raises:
        Refused: That is known at run time only, or there is no part.
    """
    axis, shape = int(attribute_of(node, "axis")), draft.facts.of(node.inputs[0]).shape
    size = None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]
    each = np.array(1) if len(node.inputs) < 2 else draft.facts.array(node.inputs[1])
    if each is None:
        raise Refused("the sizes of its parts are computed at run time")
    if each.ndim > 1:
        raise Refused("the sizes of its parts are no list")
    if each.ndim:
        sizes = [int(n) for n in each.tolist()]
        if not sizes or (len(sizes) == 1 and sizes[0] != size):
            raise Refused("its one part may be no whole")
        return sizes
    step = int(each)
    if not isinstance(size, int) or size < 1 or step < 1:
        raise Refused("how many parts it has is known at run time")
    return [min(step, size - start) for start in range(0, size, step)]


def item_of_list(draft: Draft, match: Match) -> gs.Tensor:
    """The item at a constant place, counted from the end where it is negative."""
    items = list(match.nodes[1].inputs)
    place = draft.facts.array(match.root.inputs[1])
    if place is None or place.size != 1:
        raise Refused("its place is computed at run time")
    if not -len(items) <= int(place.item()) < len(items):
        raise Refused(f"place {int(place.item())} of {len(items)} items")
    item: gs.Tensor = items[int(place.item())]
    return item


def length_of_list(draft: Draft, match: Match) -> gs.Tensor:
    """How many items there are."""
    return draft.constant(np.array(len(match.nodes[1].inputs), np.int64), "length")


def joined_list(draft: Draft, match: Match) -> gs.Tensor:
    """The items along one of their axes, or along a new one."""
    items = list(match.nodes[1].inputs)
    axis = int(attribute_of(match.root, "axis"))
    if attribute_of(match.root, "new_axis"):
        axes = draft.constant([axis], "axes")
        items = [draft.op("Unsqueeze", item, axes) for item in items]
    joined: gs.Tensor = draft.op("Concat", *items, axis=axis)
    return joined


def other_list(draft: Draft, match: Match) -> gs.Tensor:
    """A list of known items into which one is put, or from which one is taken, as its items."""
    node = match.root
    takes = node.op == "SequenceErase"
    items, given = elements(node.inputs[0]), list(node.inputs[2 - takes :])
    if items is None or len(items) >= _LONGEST:
        raise Refused("what is in the list is not known" if items is None else "the list is long")
    place = len(items) - takes
    if given and not given[0].is_empty():
        array = draft.facts.array(given[0])
        if array is None or array.size != 1:
            raise Refused("its place is computed at run time")
        place = int(array.item())
    if not -len(items) <= place < len(items) + (not takes):
        raise Refused(f"place {place} of {len(items)} items")
    if takes:
        del items[place]
    else:
        items.insert(place, node.inputs[1])
    if not items:
        raise Refused("nothing is left in the list")
    listed: gs.Tensor = draft.op("SequenceConstruct", *items)
    return listed


def item_of_parts(draft: Draft, match: Match) -> gs.Tensor:
    """The part at a place that is computed: where a cut by one size begins is known of each."""
    s, place = match.nodes[1].outputs[0], match.root.inputs[1]
    x, axis, each = _cut_evenly(draft, match.nodes[1])
    one = each == 1
    known = draft.facts.array(place)
    least = 0 if known is None else int(known.min(initial=0))
    if not one and not (draft.facts.of(place).not_negative or (known is not None and least >= 0)):
        raise Refused("its place may be counted from the end, where a part may be smaller")
    if any(reader.op not in _AT_PLACES for reader in s.outputs) or draft.surgery.is_output(s):
        raise Refused("its list goes where a list is needed")
    if draft.facts.of(place).dtype != INT64:
        place = draft.op("Cast", place, to=INT64)
    alone = (
        one and not attribute_of(match.nodes[1], "keepdims") and _drops_axis(draft, match.nodes[1])
    )
    if draft.facts.of(place).rank != (0 if alone else 1):
        shape = np.zeros(0, np.int64) if alone else np.ones(1, np.int64)
        place = draft.op("Reshape", place, draft.constant(shape, "shape"))
    part: gs.Tensor
    if one:
        part = draft.op("Gather", x, place, axis=axis)
        return part
    start = draft.op("Mul", place, draft.constant([each], "size"))
    end = draft.op("Add", start, draft.constant([each], "size"))
    part = draft.op("Slice", x, start, end, draft.constant([axis], "axes"))
    return part


def length_of_parts(draft: Draft, match: Match) -> gs.Tensor:
    """How many parts of one size an axis has."""
    x, axis, each = _cut_evenly(draft, match.nodes[1])
    if any(reader.op not in _AT_PLACES for reader in match.nodes[1].outputs[0].outputs):
        raise Refused("its list goes where a list is needed")
    count: gs.Tensor = draft.op(
        "Gather", draft.op("Shape", x), draft.constant(np.array(axis, np.int64), "axis"), axis=0
    )
    if each > 1:
        longer = draft.op("Add", count, draft.constant(np.array(each - 1, np.int64), "rest"))
        count = draft.op("Div", longer, draft.constant(np.array(each, np.int64), "size"))
    return count


def joined_parts(draft: Draft, match: Match) -> gs.Tensor:
    """What was cut into parts, joined of all of them."""
    root, cut = match.root, match.nodes[1]
    x: gs.Tensor = cut.inputs[0]
    fact, axis = draft.facts.of(x), int(attribute_of(cut, "axis"))
    if fact.shape is None or not -len(fact.shape) <= axis < len(fact.shape):
        raise Refused("how many axes its operand has is not known")
    rank, axis = len(fact.shape), axis % len(fact.shape)
    keeps = bool(attribute_of(cut, "keepdims"))
    if not keeps and len(cut.inputs) > 1 and draft.facts.array(cut.inputs[1]) is None:
        if draft.facts.of(cut.inputs[1]).rank != 1:
            raise Refused("whether its parts keep their axis is known at run time only")
        keeps = True
    if keeps or not _drops_axis(draft, cut):
        if attribute_of(root, "new_axis") or int(attribute_of(root, "axis")) % rank != axis:
            raise Refused("its parts are joined along another axis")
        return x
    others = [each for each in range(rank) if each != axis]
    read = reading(draft.facts, root, Fact(fact.dtype, tuple(fact.shape[each] for each in others)))
    if read is None:
        raise Refused("its elements are joined to a length that is known at run time only")
    return read(draft, x if axis == 0 else draft.op("Transpose", x, perm=[axis, *others]))


def part_of_parts(draft: Draft, match: Match) -> gs.Tensor:
    """A list of some of the elements of an axis, as exporters write a part of a list."""
    cut = match.nodes[1]
    read = part(draft.facts, match.root)
    if read is None:
        raise Refused("its bounds are computed at run time")
    if attribute_of(cut, "axis") != 0:
        raise Refused("its list is along another axis than the first")
    listed: gs.Tensor = draft.op("SplitToSequence", read(draft, cut.inputs[0]), **dict(cut.attrs))
    return listed


def _cut_evenly(draft: Draft, node: gs.Node) -> tuple[gs.Tensor, int, int]:
    """What a SplitToSequence cuts, along which axis, into parts of which size.

    Raises:
        Refused: There are several sizes, or the one is computed at run time.
    """
    x = node.inputs[0]
    each = np.array(1) if len(node.inputs) < 2 else draft.facts.array(node.inputs[1])
    rank, axis = draft.facts.of(x).rank, int(attribute_of(node, "axis"))
    if each is None or each.ndim or int(each) < 1:
        raise Refused("it does not cut by one known size")
    if rank is None or not -rank <= axis < rank:
        raise Refused("how many axes its operand has is not known")
    return x, axis % rank, int(each)
