"""How large the values of a model become at given sizes, and whether its parts fit there.

Both are asked before it is run there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import onnx

from surgeon import dims
from surgeon.dialect import normalise
from surgeon.dims import Dim
from surgeon.errors import SurgeonError
from surgeon.facts import Facts
from surgeon.facts.elementwise import BINARY
from surgeon.links import toposort
from surgeon.model import Model

Shape = tuple[Dim, ...]

_MOST_NODES = 5000  # inference takes its time too
_MODERATE = 1 << 25  # elements: a few such values take a gigabyte
_TIMES = 8  # what the largest value has at any sizes
_AXIS_BY_AXIS = BINARY | {"MatMul", "Slice"}  # a length is at most that of an operand there


class Step(NamedTuple):
    """An operator with its attributes, and the shapes that it is given and makes, where known."""

    op: str
    attributes: Mapping[str, Any]
    given: Sequence[Shape | None]
    made: Sequence[Shape | None]


class _Most(NamedTuple):
    """What a length is at most: as many as a shape has elements, by as many as others take."""

    shape: Shape
    others: Shape = ()

    def at(self, sizes: Mapping[str, int]) -> int:
        """The number at these sizes.

        Raises:
            KeyError, ValueError: A size is not among them.
        """
        count, others = (
            math.prod(dims.evaluate(dim, sizes) for dim in shape)
            for shape in (self.shape, self.others)
        )
        return count // max(1, others)


class Growth:
    """The largest value of a model, by sizes; what nothing is known of is not counted.

    A length that its operator alone knows (how many are not 0) is taken for the most that it may
    be, as many as what the operator is given has elements: of such lengths pairs are made. Of
    several that one Reshape brings in nothing is known but what they are together.

    Args:
        model: Not changed.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        steps = walk(model)
        shapes = {shape for step in steps for shape in step.made if shape}
        joined = [step for step in steps if step.op == "Concat"]
        self._joined = {two for s in joined for two in beside(s.given, s.attributes.get("axis", 1))}
        self._shapes = {s for s in shapes if not all(isinstance(dim, int) for dim in s)}
        fixed = (math.prod(dim for dim in s if isinstance(dim, int)) for s in shapes - self._shapes)
        self._fixed = max(fixed, default=0)
        self._dims = {dim for shape in self._shapes for dim in shape if not isinstance(dim, int)}
        self._open = _open_lengths(steps)
        self._least: int | None = None

    def is_moderate(self, sizes: Mapping[str, int]) -> bool:
        """Whether no value becomes so large at these sizes that others are better tried."""
        if self._least is None:  # of the weights' sizes alone
            self._least = self.elements(dict.fromkeys(sizes, 1))
        return self.elements(sizes) <= max(_MODERATE, _TIMES * self._least)

    def joins(self, sizes: Mapping[str, int]) -> bool:
        """Whether parts that are joined are as long as one another at these sizes, where known.

        Of a part without elements onnxruntime asks no length, and counts it where it leaves room
        for the whole, so that what stood in memory is in it.
        """
        for pair in self._joined:
            try:
                one, other = (dims.evaluate(dim, sizes) for dim in pair)
            except (KeyError, ValueError):
                continue
            if one != other:
                return False
        return True

    def elements(self, sizes: Mapping[str, int]) -> int:
        """How many elements the largest value has at these sizes; 0 where nothing is known."""
        known: dict[Dim, int] = {}
        sizes = self._with_open(sizes)
        for dim in self._dims:  # there are far fewer than shapes
            try:
                known[dim] = dims.evaluate(dim, sizes)
            except (KeyError, ValueError):
                continue
        most = self._fixed
        for shape in self._shapes:
            lengths = [dim if isinstance(dim, int) else known.get(dim) for dim in shape]
            if None not in lengths:
                most = max(most, math.prod(length for length in lengths if length is not None))
        return most

    def _with_open(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The sizes, and what lengths that are known at run time only are at most."""
        told = dict(sizes)
        for name, given in self._open.items():
            counts = []
            for most in given:
                try:
                    counts.append(most.at(told))
                except (KeyError, ValueError):
                    continue
            if counts:
                told.setdefault(name, max(counts))
        return told


def beside(parts: Sequence[Shape | None], axis: int) -> Iterator[tuple[Dim, Dim]]:
    """The lengths of joined parts that have to be equal and are not written alike, two by two.

    Args:
        parts: Their shapes, where they are known.
        axis: Along which they are joined.
    """
    first, *others = parts or [None]
    for other in others:
        if first is None or other is None or len(first) != len(other):
            continue
        for place, two in enumerate(zip(first, other, strict=True)):
            if place not in (axis, axis + len(first)) and two[0] != two[1]:
                yield two


def _open_lengths(steps: Sequence[Step]) -> dict[str, list[_Most]]:
    """By symbol that an operator brings in: what it is at most. In the order of the operators."""
    seen: set[str] = set()
    found: dict[str, list[_Most]] = {}
    for step in steps:
        given = [shape for shape in step.given if shape is not None]
        seen.update(name for shape in given for dim in shape for name in dims.symbols(dim))
        for shape in step.made:
            for place, dim in enumerate(reversed(shape or ()), 1):
                for name in dims.symbols(dim) - seen:
                    found[name] = _at_most(step, place, given)
        seen.update(found)
    return found


def _at_most(step: Step, place: int, given: Sequence[Shape]) -> list[_Most]:
    """What a length may be that an operator brings in, on an axis counted from the last."""
    if step.op in _AXIS_BY_AXIS:
        return [_Most((shape[-place],)) for shape in given if len(shape) >= place]
    made = step.made[0]
    if step.op == "Reshape" and made and step.given[0] is not None:
        # of several such lengths none knows the others, and none of them is known
        return [_Most(step.given[0], made[: len(made) - place] + made[len(made) - place + 1 :])]
    return [_Most(shape) for shape in given]


def walk(model: onnx.ModelProto) -> list[Step]:
    """The nodes of the main graph, in order.

    None of a model that is too large for it, or is none: whoever runs it says so.
    """
    if len(model.graph.node) > _MOST_NODES:
        return []
    try:
        return list(_steps(Model(model)))
    except (SurgeonError, ValueError):  # or a circle
        return []


def _steps(model: Model) -> Iterator[Step]:
    facts = Facts(model)
    facts.enter(model.graph)
    for node in toposort(model.graph):
        normalise(node, model.opset, facts, lambda tensor: False)
        facts.infer(node)
        given, made = ([facts.of(t).shape for t in each] for each in (node.inputs, node.outputs))
        yield Step(node.op, node.attrs, given, made)
