"""How plugins are called: their attributes, and those that are PyTorch's by another name.

What is an operator of PyTorch's is made as that one is, with attributes for its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments
from surgeon.builders.aten_math.work import Work
from surgeon.builders.aten_shape.call import Call
from surgeon.builders.bench import Bench
from surgeon.rewrite import Draft, Refused
from surgeon.schemas import overloads


def said(node: gs.Node) -> dict[str, Any]:
    """A plugin's attributes; a list or a tensor of one number is that number."""
    found: dict[str, Any] = {}
    for key, value in node.attrs.items():
        plain = value.reshape(-1).tolist() if isinstance(value, np.ndarray) else value
        single = isinstance(plain, (list, tuple)) and len(plain) == 1
        found[key] = plain[0] if single else plain
    return found


def of_rank(c: Bench, rank: int, *tensors: gs.Tensor) -> None:
    """Refuse what has another rank than the plugin takes."""
    for x in tensors:
        if c.rank(x) != rank:
            raise Refused(f"`{x.name}` has rank {c.rank(x)}, not {rank}")


def arguments(draft: Draft, operator: str, given: Mapping[str, Any]) -> Arguments:
    """Tensors, None, and numbers that become constants, by the operator's schema that has all."""
    schema = next(s for s in overloads(operator) if all(s.takes(name) for name in given))
    tensors = {
        name: value
        if value is None or isinstance(value, gs.Tensor)
        else draft.constant(np.asarray(value), name)
        for name, value in given.items()
    }
    return Arguments(schema, tensors, draft.facts)


class Called(Call):
    """A plugin as a call of PyTorch's operator.

    Args:
        draft: Where the nodes go.
        node: The plugin.
        operator: PyTorch's.
        given: Its arguments.
    """

    def __init__(
        self, draft: Draft, node: gs.Node, operator: str, given: Mapping[str, Any]
    ) -> None:
        Bench.__init__(self, draft)
        self.node, self.args = node, arguments(draft, operator, given)


class Done(Work):
    """The same, of the operators that `aten-math` makes; the plugin has the operator's name."""

    def __init__(self, draft: Draft, node: gs.Node, given: Mapping[str, Any]) -> None:
        super().__init__(draft, node)
        self.args = arguments(draft, str(node.op), given)
