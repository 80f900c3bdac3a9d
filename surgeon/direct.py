"""Patterns that name operators and operands alone, bound without a search: there is one way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import onnx_graphsurgeon as gs

from surgeon.match import Match
from surgeon.notation import NodePattern, Pattern
from surgeon.searching import COMMUTATIVE

_UNNAMED = ("", "_")


class _Operand(NamedTuple):
    """An operand, the node that makes it where the pattern has that, and which output it is."""

    name: str
    optional: bool
    maker: Direct | None
    position: int


class _Found(NamedTuple):
    """What is bound so far, as in a `Match`."""

    nodes: list[gs.Node]
    values: dict[str, gs.Tensor | None]
    rests: dict[str, tuple[gs.Tensor, ...]]
    views: dict[str, tuple[gs.Node, ...]]


class Direct:
    """A node of such a pattern, with those behind it.

    Args:
        want: The node.
        made: By name, the nodes of the pattern that stand before it, and which output it is.
    """

    def __init__(self, want: NodePattern, made: Mapping[str, tuple[Direct, int]]) -> None:
        self.operators, self.domain, self.outputs = want.operators, want.domain, want.outputs
        self.rest = next((argument.name for argument in want.inputs if argument.rest), "")
        self.operands: list[_Operand] = []
        for name, optional, rest, *_ in want.inputs:
            if not rest:
                self.operands.append(_Operand(name, optional, *made.get(name, (None, 0))))
        self.made = any(operand.maker for operand in self.operands)

    def at(self, root: gs.Node, *, turned: bool = False) -> Match | None:
        """The match with `root` as the last node; None: only a search can tell.

        Args:
            root: The node.
            turned: Whether its operands are taken in the other order.
        """
        if len(root.outputs) > len(self.outputs):
            return None
        found = _Found([], {}, {}, {})
        if not self._bind(root, found, turned=turned):
            return None
        return Match(root, tuple(found.nodes), found.values, {}, found.rests, found.views)

    def _bind(self, node: gs.Node, found: _Found, *, turned: bool = False) -> bool:
        """Whether the node and those behind it are these; takes what is named."""
        if node.op not in self.operators or (node.domain or "") != self.domain:
            return False
        nodes, values, _, views = found
        if nodes and any(node is other for other in nodes):
            return False
        nodes.append(node)
        for name, tensor in zip(self.outputs, node.outputs, strict=False):
            if name not in _UNNAMED:
                values[name] = tensor
        operands, inputs = self.operands, node.inputs
        count = len(inputs)
        if turned or (self.made and count == 2 and self._turned(node)):
            inputs = inputs[::-1]
        for place, (name, optional, maker, position) in enumerate(operands):
            tensor = inputs[place] if place < count else None
            if tensor is None or not tensor.name:
                if name:
                    if not optional or values.get(name) is not None:
                        return False
                    values[name] = None
            elif name in values:
                if values[name] is not tensor:
                    return False
            elif name in _UNNAMED:
                if not name:
                    return False
            elif maker is None:
                values[name], views[name] = tensor, ()
            else:
                views[name] = ()
                if not tensor.inputs or len(tensor.inputs[0].outputs) <= position:
                    return False
                made_by = tensor.inputs[0]
                if made_by.outputs[position] is not tensor or not maker._bind(made_by, found):
                    return False
        if self.rest:
            found.rests[self.rest] = tuple(inputs[len(operands) :])
        elif count > len(operands):
            return not any(tensor.name for tensor in inputs[len(operands) :])
        return True

    def _turned(self, node: gs.Node) -> bool:
        """Whether both operands can stand in the other order alone."""
        if node.op not in COMMUTATIVE or len(self.operands) != 2:
            return False
        for (_, _, maker, _), tensor in zip(self.operands, node.inputs, strict=True):
            if maker and not (tensor.inputs and tensor.inputs[0].op in maker.operators):
                return True
        return False


def direct_of(pattern: Pattern) -> Direct | None:
    """How to bind a pattern; None where it has attributes, views to look through or `_` outputs."""
    for node in pattern.nodes:
        if node.attributes or node.captures or node.overload or node.rest is not None:
            return None
        if any(argument.through for argument in node.inputs):
            return None
    if any(name in _UNNAMED for name in pattern.root.outputs):
        return None
    made: dict[str, tuple[Direct, int]] = {}  # one each, however many read what it gives
    for node in pattern.nodes:
        direct = Direct(node, made)
        places = {name: place for place, name in enumerate(node.outputs) if name not in _UNNAMED}
        made |= {name: (direct, place) for name, place in places.items()}
    return direct
