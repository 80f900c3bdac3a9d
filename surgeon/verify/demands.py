"""Sizes that weights demand of the inputs they meet: channels, and lengths of rows.

Exporters that make every dim dynamic leave a network of images with any number of channels, of
which it runs with one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from surgeon.reference.arguments import constant_value, decode, is_foreign
from surgeon.verify.limits import Input, all_nodes

_THE_SAME = frozenset({"Cast", "Identity"})
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
    numbers: dict[str, Any] = {}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in all_nodes(model.graph):
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            value = constant_value(node)
            if isinstance(value, np.ndarray):
                tensors[node.output[0]] = value.shape
                if not value.ndim:
                    numbers[node.output[0]] = value.item()
        elif node.input:
            readers.setdefault(node.input[0], []).append(node)
    found: dict[str, set[int]] = {}
    for each in inputs:
        pending, seen = [each.name], {each.name}
        while pending:
            for node in readers.get(pending.pop(), ()):
                if node.op_type in _THE_SAME and node.output[0] not in seen:
                    seen.add(node.output[0])
                    pending.append(node.output[0])
                weight = tensors.get(node.input[1]) if len(node.input) > 1 else None
                for axis, size in _demands(node, weight, numbers) if weight else ():
                    dim = each.dims[axis] if -len(each.dims) <= axis < len(each.dims) else 0
                    if isinstance(dim, str) and size > 0:
                        found.setdefault(dim, set()).add(size)
    return {dim: list(sizes) for dim, sizes in found.items() if len(sizes) == 1}


def _demands(
    node: onnx.NodeProto, weight: tuple[int, ...], numbers: Mapping[str, Any]
) -> Iterator[tuple[int, int]]:
    """Axes of the first operand, and how long they have to be."""
    operator = decode(node).operator if is_foreign(node) else node.op_type
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
