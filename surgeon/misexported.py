"""Where a file shows that PyTorch's exporter wrote something else than the module computes.

The result does as the file all the same (decision 0032): what is found is told, with the recipe
that mends it as a change where somebody asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from surgeon.errors import few
from surgeon.nested import every_body

SAID: Mapping[str, str] = {
    "unfold-axes": (
        "stacks windows as PyTorch's exporter writes `unfold(-1, ...)`, with their axis misplaced"
    ),
    "lost-sums": (
        "adds what is written at indices as PyTorch's exporter writes `index_add`, `scatter_add` "
        "and `index_put` that accumulates: of what falls on one place the last alone counts"
    ),
    "floor-shifts": (
        "divides integers by a power of two as PyTorch's exporter writes `x >> k`, and rounds "
        "towards zero where a shift rounds down"
    ),
    "absolute-distances": (
        "sums powers of differences as PyTorch's exporter writes `cdist` and `pairwise_distance` "
        "of an order that is not even: without their absolute values"
    ),
    "circular-pads": (
        "puts the last places of a value but one in front of it, as PyTorch's exporter of 1.12 "
        "and 1.13 writes circular padding, the widths of whose sides it swaps"
    ),
}
"""What is wrong with a place, by the recipe that puts it right."""

_WRITES = ("Scatter", "ScatterElements", "ScatterND")
_SIGNED = frozenset({TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64})
_FLOATS = frozenset({TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE})
_NEARLY = 1e-3  # the exporter writes 1 / (p + 1e-6)
_LARGEST = 1 << 20  # elements of a constant that may be zeros


def misexported(proto: onnx.ModelProto) -> dict[str, tuple[str, ...]]:
    """The places of each kind that a model has, by the recipe that mends it."""
    found: dict[str, list[str]] = {recipe: [] for recipe in SAID}
    for graph in (proto.graph, *every_body(proto.graph.node)):
        here = _Graph(graph)
        for node in graph.node:
            for recipe, is_one in _KINDS.get(node.op_type, ()):
                if is_one(node, here):
                    found[recipe].append(node.output[0] if node.output else node.name)
    return {recipe: tuple(names) for recipe, names in found.items() if names}


def faults(proto: onnx.ModelProto) -> list[str]:
    """What is to be told of a file, a sentence for each kind."""
    try:
        found = misexported(proto)
    except UnicodeDecodeError:  # a name that is no text, with which the file is refused soon
        return []
    return [
        f"{few(names)} {SAID[recipe]}; the result does as the file: where PyTorch's is meant, put "
        f"`{recipe}` in front"
        for recipe, names in found.items()
    ]


class _Graph:
    """A graph, of which is looked up what few nodes ask for."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph

    @cached_property
    def _makers(self) -> dict[str, onnx.NodeProto]:
        return {name: node for node in self._graph.node for name in node.output if name}

    @cached_property
    def _known(self) -> dict[str, TensorProto]:
        return {each.name: each for each in self._graph.initializer}

    @cached_property
    def writes(self) -> bool:
        """Whether anything in it writes at indices."""
        return any(node.op_type in _WRITES for node in self._graph.node)

    def maker(self, node: onnx.NodeProto, place: int, operator: str = "") -> onnx.NodeProto | None:
        """What makes an operand, where that is such an operator; a broken file may lack it."""
        found = self._makers.get(node.input[place]) if place < len(node.input) else None
        return found if found is not None and operator in ("", found.op_type) else None

    def constant(self, node: onnx.NodeProto, place: int) -> TensorProto | None:
        """What an operand holds, where the file has it."""
        made = self.maker(node, place)
        if made is None:
            return self._known.get(node.input[place]) if place < len(node.input) else None
        values = [each.t for each in made.attribute if each.name == "value"]
        return values[0] if made.op_type == "Constant" and values else None

    def number(self, node: onnx.NodeProto, place: int) -> float | None:
        """The float that a constant operand of one element is."""
        constant = self.constant(node, place)
        if constant is None or constant.data_type not in _FLOATS or math.prod(constant.dims) != 1:
            return None
        array = _array(constant)
        return None if array is None else float(array.item())

    def zeros(self, node: onnx.NodeProto, place: int) -> bool:
        """Whether an operand is zeros, in the file or made of a shape."""
        made = self.maker(node, place, "ConstantOfShape")
        if made is not None:
            return all(_has_zeros_alone(each.t) for each in made.attribute if each.name == "value")
        constant = self.constant(node, place)
        return constant is not None and _has_zeros_alone(constant)


def _is_misplaced(stack: onnx.NodeProto, here: _Graph) -> bool:
    """Whether windows are stacked as PyTorch's exporter writes `unfold` along an axis from behind.

    Of each window it turns the dimension last, and counts the axis of the stack as the dimension
    was counted, behind the new axis. A stack that somebody wrote may look like that too; two halves
    of the last dimension, which has no turn, most often are one (of rotary embeddings).
    """
    axis = _number(stack, "axis")
    places = range(len(stack.input))
    least = 2 if axis == -1 else 0
    return (
        axis < 0 and len(places) > least and all(_is_window(stack, n, axis, here) for n in places)
    )


