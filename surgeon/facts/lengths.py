"""The lengths that nothing computes: those that inputs declare, and new ones, each by its name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import onnx

from surgeon import dims
from surgeon.declared import length_of
from surgeon.dims import Dim
from surgeon.facts import cuts, sequences
from surgeon.facts.fact import Fact
from surgeon.facts.fitting import Fitting
from surgeon.facts.kinds import known_type


class Lengths:
    """Gives every length a symbol, so that one name means one length.

    Attributes:
        assumptions: What stands for a declared name, by the name.
        scope: Stands before the names of new lengths: bodies and calls share names.
        made: How many lengths are new.
        broadcast: Of those that are what others are broadcast to, by name, the others.

    Args:
        fixed: Shapes the user gives for inputs, by name: numbers or names of dimensions.
        assumptions: Symbols the user's `--assume` replaces, by name.
    """

    def __init__(
        self, fixed: Mapping[str, tuple[int | str, ...]], assumptions: Mapping[str, Dim]
    ) -> None:
        self.assumptions = dict(assumptions)
        self.scope = ""
        self.made = 0
        self.broadcast: dict[str, tuple[Dim, ...]] = {}
        self._fixed = fixed
        self._names: set[str] = set()  # those of the declared

    def declared(self, name: str, type_: onnx.TypeProto | None) -> Fact:
        """What the declaration of a graph's input says."""
        if type_ is None or not type_.HasField("tensor_type"):
            return sequences.declared(type_)
        tensor = type_.tensor_type
        given = self._fixed.get(name)
        if given is not None:
            shape = tuple(self._symbol(d) if isinstance(d, str) else d for d in given)
            return Fact(known_type(tensor.elem_type), shape)
        if not tensor.HasField("shape"):
            return Fact(known_type(tensor.elem_type))
        found: list[Dim] = []
        for axis, dim in enumerate(tensor.shape.dim):
            length = length_of(dim)
            found.append(
                self._symbol(dim.dim_param or f"{name}.{axis}") if length is None else length
            )
        return Fact(known_type(tensor.elem_type), tuple(found))

    def new(
        self, name: str, axis: int | str, *, filled: bool = False, among: Sequence[Dim] = ()
    ) -> Dim:
        """A length of which nothing is known: a symbol named after the value and the axis.

        Args:
            name: The value's.
            axis: Which of it, or another word for the length.
            filled: Whether it is 0 in no model whose inputs have elements.
            among: Lengths that are broadcast to it, if any.
        """
        self.made += 1
        label = f"{self.scope}{name}.{axis}"
        while label in self._names:
            label += "'"
        self.broadcast.pop(label, None)  # what was made anew may be another's
        if among:
            self.broadcast[label] = tuple(among)
        kind = "counted" if axis == cuts.HELD else "symbol" if filled else "open"
        return dims.symbol(label, kind=kind)

    def spread(self, names: Collection[str]) -> dict[str, tuple[Dim, ...]]:
        """Those of the names that stand for what lengths are broadcast to, with these.

        One that is none of the names, and such a length itself, is there as those that make it.
        """
        return {name: self._among(name, names) for name in self.broadcast if name in names}

    def _among(self, name: str, names: Collection[str]) -> tuple[Dim, ...]:
        found: dict[Dim, None] = {}
        waiting, seen = [*self.broadcast[name]], {name}
        while waiting:
            dim = waiting.pop()
            inner = dims.named(dim)
            if inner is None or inner in names or inner not in self.broadcast:
                found[dim] = None
            elif inner not in seen:
                seen.add(inner)
                waiting.extend(self.broadcast[inner])
        return tuple(found)

    def heed(self, fitting: Fitting) -> tuple[str, ...]:
        """Assume what was learned of declared lengths; gives their names, most often none."""
        found = fitting.news(self._names, self.assumptions)
        self.assumptions.update(found)
        return tuple(found)

    def _symbol(self, name: str) -> Dim:
        self._names.add(name)
        return self.assumptions.get(name, dims.symbol(name))
