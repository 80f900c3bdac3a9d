"""What operators put into lists and read of them, in ONNX's spelling and in TorchScript's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.facts import Facts
from surgeon.facts.fact import Fact
from surgeon.links import current
from surgeon.match import attribute_of
from surgeon.rewrite import Draft

_FIRST_OPSET_WITH_STEPS = 10  # from which on a Slice goes backwards

# Makes what is read of a list of the items along a first axis.
Read = Callable[[Draft, gs.Tensor], gs.Tensor]


def elements(tensor: gs.Tensor) -> list[gs.Tensor] | None:
    """What a list is made of, where that is known."""
    tensor = current(tensor)
    made = tensor.inputs[0] if tensor.inputs else None
    if made is None or made.op not in ("SequenceEmpty", "SequenceConstruct", "ListConstruct"):
        return None
    return [current(each) for each in made.inputs]


def reading(facts: Facts, node: gs.Node, item: Fact) -> Read | None:
    """How to read the same of the items of a list; None where that is not known.

    Args:
        facts: Asked for constants.
        node: What reads the list, as its first input.
        item: What is known of every item.
    """
    reader = _READERS.get((node.domain or "", node.op))
    return None if reader is None else reader(facts, node, item)


def place_of(facts: Facts, node: gs.Node) -> int | None:
    """Which item a node reads, where it reads one at a constant place."""
    kind = (node.domain or "", node.op)
    if kind not in (("", "SequenceAt"), ("aten", "__getitem__")):
        return None
    return _number(facts, node, 1)


def put_in(facts: Facts, node: gs.Node) -> tuple[gs.Tensor, bool] | None:
    """What a node puts behind the last of a list, or in front of the first, and whether there."""
    kind, given = (node.domain or "", node.op), node.inputs
    if kind == ("aten", "append") and len(given) == 2:
        return given[1], False
    if kind == ("aten", "add") and len(given) == 2:  # `+= [item]`
        other = current(given[1])
        listed = other.inputs[0] if other.inputs else None
        if listed is not None and listed.op == "ListConstruct" and len(listed.inputs) == 1:
            return listed.inputs[0], False
    if kind != ("", "SequenceInsert"):
        return None
    if len(given) == 2 or given[2].is_empty():
        return given[1], False
    in_front = _number(facts, node, 2) == 0 and facts.opset >= _FIRST_OPSET_WITH_STEPS
    return (given[1], True) if in_front else None


def reversed_items(draft: Draft, x: gs.Tensor) -> gs.Tensor:
    """The last first."""
    starts, ends, axes, steps = (
        draft.constant([n], name)
        for n, name in ((-1, "starts"), (-(2**63), "ends"), (0, "axes"), (-1, "steps"))
    )
    return draft.op("Slice", x, starts, ends, axes, steps)


def _number(facts: Facts, node: gs.Node, index: int) -> int | None:
    """A constant argument of an ATen node."""
    if index >= len(node.inputs):
        return None
    value = facts.array(node.inputs[index])
    return None if value is None or value.size != 1 else int(value.item())


def _standard_join(facts: Facts, node: gs.Node, item: Fact) -> Read | None:
    axis = int(attribute_of(node, "axis"))
    return _joined(axis, item, new=bool(attribute_of(node, "new_axis")))


def _stack(facts: Facts, node: gs.Node, item: Fact) -> Read | None:
    axis = _number(facts, node, 1) if len(node.inputs) > 1 else 0
    return None if axis is None else _joined(axis, item, new=True)


def _cat(facts: Facts, node: gs.Node, item: Fact) -> Read | None:
    axis = _number(facts, node, 1) if len(node.inputs) > 1 else 0
    return None if axis is None else _joined(axis, item, new=False)


def _joined(axis: int, item: Fact, *, new: bool) -> Read | None:
    """The items along a new axis, or along one that they have."""
    assert item.shape is not None
    rank = len(item.shape)
    longest = rank + new
    if not -longest <= axis < longest:
        return None
    axis %= longest
    behind = item.shape[axis + 1 :]
    # what stands behind is told as numbers, what stands in front copied, and the axis inferred
    if not new and not all(isinstance(dim, int) and dim > 0 for dim in behind):
        return None
    if not new and not all(map(dims.is_filled, item.shape)):
        return None

    def read(draft: Draft, x: gs.Tensor) -> gs.Tensor:
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        turned = x if axis == 0 else draft.op("Transpose", x, perm=order)
        if new:
            return turned
        target = [*[0] * axis, -1, *(int(dim) for dim in behind if isinstance(dim, int))]
        return draft.op("Reshape", turned, draft.constant(target, "shape"))

    return read


def _length(facts: Facts, node: gs.Node, item: Fact) -> Read | None:
    def read(draft: Draft, x: gs.Tensor) -> gs.Tensor:
        first = draft.constant(np.array(0, np.int64), "first")
        return draft.op("Gather", draft.op("Shape", x), first)

    return read


def _at(facts: Facts, node: gs.Node, item: Fact) -> Read | None:
    place = _number(facts, node, 1)
    if place is None or (place < 0 and facts.opset < 11):  # which counts from the end since then
        return None

    def read(draft: Draft, x: gs.Tensor) -> gs.Tensor:
        return draft.op("Gather", x, draft.constant(np.array(place, np.int64), "place"), axis=0)

    return read


_READERS: Mapping[tuple[str, str], Callable[[Facts, gs.Node, Fact], Read | None]] = {
    ("", "ConcatFromSequence"): _standard_join,
    ("", "SequenceLength"): _length,
    ("", "SequenceAt"): _at,
    ("aten", "stack"): _stack,
    ("aten", "cat"): _cat,
    ("aten", "len"): _length,
    ("aten", "__getitem__"): _at,
}
