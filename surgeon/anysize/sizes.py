"""A graph on the way from fixed sizes to dynamic ones: what its lengths are of these."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.anysize.freed import Finer, Size
from surgeon.builders.lists import joined_of
from surgeon.dims import Dim
from surgeon.facts import Facts
from surgeon.fold import DEFAULT_LIMIT, Folder
from surgeon.frozen import Frozen
from surgeon.housekeeping import Housekeeper
from surgeon.model import Model
from surgeon.rewrite import Draft, Surgery

COUNTING = frozenset({"NonZero", "NonMaxSuppression", "Compress", "Unique"})
FIRST_OTHER = 10_007  # what stands for lengths that are dynamic anyway: large, and prime


class Sizes:
    """A graph whose sizes are symbols, one node after the other.

    Attributes:
        facts: What each value's shape is at any sizes.
        done: The nodes so far.
        pool: Where a length can be asked for at run time: a value and its axis.
        joined: Lengths that a Concat made of several, in the same way.
        merged: Lengths that a Reshape or Flatten made of several, in their order; None where two
            orders make the same.
        counts: How many elements of planes were summed up into a value's.
        whole: Pools whose window is the whole plane, by how they are described.
        plain: Those of them that stay a pool of that window.
        asked_before: Constants that the file computes of its sizes.
    """

    def __init__(self, model: Model, facts: Facts, sizes: Sequence[Size]) -> None:
        self.model, self.facts, self.sizes = model, facts, sizes
        self.surgery = Surgery(model, facts)
        self.keeper = Housekeeper(facts, self.surgery, Folder(facts, DEFAULT_LIMIT, []), Counter())
        self.done: list[gs.Node] = []
        self.pool: dict[Dim, tuple[gs.Tensor, int]] = {}
        self.merged: dict[Dim, tuple[Dim, ...] | None] = {}
        self.counts: dict[str, frozenset[int]] = {}
        self.joined: dict[Dim, tuple[Dim, ...] | None] = {}
        self.whole: list[str] = []
        self.pools: dict[tuple[str, int], int] = {}  # how many windows the first such had
        self.plain: frozenset[str] = frozenset()
        self.asked_before: frozenset[str] = frozenset()
        self.asked: dict[Dim, gs.Tensor] = {}  # lengths at run time, and lists of them
        self.vectors: dict[tuple[Dim, ...], gs.Tensor] = {}
        self.made: dict[Any, gs.Tensor] = {}  # what constants became, for other readers
        self._numbers = {size.symbol: size.number // size.step for size in sizes}
        self._names = frozenset(self._numbers)
        self._others = {
            name
            for tensor in model.graph.inputs
            for dim in facts.of(tensor).shape or ()
            for name in dims.symbols(dim)
        } - self._names
        self.raw = {tensor.name for tensor in model.graph.inputs}  # pixels, each by itself
        self.vague: set[str] = set()  # values that are made of sizes, in floats

    # ------------------------------------------------------------------ lengths

    def is_free(self, dim: Dim) -> bool:
        """Whether a length depends on the sizes."""
        return not isinstance(dim, int) and not self._names.isdisjoint(dims.symbols(dim))

    def number(self, dim: Dim) -> int:
        """A length at the sizes of the file; of lengths that are dynamic anyway, a prime."""
        for name in dims.symbols(dim):
            if name not in self._numbers:
                self._numbers[name] = _prime_from(FIRST_OTHER + 97 * len(self._numbers))
        try:
            return dims.evaluate(dim, self._numbers)
        except (KeyError, ValueError, AssertionError):
            raise Frozen("a length of it is not known") from None

    def shape(self, tensor: gs.Tensor) -> tuple[Dim, ...]:
        """A value's lengths.

        Raises:
            Frozen: Its rank is not known.
        """
        shape = self.facts.of(tensor).shape
        if shape is None:
            raise Frozen(f"the rank of `{tensor.name}` is not known")
        return shape

    def free_axes(self, tensor: gs.Tensor) -> list[int]:
        """The axes of a value whose lengths depend on the sizes; none where its rank is unknown."""
        shape = self.facts.of(tensor).shape or ()
        return [axis for axis, dim in enumerate(shape) if self.is_free(dim)]

    def is_raw(self, node: gs.Node) -> bool:
        """Whether a node reads pixels of inputs, and constants alone."""
        read = [t for t in node.inputs if t.name and not isinstance(t, gs.Constant)]
        return bool(read) and all(tensor.name in self.raw for tensor in read)

    def is_summed(self, node: gs.Node) -> bool:
        """Whether a node reads what was added up along the sizes."""
        return any(tensor.name in self.counts for tensor in node.inputs)

    def held(self, node: gs.Node) -> list[gs.Tensor]:
        """What a node reads whose lengths depend on the sizes."""
        return [tensor for tensor in node.inputs if tensor.name and self.free_axes(tensor)]

    def in_steps(self, dim: Dim, step: int) -> None:
        """See that a length leaves the same rest by a number at all sizes.

        Raises:
            Finer: It does where sizes are further apart.
        """
        if isinstance(dim % step, int):
            return
        assert not isinstance(dim, int), "a number has a number as its rest"
        for monomial, factor in dim.terms:
            for atom, power in monomial:
                if power == 1 and atom.is_symbol and atom.text in self._names and factor % step:
                    raise Finer(atom.text, step // math.gcd(factor, step))
        raise Frozen(f"it goes in steps of {step} along {dim}")

    # ------------------------------------------------------------------ values

    def array(self, tensor: gs.Tensor) -> np.ndarray[Any, Any] | None:
        """A constant's value; None where it is computed."""
        return self.facts.array(tensor) if tensor.name else None

    def numbers(self, node: gs.Node, place: int) -> list[Any] | None:
        """An operand's elements, numbers or lengths; None where it is left out.

        Raises:
            Frozen: It is computed of other things.
        """
        if place >= len(node.inputs) or not node.inputs[place].name:
            return None
        tensor = node.inputs[place]
        value = self.facts.of(tensor).value
        if value is None:
            value = self.array(tensor)
        if value is None:
            raise Frozen(f"`{tensor.name}` is computed of more than sizes")
        return list(value.reshape(-1).tolist())

    # ------------------------------------------------------------------ nodes

    def replace(self, node: gs.Node, draft: Draft, new: gs.Tensor) -> gs.Node:
        """Have a drafted node in a node's place, under its name; gives it."""
        (made,) = new.inputs
        if node.name:
            self.surgery.names.discard(made.name)
            made.name = made.origin.name = node.name
        self.done += draft.nodes
        self.surgery.hand_over(node, [(node.outputs[0], new)])
        for each in draft.nodes:
            self.facts.infer(each)
        return made

    def draft(self, node: gs.Node) -> Draft:
        """Nodes in front of, or in place of, the one at hand."""
        return self.surgery.draft(self.model.graph, node.outputs[0].name)

    def again(self, node: gs.Node, operands: Mapping[int, gs.Tensor], draft: Draft) -> None:
        """The node with other operands."""
        inputs = [tensor if tensor.name else None for tensor in node.inputs]
        for place, tensor in operands.items():
            inputs[place] = tensor
        new = draft.op(node.op, *inputs, **node.attrs)
        self.replace(node, draft, new)

    def computed(self, draft: Draft, dim: Dim) -> gs.Tensor:
        """A length, as a list of one, which a value has or which is made of such.

        Raises:
            Frozen: No value has it.
        """
        if isinstance(dim, int):
            return draft.constant([dim], "size")
        if dim not in self.asked:
            self.asked[dim] = self._asked(draft, dim)
        return self.asked[dim]

    def _asked(self, draft: Draft, dim: Dim) -> gs.Tensor:
        if dim in self.pool:
            tensor, axis = self.pool[dim]
            shape = draft.op("Shape", tensor)
            return draft.op("Gather", shape, draft.constant([axis], "axis"), axis=0)
        parts = self.merged.get(dim)
        if parts:
            product = self.computed(draft, parts[0])
            for part in parts[1:]:
                product = draft.op("Mul", product, self.computed(draft, part))
            return product
        for other in self.pool:
            quotient = dims.exact_quotient(dim, other)
            if isinstance(quotient, int) and quotient > 1:
                return draft.op(
                    "Mul", self.computed(draft, other), draft.constant([quotient], "times")
                )
        raise Frozen(f"no value has the length {dim}")

    def vector(self, draft: Draft, wanted: Sequence[Dim]) -> gs.Tensor:
        """Lengths as an operand: numbers where they are some."""
        if (known := self.vectors.get(tuple(wanted))) is not None:
            return known
        entries = [dim if isinstance(dim, int) else self.computed(draft, dim) for dim in wanted]
        made = joined_of(draft, entries)
        return self.vectors.setdefault(tuple(wanted), made)

    def see_known(self, node: gs.Node) -> None:
        """See that the lengths of what a node gives are known, where those of what it reads are.

        Raises:
            Frozen: They are not.
        """
        new = (
            {
                name
                for tensor in node.outputs
                for dim in self.facts.of(tensor).shape or ()
                for name in dims.symbols(dim)
            }
            - self._names
            - self._others
        )
        if node.op in COUNTING or not self.reads(node):
            self._others |= new
        elif new or any(t.name and self.facts.of(t).shape is None for t in node.outputs):
            raise Frozen("how large it is at other sizes is not known")

    def reads(self, node: gs.Node) -> bool:
        """Whether a node reads what depends on the sizes."""
        return any(map(self.hangs, node.inputs))

    def hangs(self, tensor: gs.Tensor) -> bool:
        """Whether a value depends on the sizes, by its shape or its elements."""
        return bool(tensor.name) and bool(self.free_axes(tensor) or self._is_made_of_sizes(tensor))

    def _is_made_of_sizes(self, tensor: gs.Tensor) -> bool:
        if isinstance(tensor, gs.Constant):
            return False
        fact = self.facts.of(tensor)
        if fact.value is None:
            return tensor.name in self.vague
        return any(self.is_free(each) for each in fact.value.reshape(-1).tolist())

    def note(self, node: gs.Node) -> None:
        """Remember where the lengths of what a node gives can be asked for."""
        if any(self._is_made_of_sizes(tensor) for tensor in node.inputs if tensor.name):
            self.vague.update(t.name for t in node.outputs if self.facts.of(t).value is None)
        for tensor in node.outputs:
            shape = self.facts.of(tensor).shape or ()
            for axis, dim in enumerate(shape):
                if self.is_free(dim):
                    self.pool.setdefault(dim, (tensor, axis))

    def remember(self, dim: Dim, parts: Sequence[Dim]) -> None:
        """What a length was made of."""
        whole = tuple(part for part in parts if part != 1)
        if len(whole) > 1:
            _enter(self.merged, dim, whole)

    def join(self, parts: Sequence[Dim]) -> None:
        """What a length was put together of."""
        whole = sum(parts[1:], parts[0])
        if self.is_free(whole):
            _enter(self.joined, whole, tuple(parts))

    def explained(self, number: int, axis: int, rank: int) -> Dim | None:
        """The one length of a value that is this number, of the size that its axis is of.

        Of a plane the last axes are those of the sizes, in their order.

        Raises:
            Frozen: There are several.
        """
        found = [
            dim for dim in self.pool if self.is_own(dim, axis, rank) and self.number(dim) == number
        ]
        if len(found) > 1:
            told = " or ".join(map(str, found))
            raise Frozen(f"{number} may be {told}, which differ at other sizes")
        return found[0] if found else None

    def is_own(self, dim: Any, axis: int, rank: int) -> bool:
        """Whether a length depends on the one size that an axis of a plane is of."""
        place = len(self.sizes) - rank + axis
        if isinstance(dim, int) or not 0 <= place < len(self.sizes):
            return False
        return dims.symbols(dim) == {self.sizes[place].symbol}

    def occurs(self, number: int) -> bool:
        """Whether a number may depend on the sizes: a length of some value is it."""
        return any(self.number(dim) == number for dim in self.pool)

    def is_near(self, number: int, dim: Dim) -> bool:
        """Whether a number is a length, or one more or less, of what an axis is made of."""
        lengths = {self.number(part) for part in (dim, *factors(self, dim)) if self.is_free(part)}
        return number > 2 and any(abs(number - length) <= 1 for length in lengths)

    def title(self, tensor: gs.Tensor) -> str:
        """How a reason calls an operand."""
        kind = "constant" if isinstance(tensor, gs.Constant) else "value"
        return f"the {kind} `{tensor.name}`"


