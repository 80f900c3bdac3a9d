"""What operators put into lists and read of them, in ONNX's spelling and in TorchScript's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.facts import Facts
from surgeon.facts.fact import Fact
from surgeon.links import current, maker_of
from surgeon.match import attribute_of
from surgeon.rewrite import Draft

_FIRST_OPSET_WITH_STEPS = 10  # of a Slice

# Makes what is read of a list of the items along a first axis.
Read = Callable[[Draft, gs.Tensor], gs.Tensor]


def elements(tensor: gs.Tensor) -> list[gs.Tensor] | None:
    """What a list is made of, where that is known."""
    tensor = current(tensor)
    made = maker_of(tensor)
    if made is None or made.op not in ("SequenceEmpty", "SequenceConstruct", "ListConstruct"):
        return None
    return [current(each) for each in made.inputs]


def readings(
    facts: Facts, tensor: gs.Tensor, graph: gs.Graph, item: Fact
) -> list[tuple[gs.Node, Read]] | None:
    """What reads a list, and how to read the same of its items; None where one is not known.

    An item at a place that is computed is none of these: what computes it may stand behind.

    Args:
        facts: Asked for constants.
        tensor: The list, no output of a graph.
        graph: Where what reads it has to be.
        item: What is known of every item.
    """
    found: list[tuple[gs.Node, Read]] = []
    for node in tensor.outputs:
        if node.home is not graph:
            return None
        if reads_at_computed(facts, node):
            continue
        if (cut := part(facts, node)) is not None:
            cut_off = node.outputs[0]
            inner = readings(facts, cut_off, graph, item)
            if inner is None or any(reads_at_computed(facts, each) for each in cut_off.outputs):
                return None
            found += [(reader, _of_part(read, cut)) for reader, read in inner]
            continue
        if (read := reading(facts, node, item)) is None:
            return None
        found.append((node, read))
    return found


def reading(facts: Facts, node: gs.Node, item: Fact) -> Read | None:
    """How to read of items what a node reads of a list of them; None where that is not known."""
    reader = _READERS.get((node.domain or "", node.op))
    return None if reader is None else reader(facts, node, item)


def _of_part(read: Read, cut: Read) -> Read:
    return lambda draft, x: read(draft, cut(draft, x))


def place_of(facts: Facts, node: gs.Node) -> int | None:
    """Which item a node reads, where it reads one at a constant place."""
    kind = (node.domain or "", node.op)
    if kind not in (("", "SequenceAt"), ("aten", "__getitem__")):
        return None
    return _number(facts, node, 1)


def reads_at_computed(facts: Facts, node: gs.Node) -> bool:
    """Whether a node reads the item at a place that is known at run time."""
    return not node.domain and node.op == "SequenceAt" and _number(facts, node, 1) is None


def put_in(facts: Facts, node: gs.Node) -> tuple[gs.Tensor, bool] | None:
    """What a node puts behind the last of a list, or in front of the first, and whether there."""
    kind, given = (node.domain or "", node.op), node.inputs
    if kind == ("aten", "append") and len(given) == 2:
        return given[1], False
    if kind == ("aten", "add") and len(given) == 2:  # `+= [item]`
        other = current(given[1])
        listed = maker_of(other)
        if listed is not None and listed.op == "ListConstruct" and len(listed.inputs) == 1:
            return listed.inputs[0], False
    if kind != ("", "SequenceInsert"):
        return None
    if len(given) == 2 or given[2].is_empty():
        return given[1], False
    in_front = _number(facts, node, 2) == 0 and facts.opset >= _FIRST_OPSET_WITH_STEPS
    return (given[1], True) if in_front else None


class Added(NamedTuple):
    """What is put into a list, one after the other.

    Attributes:
        first: What puts the first of them there.
        items: What is put there.
        in_front: Whether it is put in front of the others, and not behind them.
    """

    first: gs.Node
    items: list[gs.Tensor]
    in_front: bool


def all_put_in(facts: Facts, node: gs.Node, given: gs.Tensor) -> Added | None:
    """What operators in a row, of which a node is the last, put into a list; None if others do."""
    found: list[gs.Tensor] = []
    home = node.home
    while (put := put_in(facts, node)) is not None:
        found.insert(0, put[0])
        before = node.inputs[0]
        if before is given and (len(found) == 1 or not put[1]):
            return Added(node, found, put[1])
        maker = maker_of(before)
        if put[1] or maker is None or maker.home is not home or len(before.outputs) > 1:
            return None
        node = maker
    return None


def handed_on(node: gs.Node) -> tuple[gs.Tensor, gs.Node] | None:
    """The list that a node gives as it is, and the node that reads it.

    Below opset 14, which has no Identity of lists, one more is put into it and taken out again.
    """
    if node.domain or not node.inputs:
        return None
    if node.op == "Identity":
        return node.inputs[0], node
    longer = maker_of(node.inputs[0])
    if node.op != "SequenceErase" or longer is None or longer.op != "SequenceInsert":
        return None
    if len(node.inputs) > 1 or len(longer.inputs) > 2 or len(longer.outputs[0].outputs) > 1:
        return None
    return longer.inputs[0], longer


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


def flat(draft: Draft, x: gs.Tensor, item: Fact) -> gs.Tensor:
    """Items along two axes, along one."""
    numbers = [dim for dim in item.shape or () if isinstance(dim, int)]
    if len(numbers) == len(item.shape or ()):
        target: gs.Tensor = draft.constant([-1, *numbers], "shape")
    else:
        behind = (draft.constant([n], name) for n, name in ((2, "starts"), (2**63 - 1, "ends")))
        own = draft.op("Slice", draft.op("Shape", x), *behind)
        target = draft.op("Concat", draft.constant([-1], "all"), own, axis=0)
    flattened: gs.Tensor = draft.op("Reshape", x, target)
    return flattened


def part(facts: Facts, node: gs.Node) -> Read | None:
    """How a node cuts a part from a list, which exporters write as from a tensor."""
    kind = (node.domain or "", node.op)
    most = {("", "Slice"): 5, ("aten", "slice"): 4}.get(kind, 0)
    if not 3 <= len(node.inputs) <= most:
        return None
    given = [None if tensor.is_empty() else facts.array(tensor) for tensor in node.inputs[1:]]
    missing = [tensor.is_empty() for tensor in node.inputs[1:]]
    if any(array is None and not left for array, left in zip(given, missing, strict=True)):
        return None
    numbers = [None if array is None else array.reshape(-1).tolist() for array in given]
    if any(number is not None and len(number) != 1 for number in numbers):
        return None
    start, end, *others = [None if number is None else int(number[0]) for number in numbers]
    if kind[1] == "Slice":
        axis, step = [*others, None, None][:2]
        if axis not in (None, 0):
            return None
    else:
        step = others[0] if others else None
    step = 1 if step is None else step
    if step < 1 or (step > 1 and facts.opset < _FIRST_OPSET_WITH_STEPS):
        return None

    def cut(draft: Draft, x: gs.Tensor) -> gs.Tensor:
        bounds = [start or 0, 2**63 - 1 if end is None else end, 0, step]
        names = ("starts", "ends", "axes", "steps")
        operands = [draft.constant([n], name) for n, name in zip(bounds, names, strict=True)]
        some: gs.Tensor = draft.op("Slice", x, *operands[: 4 if step > 1 else 3])
        return some

    return cut


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
