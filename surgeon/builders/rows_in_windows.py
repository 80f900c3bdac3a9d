"""Rows that are computed in windows of many axes, and moved: moved first, and computed behind."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon.builders.cleaning import order_of
from surgeon.builders.views import view_between
from surgeon.dims import product
from surgeon.facts.fact import same_dims
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_MANY = 5  # axes; more are refused by Hexagon and Core ML
_MOST = 4  # operators on the rows
_BESIDE = frozenset({"Add", "Sub", "Mul", "Div"})


def rows_in_windows(draft: Draft, match: Match) -> gs.Tensor:
    """y = Reshape (Transpose (f (Reshape (x)))) of rows, with `f` behind moves of fewer axes.

    `f` is a product with a matrix, and what is added to every row or multiplies it.
    """
    facts, turn = draft.facts, match.root.inputs[0].inputs[0]
    wide, after = facts.of(turn.inputs[0]).shape, facts.of(match.root.outputs[0]).shape
    if wide is None or not after or len(wide) <= _MANY:
        raise Refused("it has no more axes than runtimes move")
    order, last = order_of(turn, len(wide)), len(wide) - 1
    if order[-1] != last or not same_dims(wide[last:], after[-1:]):
        raise Refused("it moves or parts what is in a row")
    view, nodes = _rows(draft, turn.inputs[0])
    x, inside = view.inputs[0], facts.of(view.outputs[0]).shape
    before = facts.of(x).shape
    if before is None or inside is None or not same_dims(inside[:-1], wide[:-1]):
        raise Refused("a shape is not known, or the rows are not those of the view")
    groups = _together([axis for axis in order if axis == last or inside[axis] != 1])
    ahead = sorted(groups)
    sizes = [product(inside[axis] for axis in group) for group in ahead]
    perm = [ahead.index(group) for group in groups]
    moved = tuple(sizes[place] for place in perm)
    into = view_between(before, tuple(sizes))
    out = view_between(moved, (*after[:-1], inside[last]))
    if into is None or out is None or len(perm) > _MANY:
        raise Refused("no Reshape gives the shapes of fewer axes, or they are not few enough")
    y = out.draw(draft, draft.op("Transpose", into.draw(draft, x), perm=perm))
    for node in nodes:
        operands = list(node.inputs)
        operands[_row(draft, node)] = y
        y = draft.op(node.op, *operands, **node.attrs)
    return y


def _rows(draft: Draft, value: gs.Tensor) -> tuple[gs.Node, list[gs.Node]]:
    """The Reshape that gives rows, and what computes with each of them, in order."""
    nodes: list[gs.Node] = []
    while len(nodes) <= _MOST:
        node = maker_of(value)
        if len(value.outputs) != 1 or draft.surgery.is_output(value):
            raise Refused("the rows are read elsewhere too")
        if node is None or not draft.holds(node) or (node.domain or "") not in STANDARD:
            break
        if node.op == "Reshape":
            return node, nodes[::-1]
        nodes.append(node)
        value = node.inputs[_row(draft, node)]
    raise Refused("the rows are not those of a Reshape")


def _row(draft: Draft, node: gs.Node) -> int:
    """Which operand of a node is the rows."""
    facts = draft.facts
    if node.op == "MatMul" and facts.of(node.inputs[1]).rank == 2:
        return 0
    if node.op in _BESIDE:
        beside = [facts.of(t).rank for t in node.inputs]
        for place in (0, 1):
            if beside[1 - place] in (0, 1) and (beside[place] or 0) > 1:
                return place
    raise Refused(f"{node.op} is not known to compute with each row by itself")


def _together(order: Sequence[int]) -> list[tuple[int, ...]]:
    """Axes in their new order, those that stay side by side in one group."""
    groups: list[tuple[int, ...]] = []
    for axis in order:
        if groups and groups[-1][-1] + 1 == axis:
            groups[-1] = (*groups[-1], axis)
        else:
            groups.append((axis,))
    return groups
