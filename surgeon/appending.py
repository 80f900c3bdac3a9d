"""Lists into which every turn of a Loop puts one value, as what the Loop gives for each turn.

Runtimes other than onnxruntime have no lists, and none carries them below opset 13; all have what a
Loop puts together of its turns, where that has one shape in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import listed, opsets
from surgeon.facts import Facts, sequences
from surgeon.facts.bodies import turns
from surgeon.facts.fact import FIRST_STATE, INT64, UNKNOWN, Fact, Items, same_dims
from surgeon.links import current
from surgeon.objects import make_variable
from surgeon.rewrite import Draft, Surgery

_FIRST_OPSET_WITHOUT_STATE = 11  # from which on a Loop need not carry anything

Suppose = Callable[[gs.Node, gs.Tensor, Items], Items]


class _List(NamedTuple):
    """A list that a Loop carries.

    Attributes:
        state: Its number among the values that are carried.
        item: What a turn puts into it, in the body.
        in_front: Whether that is put in front of the others, and not behind them.
        fact: What is known of that, which is the same every turn.
        begins: What is in the list before the first turn.
        latest: What reads, in the body, the item that was put there last.
        readers: The operators that read the list behind the Loop, and what they make of the items
            along a first axis.
    """

    state: int
    item: gs.Tensor
    in_front: bool
    fact: Fact
    begins: list[gs.Tensor]
    latest: list[gs.Node]
    readers: list[tuple[gs.Node, listed.Read]]


class Appending:
    """Takes lists out of Loops.

    Args:
        facts: Asked for the shape of what is appended.
        surgery: The writer of wiring.
        suppose: Says anew what is known in the body of a Loop, where this holds of the items of a
            list that it is given; gives what was known of these.
    """

    def __init__(self, facts: Facts, surgery: Surgery, suppose: Suppose) -> None:
        self.facts, self.surgery, self.suppose = facts, surgery, suppose

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
        begins = listed.elements(node.inputs[FIRST_STATE + state])
        if self.surgery.is_output(behind) or begins is None:
            return None
        given, last = body.inputs[FIRST_STATE + state], current(body.outputs[1 + state])
        append = last.inputs[0] if last.inputs else None
        ends = list(map(current, body.outputs))
        if append is None or last.outputs or append.home is not body:
            return None
        if sum(end is last for end in ends) > 1 or any(end is given for end in ends):
            return None
        put = listed.put_in(self.facts, append)
        if put is None or append.inputs[0] is not given:
            return None
        item, in_front = put
        latest = [reader for reader in given.outputs if reader is not append]
        if latest and (in_front or not begins):
            return None
        if not all(self._reads_last(reader, body) for reader in latest):
            return None
        fact = self._item(node, given, item, begins)
        if fact is None or any(sequences.outside(dim, place) is None for dim in fact.shape or ()):
            return None
        readers = []
        for reader in behind.outputs:
            read = listed.reading(self.facts, reader, fact) if reader.home is graph else None
            if read is None:
                return None
            readers.append((reader, read))
        return _List(state, item, in_front, fact, begins, latest, readers)

    def _item(
        self, node: gs.Node, given: gs.Tensor, item: gs.Tensor, begins: list[gs.Tensor]
    ) -> Fact | None:
        """What is known of every item of a list; None where that is not one type and shape."""
        if not begins:
            fact = self.facts.of(item)
            return fact if fact.dtype and fact.shape is not None else None
        wanted = self.facts.of(begins[-1])
        if not wanted.dtype or not all(self._is_alike(each, wanted) for each in begins):
            return None
        if self._is_alike(item, wanted):
            return wanted
        # what is put there may be made of what stands there, and is alike if that is
        before = self.suppose(node, given, sequences.of_tensor(wanted))
        if self._is_alike(item, wanted):
            return wanted
        self.suppose(node, given, before)
        return None

    def _reads_last(self, node: gs.Node, body: gs.Graph) -> bool:
        return node.home is body and listed.place_of(self.facts, node) == -1

    def _is_alike(self, tensor: gs.Tensor, item: Fact) -> bool:
        """Whether a value has the type and the shape of every item."""
        fact = self.facts.of(tensor)
        return fact.dtype == item.dtype and same_dims(fact.shape, item.shape)

    def _without(
        self, node: gs.Node, graph: gs.Graph, body: gs.Graph, lists: list[_List]
    ) -> list[gs.Node]:
        stem = next(t.name for t in node.outputs if t.name)
        draft = self.surgery.draft(graph, stem)
        count = turns(self.facts, node)
        by_state = {each.state: each for each in lists}
        self._shorten(body, lists)
        begins = list(node.inputs[:FIRST_STATE])
        old: list[gs.Tensor | None] = []
        for state, tensor in enumerate(node.outputs):
            own = by_state.get(state)
            if own is None or own.latest:
                old.append(tensor if own is None else None)
                if FIRST_STATE + state < len(node.inputs):
                    begins.append(
                        node.inputs[FIRST_STATE + state] if own is None else own.begins[-1]
                    )
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
            result.__dict__["fact"] = UNKNOWN if given is None else self.facts.of(given)
        for each, result in zip(lists, results[len(names) :], strict=True):
            assert each.fact.shape is not None
            first = self.facts.lengths.new(result.name, 0) if count is None else count
            result.__dict__["fact"] = Fact(each.fact.dtype, (first, *each.fact.shape))
            result = self._whole(draft, each, result)
            for reader, read in each.readers:
                self.surgery.hand_over(reader, [(reader.outputs[0], read(draft, result))])
        self.surgery.hand_over(
            node, [(given, new) for given, new in pairs if given is not None and given.name]
        )
        return draft.nodes

    def _whole(self, draft: Draft, each: _List, items: gs.Tensor) -> gs.Tensor:
        """All the items along a first axis: those that were there, and those of the turns."""
        items = listed.reversed_items(draft, items) if each.in_front else items
        if not each.begins:
            return items
        first = draft.constant([0], "axis")
        before = [draft.op("Unsqueeze", tensor, first) for tensor in each.begins]
        parts = [items, *before] if each.in_front else [*before, items]
        return draft.op("Concat", *parts, axis=0)

    def _shorten(self, body: gs.Graph, lists: list[_List]) -> None:
        """Let a body give what it appended, and be given no lists."""
        ends = [self._ended(body, each) for each in lists]
        face = onnx.GraphProto()  # what the file says of the body, which stays as it was there
        face.CopyFrom(body.origin)
        del face.node[:]
        for each in sorted(lists, reverse=True, key=lambda each: each.state):
            self.surgery.outputs.pop(id(body.outputs[1 + each.state]), None)
            if each.latest:
                self._carry_latest(body, face, each)
                continue
            for given in (body.inputs, face.input):
                del given[FIRST_STATE + each.state]
            for given in (body.outputs, face.output):
                del given[1 + each.state]
        body.origin = face
        for each, end in zip(lists, ends, strict=True):
            body.outputs.append(end)
            face.output.append(_declared(end, each.fact))

    def _carry_latest(self, body: gs.Graph, face: onnx.GraphProto, each: _List) -> None:
        """Let a body carry the item that was put last, in the place of the list."""
        given = make_variable(
            self.surgery.fresh(f"{body.inputs[FIRST_STATE + each.state].name}/last")
        )
        given.__dict__["fact"] = each.fact
        end = self._same(body, given.name, current(each.item))
        for reader in each.latest:
            self.surgery.hand_over(reader, [(reader.outputs[0], given)])
        body.inputs[FIRST_STATE + each.state] = given
        body.outputs[1 + each.state] = end
        face.input[FIRST_STATE + each.state].CopyFrom(_declared(given, each.fact))
        face.output[1 + each.state].CopyFrom(_declared(end, each.fact))

    def _carry(self, body: gs.Graph, ending: str) -> None:
        """Let a body that is given nothing carry a number that nobody reads."""
        given = make_variable(self.surgery.fresh(f"{body.name}/{ending}"))
        given.__dict__["fact"] = Fact(INT64, ())
        end = self._same(body, given.name, given)
        body.inputs.append(given)
        body.outputs.insert(1, end)
        declared = [_declared(t, Fact(INT64, ())) for t in (given, end)]
        body.origin.input.append(declared[0])
        after = [*body.origin.output]
        del body.origin.output[:]
        body.origin.output.extend([after[0], declared[1], *after[1:]])

    def _ended(self, body: gs.Graph, each: _List) -> gs.Tensor:
        """The value of a turn, as one that the body makes and gives once."""
        item = current(each.item)
        made = item.inputs[0] if item.inputs else None
        if made is None or made.home is not body or self.surgery.is_output(item):
            return self._same(body, item.name, item)
        self.surgery.outputs[id(item)] = item
        return item

    def _same(self, body: gs.Graph, stem: str, value: gs.Tensor) -> gs.Tensor:
        """A value once more, as one that the body makes and gives."""
        draft = self.surgery.draft(body, stem)
        end: gs.Tensor = draft.op("Identity", value)
        body.nodes.extend(draft.nodes)
        self.surgery.outputs[id(end)] = end
        return end


def _declared(tensor: gs.Tensor, fact: Fact) -> onnx.ValueInfoProto:
    """What a body says of one of its values."""
    shape = [dim if isinstance(dim, int) else None for dim in fact.shape or ()]
    return onnx.helper.make_tensor_value_info(tensor.name, fact.dtype, shape)
