"""A node whose output shapes are asked for, and what elementwise operators make of shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts.fact import Fact

Shape = tuple[Dim, ...]
Function = Callable[["Question"], "Sequence[Shape | None] | None"]


class Fresh(Protocol):
    """What names the lengths that are not provable."""

    def __call__(self, axis: int, *, filled: bool = False, among: Shape = ()) -> Dim:
        """A new dimension for an axis of output 0, `filled` where no filled operand makes it 0.

        It is what the dimensions `among` which it is broadcast to one another, where there are any.
        """
        ...


@dataclass(slots=True)
class Question:
    """A node whose output shapes are asked for.

    Attributes:
        inputs: The operands' facts; None where one is omitted.
        attributes: As the node has them.
        outputs: How many outputs the node names.
        fresh: Gives a new dimension for an axis of output 0 that is not provable.
    """

    inputs: Sequence[Fact | None]
    attributes: Mapping[str, Any]
    outputs: int
    fresh: Fresh

    def shape(self, index: int) -> Shape | None:
        """The shape of an operand, where it is there and known."""
        fact = self.inputs[index] if index < len(self.inputs) else None
        return None if fact is None else fact.shape

    def value(self, index: int) -> list[Any] | None:
        """The elements of an operand as a flat list, where they are known."""
        fact = self.inputs[index] if index < len(self.inputs) else None
        return None if fact is None or fact.value is None else fact.value.reshape(-1).tolist()

    def axes(self, index: int) -> list[int] | None:
        """The elements of an operand, where each is a number: an axis is none that sizes decide."""
        found = self.value(index)
        whole = found is not None and all(isinstance(axis, int) for axis in found)
        return found if whole else None

    def has(self, index: int) -> bool:
        """Whether the operand is there."""
        return index < len(self.inputs) and self.inputs[index] is not None


def broadcast(shapes: Sequence[Shape], fresh: Fresh) -> Shape:
    """The shape of an elementwise operation on operands of these shapes."""
    rank = max(len(shape) for shape in shapes)
    out: list[Dim] = []
    for axis in range(rank):
        result: Dim | None = 1
        for shape in shapes:
            index = axis - rank + len(shape)
            if index < 0:
                continue
            dim = shape[index]
            if dim == 1 or result is None or dim == result:
                continue
            if result == 1:
                result = dim
            elif isinstance(dim, int):
                result = dim  # the other is 1 or equal to it, or the node has no value
            elif not isinstance(result, int):
                result = _of_two(result, dim)
        if result is None:
            own = [shape[axis - rank] for shape in shapes if rank - axis <= len(shape)]
            result = fresh(axis, filled=all(map(dims.is_filled, own)), among=tuple(own))
        out.append(result)
    return tuple(out)


def _of_two(first: Dim, second: Dim) -> Dim | None:
    """What two dimensions that may be known at run time only broadcast to; None: not provable."""
    if dims.equal(first, second) or dims.is_cut_off(second, first):
        return first
    return second if dims.is_cut_off(first, second) else None
