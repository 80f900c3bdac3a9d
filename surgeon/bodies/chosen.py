"""Lists into which branches of an If put something: what they put there, as results of the If."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.bodies import ends, listed
from surgeon.facts import Facts
from surgeon.facts.fact import BOOL, INTEGERS, Fact
from surgeon.links import current, maker_of
from surgeon.rewrite import Draft, Surgery

_BRANCHES = ("then_branch", "else_branch")
_T = onnx.TensorProto
_FIRST_OPSET = 9  # of Compress and ConstantOfShape
_FILLED = INTEGERS | {BOOL, _T.FLOAT, _T.DOUBLE, _T.FLOAT16}  # what a ConstantOfShape gives


class Put(NamedTuple):
    """A list that an If gives, to which one of its branches adds.

    Attributes:
        node: The If.
        place: Which of its results the list is.
        branch: The attribute that holds the branch.
        append: What puts an item there, in the branch.
        handed: What reads the list to hand it on, in the other branch.
    """

    node: gs.Node
    place: int
    branch: str
    append: gs.Node
    handed: gs.Node

    @property
    def other(self) -> gs.Graph:
        """The branch that puts nothing there."""
        branch: gs.Graph = self.node.attrs[_BRANCHES[self.branch == _BRANCHES[0]]]
        return branch


class Item(NamedTuple):
    """What an If gives in the place of a list.

    Attributes:
        given: By the attribute that holds a branch, what that gives.
        fact: What is known of all of them.
    """

    given: Mapping[str, gs.Tensor]
    fact: Fact


def put_by_one(node: gs.Node, out: gs.Tensor, given: gs.Tensor) -> Put | None:
    """Which branch of an If adds to a list that the other one hands on; None where none does.

    Args:
        node: Any node.
        out: One of its outputs.
        given: The list, of around the branches.
    """
    place = next(index for index, tensor in enumerate(node.outputs) if tensor is out)
    makers = _makers(node, place)
    for branch, append in makers.items():
        (other,) = (made for key, made in makers.items() if key != branch)
        handed = listed.handed_on(other)
        if handed is None or handed[0] is not given or listed.handed_on(append) is not None:
            continue
        if append.inputs and append.inputs[0] is given:
            return Put(node, place, branch, append, handed[1])
    return None


def put_by_both(
    facts: Facts, surgery: Surgery, node: gs.Node, graph: gs.Graph
) -> list[gs.Node] | None:
    """An If whose branches both add to one list, as what they add and one addition behind it.

    Args:
        facts: Asked for the types of what is added.
        surgery: The writer of wiring.
        node: Any node whose bodies are in normal form.
        graph: Where it is.

    Returns:
        The nodes, producers first; None where no result of the node is such a list.
    """
    makers = {place: tuple(_makers(node, place).values()) for place in range(len(node.outputs))}
    pairs = {place: _pairs(facts, *both) for place, both in makers.items() if both}
    items = {place: [_either(facts, *p) for p in found] for place, found in pairs.items() if found}
    if not items:
        return None
    draft = surgery.draft(graph, next(t.name for t in node.outputs if t.name))
    results = [
        _listed(facts, draft, makers[place][0], given) if place in items else given[0]
        for place, given in enumerate(_given(draft, node, items))
    ]
    surgery.hand_over(node, [p for p in zip(node.outputs, results, strict=True) if p[0].name])
    return draft.nodes


def _pairs(facts: Facts, first: gs.Node, second: gs.Node) -> list[tuple[gs.Tensor, gs.Tensor]]:
    """What two nodes put into one list, or make two as long of; nothing where they do not."""
    puts = [listed.put_in(facts, node) for node in (first, second)]
    mine, other = ([put[0]] if put is not None else [] for put in puts)
    if mine and other:
        same = puts[0] is not None and puts[1] is not None and puts[0][1] == puts[1][1]
        if not same or first.inputs[0] is not second.inputs[0]:
            return []
    elif not mine and not other:
        mine, other = (listed.elements(node.outputs[0]) or [] for node in (first, second))
    dtypes = [tuple(facts.of(item).dtype for item in items) for items in (mine, other)]
    alike = len(mine) == len(other) and dtypes[0] == dtypes[1] and all(dtypes[0])
    return list(zip(mine, other, strict=True)) if alike else []


def _either(facts: Facts, first: gs.Tensor, second: gs.Tensor) -> Item:
    return Item(dict(zip(_BRANCHES, (first, second), strict=True)), Fact(facts.of(first).dtype))


def _listed(facts: Facts, draft: Draft, node: gs.Node, items: Sequence[gs.Tensor]) -> gs.Tensor:
    """The list of a node with other items."""
    domain, operands = node.domain or "", list(items)
    if (put := listed.put_in(facts, node)) is not None:
        if node.op == "add":
            operands = [draft.op("ListConstruct", *items, domain="prim")]
        operands.insert(0, node.inputs[0])
        if put[1]:
            operands.append(draft.constant(np.array(0, np.int64), "front"))
    made: gs.Tensor = draft.op(node.op, *operands, domain=domain)
    return made


def may_fill(facts: Facts, put: Put, item: gs.Tensor, fact: Fact) -> bool:
    """Whether something of the type and shape of an item can stand where nothing is put.

    It is what is put, where that is made around the branch.
    """
    branch = put.node.attrs[put.branch]
    if facts.opset < _FIRST_OPSET:
        return False
    if not _is_inside(branch, item):
        return True
    return fact.dtype in _FILLED and _lengths(facts, branch, fact) is not None


def told_by(
    surgery: Surgery, body: gs.Graph, puts: Sequence[tuple[Put, gs.Tensor, Fact]]
) -> list[tuple[gs.Tensor, gs.Tensor]]:
    """What Ifs put into lists, as results of theirs, and whether they do.

    Args:
        surgery: The writer of wiring.
        body: Where the Ifs are.
        puts: What puts something there, that item, and what is known of it.

    Returns:
        For each an item, which is any where nothing is put there, and a truth.
    """
    made: dict[int, list[list[gs.Tensor]]] = {}
    conditions: dict[int, gs.Tensor] = {}
    whether = []
    for put, _, _ in puts:
        node = put.node
        draft = surgery.draft(body, next(t.name for t in node.outputs if t.name))
        if id(node) not in made:
            own = {p.place: [_item(surgery, p, *what)] for p, *what in puts if p.node is node}
            conditions[id(node)] = node.inputs[0]
            made[id(node)] = results = _given(draft, node, own)
            kept = [
                place for place, old in enumerate(node.outputs) if old.name and place not in own
            ]
            surgery.hand_over(node, [(node.outputs[i], results[i][0]) for i in kept])
        condition = conditions[id(node)]
        if surgery.facts.of(condition).rank != 0:
            condition = draft.op(
                "Reshape", condition, draft.constant(np.zeros(0, np.int64), "scalar")
            )
        if put.branch == _BRANCHES[1]:
            condition = draft.op("Not", condition)
        whether.append(condition)
        body.nodes.extend(draft.nodes)
    return [
        (made[id(put.node)][put.place][0], truth)
        for (put, _, _), truth in zip(puts, whether, strict=True)
    ]


def _item(surgery: Surgery, put: Put, item: gs.Tensor, fact: Fact) -> Item:
    spare = item
    if _is_inside(put.node.attrs[put.branch], item):
        spare = _filled(surgery, put, item.name, fact)
    return Item(dict.fromkeys(_BRANCHES, spare) | {put.branch: item}, fact)


def _is_inside(branch: gs.Graph, tensor: gs.Tensor) -> bool:
    """Whether a value is made in a branch, or lives there."""
    tensor = current(tensor)
    made = maker_of(tensor)
    return (tensor if made is None else made).__dict__.get("home") is branch


def _lengths(
    facts: Facts, branch: gs.Graph, fact: Fact
) -> list[int | tuple[gs.Tensor, int]] | None:
    """A shape as numbers, and as axes of what a branch reads of around it; None if neither is."""
    around = {
        dim: (tensor, axis)
        for node in branch.nodes
        for tensor in map(current, node.inputs)
        if not _is_inside(branch, tensor)
        for axis, dim in enumerate(facts.of(tensor).shape or ())
    }
    found = [dim if isinstance(dim, int) else around.get(dim) for dim in fact.shape or ()]
    known = [length for length in found if length is not None]
    return known if len(known) == len(found) else None


def _filled(surgery: Surgery, put: Put, stem: str, fact: Fact) -> gs.Tensor:
    """Zeros of a type and a shape, in the branch that puts nothing there."""
    draft = surgery.draft(put.other, stem)
    parts = []
    for length in _lengths(surgery.facts, put.node.attrs[put.branch], fact) or ():
        if isinstance(length, int):
            parts.append(draft.constant([length], "length"))
            continue
        tensor, axis = length
        ends_of = (draft.constant([n], name) for n, name in ((axis, "first"), (axis + 1, "last")))
        parts.append(draft.op("Slice", draft.op("Shape", tensor), *ends_of))
    shape = draft.op("Concat", *parts, axis=0) if parts else draft.constant(np.zeros(0, np.int64))
    zero = np.zeros(1, onnx.helper.tensor_dtype_to_np_dtype(fact.dtype))
    filled: gs.Tensor = draft.op("ConstantOfShape", shape, value=zero)
    put.other.nodes.extend(draft.nodes)
    return filled


def _given(
    draft: Draft, node: gs.Node, items: Mapping[int, Sequence[Item]]
) -> list[list[gs.Tensor]]:
    """The results of an If that gives items where this one gives lists; it takes the branches.

    For each result of the node, what stands for it.
    """
    surgery, facts = draft.surgery, draft.facts
    branches = {key: node.attrs.pop(key) for key in _BRANCHES}
    for key, body in branches.items():
        face = ends.face(body)
        outputs, said = list(body.outputs), list(face.output)
        del body.outputs[:]
        del face.output[:]
        for place, (end, declared) in enumerate(zip(outputs, said, strict=True)):
            if place not in items:
                body.outputs.append(end)
                face.output.append(declared)
                continue
            surgery.outputs.pop(id(end), None)
            for item in items[place]:
                body.outputs.append(ends.ended(surgery, body, item.given[key]))
                face.output.append(ends.declared(body.outputs[-1], item.fact))
        body.origin = face
    endings = [
        f"chosen_{place}_{index}"
        for place in range(len(node.outputs))
        for index in range(len(items.get(place, (None,))))
    ]
    made = draft.op("If", *node.inputs, outputs=endings, **branches)
    left = iter(made if isinstance(made, tuple) else [made])
    results = []
    for place, old in enumerate(node.outputs):
        known = [item.fact for item in items.get(place, ())] or [facts.of(old)]
        results.append([next(left) for _ in known])
        for new, fact in zip(results[-1], known, strict=True):
            new.__dict__["fact"] = fact
    return results


def _makers(node: gs.Node, place: int) -> dict[str, gs.Node]:
    """What makes a result in either branch of an If; nothing where that is not so in both."""
    found = {}
    for key in _BRANCHES:
        body = node.attrs.get(key) if node.op == "If" else None
        if not isinstance(body, gs.Graph) or len(body.outputs) != len(node.outputs):
            return {}
        end = current(body.outputs[place])
        made = maker_of(end)
        if made is None or made.home is not body or end.outputs:
            return {}
        found[key] = made
    return found
