"""Sizes at which the operators of a model fit together, by what its facts say of lengths.

An axis behind a view, a Transpose or a pool is a polynomial of the inputs' dims: what a weight, a
Squeeze or another operand wants of it is an equation, and these are solved by trying.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import onnx

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts.elementwise import BINARY
from surgeon.verify.growth import Shape, Step, beside, walk
from surgeon.verify.limits import Input
from surgeon.verify.sizes import OTHER, WANTED, dynamic_dims

_LARGEST = 2048  # sizes that are tried
_ATTEMPTS = 20_000  # assignments that are tried
_ANY = (37, 41)  # of dims that may be of any size
_VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
# Of two operands: the axes that have to be as long as one another.
_PAIRED: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("ConvTranspose", "BatchNormalization", "InstanceNormalization"), (1, 0)),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), (2, 2)),
    "MatMul": (-1, -2),
}


class _Equation(NamedTuple):
    """What two products of lengths have to be to one another.

    Attributes:
        left, right: The lengths.
        kind: `equal`; `stretched`: or one of them 1; `divided`: the right one divides the left.
    """

    left: Shape
    right: Shape
    kind: Literal["equal", "stretched", "divided"] = "equal"

    @property
    def always_holds(self) -> bool:
        """Whether it is proven at any sizes."""
        try:
            return self.kind == "equal" and dims.product(self.left) == dims.product(self.right)
        except dims.TooLarge:
            return False

    def holds(self, known: Mapping[Dim, int]) -> bool:
        left, right = (math.prod(known[dim] for dim in side) for side in (self.left, self.right))
        if self.kind == "divided":
            return right > 0 and left % right == 0
        return left == right or (self.kind == "stretched" and 1 in (left, right))


def fitting_sizes(model: onnx.ModelProto, inputs: Sequence[Input]) -> dict[str, list[int]]:
    """By dynamic dim, sizes at which everything fits, where not all do; {} where none is found.

    Of dims that no equation has alone one is sought that fits whatever the others are (the width
    of frames of any number), then one size for all of them (the sides of an image).
    """
    axes = dynamic_dims(inputs)
    system = _System(model, set(axes))
    found = {name: sizes for name in axes if (sizes := _few(system.fitting([name], {})))}
    known = {name: sizes[0] for name, sizes in found.items() if name in system.alone}
    together = [name for name in axes if name in system.shared and name not in known]
    # features stand behind what there may be any number of
    for name in sorted(together, key=lambda name: -axes[name]) if len(together) > 1 else ():
        others = (dict.fromkeys(together, size) | known for size in _ANY)
        fitting = [set(system.fitting([name], each)) for each in others]
        if sizes := _few(sorted(set.intersection(*fitting))):
            return {**found, name: sizes}
    if together and (sizes := _few(system.fitting(together, known))):
        found.update(dict.fromkeys(together, sizes))
    return found


def joint_sizes(model: onnx.ModelProto, inputs: Sequence[Input]) -> Iterator[dict[str, list[int]]]:
    """Sizes of all dims together at which everything fits, a few, each by dim the only one.

    A trace freezes views (`Reshape (x, [2, 4, 48])`), and what it wrote runs where batch, height
    and width are those of the trace, or others of as many elements.
    """
    axes = dynamic_dims(inputs)
    system = _System(model, set(axes))
    names = sorted(system.alone | system.shared, key=list(axes).index)
    for sizes in itertools.islice(system.together(names), WANTED):
        yield {name: [size] for name, size in sizes.items()}


class _System:
    """What operators want of lengths, each of which is at least 1.

    Args:
        model: Not changed.
        names: The dims of its inputs; what depends on other unknowns is left out.

    Attributes:
        alone: The dims of which equations speak that speak of no other.
        shared: Those of which equations of several speak.
    """

    def __init__(self, model: onnx.ModelProto, names: set[str]) -> None:
        lengths: set[Dim] = set()
        equations: set[_Equation] = set()
        for step in walk(model):
            equations.update(_wanted(step, names))
            lengths.update(dim for shape in step.made for dim in shape or ())
        self._lengths = {dim for dim in lengths if names >= dims.symbols(dim) != frozenset()}
        of = {e: _symbols((*e.left, *e.right)) for e in equations if not e.always_holds}
        self._equations = {each: own for each, own in of.items() if own and own <= names}
        every = self._equations.values()
        self.alone = {name for own in every if len(own) == 1 for name in own}
        self.shared = {name for own in every if len(own) > 1 for name in own}

    def together(self, names: Sequence[str]) -> Iterator[dict[str, int]]:
        """Sizes of these dims that fit, first those that stand in a view's own place."""
        choices = [self._choices(name) for name in names]
        left = _ATTEMPTS

        def further(known: dict[str, int]) -> Iterator[dict[str, int]]:
            nonlocal left
            if len(known) == len(names):
                yield known
                return
            place = len(known)
            for size in choices[place]:
                if (left := left - 1) < 0:
                    return
                each = {**known, names[place]: size}
                if self._may_fit(each):
                    yield from further(each)

        return further({}) if names else iter(())

    def _choices(self, name: str) -> list[int]:
        """Sizes that a dim may have by what numbers stand against lengths with it; 1 comes last."""
        own: list[int] = []
        rest: set[int] = set()
        for left, right, _ in (each for each, told in self._equations.items() if name in told):
            for one, other in ((left, right), (right, left)):
                numbers = [dim for dim in other if isinstance(dim, int)]
                beside_each = [*_aligned(one, other), *_aligned(one[::-1], other[::-1])]
                own += [n for dim, n in beside_each if dims.named(dim) == name]
                if len(numbers) == len(other) and (whole := math.prod(numbers)) > 0:
                    rest.update(n for n in range(2, min(whole, _LARGEST) + 1) if whole % n == 0)
        return list(dict.fromkeys([*own, *sorted(rest), 1]))

    def _may_fit(self, known: Mapping[str, int]) -> bool:
        """Whether what these sizes tell already contradicts nothing."""
        at = _Lengths(known)
        for each, told in self._equations.items():
            if told <= known.keys():
                if not each.holds(at):
                    return False
            elif each.kind == "equal":
                for one, other in ((each.left, each.right), (each.right, each.left)):
                    if not _symbols(one) <= known.keys():
                        continue
                    parts = [at[dim] for dim in other if dims.symbols(dim) <= known.keys()]
                    if (part := math.prod(parts)) < 1 or math.prod(at[dim] for dim in one) % part:
                        return False
        return all(at[dim] > 0 for dim in self._lengths if dims.symbols(dim) <= known.keys())

    def fitting(self, names: Sequence[str], known: Mapping[str, int]) -> list[int]:
        """The sizes of these dims, all alike, that fit in what speaks of no unknown ones."""
        told = {*names, *known}
        equations = [each for each, own in self._equations.items() if own <= told]
        lengths = [dim for dim in self._lengths if dims.symbols(dim) <= told]
        found = []
        for size in range(1, _LARGEST + 1):
            at = _Lengths({**known, **dict.fromkeys(names, size)})
            if all(each.holds(at) for each in equations) and all(at[dim] > 0 for dim in lengths):
                found.append(size)
        return found


