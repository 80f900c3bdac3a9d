"""What of a model is beyond the limits of a list of one's own, though its operators are on it."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_graphsurgeon as gs

from surgeon.candidates import Prepared, operator_of
from surgeon.captured import dtype_name
from surgeon.facts import Facts
from surgeon.meanings import full_name
from surgeon.model import Model, describe
from surgeon.spelling import home
from surgeon.targets import Beyond, Target
from surgeon.walk import Walk

INPUT = "input"  # in place of an operator


def beyond(model: Model, wanted: Target) -> tuple[Beyond, ...]:
    """The nodes that a target does not take, as its limits say, and inputs of other types.

    A limit is for the nodes that its pattern may end at: they are beyond it where the pattern does
    not match or a condition is not proven. Of a value of which the type, or the number of axes, is
    not known, no limit of these is said to be passed; nor of a constant.

    Args:
        model: Not changed.
        wanted: The target; of operators that are not on its list nothing is told.

    Raises:
        ModelError: The graph has a cycle.
    """
    if not wanted.count:
        return ()
    work = Model.of(model).clone()  # of one that was rewritten the result
    walk = _Look(work, Facts(work), wanted)
    walk.once()
    return tuple(
        Beyond(operator, limit, place, tuple(name for name, _ in there), there[0][1])
        for (operator, limit, place), there in walk.found.items()
    )


class _Look(Walk):
    """Takes down what is beyond.

    Attributes:
        found: By operator, limit and its place: nodes, and what they are.
    """

    def __init__(self, model: Model, facts: Facts, wanted: Target) -> None:
        super().__init__(model, facts, [])
        self.wanted, self.operators = wanted, wanted.operators
        self.limits: dict[str, list[Prepared]] = {}  # by the operators that they are for
        for limit in map(Prepared, wanted.limits):
            root = limit.matcher.root
            for name in {full_name(home(root.domain, op), op) for op in root.operators}:
                self.limits.setdefault(name, []).append(limit)
        self.found: dict[tuple[str, str, str], list[tuple[str, str]]] = {}

    def once(self) -> None:
        super().once()
        for tensor in self.model.graph.inputs:
            self._values(INPUT, f"input `{tensor.name}`", [tensor])

    def _at(self, node: gs.Node, graph: gs.Graph) -> list[gs.Node] | None:
        operator = full_name(*operator_of(node))
        if operator not in self.operators:
            return None
        for limit in self.limits.get(operator, ()):
            rule = limit.rule
            if reason := self.firing.unmet(limit, node):
                self._take(operator, rule.why, str(rule.location), describe(node), reason)
        self._values(operator, describe(node), node.outputs)
        return None

    def _values(self, operator: str, label: str, values: Iterable[gs.Tensor]) -> None:
        types, axes = self.wanted.types, self.wanted.axes
        for tensor in values:
            fact = self.facts.of(tensor)
            if types and fact.dtype and (name := dtype_name(fact.dtype)) not in types:
                limit = f"of {' or '.join(sorted(types))}"
                self._take(operator, limit, "", label, f"`{tensor.name}` is {name}")
            if axes is not None and fact.rank is not None and fact.rank > axes:
                limit = f"{axes} axes at most"
                self._take(operator, limit, "", label, f"`{tensor.name}` has {fact.rank} axes")

    def _take(self, operator: str, limit: str, place: str, label: str, reason: str) -> None:
        there = self.found.setdefault((operator, limit, place), [])
        if (label, reason) not in there[-1:]:
            there.append((label, reason))
