"""Chains of views and Transposes, which move groups of elements: at most one Transpose is needed.

Each axis of the first value is parted as far as any view of the chain parts it. What stands behind
the chain is an order of these parts, and that takes one Transpose between two views, of which one
or both are not needed where the parts lie together as they do in front or behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.cleaning import order_of
from surgeon.builders.views import KEEP_ORDER, Shape, View, view_between
from surgeon.dims import Dim, exact_quotient
from surgeon.facts import Facts
from surgeon.facts.fact import same_dims
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_LONGEST = 12  # nodes of a chain that are looked at
_MANY_AXES = 5  # more are refused by Hexagon and Core ML
_FEW_AXES = 4  # every runtime moves so many; 5 are left to those that know pixels in blocks by six


class _Part:
    """Part of an axis: whole, or parted into an outer and an inner one."""

    __slots__ = ("parts", "size")

    def __init__(self, size: Dim) -> None:
        self.size = size
        self.parts: tuple[_Part, ...] = ()

    def split(self, outer: Dim, inner: Dim) -> tuple[_Part, _Part]:
        self.parts = both = (_Part(outer), _Part(inner))
        return both

    def leaves(self) -> list[_Part]:
        return [leaf for part in self.parts for leaf in part.leaves()] if self.parts else [self]


_Axes = list[list[_Part]]


def regrouped(draft: Draft, match: Match) -> gs.Tensor:
    """`y`, with fewer nodes than the chain of views and Transposes that gives it has."""
    chain = _chain(draft, match.root)
    why = Refused("it is no chain of views and Transposes")
    for start in range(len(chain) - 1):
        try:
            steps = _fewest(draft.facts, chain[start:])
        except Refused as refused:
            why = refused
            continue
        x = chain[start].inputs[0]
        for step in steps:
            x = step.draw(draft, x)
        return x
    raise why


def _fewest(facts: Facts, chain: Sequence[gs.Node]) -> list[_Step]:
    """The steps that take the place of a chain.

    Raises:
        Refused: There are none, or no fewer nodes.
    """
    shapes = [facts.of(chain[0].inputs[0]).shape, *(facts.of(n.outputs[0]).shape for n in chain)]
    before, after = shapes[0], shapes[-1]
    assert before is not None  # `_chain` has asked
    assert after is not None
    sizes = _Sizes(facts, chain)
    turns = [node.op == "Transpose" for node in chain]
    if not any(turns):
        return _fewer([sizes.view(before, after)], chain)
    first: _Axes = [[_Part(size)] for size in before]
    last = first
    for index, (node, shape) in enumerate(zip(chain, shapes[1:], strict=True)):
        assert shape is not None
        if turns[index]:
            last = [last[axis] for axis in order_of(node, len(last))]
        elif index + 1 == len(chain) or turns[index + 1]:  # of views in a row the last says it all
            last = _viewed(last, shape)
    first, last = ([_leaves(axis) for axis in axes] for axes in (first, last))
    return _fewer(_ways(sizes, before, first, after, last), chain)


def _fewer(ways: Iterable[list[_Step] | None], chain: Sequence[gs.Node]) -> list[_Step]:
    found = [way for way in ways if way is not None]
    if not found:
        raise Refused("no Reshape gives the shapes that one Transpose would need")
    many = max((len(order_of(n, 0)) for n in chain if n.op == "Transpose"), default=0)
    found = [way for way in found if _axes(way) <= max(many, _MANY_AXES)]
    if not found:
        raise Refused(f"one Transpose would have more than {_MANY_AXES} axes")
    steps = min(found, key=lambda way: (_nodes(way), _axes(way)))
    as_many = _nodes(steps) == len(chain) and many > _MANY_AXES and _axes(steps) <= _FEW_AXES
    if _nodes(steps) >= len(chain) and not as_many:
        raise Refused("it has this form already")
    return steps


def _nodes(steps: Sequence[_Step]) -> int:
    return sum(step.nodes for step in steps)


def _axes(steps: Sequence[_Step]) -> int:
    return max((len(step.numbers) for step in steps if step.op == "Transpose"), default=0)


def _chain(draft: Draft, root: gs.Node) -> list[gs.Node]:
    """The views and Transposes that end in a node, and whose values nothing else reads."""
    chain = [root]
    while len(chain) < _LONGEST:
        value = chain[0].inputs[0]
        node = maker_of(value)
        if node is None or not draft.holds(node) or (node.domain or "") not in STANDARD:
            break
        if node.op != "Transpose" and node.op not in KEEP_ORDER:
            break
        if len(value.outputs) != 1 or draft.surgery.is_output(value):
            break
        chain.insert(0, node)
    known = [draft.facts.of(n.inputs[0]).shape is not None for n in chain]
    while known and not known[0]:  # what stands in front of it is not known to have axes
        del known[0], chain[0]
    if not all(known) or draft.facts.of(root.outputs[0]).shape is None:
        raise Refused("a shape is not known")
    return chain


def _leaves(axis: Sequence[_Part]) -> list[_Part]:
    return [leaf for part in axis for leaf in part.leaves() if leaf.size != 1]


def _viewed(axes: _Axes, shape: Shape) -> _Axes:
    """The parts of each axis of a view.

    Raises:
        Refused: An axis of it is no product of whole parts, whatever the sizes at run time.
    """
    rest = [part for axis in axes for part in _leaves(axis)][::-1]
    out: _Axes = []
    for size in shape:
        group: list[_Part] = []
        while size != 1:
            part = rest.pop() if rest else None
            if part is None or size == 0:
                raise Refused("a view parts its axes at sizes of run time")
            if dims.equal(part.size, size) is True:
                size = 1
            elif (more := exact_quotient(size, part.size)) is not None:
                size = more
            elif (inner := exact_quotient(part.size, size)) is not None:
                part, remaining = part.split(size, inner)
                rest.append(remaining)
                size = 1
            else:
                raise Refused("a view parts its axes at sizes of run time")
            group.append(part)
        out.append(group)
    if rest:
        raise Refused("a view parts its axes at sizes of run time")
    return out


class _Step(NamedTuple):
    """One node to draw: a view, a Transpose, or a Reshape to sizes that the chain computes."""

    op: str
    numbers: Sequence[int] = ()
    target: tuple[int | gs.Tensor, ...] = ()  # entries of a target of sizes of run time

    @property
    def nodes(self) -> int:
        return 1 + (len(self.target) > 1)

    def draw(self, draft: Draft, x: gs.Tensor) -> gs.Tensor:
        if self.op == "Transpose":
            return draft.op("Transpose", x, perm=list(self.numbers))
        if not self.target:
            return View(self.op, self.numbers).draw(draft, x)
        entries = [
            draft.constant(np.array([entry], np.int64), "size") if isinstance(entry, int) else entry
            for entry in self.target
        ]
        target = entries[0] if len(entries) == 1 else draft.op("Concat", *entries, axis=0)
        return draft.op("Reshape", x, target, allowzero=0)


class _Sizes:
    """Lists of sizes of run time that the views of a chain are given."""

    def __init__(self, facts: Facts, chain: Sequence[gs.Node]) -> None:
        self.known: list[tuple[Shape, gs.Tensor]] = []
        for node in chain:
            if node.op != "Reshape" or facts.array(node.inputs[1]) is not None:
                continue
            target = node.inputs[1]
            joins = target.inputs and target.inputs[0].op == "Concat"
            for tensor in (target, *(target.inputs[0].inputs if joins else ())):
                value = facts.of(tensor).value
                if value is None or not value.ndim or facts.array(tensor) is not None:
                    continue
                sizes = tuple(value.tolist())
                if all(map(dims.is_filled, sizes)):  # 0 would copy a length, and -1 infer one
                    self.known.append((sizes, tensor))
        self.known.sort(key=lambda known: -len(known[0]))

    def view(self, before: Shape, after: Shape) -> list[_Step] | None:
        """Nothing, or one step that turns one shape into the other."""
        if same_dims(before, after):
            return []
        if (found := view_between(before, after)) is not None:
            return [_Step(found.op, found.numbers)]
        target: list[int | gs.Tensor] = []
        place, inferred = 0, False
        while place < len(after):
            size = after[place]
            for sizes, tensor in self.known:
                if same_dims(after[place : place + len(sizes)], sizes):
                    target.append(tensor)
                    place += len(sizes)
                    break
            else:
                if not isinstance(size, int) or size == 0:
                    if place < len(before) and dims.equal(before[place], size) is True:
                        size = 0
                    elif not inferred and dims.infers(before, after, place):
                        size, inferred = -1, True
                    else:
                        return None
                target.append(size)
                place += 1
        return [_Step("Reshape", target=tuple(target))] if self.known else None


def _ways(
    sizes: _Sizes, before: Shape, first: _Axes, after: Shape, last: _Axes
) -> Iterator[list[_Step] | None]:
    """Views and Transposes that bring the parts of one shape into the order of another."""
    order = [part for axis in first for part in axis]
    wanted = [part for axis in last for part in axis]
    if order == wanted:
        yield sizes.view(before, after)
        return
    place = {id(part): index for index, part in enumerate(order)}
    aim = {id(part): index for index, part in enumerate(wanted)}

    def turned(inside: Shape, perm: Sequence[int]) -> list[_Step] | None:
        behind = tuple(inside[axis] for axis in perm)
        one, other = sizes.view(before, inside), sizes.view(behind, after)
        if one is None or other is None:
            return None
        return [*one, _Step("Transpose", perm), *other]

    if all(_together(axis, place) for axis in last):  # a view, whose axes need only be moved
        source = _sorted(last, place)
        yield turned(tuple(after[axis] for axis in source), _inverse(source))
    if all(_together(axis, aim) for axis in first):  # a Transpose, of which `after` is a view
        yield turned(before, _sorted(first, aim))
    runs = _runs(order, aim)
    inside = tuple(dims.product(part.size for part in run) for run in runs)
    yield turned(inside, _sorted(runs, aim))


def _runs(order: Sequence[_Part], aim: Mapping[int, int]) -> _Axes:
    """The parts that stay together, as axes."""
    runs: _Axes = [[order[0]]]
    for one, other in pairwise(order):
        if aim[id(other)] == aim[id(one)] + 1:
            runs[-1].append(other)
        else:
            runs.append([other])
    return runs


def _together(axis: Sequence[_Part], place: Mapping[int, int]) -> bool:
    return all(place[id(b)] == place[id(a)] + 1 for a, b in pairwise(axis))


def _sorted(axes: _Axes, place: Mapping[int, int]) -> list[int]:
    """The axes in the order of their parts; those of size 1 in front."""
    return sorted(range(len(axes)), key=lambda i: place[id(axes[i][0])] if axes[i] else -1)


def _inverse(perm: Sequence[int]) -> list[int]:
    return sorted(range(len(perm)), key=lambda i: perm[i])
