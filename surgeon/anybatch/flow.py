"""Where the batch lies in the values of a graph whose batch is fixed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

from surgeon.declared import size_of
from surgeon.frozen import Frozen
from surgeon.inferring import NotInferred, inferred
from surgeon.nested import every_body, every_node
from surgeon.standard import opset_of
from surgeon.writer import FIRST_IR_WITH_FREE_INITIALIZERS

Size = int | str | None
_Option = TypeVar("_Option")
_SMALL = 1024  # numbers of a constant that may be sizes


class Known:
    """What is read of a graph once, however often the batch is followed through it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.opset = opset_of(model) or 1
        free = model.ir_version >= FIRST_IR_WITH_FREE_INITIALIZERS
        given = {value.name for value in model.graph.input if free}  # others may be fed for them
        tensors = (tensor for tensor in model.graph.initializer if tensor.name not in given)
        self.initializers = {tensor.name: tensor for tensor in tensors}
        self.shapes = _shapes(model)
        self.given = {value.name for value in model.graph.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in every_node(model.graph.node):
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.captured = {v.name for body in every_body(model.graph.node) for v in body.output}
        self.names = {name for node in model.graph.node for name in (*node.input, *node.output)}
        self.names.update(tensor.name for tensor in model.graph.initializer)
        self.names.update(value.name for value in model.graph.input)


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
        self.joints: dict[str, tuple[list[str], int]] = {}
        self.sums: dict[str, tuple[str, list[str]]] = {}
        self._choices = choices
        self._initializers = known.initializers
        self._known = known
        self._shapes = known.shapes
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

    def shape(self, name: str) -> Sequence[Size]:
        """A value's sizes for the batch of the file.

        Raises:
            Frozen: Its rank is not known.
        """
        found = self._shapes.get(name)
        if found is None:
            raise Frozen(f"the rank of `{name}` is not known")
        return found

    def constant(self, name: str) -> np.ndarray:
        """A constant's value.

        Raises:
            Frozen: It is computed.
        """
        tensor = self._initializers.get(name)
        if tensor is None or tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise Frozen(f"`{name}` is computed")
        return numpy_helper.to_array(tensor)

    def sizes_of_others(self, node: onnx.NodeProto) -> bool:
        """Whether nobody sees the batch's size in what a Shape gives."""
        (made,), axis = node.output, self.places[node.input[0]]
        rank = len(self.shape(node.input[0]))
        if node.attribute or made in self._known.given | self._known.captured:
            return False
        for reader in self._known.readers.get(made, []):
            if reader.op_type != "Gather" or made in reader.input[1:]:
                return False
            places = self.constant(reader.input[1]).ravel()
            if any(int(place) % rank == axis for place in places):
                return False
        return True

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
        if len(sizes) > 1 or not all(isinstance(size, int) for size in sizes):
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

    def sizes(
        self, sizes: Sequence[int], axis: int, like: str, like_axis: int, each: int = 1
    ) -> str:
        """Sizes of which that of `axis` is what `like` has along its own.

        Args:
            sizes: The others.
            axis: The one that is computed.
            like: A value that holds the batch.
            like_axis: Where.
            each: How many make one.
        """
        at = self.add(f"{like}_axis", np.array([like_axis], np.int64))
        length = self.op("Gather", [self.op("Shape", [like]), at])
        if each != 1:
            length = self.op("Div", [length, self.add(f"{like}_each", np.array([each], np.int64))])
        parts = [sizes[:axis], sizes[axis + 1 :]]
        fixed = [self.add(f"{like}_sizes", np.array(p, np.int64)) if p else "" for p in parts]
        return self.op("Concat", [name for name in (fixed[0], length, fixed[1]) if name], axis=0)

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
        if not all(isinstance(size, int) for size in shape):
            raise Frozen(f"the sizes of `{name}` are not known")
        sizes = [int(size or 0) for size in shape]
        if self.size != 1:
            name, sizes[axis] = self._of_one_item(name, axis, sizes[axis])
        if sizes[axis] != 1:
            times = self.sizes([1] * len(sizes), axis, like, like_axis, sizes[axis])
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


def _shapes(model: onnx.ModelProto) -> Mapping[str, Sequence[Size]]:
    """Of all values, as onnx infers them; weights are not looked at, nor what the file claims."""
    light = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    light.graph.name = "shapes"
    light.graph.node.extend(model.graph.node)
    for value in model.graph.output:
        kind = value.type.tensor_type.elem_type
        light.graph.output.append(helper.make_tensor_value_info(value.name, kind, None))
    given = {tensor.name for tensor in model.graph.initializer}
    light.graph.input.extend(v for v in model.graph.input if v.name not in given)
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= _SMALL:
            light.graph.initializer.append(tensor)
        else:
            value = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            light.graph.input.append(value)
    try:
        graph = inferred(light, data_prop=True).graph
    except NotInferred as error:
        raise Frozen(f"onnx infers no shapes: {str(error).splitlines()[0]}") from None
    found: dict[str, Sequence[Size]] = {
        tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer
    }
    for value in (*graph.value_info, *graph.input, *graph.output):
        if value.type.tensor_type.HasField("shape"):
            found[value.name] = tuple(map(size_of, value.type.tensor_type.shape.dim))
    return found


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