def _enter(known: dict[Dim, tuple[Dim, ...] | None], dim: Dim, parts: tuple[Dim, ...]) -> None:
    if known.setdefault(dim, parts) != parts:
        known[dim] = None


def factors(sizes: Sizes, dim: Dim) -> Iterator[Dim]:
    """What a length was joined of, in the order of its elements.

    Raises:
        Frozen: There are two orders that it may be of.
    """
    if dim not in sizes.merged:
        yield dim
        return
    parts = sizes.merged[dim]
    if parts is None:
        raise Frozen(f"{dim} may be two things")
    for part in parts:
        yield from factors(sizes, part)


def bodies_read(node: gs.Node) -> Iterator[gs.Tensor]:
    """What the bodies of a node read."""
    for value in node.attrs.values():
        if isinstance(value, gs.Graph):
            yield from value.outputs
            for inner in value.nodes:
                yield from inner.inputs
                yield from bodies_read(inner)


def named(node: gs.Node) -> str:
    """How a refusal calls a node."""
    return f"{node.op} `{node.name or node.outputs[0].name}`"


def told(sizes: Sizes, dim: Dim) -> str:
    """A length in words: what it is of, and what that is in the file."""
    names = {size.symbol: size.name for size in sizes.sizes}
    of = [names[name] for name in names if name in dims.symbols(dim)]
    number = sizes.number(dim)
    if not of or isinstance(dim, int):
        return f"{number}"
    whole = any(dim == size.dim for size in sizes.sizes)
    return f"the {' and '.join(of)} ({number})" if whole else f"{number}, of the {' and '.join(of)}"


def _prime_from(number: int) -> int:
    """The first prime from a number on."""
    while any(number % each == 0 for each in range(2, math.isqrt(number) + 1)):
        number += 1
    return number
