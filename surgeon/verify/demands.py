"""Sizes that weights demand of the inputs they meet: channels, and lengths of rows.

Exporters that make every dim dynamic leave a network of images with any number of channels, of
which it runs with one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from surgeon.nested import every_node
from surgeon.reference.arguments import constant_value, decode, is_foreign
from surgeon.standard import STANDARD
from surgeon.verify.limits import Input

Shape = tuple[int, ...]
THE_SAME = frozenset({"Cast", "Identity"})
_LISTS = frozenset({"SequenceConstruct", "ListConstruct"})
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
_GATES = 4  # of an LSTM, whose rows stand below each other in its weights
_STATES = 3  # the sequence and the two states of an LSTM: no other operands are asked
# Of the second operand: its axis that is as long as which axis of the first.
_PRODUCTS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("ConvTranspose", "BatchNormalization", "InstanceNormalization"), (0, 1)),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), (2, -1)),
    "MatMul": (-2, -1),
    "matmul": (-2, -1),
    "linear": (1, -1),
}


def demanded_sizes(model: onnx.ModelProto, inputs: Sequence[Input]) -> dict[str, list[int]]:
    """By dynamic dim, the only size that its readers' weights allow; functions are not looked into.

    A dim of which weights want different sizes is left out: what reads it may not all run.
    """
    tensors = {t.name: tuple(t.dims) for t in model.graph.initializer}
    numbers: dict[str, Any] = {
        t.name: onnx.numpy_helper.to_array(t).item()
        for t in model.graph.initializer
        if not t.dims and t.data_location != onnx.TensorProto.EXTERNAL
    }
    lists: dict[str, list[str]] = {}
    readers: dict[str, list[tuple[onnx.NodeProto, list[str], int]]] = {}
    for node in every_node(model.graph.node):
        if node.op_type in _LISTS:
            lists[node.output[0]] = list(node.input)
        elif node.op_type == "Constant" and node.domain in STANDARD:
            value = constant_value(node)
            if isinstance(value, np.ndarray):
                tensors[node.output[0]] = value.shape
                if not value.ndim:
                    numbers[node.output[0]] = value.item()
        else:
            operands = [each for name in node.input for each in lists.get(name, [name])]
            for place, name in enumerate(operands[:_STATES]):
                readers.setdefault(name, []).append((node, operands, place))
    found: dict[str, set[int]] = {}
    for each in inputs:
        pending, seen = [each.name], {each.name}
        while pending:
            for node, operands, place in readers.get(pending.pop(), ()):
                if node.op_type in THE_SAME and node.output[0] not in seen:
                    seen.add(node.output[0])
                    pending.append(node.output[0])
                shapes = [tensors.get(name) for name in operands]
                for axis, size in _demands(node, operands, shapes, place, numbers):
                    dim = each.dims[axis] if -len(each.dims) <= axis < len(each.dims) else 0
                    if isinstance(dim, str) and size > 0:
                        found.setdefault(dim, set()).add(size)
    return {dim: list(sizes) for dim, sizes in found.items() if len(sizes) == 1}


def _demands(
    node: onnx.NodeProto,
    operands: Sequence[str],
    shapes: Sequence[Shape | None],
    place: int,
    numbers: Mapping[str, Any],
) -> Iterator[tuple[int, int]]:
    """Axes of the operand in this place, and how long they have to be."""
    operator = decode(node).operator if is_foreign(node) else node.op_type
    if is_foreign(node) and operator in _RECURRENT:
        yield from _recurrent(operator, operands, shapes, place, numbers)
    elif operator == "bilinear" and len(shapes) > 2 and place < 2:
        weight = shapes[2] or ()
        if len(weight) == 3:
            yield -1, weight[1 + place]
    elif place == 0 and len(shapes) > 1 and shapes[1]:
        yield from _of_weight(operator, node, shapes[1], numbers)


def _recurrent(
    operator: str,
    operands: Sequence[str],
    shapes: Sequence[Shape | None],
    place: int,
    numbers: Mapping[str, Any],
) -> Iterator[tuple[int, int]]:
    """Of the sequence and of the states, by the weights behind these (torch.lstm's schema)."""
    states = 2 if operator == "lstm" else 1
    if len(shapes) <= 3 + states or place > states:
        return
    inside, before = shapes[1 + states : 3 + states]
    if inside is None or before is None or len(inside) != 2 or len(before) != 2:
        return  # a packed sequence has its batch sizes there
    if place == 0:
        yield -1, inside[1]
        return
    # the width of a state is that of its projection, where it has one
    yield -1, before[1] if place == 1 else before[0] // _GATES
    layers, both = (numbers.get(operands[at]) for at in (-5, -2))
    if isinstance(layers, int) and both is not None:
        yield 0, layers * (2 if both else 1)


def _of_weight(
    operator: str, node: onnx.NodeProto, weight: Shape, numbers: Mapping[str, Any]
) -> Iterator[tuple[int, int]]:
    attributes = {a.name: a.i for a in node.attribute}
    if operator == "Conv" and len(weight) > 2:
        yield 1, weight[1] * attributes.get("group", 1)
    elif operator in ("_convolution", "convolution") and len(node.input) > 8 and len(weight) > 2:
        transposed, groups = (numbers.get(node.input[place]) for place in (6, 8))
        if transposed is not None and isinstance(groups, int):
            yield 1, weight[0] if transposed else weight[1] * groups
    elif operator == "Gemm" and not attributes.get("transA") and len(weight) == 2:
        yield 1, weight[1 if attributes.get("transB") else 0]
    elif operator in _PRODUCTS:
        own, axis = _PRODUCTS[operator]
        if -len(weight) <= own < len(weight):
            yield axis, weight[own]
