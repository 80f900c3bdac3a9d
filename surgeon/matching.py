"""Finds a pattern's nodes behind a root: a Match or a Miss with its reason. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.direct import direct_of
from surgeon.facts import Facts
from surgeon.match import Match, Miss
from surgeon.notation import NodePattern, Pattern
from surgeon.searching import COMMUTATIVE, Search, State

_MOST_ORDERS = 16  # of operands, in which conditions are asked


class Matcher:
    """A pattern made ready: attributes that moved to inputs are asked for as inputs.

    Args:
        pattern: As the recipe says it, in the newest or an older form.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.total = len(pattern.nodes)
        self.producers = {
            name: node for node in pattern.nodes for name in node.outputs if name not in ("", "_")
        }
        self.root = pattern.root
        # (place, operators) of the root's inputs that are other nodes' outputs and nothing between.
        self.needs = [
            (index, self.producers[argument.name])
            for index, argument in enumerate(self.root.inputs)
            if argument.name in self.producers and not argument.through
        ]
        self.most = None if _takes_more(self.root) else len(self.root.inputs)
        self.direct = direct_of(pattern)
        self.turns = any(_turns(node) for node in pattern.nodes)
        self.inner_turns = any(_turns(node) for node in pattern.nodes if node is not self.root)

    def at(
        self, root: gs.Node, facts: Facts, is_output: Callable[[gs.Tensor], bool]
    ) -> Match | Miss:
        """Match with `root` as the pattern's last node."""
        try:
            return self._at(root, facts, is_output)
        except RecursionError:  # a search is as deep as the nodes that stand behind one another
            return Miss(root, 0, self.total, lambda: "the pattern has too many nodes in a row")

    def _at(
        self, root: gs.Node, facts: Facts, is_output: Callable[[gs.Tensor], bool]
    ) -> Match | Miss:
        if self.direct is not None and (match := self.direct.at(root)) is not None:
            return match
        search = Search(self.producers, facts, is_output)
        for state in search.node(self.root, root, State()):
            return _match(root, state)
        return Miss(root, search.matched, self.total, search.why)

    def others(
        self, root: gs.Node, facts: Facts, is_output: Callable[[gs.Tensor], bool]
    ) -> Iterator[Match]:
        """What the pattern matches with operands in other orders, behind the match of `at`."""
        if not self.inner_turns and not self._made(makers_of(root)[::-1]):
            return  # what makes the operands tells which is which
        if self.direct is not None and self.total == 1:
            turns = root.op in COMMUTATIVE and len(root.inputs) == 2
            if turns and (match := self.direct.at(root, turned=True)) is not None:
                yield match
            return
        search = Search(self.producers, facts, is_output)
        try:
            for state in islice(search.node(self.root, root, State()), 1, _MOST_ORDERS):
                yield _match(root, state)
        except RecursionError:
            return

    def may_be(self, op: str, makers: Sequence[str | None]) -> bool:
        """Whether a root's operands are made as the pattern wants them, and not too many.

        Args:
            op: The root's operator.
            makers: What makes each of its inputs: see `makers_of`.
        """
        if self.most is not None and any(makers[self.most :]):
            return False
        either = op in COMMUTATIVE and len(self.root.inputs) == len(makers) == 2
        return self._made(makers) or (either and self._made(makers[::-1]))

    def _made(self, makers: Sequence[str | None]) -> bool:
        return all(  # the search says it better where there are fewer
            index >= len(makers) or makers[index] in want.operators for index, want in self.needs
        )


def _match(root: gs.Node, state: State) -> Match:
    return Match(root, state.nodes, state.values, state.attributes, state.rests, state.views)


def _turns(want: NodePattern) -> bool:
    """Whether two operands of a node may change places, and are not alike."""
    names = [argument.name for argument in want.inputs]
    return len({*names}) == 2 == len(names) and not COMMUTATIVE.isdisjoint(want.operators)


def _takes_more(want: NodePattern) -> bool:
    """Whether a node may have more operands than its pattern names."""
    moved = [m.attribute for op in want.operators for m in opsets.MOVED.get(op, ())]
    asked = {*want.attributes, *want.captures}
    return any(argument.rest for argument in want.inputs) or not asked.isdisjoint(moved)


CONSTANT = "="  # stands for no operator: what makes a constant


def makers_of(node: gs.Node) -> tuple[str | None, ...]:
    """The operator that makes each input of a node; `CONSTANT`, or None for what no node makes."""
    return tuple(
        [
            t.inputs[0].op if t.inputs else CONSTANT if isinstance(t, gs.Constant) else None
            for t in node.inputs
        ]
    )
