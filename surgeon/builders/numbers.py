"""Sizes that are taken out of lists of one, computed with, and put into such lists again.

Lists of one compute as well: then no size is taken out, and none put in.
"""

from __future__ import annotations

import contextlib

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.links import maker_of
from surgeon.match import Match, is_one_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_OF_NUMBERS = frozenset("Add Sub Mul Div Mod Cast Floor Ceil Neg Min Max".split())
_INTO_LISTS = frozenset({"Reshape", "Unsqueeze"})
_MOST = 64  # nodes that compute such numbers together


def numbers_as_lists(draft: Draft, match: Match) -> gs.Tensor:
    """y = Reshape or Unsqueeze of a number, computed of lists with all that goes with it."""
    root = match.root
    together = _Together(draft)
    together.trace(root.inputs[0])
    together.spread()
    sinks, kept, whole = together.readers()
    if root not in sinks or any(draft.surgery.is_output(n.outputs[0]) for n in sinks):
        raise Refused("the model gives a list out")
    if len(sinks) + whole <= len(kept):
        raise Refused("as many numbers are read by themselves")
    lists = dict(together.sources)
    for node in together.nodes.values():
        operands = [lists.get(id(t), t) for t in node.inputs]
        lists[id(node.outputs[0])] = draft.op(node.op, *operands, **node.attrs)
    zero = draft.constant([0], "axis") if kept else None
    for node in kept:
        number = draft.op("Squeeze", lists[id(node.outputs[0])], zero)
        draft.also.append((node, [(node.outputs[0], number)]))
    for sink in sinks:
        if sink is not root:
            draft.also.append((sink, [(sink.outputs[0], lists[id(sink.inputs[0])])]))
    return lists[id(root.inputs[0])]


class _Together:
    """Numbers that are computed of one another, from lists of one.

    Attributes:
        sources: What stands for the numbers that are taken from a list, by identity.
        nodes: What computes the others, producers first.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.sources: dict[int, gs.Tensor] = {}
        self.taken: dict[int, gs.Tensor] = {}
        self.nodes: dict[int, gs.Node] = {}

    def trace(self, number: gs.Tensor) -> None:
        """Add a number and all it is computed of.

        Raises:
            Refused: Something of that is no such number.
        """
        if id(number) in self.sources or (number.inputs and id(number.inputs[0]) in self.nodes):
            return
        facts, node = self.draft.facts, maker_of(number)
        if node is None or not self.draft.holds(node) or (node.domain or "") not in STANDARD:
            raise Refused(f"`{number.name}` is not computed from sizes alone")
        if facts.of(number).rank != 0:
            raise Refused(f"`{number.name}` is not known to be a number")
        if node.op == "Squeeze" and facts.of(node.inputs[0]).shape == (1,):
            self.sources[id(number)], self.taken[id(number)] = node.inputs[0], number
            return
        known = [facts.array(tensor) for tensor in node.inputs]
        if node.op not in _OF_NUMBERS or all(array is not None for array in known):
            raise Refused(f"`{number.name}` is not computed from sizes alone")
        if any(array is not None and array.ndim for array in known):
            raise Refused(f"a constant beside `{number.name}` is a list")
        if len(self.nodes) >= _MOST:
            raise Refused("many numbers are computed together")
        for tensor, array in zip(node.inputs, known, strict=True):
            if array is None:
                self.trace(tensor)
        self.nodes[id(node)] = node

    def spread(self) -> None:
        """Add what is computed of these numbers and others that are taken from lists."""
        waiting = [*self.taken.values(), *(n.outputs[0] for n in self.nodes.values())]
        while waiting:
            for node in list(waiting.pop().outputs):
                if node.op not in _OF_NUMBERS or id(node) in self.nodes:
                    continue
                before = dict(self.sources), dict(self.taken), dict(self.nodes)
                with contextlib.suppress(Refused):
                    self.trace(node.outputs[0])
                    waiting += [n.outputs[0] for i, n in self.nodes.items() if i not in before[2]]
                    waiting += [t for i, t in self.taken.items() if i not in before[1]]
                    continue
                self.sources, self.taken, self.nodes = before

    def readers(self) -> tuple[list[gs.Node], list[gs.Node], int]:
        """What puts a number into a list; what computes one that is read by itself; free sources.

        A source that is read by itself stays where it is.
        """
        sinks: list[gs.Node] = []
        kept: list[gs.Node] = []
        free = 0
        for tensor in (*self.taken.values(), *(n.outputs[0] for n in self.nodes.values())):
            alone = self.draft.surgery.is_output(tensor)
            for node in tensor.outputs:
                if id(node) in self.nodes or any(node is sink for sink in sinks):
                    continue
                if self._into_list(node):
                    sinks.append(node)
                else:
                    alone = True
            if id(tensor) not in self.taken:
                kept += [tensor.inputs[0]] if alone else []
            else:
                free += not alone
        return sinks, kept, free

    def _into_list(self, node: gs.Node) -> bool:
        facts = self.draft.facts
        if not is_one_of(node, _INTO_LISTS) or not self.draft.holds(node):
            return False
        array = facts.array(node.inputs[1])
        if array is None or facts.of(node.outputs[0]).rank != 1:
            return False
        return bool(np.isin(array, (-1, 1) if node.op == "Reshape" else (-1, 0)).all())
