"""Where a file shows that PyTorch's exporter wrote something else than the module computes.

The result does as the file all the same (decision 0032): what is found is told, with the recipe
that mends it as a change where somebody asks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

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
}
"""What is wrong with a place, by the recipe that puts it right."""

_WRITES = ("Scatter", "ScatterElements", "ScatterND")
_SIGNED = frozenset({TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64})
_FLOATS = frozenset({TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE})
_NEARLY = 1e-3  # the exporter writes 1 / (p + 1e-6)
_LARGEST = 1 << 20  # elements of a constant that may be zeros


def misexported(proto: onnx.ModelProto) -> dict[str, tuple[str, ...]]:
    """The places of each kind that a model has, by the recipe that mends it."""
    found = {
        "unfold-axes": misplaced_windows(proto),
        "lost-sums": lost_sums(proto),
        "floor-shifts": cut_off_shifts(proto),
        "absolute-distances": signed_distances(proto),
    }
    return {recipe: names for recipe, names in found.items() if names}


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


def misplaced_windows(proto: onnx.ModelProto) -> tuple[str, ...]:
    """Stacks of windows as PyTorch's exporter writes `unfold` along a dimension from behind.

    Of each window it turns the dimension last, and counts the axis of the stack as the dimension
    was counted, behind the new axis. A stack that somebody wrote may look like that too.
    """
    found: list[str] = []
    for graph in (proto.graph, *every_body(proto.graph.node)):
        stacks = [n for n in graph.node if n.op_type == "Concat" and _number(n, "axis") < 0]
        makers = _makers(graph) if stacks else {}
        found += (
            _given(n) for n in stacks if n.input and all(_is_window(n, i, makers) for i in n.input)
        )
    return tuple(found)


def lost_sums(proto: onnx.ModelProto) -> tuple[str, ...]:
    """Sums of a value and of what a Scatter without `reduction` writes into zeros.

    So the exporter writes sums at indices: `index_add` and `index_put` in every version and opset,
    `scatter_add` below opset 16. Somebody may have written the same where no index stands twice.
    """
    found: list[str] = []
    for graph in (proto.graph, *every_body(proto.graph.node)):
        if not any(node.op_type in _WRITES for node in graph.node):
            continue
        makers, known = _makers(graph), {each.name: each for each in graph.initializer}
        for node in graph.node:
            if node.op_type == "Add" and any(_is_unsummed(i, makers, known) for i in node.input):
                found.append(_given(node))
    return tuple(found)


def cut_off_shifts(proto: onnx.ModelProto) -> tuple[str, ...]:
    """Quotients of integers by a power of two that is computed in floats and cast.

    So the exporter writes a shift to the right of what is signed, which differs below 0.
    """
    found: list[str] = []
    for graph in (proto.graph, *every_body(proto.graph.node)):
        divisions = [node for node in graph.node if node.op_type == "Div"]
        makers = _makers(graph) if divisions else {}
        known = {each.name: each for each in graph.initializer} if divisions else {}
        found += (_given(n) for n in divisions if _is_shifted(_operand(n, 1), makers, known))
    return tuple(found)


def _is_shifted(
    name: str, makers: Mapping[str, onnx.NodeProto], known: Mapping[str, TensorProto]
) -> bool:
    cast = makers.get(name)
    if cast is None or cast.op_type != "Cast" or _number(cast, "to") not in _SIGNED:
        return False
    power = makers.get(_operand(cast, 0))
    if power is None or power.op_type != "Pow":
        return False
    return _number_of(_operand(power, 0), makers, known) == 2


def signed_distances(proto: onnx.ModelProto) -> tuple[str, ...]:
    """Roots of sums of powers of differences, of an order that is not even."""
    found: list[str] = []
    for graph in (proto.graph, *every_body(proto.graph.node)):
        roots = [node for node in graph.node if node.op_type == "Pow"]
        makers = _makers(graph) if roots else {}
        known = {each.name: each for each in graph.initializer} if roots else {}
        found += (_given(node) for node in roots if _is_signed_distance(node, makers, known))
    return tuple(found)


def _is_signed_distance(
    root: onnx.NodeProto,
    makers: Mapping[str, onnx.NodeProto],
    known: Mapping[str, TensorProto],
) -> bool:
    chain = [root]
    for operator in ("ReduceSum", "Pow", "Sub"):
        node = makers.get(_operand(chain[-1], 0))
        if node is None or node.op_type != operator:
            return False
        chain.append(node)
    order, inverse = (_number_of(_operand(node, 1), makers, known) for node in (chain[2], root))
    if order is None or inverse is None:
        return False
    return order % 2 != 0 and abs(order * inverse - 1) < _NEARLY


def _number_of(
    name: str, makers: Mapping[str, onnx.NodeProto], known: Mapping[str, TensorProto]
) -> float | None:
    """The float that a constant of one element is."""
    constant = _constant(name, makers, known)
    if constant is None or constant.data_type not in _FLOATS or _size(constant) != 1:
        return None
    array = _array(constant)
    return None if array is None else float(array.item())


def _is_unsummed(
    name: str, makers: Mapping[str, onnx.NodeProto], known: Mapping[str, TensorProto]
) -> bool:
    write = makers.get(name)
    if write is None or write.op_type not in _WRITES or len(write.input) < 3:
        return False
    if any(a.name == "reduction" and a.s not in (b"", b"none") for a in write.attribute):
        return False
    zeros, places = _operand(write, 0), _operand(write, 1)
    constant = places in known or (places in makers and makers[places].op_type == "Constant")
    return not constant and _is_zeros(zeros, makers, known)


def _is_zeros(
    name: str, makers: Mapping[str, onnx.NodeProto], known: Mapping[str, TensorProto]
) -> bool:
    node = makers.get(name)
    if node is not None and node.op_type == "ConstantOfShape":
        return all(_has_zeros_alone(each.t) for each in node.attribute if each.name == "value")
    constant = _constant(name, makers, known)
    return constant is not None and _has_zeros_alone(constant)


def _constant(
    name: str, makers: Mapping[str, onnx.NodeProto], known: Mapping[str, TensorProto]
) -> TensorProto | None:
    node = makers.get(name)
    if node is None:
        return known.get(name)
    values = [each.t for each in node.attribute if each.name == "value"]
    return values[0] if node.op_type == "Constant" and values else None


def _has_zeros_alone(tensor: TensorProto) -> bool:
    size = _size(tensor)
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


def _size(tensor: TensorProto) -> int:
    return math.prod(tensor.dims)


def _is_window(stack: onnx.NodeProto, part: str, makers: Mapping[str, onnx.NodeProto]) -> bool:
    """Whether a part of a stack is cut out along an axis and turned, and got the stack's axis."""
    chain: list[onnx.NodeProto] = []
    for operator in ("Unsqueeze", "Transpose", "Slice"):
        node = makers.get(part)
        if node is None or node.op_type != operator:
            return False
        chain.append(node)
        part = _operand(node, 0)
    perm = [int(n) for each in chain[1].attribute if each.name == "perm" for n in each.ints]
    axis = len(perm) + _number(stack, "axis")
    return perm == [*(n for n in range(len(perm)) if n != axis), axis]


def _makers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    return {name: node for node in graph.node for name in node.output if name}


def _operand(node: onnx.NodeProto, place: int) -> str:
    """The name of an operand; "" where a node of a broken file lacks it."""
    return node.input[place] if place < len(node.input) else ""


def _given(node: onnx.NodeProto) -> str:
    return node.output[0] if node.output else node.name


def _number(node: onnx.NodeProto, name: str) -> int:
    return next((int(each.i) for each in node.attribute if each.name == name), 0)
