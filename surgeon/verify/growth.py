"""How large the values of a model become at given sizes: asked before it is run there."""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx

from surgeon import dims
from surgeon.dialect import normalise
from surgeon.dims import Dim
from surgeon.errors import SurgeonError
from surgeon.facts import Facts
from surgeon.links import toposort
from surgeon.model import Model

_MOST_NODES = 5000  # inference takes its time too
_MODERATE = 1 << 25  # elements
_TIMES = 8


class Growth:
    """The largest value of a model, by sizes; what nothing is known of is not counted.

    Args:
        model: Not changed.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._shapes: set[tuple[Dim, ...]] = set()
        if len(model.graph.node) <= _MOST_NODES:
            try:
                self._shapes = _shapes(Model(model))
            except (SurgeonError, ValueError):  # no model, or a circle: whoever runs it says so
                self._shapes = set()

    def is_moderate(self, sizes: Mapping[str, int]) -> bool:
        """Whether no value becomes so large at these sizes that others are better tried."""
        least = self.elements(dict.fromkeys(sizes, 1))  # of the weights' sizes alone
        return self.elements(sizes) <= max(_MODERATE, _TIMES * least)

    def elements(self, sizes: Mapping[str, int]) -> int:
        """How many elements the largest value has at these sizes; 0 where nothing is known."""
        most = 0
        for shape in self._shapes:
            try:
                most = max(most, math.prod(dims.evaluate(dim, sizes) for dim in shape))
            except (KeyError, ValueError):
                continue
        return most


def _shapes(model: Model) -> set[tuple[Dim, ...]]:
    facts = Facts(model)
    facts.enter(model.graph)
    found: set[tuple[Dim, ...]] = set()
    for node in toposort(model.graph):
        normalise(node, model.opset, facts, lambda tensor: False)
        facts.infer(node)
        found.update(fact.shape for t in node.outputs if (fact := facts.of(t)).shape)
    return found
