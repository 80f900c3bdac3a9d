"""Which rules may begin at a node: by its operator, and by what makes its operands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.matching import CONSTANT, Matcher, makers_of
from surgeon.recipe import BuilderCall, Rule
from surgeon.searching import COMMUTATIVE

_IS_COMPUTED = re.compile(r"not (\w+)\.is_constant")


class Prepared:
    """A rule and its pattern, made ready once.

    Attributes:
        asks_nothing: Whether no expression reads what matched.
        computed: Inputs of the root, by place, that a condition wants not to be constants.
    """

    __slots__ = ("asks_nothing", "computed", "matcher", "rule")

    def __init__(self, rule: Rule) -> None:
        replace = rule.replace
        called = isinstance(replace, BuilderCall) and not replace.arguments
        self.rule, self.matcher = rule, Matcher(rule.match)
        self.asks_nothing = called and not rule.where
        root = self.matcher.root
        texts = [] if COMMUTATIVE.intersection(root.operators) else [w.text for w in rule.where]
        names = {found[1] for text in texts if (found := _IS_COMPUTED.fullmatch(text))}
        self.computed = [i for i, each in enumerate(root.inputs) if each.name in names]


class Candidates:
    """Rules, in order, by the nodes at which they may begin."""

    def __init__(self, rules: Sequence[Prepared]) -> None:
        self._by_root: dict[tuple[str, str], list[Prepared]] = {}
        for prepared in rules:
            for root in prepared.matcher.roots:
                self._by_root.setdefault(root, []).append(prepared)
        self._by_makers: dict[Any, list[Prepared]] = {}  # blocks repeat

    def at(self, node: gs.Node, *, every: bool) -> Sequence[Prepared]:
        """The rules to try at a node.

        Args:
            node: Where they would begin.
            every: Also those whose pattern wants its operands made by other operators, or
                computed: they miss, but say so.
        """
        root = operator_of(node)
        rules = self._by_root.get(root)
        if rules is None or every:
            return rules or ()
        makers = makers_of(node)
        found = self._by_makers.get((root, makers))
        if found is None:
            found = [
                each
                for each in rules
                if each.matcher.lacks(node.op, makers) is None
                and not any(makers[place : place + 1] == (CONSTANT,) for place in each.computed)
            ]
            self._by_makers[root, makers] = found
        return found


def operator_of(node: gs.Node) -> tuple[str, str]:
    """(domain, operator), the default domain as ""."""
    domain = node.domain or ""
    return ("" if domain == "ai.onnx" else domain, node.op)
