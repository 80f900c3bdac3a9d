"""A walk over a model that folds, merges and mends nothing: what each node is, and where."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.facts import Facts
from surgeon.housekeeping import Known
from surgeon.model import Model
from surgeon.recipe import Rule
from surgeon.report import Notes
from surgeon.rewrite import Surgery
from surgeon.sweep import Sweep


class Walk(Sweep):
    """One walk over the graph, its bodies and functions, with what is known of every value.

    Args:
        model: The model, whose nodes take the plain form of their spelling, and no other.
        facts: What is known of it.
        rules: The rules that are tried, if any are.
    """

    def __init__(self, model: Model, facts: Facts, rules: list[Rule]) -> None:
        allow = frozenset({"contract", "approximate"})
        notes, surgery = Notes(every=True), Surgery(model, facts)
        super().__init__(model, facts, surgery, notes, rules, fold=None, allow=allow)

    def once(self) -> None:
        """The walk."""
        self._whole()

    def _visit(self, node: gs.Node, graph: gs.Graph, known: Known) -> list[gs.Node] | None:
        self._normalise(node)
        self.facts.infer(node)
        inner = {k: v for k, v in node.attrs.items() if isinstance(v, gs.Graph)}
        if inner:
            self._bodies(node, inner, known)
        elif (function := self.calls.function(node)) is not None:
            self._call(node, function)
        return self._at(node, graph)

    def _at(self, node: gs.Node, graph: gs.Graph) -> list[gs.Node] | None:
        """What takes the place of a node; None where it stays."""
        raise NotImplementedError
