"""Lists into which every turn of a Loop puts one value, as what the Loop gives for each turn.

Runtimes other than onnxruntime have no lists, and none carries them below opset 13; all have what a
Loop puts together of its turns, where that has one shape in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims, opsets
from surgeon.facts import Facts, sequences
from surgeon.facts.bodies import turns
from surgeon.facts.fact import FIRST_STATE, INT64, Fact
from surgeon.links import current
from surgeon.match import attribute_of
from surgeon.objects import make_variable
from surgeon.rewrite import Draft, Surgery

_FIRST_OPSET_WITHOUT_STATE = 11  # from which on a Loop need not carry anything
_FIRST_OPSET_WITH_STEPS = 10  # from which on a Slice goes backwards

Read = Callable[[Draft, gs.Tensor], gs.Tensor]


class _List(NamedTuple):
    """A list that a Loop carries.

    Attributes:
        state: Its number among the values that are carried.
        item: What a turn puts into it, in the body.
        in_front: Whether that is put in front of the others, and not behind them.
        fact: What is known of that, which is the same every turn.
        readers: The operators that read the list behind the Loop, and what they make of the items
            along a first axis.
    """

    state: int
    item: gs.Tensor
    in_front: bool
    fact: Fact
    readers: list[tuple[gs.Node, Read]]


class Appending:
    """Takes lists out of Loops.

    Args:
        facts: Asked for the shape of what is appended.
        surgery: The writer of wiring.
    """

    def __init__(self, facts: Facts, surgery: Surgery) -> None:
        self.facts, self.surgery = facts, surgery

    def unlist(self, node: gs.Node, graph: gs.Graph, place: str) -> list[gs.Node] | None:
        """The Loop without such lists, and what reads them; None where there are none.

        Args:
            node: Any node whose bodies are in normal form.
            graph: Where it is.
            place: Of its body, with which the names of dimensions begin that differ every turn.
        """
        body = node.attrs.get("body")
        if node.op != "Loop" or (node.domain or "") not in opsets.STANDARD:
            return None
        if not isinstance(body, gs.Graph) or len(node.outputs) != len(body.outputs) - 1:
            return None
        states = len(node.inputs) - FIRST_STATE
        if len(body.inputs) != len(node.inputs) or states >= len(body.outputs):
            return None
        each = (self._list(node, graph, body, place, state) for state in range(states))
        lists = [found for found in each if found is not None]
        return self._without(node, graph, body, lists) if lists else None

    def _list(
        self, node: gs.Node, graph: gs.Graph, body: gs.Graph, place: str, state: int
    ) -> _List | None:
        """What a Loop carries at a place, where it is such a list and read by known operators."""
        behind = node.outputs[state]
        if self.surgery.is_output(behind) or not _is_empty(node.inputs[FIRST_STATE + state]):
            return None
        given, last = body.inputs[FIRST_STATE + state], current(body.outputs[1 + state])
        append = last.inputs[0] if last.inputs else None
        ends = list(map(current, body.outputs))
        if append is None or last.outputs or append.home is not body:
            return None
        if sum(end is last for end in ends) > 1 or any(end is given for end in ends):
            return None
        put = _put(self.facts, append)
        if put is None or append.inputs[0] is not given or len(given.outputs) != 1:
            return None
        item, in_front = put
        fact = self.facts.of(item)
        if not fact.dtype or fact.shape is None:
            return None
        if any(sequences.outside(dim, place) is None for dim in fact.shape):
            return None
        readers = []
        for reader in behind.outputs:
            read = _READERS.get((reader.domain or "", reader.op))
            made = read(self.facts, reader, fact) if read and reader.home is graph else None
            if made is None:
                return None
            readers.append((reader, made))
        return _List(state, item, in_front, fact, readers)

    def _without(
        self, node: gs.Node, graph: gs.Graph, body: gs.Graph, lists: list[_List]
    ) -> list[gs.Node]:
        stem = next(t.name for t in node.outputs if t.name)
        draft = self.surgery.draft(graph, stem)
        count = turns(self.facts, node)
        gone = {each.state for each in lists}
        self._shorten(body, lists)
        begins = [t for i, t in enumerate(node.inputs) if i - FIRST_STATE not in gone]
        old = [t for i, t in enumerate(node.outputs) if i not in gone]
        names = [f"kept_{i}" for i in range(len(old))]
        if len(begins) == FIRST_STATE and self.facts.opset < _FIRST_OPSET_WITHOUT_STATE:
            begins.append(draft.constant(np.array(0, np.int64), "spare"))
            self._carry(body, "spare")
            names.insert(0, "spare")
        made = draft.op(
            "Loop",
            *(None if t.is_empty() else t for t in begins),
            outputs=[*names, *(f"turns_{i}" for i in range(len(lists)))],
            body=body,
        )
        node.attrs.pop("body")  # which does not go with it
        draft.nodes[-1].__dict__["label"] = node.__dict__.get("label") or stem
        results = list(made) if isinstance(made, tuple) else [made]
        pairs = list(zip(old, results[len(names) - len(old) :], strict=False))
        for given, result in pairs:
            result.__dict__["fact"] = self.facts.of(given)
        for each, result in zip(lists, results[len(names) :], strict=True):
            assert each.fact.shape is not None
            first = self.facts.lengths.new(result.name, 0) if count is None else count
            result.__dict__["fact"] = Fact(each.fact.dtype, (first, *each.fact.shape))
            if each.in_front:
                result = _reversed(draft, result)
            for reader, read in each.readers:
                self.surgery.hand_over(reader, [(reader.outputs[0], read(draft, result))])
        self.surgery.hand_over(node, [(given, new) for given, new in pairs if given.name])
        return draft.nodes

    def _shorten(self, body: gs.Graph, lists: list[_List]) -> None:
        """Let a body give what it appended, and be given no lists."""
        ends = [self._ended(body, each) for each in lists]
        face = onnx.GraphProto()  # what the file says of the body, which stays as it was there
        face.CopyFrom(body.origin)
        del face.node[:]
        for each in sorted(lists, reverse=True, key=lambda each: each.state):
            self.surgery.outputs.pop(id(body.outputs[1 + each.state]), None)
            for given in (body.inputs, face.input):
                del given[FIRST_STATE + each.state]
            for given in (body.outputs, face.output):
                del given[1 + each.state]
        body.origin = face
        for each, end in zip(lists, ends, strict=True):
            body.outputs.append(end)
            shape = [dim if isinstance(dim, int) else None for dim in each.fact.shape or ()]
            face.output.append(onnx.helper.make_tensor_value_info(end.name, each.fact.dtype, shape))

    def _carry(self, body: gs.Graph, ending: str) -> None:
        """Let a body that is given nothing carry a number that nobody reads."""
        given = make_variable(self.surgery.fresh(f"{body.name}/{ending}"))
        given.__dict__["fact"] = Fact(INT64, ())
        draft = self.surgery.draft(body, given.name)
        end = draft.op("Identity", given)
        body.nodes.extend(draft.nodes)
        self.surgery.outputs[id(end)] = end
        body.inputs.append(given)
        body.outputs.insert(1, end)
        declared = [onnx.helper.make_tensor_value_info(t.name, INT64, ()) for t in (given, end)]
        body.origin.input.append(declared[0])
        after = [*body.origin.output]
        del body.origin.output[:]
        body.origin.output.extend([after[0], declared[1], *after[1:]])

    def _ended(self, body: gs.Graph, each: _List) -> gs.Tensor:
        """The value of a turn, as one that the body makes and gives once."""
        item = current(each.item)
        made = item.inputs[0] if item.inputs else None
        if made is None or made.home is not body or self.surgery.is_output(item):
            draft = self.surgery.draft(body, item.name)
            item = draft.op("Identity", item)
            body.nodes.extend(draft.nodes)
        self.surgery.outputs[id(item)] = item
        return item


def _is_empty(tensor: gs.Tensor) -> bool:
    """Whether a list begins with nothing in it."""
    tensor = current(tensor)
    made = tensor.inputs[0] if tensor.inputs else None
    if made is None:
        return False
    return made.op == "SequenceEmpty" or (
        made.op in ("ListConstruct", "SequenceConstruct") and not made.inputs
    )


def _put(facts: Facts, node: gs.Node) -> tuple[gs.Tensor, bool] | None:
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


def _reversed(draft: Draft, x: gs.Tensor) -> gs.Tensor:
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