def _is_window(stack: onnx.NodeProto, place: int, axis: int, here: _Graph) -> bool:
    """Whether a part of a stack is cut out along an axis and turned, and got the stack's axis."""
    new = here.maker(stack, place, "Unsqueeze")
    turned = None if new is None else here.maker(new, 0)
    if turned is not None and turned.op_type == "Slice":
        stepless = len(turned.input) < 5  # as no slice that somebody wrote in Python is exported
        return axis == -1 and stepless and _axes(turned, here) == [-1]  # there is nothing to turn
    if turned is None or turned.op_type != "Transpose" or here.maker(turned, 0, "Slice") is None:
        return False
    perm = [int(n) for each in turned.attribute if each.name == "perm" for n in each.ints]
    return perm == [*(n for n in range(len(perm)) if n != len(perm) + axis), len(perm) + axis]


def _axes(cut: onnx.NodeProto, here: _Graph) -> list[int]:
    """The axes of a Slice as they are written: an attribute up to opset 9, an input behind it."""
    return _stated(cut, "axes", 3, here)


def _stated(cut: onnx.NodeProto, name: str, place: int, here: _Graph) -> list[int]:
    stated = [int(n) for each in cut.attribute if each.name == name for n in each.ints]
    return stated or _ints(cut, place, here)


def _ints(node: onnx.NodeProto, place: int, here: _Graph) -> list[int]:
    """The integers of a constant operand; none where nothing is known of it."""
    constant = here.constant(node, place)
    array = None if constant is None else _array(constant)
    return [] if array is None else [int(n) for n in array.reshape(-1)]


def _is_lost_sum(total: onnx.NodeProto, here: _Graph) -> bool:
    """Whether what a Scatter without `reduction` writes into zeros is added to something.

    So the exporter writes sums at indices: `index_add` and `index_put` in every version and opset,
    `scatter_add` below opset 16. Somebody may have written the same where no index stands twice.
    """
    if not here.writes:
        return False
    writes = [here.maker(total, place) for place in range(len(total.input))]
    return any(write is not None and _is_unsummed(write, here) for write in writes)


def _is_unsummed(write: onnx.NodeProto, here: _Graph) -> bool:
    if write.op_type not in _WRITES or len(write.input) < 3:
        return False
    if any(a.name == "reduction" and a.s not in (b"", b"none") for a in write.attribute):
        return False
    told = here.constant(write, 1) is not None or here.maker(write, 1, "Constant") is not None
    return not told and here.zeros(write, 0)


def _is_cut_off(quotient: onnx.NodeProto, here: _Graph) -> bool:
    """Whether integers are divided by a power of two that is computed in floats and cast.

    So the exporter writes a shift to the right of what is signed, which differs below 0.
    """
    cast = here.maker(quotient, 1, "Cast")
    if cast is None or _number(cast, "to") not in _SIGNED:
        return False
    # below opset 14 bytes are divided as int64
    power = here.maker(here.maker(cast, 0, "Cast") or cast, 0, "Pow")
    return power is not None and here.number(power, 0) == 2


def _is_signed_distance(root: onnx.NodeProto, here: _Graph) -> bool:
    """Whether it is the root of a sum of powers of differences, of an order that is not even."""
    total = here.maker(root, 0, "ReduceSum")
    power = None if total is None else here.maker(total, 0, "Pow")
    if power is None or here.maker(power, 0, "Sub") is None:
        return False
    order, inverse = here.number(power, 1), here.number(root, 1)
    if order is None or inverse is None:
        return False
    if math.isinf(order):
        return inverse == 0
    return order % 2 != 0 and abs(order * inverse - 1) < _NEARLY


def _is_pad_beside(joined: onnx.NodeProto, here: _Graph) -> bool:
    """Whether the last places of a value but one stand in front of it, along one axis.

    So the exporter of 1.12 and 1.13 writes a circular pad, and its widths the other way round.
    """
    front = here.maker(joined, 0, "Slice")
    if front is None or len(joined.input) < 2 or front.input[:1] != joined.input[1:2]:
        return False
    starts, ends = (_stated(front, name, n, here) for n, name in ((1, "starts"), (2, "ends")))
    axis = _number(joined, "axis")
    return ends == [-1] and len(starts) == 1 and starts[0] < -1 and _axes(front, here) == [axis]


# What each kind ends in: the operator, and the recipes that mend it.
_KINDS: Mapping[str, tuple[tuple[str, Callable[[onnx.NodeProto, _Graph], bool]], ...]] = {
    "Concat": (("unfold-axes", _is_misplaced), ("circular-pads", _is_pad_beside)),
    "Add": (("lost-sums", _is_lost_sum),),
    "Div": (("floor-shifts", _is_cut_off),),
    "Pow": (("absolute-distances", _is_signed_distance),),
}


def _has_zeros_alone(tensor: TensorProto) -> bool:
    size = math.prod(tensor.dims)
    if tensor.data_location == TensorProto.EXTERNAL or not 0 < size <= _LARGEST:
        return False
    array = None if tensor.data_type == TensorProto.STRING else _array(tensor)
    return array is not None and not array.any()


def _array(tensor: TensorProto) -> np.ndarray | None:
    """What a tensor holds; None where that is broken."""
    try:
        return numpy_helper.to_array(tensor)
    except Exception:  # onnx raises what it meets, and the file is refused with a reason elsewhere
        return None


def _number(node: onnx.NodeProto, name: str) -> int:
    return next((int(each.i) for each in node.attribute if each.name == name), 0)
