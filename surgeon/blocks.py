"""How many channels stand in a block of `com.microsoft.nchwc`, as far as a file tells.

onnxruntime saves a CNN that it optimised in the layout of the machine it runs on: N, C / b, H, W, b
for blocks of b channels, and weights alike. b is 16 with AVX-512 and on ARM, and 8 with AVX; no
attribute says it. Channels that fill no block are padded with zeros, and how many they are padded
to often leaves one of the two.

Source: onnxruntime's `nchwc_transformer.cc`, `nchwc_ops.cc` and MLAS's `reorder.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.nested import bodies, every_node

DOMAIN = "com.microsoft.nchwc"
SMALL, LARGE = 8, 16
_KEY = "surgeon.channels_in_block"
_SURE = 5  # standard deviations between what weights look like in blocks of 8, and of 16
_FEW = 4  # taps at which lanes are empty, or Convs of one look, by chance or by design


def has_blocks(model: onnx.ModelProto) -> bool:
    """Whether a model holds such operators; every file of onnxruntime's imports the domain."""
    imported = any(entry.domain == DOMAIN for entry in model.opset_import)
    return imported and any(node.domain == DOMAIN for node in every_node(model.graph.node))


def note(model: onnx.ModelProto, block: int | None) -> None:
    """Let a part of a model tell what the whole does."""
    if block is not None:
        model.metadata_props.add(key=_KEY, value=str(block))


def told(model: onnx.ModelProto, folder: Path | None = None) -> int | None:
    """How many channels a block has; None where a file leaves both open, or contradicts itself.

    Args:
        model: A model.
        folder: Where its external data lie.
    """
    for entry in model.metadata_props:
        if entry.key == _KEY:
            return int(entry.value)
    if not has_blocks(model):
        return None
    weights = dict(_weights(model.graph))
    nodes = [*every_node(model.graph.node)]
    found = {*_by_sizes(nodes, weights)} or {*_by_padding(nodes, weights, folder)}
    return found.pop() if len(found) == 1 else None


def _weights(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        for body in bodies(node):
            yield from _weights(body)


def _is_conv(node: onnx.NodeProto) -> bool:
    return node.domain == DOMAIN and node.op_type == "Conv" and len(node.input) > 1


def _by_sizes(nodes: list[onnx.NodeProto], weights: dict[str, onnx.TensorProto]) -> Iterator[int]:
    """What only one of the two sizes leaves possible."""
    made = {name: node for node in nodes if node.domain == DOMAIN for name in node.output}
    for node in nodes:
        said = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if _is_conv(node) and node.input[1] in weights:
            yield from _of_weight(tuple(weights[node.input[1]].dims), said.get("group", 1))
        elif node.domain == DOMAIN and node.op_type == "ReorderOutput" and node.input:
            conv = made.get(node.input[0])
            weight = weights.get(conv.input[1]) if conv is not None and _is_conv(conv) else None
            if weight is not None and weight.dims[0] - said.get("channels", 0) >= SMALL:
                yield LARGE
        elif node.op_type == "Reshape" and len(node.input) > 1 and node.input[0] in made:
            target = weights.get(node.input[1])
            if target is not None and tuple(target.dims) == (5,):
                *_, last = onnx.numpy_helper.to_array(target).tolist()
                if last in (SMALL, LARGE):
                    yield last


def _of_weight(dims: tuple[int, ...], group: int) -> Iterator[int]:
    """What a weight says; its first axis is padded, and its second where the input has blocks."""
    if len(dims) != 4:
        return
    made, read = dims[:2]
    apart = group == made and read == 1  # each channel by itself
    if made % LARGE == SMALL or (not apart and group > 1 and (made // group) % LARGE == SMALL):
        yield SMALL
    if read % LARGE == SMALL and (read > LARGE or (group > 1 and not apart)):
        yield SMALL
    if group == 1 and SMALL < read < LARGE:  # fewer than a block, and read as they are
        yield LARGE


def _by_padding(
    nodes: list[onnx.NodeProto], weights: dict[str, onnx.TensorProto], folder: Path | None
) -> Iterator[int]:
    """Blocks of 16 of which 8 and more are empty, at every tap; of 8, every other tap would be."""
    for array, taps in _filters(nodes, weights, folder):
        last = array.reshape(-1, taps, LARGE)[-1]
        if taps < _FEW or last[:, SMALL:].any():
            continue
        if last[:, :SMALL].any(axis=1).sum() >= _FEW:
            yield LARGE
            return


def _filters(
    nodes: list[onnx.NodeProto], weights: dict[str, onnx.TensorProto], folder: Path | None
) -> Iterator[tuple[np.ndarray[Any, Any], int]]:
    """The weights that may be in blocks of either size, and at how many taps each is read."""
    for node in nodes:
        tensor = weights.get(node.input[1]) if _is_conv(node) else None
        if tensor is None or len(tensor.dims) != 4 or not all(tensor.dims):
            continue
        if tensor.dims[0] % LARGE:
            continue
        try:
            array = onnx.numpy_helper.to_array(tensor, str(folder or ""))
        except (OSError, ValueError, onnx.checker.ValidationError):
            continue  # whoever needs the weights says it
        yield array, int(np.prod(tensor.dims[1:]))


def likelier(model: onnx.ModelProto, folder: Path | None = None) -> int | None:
    """Which of the two sizes the weights look like; None where they look like neither.

    Filters of a trained network differ in how large they are. Read in blocks of the wrong size,
    each is half of one and half of another, and their logarithms vary half as much.
    """
    nodes, weights = [*every_node(model.graph.node)], dict(_weights(model.graph))
    score, variance, count = 0.0, 0.0, 0
    for array, taps in _filters(nodes, weights, folder):
        flat = array.astype(np.float64).ravel()
        sizes = [(flat.reshape(-1, taps, b) ** 2).sum(axis=1).ravel() for b in (SMALL, LARGE)]
        whole = flat.reshape(-1, SMALL).any(axis=1).all() and all(size.all() for size in sizes)
        if taps < LARGE or not whole:
            continue  # it is padded, or sparse
        small, large = (float(np.log(size).var()) for size in sizes)
        if small > 0 and large > 0:
            score += math.log(large / small)
            count += 1
            variance += 4 / array.shape[0]  # of the logarithm of a quotient of two variances
    if count < _FEW or abs(score) <= _SURE * math.sqrt(variance):
        return None
    return LARGE if score > 0 else SMALL
