"""One ATen node under the knife: its arguments, and the bench its replacement is made on.

Nothing here knows an operator; the modules beside it do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders.bench import LARGEST, NARROW, TYPE, Bench, Size
from surgeon.builders.scalar_types import SCALAR_TYPES, promote
from surgeon.rewrite import Draft, Refused

__all__ = ["LARGEST", "NARROW", "TYPE", "Call", "Size"]


class Call(Bench):
    """A node to lower.

    Attributes:
        node: The ATen node.
        args: Its arguments by name.
    """

    def __init__(self, draft: Draft, node: gs.Node) -> None:
        super().__init__(draft)
        self.node = node
        self.args: Arguments = bind(node, draft.facts)

    def tensor(self, name: str = "self") -> gs.Tensor:
        """A tensor argument."""
        return self.args.tensor(name)

    def value(self, name: str) -> Any:
        """An argument that must be a number, list, text or None."""
        return self.args.value(name)

    def has(self, name: str) -> bool:
        """Whether the argument is given."""
        return self.args.has(name)

    def is_empty_list(self, name: str) -> bool:
        """Whether it is a Constant without elements, which old exporters write as no tensor."""
        given = self.args.given.get(name)
        producer = given.inputs[0] if isinstance(given, gs.Tensor) and given.inputs else None
        if producer is None or producer.op != "Constant":
            return isinstance(given, list) and not given
        origin = getattr(producer, "origin", None)
        return origin is not None and all(
            a.type in (a.TENSORS, a.INTS) and not a.tensors and not a.ints for a in origin.attribute
        )

    def integer(self, name: str) -> int:
        """An integer that must be known."""
        return int(self.value(name))

    def counted(self, name: str) -> Size | int:
        """An integer that may be known at run time only."""
        given = self.args.given.get(name)
        return self.scalar(given) if isinstance(given, gs.Tensor) else self.integer(name)

    def listed(self, name: str) -> list[Size | int]:
        """A list of integers, each a number or known at run time; their count must be known."""
        found = self.args.given.get(name)
        if isinstance(found, list):
            return [self.scalar(t) for t in found]
        if found is None:
            default = self.value(name)
            return [int(v) for v in (default if isinstance(default, (list, tuple)) else [default])]
        fact = self.facts.of(found)
        value = fact.value if fact.value is not None else self.facts.array(found)
        if value is None and fact.shape == ():
            return [self.scalar(found)]
        if value is None and (fact.shape is None or not isinstance(fact.shape[0], int)):
            raise Refused(f"how many numbers `{name}` has is not known")
        if value is not None:
            elements = value.reshape(-1).tolist()
            return [
                int(v)
                if isinstance(v, (int, float))
                else Size(v, lambda i=i: self._element(found, i))  # type: ignore[misc]
                for i, v in enumerate(elements)
            ]
        assert fact.shape is not None
        count = fact.shape[0]
        assert isinstance(count, int)
        return [Size(None, lambda i=i: self._element(found, i)) for i in range(count)]  # type: ignore[misc]

    def _element(self, vector: gs.Tensor, index: int) -> gs.Tensor:
        cast = self.cast(vector, TYPE.INT64)
        if self.facts.of(vector).rank == 0:
            return self.unsqueeze(cast, [0])
        return self.op("Gather", cast, self.ints([index], "index"), axis=0)

    def wanted_dtype(self, default: int, name: str = "dtype") -> int:
        """The ONNX dtype that a ScalarType argument asks for."""
        number = self.value(name)
        if number is None:
            return default
        if int(number) not in SCALAR_TYPES:
            raise Refused(f"ONNX has no dtype for PyTorch's ScalarType {number}")
        return SCALAR_TYPES[int(number)]

    def promoted(self, tensors: Sequence[gs.Tensor]) -> list[gs.Tensor]:
        """All in one dtype, by PyTorch's promotion; as they are where a dtype is not known.

        Raises:
            Refused: There are none: PyTorch 1.2 loses the list that a scripted loop fills.
        """
        if not tensors:
            raise Refused("its list holds nothing")
        kinds = {self.facts.of(t).dtype for t in tensors}
        if len(kinds) <= 1 or 0 in kinds:
            return list(tensors)
        if not kinds <= set(SCALAR_TYPES.values()):
            raise Refused("its operands have dtypes that PyTorch does not mix")
        return [self.cast(t, promote(*kinds)) for t in tensors]
