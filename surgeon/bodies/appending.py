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

from surgeon import dims
from surgeon.bodies import chosen, ends, listed
from surgeon.dims import Dim
from surgeon.facts import Facts, sequences
from surgeon.facts.bodies import turns
from surgeon.facts.fact import BOOL, FIRST_STATE, INT64, UNKNOWN, Fact, Items, same_dims
from surgeon.links import current, maker_of
from surgeon.objects import make_variable
from surgeon.rewrite import Draft, Surgery
from surgeon.standard import STANDARD

_FIRST_OPSET_WITHOUT_STATE = 11  # from which on a Loop need not carry anything

Suppose = Callable[[gs.Node, gs.Tensor, Items], Items]


class _List(NamedTuple):
    """A list that a Loop carries.

    Attributes:
        state: Its number among the values that are carried.
        items: What a turn puts into it, in the body, in order.
        in_front: Whether that is put in front of the others, and not behind them.
        fact: What is known of each, which is the same every turn.
        begins: What is in the list before the first turn.
        latest: What reads, in the body, the item that was put there last.
        put: The If that puts it there in some turns and not in others; None where every turn does.
        readers: The operators that read the list behind the Loop, and what they make of the items
            along a first axis.
    """

    state: int
    items: list[gs.Tensor]
    in_front: bool
    fact: Fact
    begins: list[gs.Tensor]
    latest: list[gs.Node]
    put: chosen.Put | None
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
        if node.op != "Loop" or (node.domain or "") not in STANDARD:
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
        behind, given = node.outputs[state], body.inputs[FIRST_STATE + state]
        begins = listed.elements(node.inputs[FIRST_STATE + state])
        if self.surgery.is_output(behind) or begins is None:
            return None
        filled = self._filled(body, given, current(body.outputs[1 + state]))
        if filled is None:
            return None
        added, put = filled
        latest = _other_readers(given, added, put)
        if latest and (added.in_front or not begins or put is not None):
            return None
        if not all(self._reads_last(reader, body) for reader in latest):
            return None
        fact = self._item(node, given, added.items, begins)
        if fact is None or not self._may_be_stacked(added.items, put, fact, place):
            return None
        readers = listed.readings(self.facts, behind, graph, fact)
        if readers is None:
            return None
        return _List(state, added.items, added.in_front, fact, begins, latest, put, readers)

    def _filled(
        self, body: gs.Graph, given: gs.Tensor, last: gs.Tensor
    ) -> tuple[listed.Added, chosen.Put | None] | None:
        """What a turn puts into a list that it gives on, and the If that decides about it.

        Args:
            body: What every turn runs.
            given: The list before the turn.
            last: The list behind it.
        """
        append = maker_of(last)
        if append is None or last.outputs or append.home is not body:
            return None
        given_on = list(map(current, body.outputs))
        if sum(end is last for end in given_on) > 1 or any(end is given for end in given_on):
            return None
        put = chosen.put_by_one(append, last, given)
        added = listed.all_put_in(self.facts, append if put is None else put.append, given)
        if added is None or (put is not None and len(added.items) > 1):
            return None
        return added, put

    def _may_be_stacked(
        self, items: list[gs.Tensor], put: chosen.Put | None, fact: Fact, place: str
    ) -> bool:
        """Whether the items of all turns can be one value: of one shape, and where none is put."""
        if any(sequences.outside(dim, place) is None for dim in fact.shape or ()):
            return False
        if put is not None and not chosen.may_fill(self.facts, put, items[0], fact):
            return False
        return len(items) == 1 or all(map(dims.is_filled, fact.shape or ()))

    def _item(
        self, node: gs.Node, given: gs.Tensor, items: list[gs.Tensor], begins: list[gs.Tensor]
    ) -> Fact | None:
        """What is known of every item of a list; None where that is not one type and shape."""
        wanted = self.facts.of(begins[-1] if begins else items[0])
        if not wanted.dtype or wanted.shape is None:
            return None
        if not all(self._is_alike(each, wanted) for each in begins):
            return None
        if all(self._is_alike(each, wanted) for each in items):
            return wanted if begins else Fact(wanted.dtype, wanted.shape)
        if not begins:
            return None
        # what is put there may be made of what stands there, and is alike if that is
        before = self.suppose(node, given, sequences.of_tensor(wanted))
        if all(self._is_alike(each, wanted) for each in items):
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
        self._shorten(body, lists)
        results, begins = _still_carried(node, lists)
        kept, stacks, whether = self._shorter(draft, node, body, lists, begins, len(results))
        handed: list[tuple[gs.Tensor, gs.Tensor]] = []
        for result, new in zip(results, kept, strict=True):
            new.__dict__["fact"] = UNKNOWN if result is None else self.facts.of(result)
        for each, stack in zip(lists, stacks, strict=True):
            items = self._items(draft, each, stack, whether.get(each.state), count)
            for reader, read in each.readers:
                self.surgery.hand_over(reader, [(reader.outputs[0], read(draft, items))])
            behind = node.outputs[each.state]
            if any(listed.reads_at_computed(self.facts, reader) for reader in behind.outputs):
                parts = draft.op("SplitToSequence", items, axis=0, keepdims=0)
                handed.append((behind, parts))
        pairs = zip(results, kept, strict=True)
        handed += [(result, new) for result, new in pairs if result is not None and result.name]
        self.surgery.hand_over(node, handed)
        return draft.nodes

    def _shorter(
        self,
        draft: Draft,
        node: gs.Node,
        body: gs.Graph,
        lists: list[_List],
        begins: list[gs.Tensor],
        count: int,
    ) -> tuple[list[gs.Tensor], list[gs.Tensor], dict[int, gs.Tensor]]:
        """The Loop of a body that appends nothing any more.

        Args:
            draft: Where it is made.
            node: The Loop that it is made of.
            body: What every turn runs, already without lists.
            lists: Those that it carried.
            begins: The operands of the Loop.
            count: How many results of the old Loop there are still.

        Returns:
            These results, what the turns put into each list, and by the list's state the truths
            of whether a turn did, where that is told.
        """
        names = [f"kept_{i}" for i in range(count)]
        if len(begins) == FIRST_STATE and self.facts.opset < _FIRST_OPSET_WITHOUT_STATE:
            begins = [*begins, draft.constant(np.array(0, np.int64), "spare")]
            self._carry(body, "spare")
            names.insert(0, "spare")
        told = [each.state for each in lists if each.put is not None]
        made = draft.op(
            "Loop",
            *(None if t.is_empty() else t for t in begins),
            outputs=[
                *names,
                *(f"turns_{i}" for i in range(len(lists))),
                *(f"whether_{state}" for state in told),
            ],
            body=body,
        )
        node.attrs.pop("body")  # which does not go with it
        draft.nodes[-1].__dict__["label"] = node.__dict__.get("label") or draft.stem
        results = list(made) if isinstance(made, tuple) else [made]
        first = len(names)
        behind = first + len(lists)
        whether = dict(zip(told, results[behind:], strict=True))
        return results[first - count : first], results[first:behind], whether

    def _items(
        self,
        draft: Draft,
        each: _List,
        stack: gs.Tensor,
        whether: gs.Tensor | None,
        count: Dim | None,
    ) -> gs.Tensor:
        """All the items of a list along a first axis.

        Args:
            draft: Where they are made.
            each: The list.
            stack: What the turns put into it.
            whether: In which turns that counts; None for all of them.
            count: How many turns there are; None where that is not known.
        """
        assert each.fact.shape is not None
        first = self.facts.lengths.new(stack.name, 0) if count is None else count
        every = () if len(each.items) == 1 else (len(each.items),)
        stack.__dict__["fact"] = Fact(each.fact.dtype, (first, *every, *each.fact.shape))
        if every:
            stack = listed.flat(draft, stack, each.fact)
        if whether is not None:
            whether.__dict__["fact"] = Fact(BOOL, (first,))
            stack = draft.op("Compress", stack, whether, axis=0)
        return self._whole(draft, each, stack)

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
        puts = [(each.put, each.items[0], each.fact) for each in lists if each.put is not None]
        told = iter(chosen.told_by(self.surgery, body, puts))
        given, truths = [], []
        for each in lists:
            item, fact = self._stacked(body, each.items), each.fact
            if len(each.items) > 1:
                fact = Fact(fact.dtype, (len(each.items), *(fact.shape or ())))
            if each.put is not None:
                item, truth = next(told)
                truths.append((ends.ended(self.surgery, body, truth), Fact(BOOL, ())))
            given.append((ends.ended(self.surgery, body, item), fact))
        face = ends.face(body)
        for each in sorted(lists, reverse=True, key=lambda each: each.state):
            self.surgery.outputs.pop(id(body.outputs[1 + each.state]), None)
            if each.latest:
                self._carry_latest(body, face, each)
                continue
            for values in (body.inputs, face.input):
                del values[FIRST_STATE + each.state]
            for values in (body.outputs, face.output):
                del values[1 + each.state]
        body.origin = face
        for end, fact in [*given, *truths]:
            body.outputs.append(end)
            face.output.append(ends.declared(end, fact))

    def _stacked(self, body: gs.Graph, items: list[gs.Tensor]) -> gs.Tensor:
        """What a turn puts into a list as one value, along a first axis where it is several."""
        if len(items) == 1:
            return items[0]
        draft = self.surgery.draft(body, current(items[-1]).name)
        first = draft.constant([0], "axis")
        rows = [draft.op("Unsqueeze", current(item), first) for item in items]
        stacked: gs.Tensor = draft.op("Concat", *rows, axis=0)
        body.nodes.extend(draft.nodes)
        return stacked

    def _carry_latest(self, body: gs.Graph, face: onnx.GraphProto, each: _List) -> None:
        """Let a body carry the item that was put last, in the place of the list."""
        given = make_variable(
            self.surgery.fresh(f"{body.inputs[FIRST_STATE + each.state].name}/last")
        )
        given.__dict__["fact"] = each.fact
        end = ends.same(self.surgery, body, given.name, current(each.items[-1]))
        for reader in each.latest:
            self.surgery.hand_over(reader, [(reader.outputs[0], given)])
        body.inputs[FIRST_STATE + each.state] = given
        body.outputs[1 + each.state] = end
        face.input[FIRST_STATE + each.state].CopyFrom(ends.declared(given, each.fact))
        face.output[1 + each.state].CopyFrom(ends.declared(end, each.fact))

    def _carry(self, body: gs.Graph, ending: str) -> None:
        """Let a body that is given nothing carry a number that nobody reads."""
        given = make_variable(self.surgery.fresh(f"{body.name}/{ending}"))
        given.__dict__["fact"] = Fact(INT64, ())
        end = ends.same(self.surgery, body, given.name, given)
        body.inputs.append(given)
        body.outputs.insert(1, end)
        declared = [ends.declared(t, Fact(INT64, ())) for t in (given, end)]
        body.origin.input.append(declared[0])
        after = [*body.origin.output]
        del body.origin.output[:]
        body.origin.output.extend([after[0], declared[1], *after[1:]])


def _other_readers(given: gs.Tensor, added: listed.Added, put: chosen.Put | None) -> list[gs.Node]:
    """What reads a list in the body beside that which puts items there."""
    own = [added.first] if put is None else [added.first, put.handed]
    return [reader for reader in given.outputs if not any(reader is each for each in own)]


def _still_carried(
    node: gs.Node, lists: list[_List]
) -> tuple[list[gs.Tensor | None], list[gs.Tensor]]:
    """What a Loop without lists still gives, and its operands.

    Of a list of which the last item is read in the body, that item is carried in its place, and its
    result, which nothing reads, is None.
    """
    by_state = {each.state: each for each in lists}
    results: list[gs.Tensor | None] = []
    begins = list(node.inputs[:FIRST_STATE])
    for state, tensor in enumerate(node.outputs):
        own = by_state.get(state)
        if own is not None and not own.latest:
            continue
        results.append(tensor if own is None else None)
        if FIRST_STATE + state < len(node.inputs):
            begins.append(node.inputs[FIRST_STATE + state] if own is None else own.begins[-1])
    return results, begins
