"""Operators of ONNX's own domain in files of an opset that does not have them yet, or no longer.

Export scripts register them below their opset, and mean what ONNX came to mean by them. PyTorch
1.5 writes Upsample where there is none any more, and means what it was; PyTorch before it writes
Expand with -1 for a size that stays, which ONNX never had. Einsum that sums over its ellipsis is in
the formula of ONNX, and neither in onnxruntime nor in onnx's reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import onnx

from surgeon.standard import STANDARD, opset_of

DOMAIN = "early"  # where the witness has them
# By operator, the first opset that has it.
SINCE: Mapping[str, int] = {"Gelu": 20, "GridSample": 16, "HardSwish": 14, "Mish": 18, "Swish": 24}
# By operator, the first opset that has it no longer.
_UNTIL: Mapping[str, int] = {"Upsample": 10}
_MAKE_LISTS = frozenset({"SequenceConstruct", "SequenceEmpty", "SplitToSequence"})
_TAKE_SIZES = frozenset({"ConstantOfShape", "Expand", "Reshape", "Tile"})
_MOST_SIZES = 16  # of one value
_OF_SIZES = frozenset({"Cast", "Concat", "Identity", "Unsqueeze"})  # by which a size keeps its sign
_STOPS = {
    "Expand": "an `Expand` with -1 among its sizes",
    "Einsum": "an `Einsum` that sums over its ellipsis",
}


def holds_early(model: onnx.ModelProto) -> bool:
    """Whether an operator of ONNX's, however deep, is of a newer opset than the model, or gone."""
    return any(True for _ in _early(model))


def stops(model: onnx.ModelProto) -> str:
    """At what onnxruntime stops in a model that it loads; "" where at nothing."""
    found = (_STOPS[node.op_type] for node in _early(model) if node.op_type in _STOPS)
    return next(found, "")


def with_domain(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with these operators in a domain of their own; as it is, where there are none."""
    if not holds_early(model):
        return model
    marked = onnx.ModelProto()
    marked.CopyFrom(model)
    for node in _early(marked):
        node.domain = DOMAIN
    return marked


def with_sizes_together(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with one tensor of each list that an operator takes its sizes from.

    PyTorch's exporter hands on the list that a loop filled; itself where there is none.
    """
    lists = _lists(model.graph)
    takers = {i for i, node in enumerate(model.graph.node) if _takes_sizes_of(node, lists)}
    if not takers:
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    for index, node in enumerate(model.graph.node):
        copy = made.graph.node.add()
        copy.CopyFrom(node)
        if index in takers:
            sizes = f"{node.output[0]}/sizes of {node.input[-1]}"
            together = onnx.helper.make_node(
                "ConcatFromSequence", [node.input[-1]], [sizes], axis=0, new_axis=1
            )
            copy.CopyFrom(together)
            copy = made.graph.node.add()
            copy.CopyFrom(node)
            copy.input[-1] = sizes
    return made


def _takes_sizes_of(node: onnx.NodeProto, lists: set[str]) -> bool:
    return node.op_type in _TAKE_SIZES and any(name in lists for name in node.input[-1:])


def _lists(graph: onnx.GraphProto) -> set[str]:
    """The values of a graph that sequences' operators make, and Loops that are given one."""
    found: set[str] = set()
    for node in graph.node:
        if node.op_type in _MAKE_LISTS or (
            node.op_type in ("SequenceInsert", "SequenceErase")
            and any(name in found for name in node.input[:1])
        ):
            found.update(node.output)
        if node.op_type == "Loop":
            found.update(o for i, o in zip(node.input[2:], node.output, strict=False) if i in found)
    return found


def _early(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    opset = opset_of(model) or 0
    names = {name for name, since in SINCE.items() if opset < since}
    names |= {name for name, until in _UNTIL.items() if opset >= until}
    waiting = [model.graph] if opset else []
    negative: set[str] = set()  # sizes of which one is below 0
    while waiting:
        graph = waiting.pop()
        negative.update(t.name for t in graph.initializer if _is_negative(t))
        for node in graph.node:
            computed = node.op_type in _OF_SIZES and not negative.isdisjoint(node.input)
            if computed or (
                node.op_type == "Constant" and any(_is_negative(a.t) for a in node.attribute)
            ):
                negative.update(node.output)
            if node.domain in STANDARD and (
                node.op_type in names
                or (node.op_type == "Expand" and not negative.isdisjoint(node.input[1:]))
                or (node.op_type == "Einsum" and _sums_ellipsis(node))
            ):
                yield node
            for attribute in node.attribute:
                waiting += [attribute.g] if attribute.HasField("g") else attribute.graphs


def _sums_ellipsis(node: onnx.NodeProto) -> bool:
    """Whether it has an ellipsis that its output lacks."""
    equation = next((a.s for a in node.attribute if a.name == "equation"), b"")
    left, arrow, right = equation.partition(b"->")
    return bool(arrow) and b"..." in left and b"..." not in right


def _is_negative(tensor: onnx.TensorProto) -> bool:
    """Whether it has sizes of which one is below 0."""
    if tensor.data_type != onnx.TensorProto.INT64 or math.prod(tensor.dims) > _MOST_SIZES:
        return False
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    return bool((onnx.numpy_helper.to_array(tensor) < 0).any())
