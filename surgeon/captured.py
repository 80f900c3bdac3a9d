"""Values of the graph as the expressions of `where` and `let` see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import onnx
import onnx_graphsurgeon as gs

from surgeon.expressions import Unknown
from surgeon.facts import Facts
from surgeon.facts.fact import Array
from surgeon.standard import STANDARD


@dataclass(slots=True)
class CapturedValue:
    """A bound value as the expressions of `where` and `let` see it."""

    tensor: gs.Tensor
    facts: Facts
    is_output: Callable[[gs.Tensor], bool]
    views: tuple[gs.Node, ...] = ()

    def attribute(self, name: str) -> object:
        """One of the listed attributes, or Unknown with the reason."""
        if name == "consumers":
            return len(self.tensor.outputs) + self.is_output(self.tensor)
        fact = self.facts.of(self.tensor)
        if name == "is_constant":
            return isinstance(self.tensor, gs.Constant) or fact.concrete is not None
        if name == "shape":
            return Unknown("its shape is not known") if fact.shape is None else list(fact.shape)
        if name == "rank":
            return Unknown("its rank is not known") if fact.rank is None else fact.rank
        if name == "dtype":
            return dtype_name(fact.dtype) if fact.dtype else Unknown("its dtype is not known")
        if name == "value":
            value: Array | None = fact.value
            if value is None:
                value = self.facts.array(self.tensor)
            return Unknown("it is computed at run time") if value is None else value
        if name == "name":
            return self.tensor.name
        if name == "node":
            return self.tensor.inputs[0].name if self.tensor.inputs else ""
        if name == "maker":
            return _operator_name(self.tensor.inputs[0]) if self.tensor.inputs else ""
        if name == "attributes":
            return sorted(self.tensor.inputs[0].attrs) if self.tensor.inputs else []
        if name == "views":
            shapes = [self.facts.of(n.inputs[0]).shape for n in self.views]
            return [list(s) for s in shapes if s is not None]
        return Unknown(f"a value has no `{name}`")


def _operator_name(node: gs.Node) -> str:
    """An operator as patterns spell it."""
    return node.op if (node.domain or "") in STANDARD else f"{node.domain}.{node.op}"


@cache
def dtype_name(dtype: int) -> str:
    """An element type as expressions spell it; of a number of `onnx.TensorProto.DataType`."""
    name: str = onnx.TensorProto.DataType.Name(dtype).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)
