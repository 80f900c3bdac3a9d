"""Sequences that a model makes itself, in standard operators on tensors."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_READERS = frozenset({"SequenceAt", "SequenceLength", "ConcatFromSequence"})
_UNREAD = 16  # parts that nobody may read, of one Split


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
