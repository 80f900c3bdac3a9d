"""What a file calls the sizes of its inputs, found again by what is proven of other sizes.

Facts may know a size by less than its name: where `h % 2 == 0` is assumed, `h` is twice a symbol of
its own. So a name is looked up by the size that it stands for, not by the symbol that it was.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import onnx

from surgeon import dims
from surgeon.declared import tensor_of
from surgeon.dims import Dim
from surgeon.facts import Facts
from surgeon.model import Model

_LONGEST = 60  # characters of a formula that is written
_PLAIN = re.compile(r"[^\W\d][\w.]*")  # of other names a formula could read as one of others
_FORMULA = re.compile(r"//|[*+(]| - ")


def formula(size: Dim) -> int | str | None:
    """A size as text: a number, or the formula, or name, where that is short."""
    if isinstance(size, int):
        return size
    text = str(size)
    return text if len(text) <= _LONGEST else None


def is_formula(said: str) -> bool:
    """Whether the name of a size is one that tells how it is computed."""
    return _FORMULA.search(said) is not None


class _Steps(NamedTuple):
    """How facts know a named size: a number of steps, and a rest.

    Attributes:
        symbol: What they call the number.
        number: It.
        width: Of a step.
        over: What the steps make together, by the name.
    """

    symbol: str
    number: Dim
    width: int
    over: Dim

    def told(self, size: Dim) -> Dim:
        """A size with the name in the place of the symbol."""
        least = dims.substitute(size, {self.symbol: 0})
        slope = dims.substitute(size, {self.symbol: 1}) - least
        part = dims.exact_quotient(slope, self.width)
        if part is not None and least + slope * self.number == size:
            return least + part * self.over
        return dims.substitute(size, {self.symbol: dims.floor_divide(self.over, self.width)})


class SizeNames:
    """The names that inputs declare, each with the size that it stands for.

    Attributes:
        sizes: By name, what is proven of it.

    Args:
        sizes: The same.
        taken: Names that stand for what is not known.
    """

    def __init__(self, sizes: Mapping[str, Dim], taken: Collection[str] = ()) -> None:
        self.sizes = dict(sizes)
        self._taken = {*sizes, *taken}
        self._first: dict[Dim, str] = {}
        self._steps: dict[str, _Steps] = {}  # by the symbol that facts have for them
        for name, size in self.sizes.items():
            if str(size) == name:  # of names that are assumed to be equal, the one that stands
                self._first[size] = name
            else:
                self._first.setdefault(size, name)
                if steps := _steps(name, size, self.sizes):
                    self._steps.setdefault(steps.symbol, steps)
        self._symbols = {symbol for size in self.sizes.values() for symbol in dims.symbols(size)}

    def of(self, size: Dim, said: str = "") -> str | None:
        """The name of a size; None where it is no input's.

        Args:
            size: What is proven.
            said: What it was called, which it keeps where that is one of its names.
        """
        return said if self.sizes.get(said) == size else self._first.get(size)

    def formula(self, size: Dim) -> int | str | None:
        """How a size is computed from those that have names; None where it is not, or by too much.

        Equal sizes have equal formulas. No two others have one, nor is one the name of an input's
        size: it is None then.
        """
        if not self.tells(size):
            return None
        try:
            for steps in self._steps.values():
                size = steps.told(size)
        except dims.TooLarge:
            return None
        if not all(map(_PLAIN.fullmatch, dims.symbols(size))):
            return None
        text = formula(size)
        return None if text in self._taken else text

    def tells(self, size: Dim) -> bool:
        """Whether it hangs on nothing but sizes of inputs that have names."""
        return dims.symbols(size) <= self._symbols


def names_of(model: Model, facts: Facts, declared: Mapping[str, onnx.ValueInfoProto]) -> SizeNames:
    """The names of the sizes of a model's inputs.

    Args:
        model: As it is.
        facts: What is proven.
        declared: What its inputs declare by now, by name; of others what was read stands.
    """
    taken = {
        dim.dim_param
        for value in model.proto.graph.input
        for dim in (tensor_of(value.type) or onnx.TypeProto.Tensor()).shape.dim
    }
    return SizeNames(
        {
            dim.dim_param: size
            for value, shape in _inputs(model, facts)
            for dim, size in zip(
                declared.get(value.name, value).type.tensor_type.shape.dim, shape, strict=False
            )
            if dim.dim_param
        },
        taken,
    )


def renamed(model: Model, facts: Facts, shapes: Mapping[str, Any]) -> SizeNames:
    """The names that the user gives to sizes that the file calls otherwise, or not at all.

    Args:
        model: As it was read.
        facts: What is proven.
        shapes: What the user says, by input name: numbers, or names.
    """
    return SizeNames(
        {
            told: size
            for value, shape in _inputs(model, facts)
            for dim, told, size in zip(
                value.type.tensor_type.shape.dim, shapes.get(value.name, ()), shape, strict=False
            )
            if isinstance(told, str) and told != dim.dim_param
        }
    )


def _steps(name: str, size: Dim, names: Collection[str]) -> _Steps | None:
    """How facts know the size of a name; None where they know it by a name."""
    symbols = dims.symbols(size)
    if len(symbols) != 1 or symbols.intersection(names):
        return None
    (symbol,) = symbols
    rest = dims.evaluate(size, {symbol: 0})
    width = dims.evaluate(size, {symbol: 1}) - rest
    number = dims.exact_quotient(size - rest, width)
    return None if number is None else _Steps(symbol, number, width, dims.symbol(name) - rest)


def _inputs(model: Model, facts: Facts) -> Iterator[tuple[onnx.ValueInfoProto, tuple[Dim, ...]]]:
    """The inputs as they were read, each with its proven shape."""
    tensors = {tensor.name: tensor for tensor in model.graph.inputs}
    for value in model.proto.graph.input:
        if value.name in tensors:
            yield value, facts.of(tensors[value.name]).shape or ()