def _aligned(one: Shape, other: Shape) -> Iterator[tuple[Dim, int]]:
    """Lengths with the numbers in their places, as far as a view may keep these."""
    most = len(one) if len(one) == len(other) else max(min(len(one), len(other)) - 1, 0)
    for here, there in zip(one[:most], other[:most], strict=True):
        if isinstance(there, int):
            yield here, there


def _symbols(shape: Shape) -> frozenset[str]:
    return frozenset[str]().union(*map(dims.symbols, shape))


class _Lengths(dict[Dim, int]):
    """Lengths at some sizes, each worked out when it is asked for; -1 where it is no number."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes

    def __missing__(self, dim: Dim) -> int:
        try:
            self[dim] = dims.evaluate(dim, self._sizes)
        except (ValueError, dims.TooLarge):
            self[dim] = -1
        return self[dim]


def _few(sizes: Sequence[int]) -> list[int]:
    """The usual ones first, then the smallest; none where all usual ones are among them."""
    usual = [size for size in OTHER if size in sizes]
    if len(usual) == len(OTHER):
        return []
    # at 1 what is stretched says little
    return list(dict.fromkeys([*usual, *(n for n in sizes if n > 1), *sizes]))[:WANTED]


def _wanted(step: Step, names: set[str]) -> Iterator[_Equation]:
    """What an operator wants of the lengths of its operands."""
    op, attributes, given, made = step
    first, second = (*given, None, None)[:2]
    result = made[0] if made else None
    if first is None:
        return
    if op in _VIEWS and result is not None:
        told = tuple(dim for dim in result if dims.symbols(dim) <= names)
        # a length of its own stands for a quotient that nothing shows to be whole
        yield _Equation(first, told, "equal" if len(told) == len(result) else "divided")
    elif op == "Concat":
        for here, there in beside(given, attributes.get("axis", 1)):
            yield _Equation((here,), (there,))
    elif second is not None and op in BINARY:
        for here, there in zip(reversed(first), reversed(second), strict=False):
            if here != there and 1 not in (here, there):
                yield _Equation((here,), (there,), "stretched")
    elif second is not None:
        yield from _of_weight(op, attributes, first, second)


def _of_weight(
    op: str, attributes: Mapping[str, Any], first: Shape, second: Shape
) -> Iterator[_Equation]:
    if op == "Conv" and len(first) > 1 and len(second) > 1:
        yield _Equation((first[1],), (second[1], attributes.get("group", 1)))
        return
    own, other = _PAIRED.get(op, (2, 2))
    if op == "Gemm":
        own, other = 1 - attributes.get("transA", 0), attributes.get("transB", 0)
    elif op not in _PAIRED:
        return
    if -len(first) <= own < len(first) and -len(second) <= other < len(second):
        yield _Equation((first[own],), (second[other],))
