"""How long inputs are wherever a model has a value: as long as the windows of its Convs need.

A Conv whose kernel is larger than its input with pads has no value, and onnxruntime refuses it.
So the dimension of an input that a Conv sees is no less than what lets the kernel in; lengths that
are computed from it by division are then those of the Conv, which rounds down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts.fact import Fact
from surgeon.facts.question import Shape

_MOST = 1 << 12  # lengths that are tried


class Fitting:
    """Learns the least lengths of named dimensions.

    Attributes:
        least: By the name of a dimension of an input.
        asked: Whether something was computed that depends on them.
    """

    def __init__(self) -> None:
        self.least: dict[str, int] = {}
        self.asked = False
        self._taken: set[str] = set()  # what stands in the axioms already
        self._seen: set[Dim] = set()

    def learn(self, shape: Shape, weight: Shape, attributes: Mapping[str, Any]) -> None:
        """Take in a Conv that runs whenever the model does."""
        for room in _rooms(shape, weight, attributes):
            if isinstance(room, int) or room in self._seen:
                continue
            self._seen.add(room)
            names = dims.symbols(room)
            if len(names) == 1 and not dims.not_negative(room):
                (name,) = names
                found = _first(room, name)
                if found is not None and found > self.least.get(name, 0):
                    self.least[name] = found

    def heed(self, inputs: Sequence[Fact | None], found: Sequence[Fact] | None) -> None:
        """Notice a quotient of lengths that may be negative, for all that is known."""
        dividend = inputs[0] if inputs else None
        if dividend is None or dividend.value is None or dividend.value.dtype != object:
            return
        value = found[0].value if found else None
        if value is None or any("max(" in str(dim) for dim in value.reshape(-1).tolist()):
            self.asked = True

    def news(self, declared: set[str], assumed: Mapping[str, Dim]) -> dict[str, Dim]:
        """What stands for dimensions of which more is known now, where anything depends on it.

        Args:
            declared: Names of dimensions, to which those of new symbols are added.
            assumed: What stands for some of them already.
        """
        if not self.asked:
            return {}
        found: dict[str, Dim] = {}
        for name in [n for n in self.least if n in declared and n not in assumed]:
            if name in self._taken:
                continue
            low = self.least[name]
            label = f"{name}-{low}"
            while label in declared:  # a dimension of this name is another one
                label += "'"
            declared.add(label)
            self._taken.add(name)
            found[name] = dims.symbol(label) + low
        return found


def _rooms(shape: Shape, weight: Shape, attributes: Mapping[str, Any]) -> list[Dim]:
    """How much longer each axis is than the kernel; empty where pads are not told as numbers."""
    rank = len(weight) - 2
    if rank < 1 or len(shape) != rank + 2:
        return []
    auto = attributes.get("auto_pad", "NOTSET")
    if auto not in ("NOTSET", "VALID", "", b"NOTSET", b"VALID", b""):
        return []
    pads = attributes.get("pads") or [0] * (2 * rank)
    if auto in ("VALID", b"VALID"):
        pads = [0] * (2 * rank)
    dilations = attributes.get("dilations") or [1] * rank
    kernel = attributes.get("kernel_shape") or weight[2:]
    return [
        shape[axis + 2]
        + int(pads[axis] + pads[axis + rank])
        - (kernel[axis] - 1) * int(dilations[axis])
        - 1
        for axis in range(rank)
    ]


def _first(room: Dim, name: str) -> int | None:
    """The least length at which there is room; at every one below it there is none."""
    for length in range(_MOST):
        if dims.evaluate(room, {name: length}) >= 0:
            return length
    return None
