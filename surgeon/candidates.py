"""Which rules may begin at a node: by its operator, and by what makes its operands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.facts import Facts
from surgeon.matching import CONSTANT, Matcher, makers_of
from surgeon.recipe import BuilderCall, Rule
from surgeon.searching import COMMUTATIVE
from surgeon.spelling import home

# Conditions that what makes an operand decides, where they cannot hold.
_COMPUTED = re.compile(r"not (\w+)\.is_constant")
_CONSTANT = re.compile(r"(\w+)\.is_constant(?: or (\w+)\.is_constant)?(?: and (?!.* (or|if) ).*)?")
_MADE_BY = re.compile(r"""(\w+)\.maker == ["'](\w+)["']""")


class Prepared:
    """A rule and its pattern, made ready once.

    Attributes:
        asks_nothing: Whether no expression reads what matched.
    """

    __slots__ = ("_computed", "_constant", "_made_by", "asks_nothing", "matcher", "rule")

    def __init__(self, rule: Rule) -> None:
        replace = rule.replace
        called = isinstance(replace, BuilderCall) and not replace.arguments
        self.rule, self.matcher = rule, Matcher(rule.match)
        self.asks_nothing = called and not rule.where
        root = self.matcher.root
        places = {each.name: i for i, each in enumerate(root.inputs) if not each.through}
        self._computed: list[int] = []  # places of operands that are not to be constants
        self._made_by: list[tuple[int, str]] = []  # operands, and what makes them
        self._constant = False  # whether one of the operands has to be
        for text in (condition.text for condition in rule.where):
            if COMMUTATIVE.intersection(root.operators):  # which operand is which is open
                if found := _CONSTANT.fullmatch(text):
                    self._constant |= {found[1], found[2] or found[1]} <= places.keys()
            elif (found := _COMPUTED.fullmatch(text)) and found[1] in places:
                self._computed.append(places[found[1]])
            elif (found := _MADE_BY.fullmatch(text)) and found[1] in places:
                self._made_by.append((places[found[1]], found[2]))

    def may_begin(self, op: str, makers: tuple[str | None, ...], *, known: bool) -> bool:
        """Whether nothing of what makes the operands of a node speaks against the rule.

        Args:
            op: The node's operator.
            makers: What makes each of its operands.
            known: Whether one that a node makes is known.
        """
        return (
            self.matcher.may_be(op, makers)
            and not any(makers[place : place + 1] == (CONSTANT,) for place in self._computed)
            and all(makers[place : place + 1] == (maker,) for place, maker in self._made_by)
            and (known or not self._constant or CONSTANT in makers)
        )


class Candidates:
    """Rules, in order, by the nodes at which they may begin.

    Args:
        rules: The rules. Each is made ready when the first node asks for it: most models have few
            of the operators that a recipe knows.
        ready: Those that are, by identity, where several share them.
    """

    def __init__(self, rules: Sequence[Rule], ready: dict[int, Prepared] | None = None) -> None:
        self._rules: dict[tuple[str, str], list[Rule]] = {}
        for rule in rules:
            root = rule.match.root
            for name in root.operators:
                self._rules.setdefault((home(root.domain, name), name), []).append(rule)
        self._ready: dict[int, Prepared] = {} if ready is None else ready
        self._by_root: dict[tuple[str, str], list[Prepared]] = {}
        # Blocks repeat. With the rules there are those for a node of which an operand is known.
        self._by_makers: dict[Any, tuple[list[Prepared], list[Prepared]]] = {}

    def at(self, node: gs.Node, facts: Facts, *, every: bool) -> Sequence[Prepared]:
        """The rules to try at a node.

        Args:
            node: Where they would begin.
            facts: Asked which operands are known.
            every: Also those of which what makes the operands says that they cannot fire: they
                miss, but say so.
        """
        root = operator_of(node)
        rules = self._by_root.get(root)
        if rules is None:
            rules = self._by_root[root] = [*map(self._prepared, self._rules.get(root, ()))]
        if not rules or every:
            return rules
        makers = makers_of(node)
        found = self._by_makers.get((root, makers))
        if found is None:
            more = [each for each in rules if each.may_begin(node.op, makers, known=True)]
            few = [each for each in more if each.may_begin(node.op, makers, known=False)]
            found = self._by_makers[root, makers] = few, more
        few, more = found
        if len(few) == len(more):
            return few
        known = any(t.inputs and facts.of(t).concrete is not None for t in node.inputs)
        return more if known else few

    def _prepared(self, rule: Rule) -> Prepared:
        found = self._ready.get(id(rule))
        if found is None:
            found = self._ready[id(rule)] = Prepared(rule)
        return found


def operator_of(node: gs.Node) -> tuple[str, str]:
    """(domain, operator), the default domain as "", a plugin's as recipes call it."""
    return home(node.domain or "", node.op), node.op
