"""Where the batch lies in the values of a graph whose batch is fixed."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

from surgeon.anybatch.known import Known
from surgeon.dims import Dim
from surgeon.frozen import Frozen

_Option = TypeVar("_Option")


class Flow:
    """A graph with its batch on the way from the inputs to the outputs.

    A value either holds the same for every item, or has the batch as a factor of one of its axes:
    so many times (its lead), all items, each with what is left of the axis. The lead is one but for
    rows of all items that lie behind one another.

    Attributes:
        size: The batch that the file is for.
        opset: Of ONNX's own operators.
        places: The axis of the batch, by the value's name; others are the same for every item.
        leads: The leads that are not one.
        nodes: Of the graph that is made.
        behind: Those that come behind the node at hand.
        added: Constants that are new in it.
        taken: Where the batch may lie in several places: which was taken, and of how many.
        grown: Those that have an axis more than in the file, for the batch.
        joints: What a Concat joins, and along which axis, by its output.
        sums: The operator and the operands that are brought to one shape, by the output.
    """

    def __init__(self, known: Known, size: int, choices: Sequence[int]) -> None:
        self.size = size
        self.opset = known.opset
        self.places: dict[str, int] = {}
        self.leads: dict[str, int] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.behind: list[onnx.NodeProto] = []
        self.added: list[onnx.TensorProto] = []
        self.taken: list[tuple[int, int]] = []
        self.grown: set[str] = set()
        self.joints: dict[str, tuple[list[str], int]] = {}
        self.sums: dict[str, tuple[str, list[str]]] = {}
        self._choices = choices
        self._initializers = known.initializers
        self._known = known
        self._shapes = ChainMap[str, Sequence[Dim]]({}, known.shapes)
        self._names = set(known.names)

    def choose(self, options: Sequence[_Option]) -> _Option:
        """One of several, as the choices say; the first beyond them."""
        at = len(self.taken)
        index = self._choices[at] if at < len(self._choices) else 0
        self.taken.append((index, len(options)))
        return options[index]

    def other_choices(self) -> list[int] | None:
        """The next ones to try: the latest that may be another is; None where there is none."""
        for at in reversed(range(len(self.taken))):
            index, count = self.taken[at]
            if index + 1 < count:
                return [*(each for each, _ in self.taken[:at]), index + 1]
        return None

    def shape(self, name: str) -> Sequence[Dim]:
        """A value's sizes for the batch of the file.

        Raises:
            Frozen: Its rank is not known.
        """
        found = self._shapes.get(name)
        if found is None:
            raise Frozen(f"the rank of `{name}` is not known")
        return found

    def is_constant(self, name: str) -> bool:
        """Whether it is a constant whose value is at hand."""
        tensor = self._initializers.get(name)
        return tensor is not None and tensor.data_location != onnx.TensorProto.EXTERNAL

    def constant(self, name: str) -> np.ndarray:
        """A constant's value.

        Raises:
            Frozen: It is computed.
        """
        if not self.is_constant(name):
            raise Frozen(f"`{name}` is computed")
        return numpy_helper.to_array(self._initializers[name])

    def vector(self, name: str) -> Sequence[Dim]:
        """Sizes or places of which some may be computed of sizes that run time tells.

        Raises:
            Frozen: They are computed of something else.
        """
        found = self._known.vectors.get(name)
        return self.constant(name).ravel().tolist() if found is None else found

    def written(self, name: str, sizes: Sequence[Dim]) -> str:
        """A vector with other numbers; what run time tells stays where it is.

        Args:
            name: The vector.
            sizes: All of its elements, those that it computes as they are.
        """
        parts = [*self._runs(name, sizes, range(len(sizes)))]
        return parts[0] if len(parts) == 1 else self.op("Concat", parts, axis=0)

    def _runs(self, name: str, sizes: Sequence[Dim], places: range) -> Iterator[str]:
        """A part of a vector, in pieces: numbers, and what it computes."""
        for is_number, run in groupby(places, lambda at: isinstance(sizes[at], int)):
            numbers = [sizes[at] if is_number else at for at in run]
            part = self.add(f"{name}_part", np.array(numbers, np.int64))
            yield part if is_number else self.op("Gather", [name, part])

    def sizes_of_others(self, node: onnx.NodeProto) -> bool:
        """Whether nobody sees the batch's size in what a Shape gives."""
        (made,), axis = node.output, self.places[node.input[0]]
        rank = len(self.shape(node.input[0]))
        first, last = part_of(node, rank)
        if not first <= axis < last:
            return True
        if self.is_given(made):
            return False
        for reader in self._known.readers.get(made, []):
            if reader.op_type != "Gather" or made in reader.input[1:]:
                return False
            places = self.constant(reader.input[1]).ravel()
            if any(int(place) % (last - first) == axis - first for place in places):
                return False
        return True

    def is_given(self, name: str) -> bool:
        """Whether it is an output of the graph or of a body."""
        return name in self._known.given or name in self._known.captured

    def grow(self, name: str, shape: Sequence[Dim], place: int) -> None:
        """Have a value known that has an axis more than in the file, in front.

        Raises:
            Frozen: It is an output.
        """
        if self.is_given(name):
            raise Frozen(f"`{name}` has no axis for the batch")
        self.note(name, shape, place)
        self.grown.add(name)

    def note(self, name: str, shape: Sequence[Dim], place: int) -> str:
        """Have a value that was made in between known: its sizes, and where the batch is."""
        self._shapes[name] = shape
        self.places[name] = place
        return name

    def numbers(self, node: onnx.NodeProto, attribute: str, place: int) -> list[int] | None:
        """Integers that are an attribute, or an operand of newer opsets; None where neither is."""
        for each in node.attribute:
            if each.name == attribute:
                return list(each.ints)
        if len(node.input) > place and node.input[place]:
            return [int(number) for number in self.constant(node.input[place]).ravel()]
        return None

    def shared(self, names: Sequence[str]) -> None:
        """See that values hold the same for every item.

        Raises:
            Frozen: One holds the batch.
        """
        for name in names:
            if name in self.places:
                raise Frozen(f"`{name}` differs from item to item")

    def alike(self, names: Sequence[str]) -> None:
        """See that values hold as much of each item along the batch's axis.

        Raises:
            Frozen: They do not, or it is not known.
        """
        sizes = {self.shape(name)[self.places[name]] for name in names}
        if len(sizes) > 1:
            raise Frozen("its operands hold the batch in different multiples")

    def add(self, name: str, array: np.ndarray) -> str:
        """A constant of its own."""
        fresh = self.fresh(name)
        self.added.append(numpy_helper.from_array(array, fresh))
        return fresh

    def op(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """A node in front of the one at hand; gives its output."""
        fresh = self.fresh(f"{inputs[0]}_{kind}")
        self.nodes.append(helper.make_node(kind, list(inputs), [fresh], name=fresh, **attributes))
        return fresh

    def unsqueezed(self, name: str, axes: Sequence[int]) -> str:
        """The value with axes of one; they are counted in what comes of it."""
        if self.opset < 13:
            return self.op("Unsqueeze", [name], axes=list(axes))
        return self.op("Unsqueeze", [name, self.add(f"{name}_axes", np.array(axes, np.int64))])

    def sizes(
        self,
        sizes: Sequence[Dim],
        axis: int,
        like: str,
        like_axis: int,
        *,
        each: int = 1,
        of: str = "",
    ) -> str:
        """Sizes of which that of `axis` is what `like` has along its own.

        Args:
            sizes: The others.
            axis: The one that is computed.
            like: A value that holds the batch.
            like_axis: Where.
            each: How many make one.
            of: The vector in which those are that run time tells.
        """
        at = self.add(f"{like}_axis", np.array([like_axis], np.int64))
        length = self.op("Gather", [self.op("Shape", [like]), at])
        if each != 1:
            length = self.op("Div", [length, self.add(f"{like}_each", np.array([each], np.int64))])
        parts = [*self._runs(of or like, sizes, range(axis)), length]
        parts += self._runs(of or like, sizes, range(axis + 1, len(sizes)))
        return self.op("Concat", parts, axis=0)

    def length(self, name: str) -> object:
        """The first dimension of a value; None where it has none, or that is not known."""
        try:
            shape = self.shape(name)
        except Frozen:
            return None
        return shape[0] if shape else None

    def spread(
        self, name: str, axis: int, like: str, like_axis: int, *, broadcast: bool = False
    ) -> str:
        """A value that all items share, once for each of them, along an axis of one.

        An item may have several there, windows of an image say: all of them, for each item. A file
        for several items may have it once for each: one of these, for any number.

        Args:
            name: The value.
            axis: Where it is repeated.
            like: A value that holds the batch.
            like_axis: Where.
            broadcast: Whether one is enough, which the operator repeats by itself.

        Raises:
            Frozen: It has another number there, or others for other items, or its sizes are not
                known.
        """
        shape, several = self.shape(name), self.shape(like)[like_axis]
        held = shape[axis] if axis < len(shape) else "less"
        alone = held in (1, several) if self.size == 1 else held == several
        if not alone or like in self.leads:
            meets = broadcast and several == 1  # a mask of rows against columns, say
            rest = f", along which the one item of `{like}` is repeated: it has no axis for more"
            raise Frozen(f"`{name}` has {held} along the batch" + rest * meets)
        if not isinstance(shape[axis], int):
            raise Frozen(f"the sizes of `{name}` are not known")
        sizes = [size if isinstance(size, int) else 1 for size in shape]  # Expand keeps others
        if self.size != 1:
            name, sizes[axis] = self._of_one_item(name, axis, sizes[axis])
        if sizes[axis] != 1:
            times = self.sizes([1] * len(sizes), axis, like, like_axis, each=sizes[axis])
            return self.op("Tile", [name, times])
        if broadcast and self.size != 1:
            return name
        return self.op("Expand", [name, self.sizes(sizes, axis, like, like_axis)])

    def _of_one_item(self, name: str, axis: int, held: int) -> tuple[str, int]:
        """What one item has of a value that has it for each item of the file; how many these are.

        Raises:
            Frozen: It has something else for another item, or that is not known.
        """
        each, rest = divmod(held, self.size)
        refusal = Frozen(f"`{name}` has {held} along the batch")
        if rest:
            raise refusal
        if name not in self._initializers:
            if each != 1 or (found := self._copied(name, axis)) is None:
                raise refusal
            return found, 1
        first, *others = np.split(self.constant(name), self.size, axis)
        if any(other.tobytes() != first.tobytes() for other in others):
            raise Frozen(f"{refusal}, and not the same for each item")
        return self.add(f"{name}_item", np.ascontiguousarray(first)), each

    def _copied(self, name: str, axis: int) -> str | None:
        """What an Expand or a Tile repeats for each item, as large otherwise; None of others."""
        maker = next((node for node in self.nodes if name in node.output), None)
        if maker is None or maker.domain or maker.op_type not in ("Expand", "Tile"):
            return None
        shape, rank = self.shape(maker.input[0]), len(self.shape(name))
        numbers = self.constant(maker.input[1]).copy()
        own, at = axis - rank + len(shape), axis - rank + len(numbers)
        if at < 0 or (own >= 0 and shape[own] != 1):
            return None
        numbers[at] = 1
        times = self.add(f"{name}_once", numbers)
        return self.op(maker.op_type, [maker.input[0], times])

    def fresh(self, name: str) -> str:
        """A name that no value has."""
        fresh, count = name, 0
        while fresh in self._names:
            count += 1
            fresh = f"{name}_{count}"
        self._names.add(fresh)
        return fresh


def part_of(node: onnx.NodeProto, rank: int) -> tuple[int, int]:
    """The axes that a Shape tells: from one up to another."""
    first, last, _ = slice(attribute(node, "start", 0), attribute(node, "end", rank)).indices(rank)
    return first, last


def attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    """An integer attribute."""
    return next((each.i for each in node.attribute if each.name == name), default)


def counted(axis: int, rank: int) -> int:
    """An axis, counted from the front."""
    return axis + rank if axis < 0 else axis


def batched(flow: Flow, node: onnx.NodeProto, place: int = 0) -> int:
    """The axis of the batch of an operand that has to hold it, where the others are shared."""
    flow.shared([name for index, name in enumerate(node.input) if index != place])
    return flow.places[node.input[place]]
