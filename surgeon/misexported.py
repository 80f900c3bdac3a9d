"""Where a file shows that PyTorch's exporter wrote something else than the module computes.

The result does as the file all the same (decision 0032): what is found is told, with the recipe
that mends it as a change where somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import numpy_helper

from surgeon.errors import few
from surgeon.nested import every_body

_MISPLACED = (
    "{} stacks windows as PyTorch's exporter writes `unfold(-1, ...)`, with their axis misplaced: "
    "the result does as the file; if `unfold` is meant, put `unfold-axes` in front"
)
_UNSUMMED = (
    "{} adds what is written at indices, as PyTorch's exporter writes `index_add`, `scatter_add` "
    "and `index_put` that accumulates, so that of what falls on one place the last alone counts: "
    "the result does as the file; if a sum is meant, put `lost-sums` in front"
)
_WRITES = ("Scatter", "ScatterElements", "ScatterND")
_LARGEST = 1 << 20  # elements of a constant that may be zeros


def faults(proto: onnx.ModelProto) -> list[str]:
    """What is to be told of a file, a sentence for each kind."""
    found = ((_MISPLACED, misplaced_windows(proto)), (_UNSUMMED, lost_sums(proto)))
    return [text.format(few(names)) for text, names in found if names]


def misplaced_windows(proto: onnx.ModelProto) -> tuple[str, ...]:
    """Stacks of windows as PyTorch's exporter writes `unfold` along a dimension from behind.

    Of each window it turns the dimension last, and counts the axis of the stack as the dimension
    was counted, behind the new axis. A stack that somebody wrote may look like that too.
    """
    found: list[str] = []
    for graph in (proto.graph, *every_body(proto.graph.node)):
        stacks = [n for n in graph.node if n.op_type == "Concat" and _number(n, "axis") < 0]
        makers = _makers(graph) if stacks else {}
        found += (n.output[0] for n in stacks if all(_is_window(n, i, makers) for i in n.input))
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
                found.append(node.output[0])
    return tuple(found)


def _is_unsummed(
    name: str, makers: Mapping[str, onnx.NodeProto], known: Mapping[str, onnx.TensorProto]
) -> bool:
    write = makers.get(name)
    if write is None or write.op_type not in _WRITES or len(write.input) < 3:
        return False
    if any(a.name == "reduction" and a.s not in (b"", b"none") for a in write.attribute):
        return False
    zeros, places = write.input[:2]
    constant = places in known or (places in makers and makers[places].op_type == "Constant")
    return not constant and _is_zeros(zeros, makers, known)


def _is_zeros(
    name: str, makers: Mapping[str, onnx.NodeProto], known: Mapping[str, onnx.TensorProto]
) -> bool:
    node = makers.get(name)
    if node is None:
        return name in known and _has_zeros_alone(known[name])
    values = [each.t for each in node.attribute if each.name == "value"]
    if node.op_type == "ConstantOfShape":
        return all(map(_has_zeros_alone, values))
    return node.op_type == "Constant" and bool(values) and _has_zeros_alone(values[0])


def _has_zeros_alone(tensor: onnx.TensorProto) -> bool:
    size = 1
    for length in tensor.dims:
        size *= length
    if tensor.data_location == onnx.TensorProto.EXTERNAL or not 0 < size <= _LARGEST:
        return False
    if tensor.data_type == onnx.TensorProto.STRING:
        return False
    return not numpy_helper.to_array(tensor).any()


def _is_window(stack: onnx.NodeProto, part: str, makers: Mapping[str, onnx.NodeProto]) -> bool:
    """Whether a part of a stack is cut out along an axis and turned, and got the stack's axis."""
    chain: list[onnx.NodeProto] = []
    for operator in ("Unsqueeze", "Transpose", "Slice"):
        node = makers.get(part)
        if node is None or node.op_type != operator:
            return False
        chain.append(node)
        part = node.input[0]
    perm = [int(n) for each in chain[1].attribute if each.name == "perm" for n in each.ints]
    axis = len(perm) + _number(stack, "axis")
    return perm == [*(n for n in range(len(perm)) if n != axis), axis]


def _makers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    return {name: node for node in graph.node for name in node.output}


def _number(node: onnx.NodeProto, name: str) -> int:
    return next((int(each.i) for each in node.attribute if each.name == name), 0)
