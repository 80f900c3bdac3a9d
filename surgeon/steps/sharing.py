"""Weights that stand in a file twice: one of equal ones, and one of a weight and its transpose.

Exporters write a weight once for each of its uses: the embedding of words, and the layer that
scores them by the same table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import onnx

from surgeon.external import values_of
from surgeon.nested import every_body, every_node
from surgeon.stored import bytes_of

STEP = "share-weights"
_SMALLEST = 1 << 10  # bytes of a weight that is looked at
_SMALLEST_TURNED = 1 << 16  # the same of a transpose, which takes a node


class Twins(NamedTuple):
    """Weights that need not stand in a file.

    Attributes:
        equal: By name, the one that says the same.
        turned: By name, the one of which it is the transpose.
        size: What they take, in bytes.
    """

    equal: Mapping[str, str]
    turned: Mapping[str, str]
    size: int

    def __str__(self) -> str:
        count = len(self.equal) + len(self.turned)
        named = "1 weight says" if count == 1 else f"{count} weights say"
        turned = f", {len(self.turned)} turned" if self.turned else ""
        return f"{named} what another one does{turned}, and went: {self.size:,} bytes"


def twins_of(proto: onnx.ModelProto, folder: Path | None = None) -> Twins | None:
    """The weights that say what another one does; None where there is none.

    Args:
        proto: The model.
        folder: Where its external data lie, which are read.

    Raises:
        ModelError: They cannot be.
    """
    equal: dict[str, str] = {}
    size, single = 0, []
    for group in _alike(_weights(proto.graph)):
        first: dict[bytes, str] = {}
        for tensor in group:
            known = first.setdefault(_digest(tensor, folder), tensor.name)
            if known == tensor.name:
                single.append(tensor)
            else:
                equal[tensor.name] = known
                size += bytes_of(tensor)
    turned: dict[str, str] = {}
    for tensor, one in _transposes(single, folder):
        turned[tensor.name] = one
        size += bytes_of(tensor)
    return Twins(equal, turned, size) if equal or turned else None


def share_weights(proto: onnx.ModelProto, found: Twins) -> onnx.ModelProto:
    """The model with each of these weights once."""
    shared = onnx.ModelProto()
    shared.CopyFrom(proto)
    graph = shared.graph
    for node in every_node(graph.node):
        for place, name in enumerate(node.input):
            if name in found.equal:
                node.input[place] = found.equal[name]
    _drop(graph.initializer, found.equal.keys() | found.turned.keys())
    _drop(graph.value_info, found.equal.keys())
    for name, one in found.turned.items():
        label = f"{name}/Transpose"
        made = onnx.helper.make_node("Transpose", [one], [name], name=label, perm=[1, 0])
        graph.node.insert(0, made)
    return shared


def _drop(field: Any, names: Collection[str]) -> None:
    for place in reversed(range(len(field))):
        if field[place].name in names:
            del field[place]


def _weights(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Those whose names are nobody's but the graph's own."""
    taken = {value.name for value in (*graph.input, *graph.output)}
    for note in graph.quantization_annotation:
        taken |= {note.tensor_name, *(entry.value for entry in note.quant_parameter_tensor_names)}
    for body in every_body(graph.node):
        taken |= {each.name for each in (*body.input, *body.output, *body.initializer)}
        taken |= {name for node in body.node for name in node.output}
    for tensor in graph.initializer:
        is_text = tensor.data_type == onnx.TensorProto.STRING
        if tensor.name not in taken and not is_text and bytes_of(tensor) >= _SMALLEST:
            yield tensor


def _alike(weights: Iterator[onnx.TensorProto]) -> list[list[onnx.TensorProto]]:
    """Weights by element type and shape."""
    groups: dict[tuple[int, ...], list[onnx.TensorProto]] = {}
    for tensor in weights:
        groups.setdefault((tensor.data_type, *tensor.dims), []).append(tensor)
    return list(groups.values())


def _transposes(
    weights: list[onnx.TensorProto], folder: Path | None
) -> Iterator[tuple[onnx.TensorProto, str]]:
    """Matrices that an earlier one's transpose equals, and that one."""
    matrices = [t for t in weights if len(t.dims) == 2 and bytes_of(t) >= _SMALLEST_TURNED]
    shapes = {(t.data_type, *t.dims) for t in matrices}
    known: dict[tuple[int, int, int, bytes], str] = {}
    for tensor in matrices:
        rows, columns = tensor.dims
        if (tensor.data_type, columns, rows) not in shapes or rows == 1 or columns == 1:
            continue
        one = known.get((tensor.data_type, rows, columns, _digest(tensor, folder)))
        if one is not None:
            yield tensor, one
            continue
        turned = _digest(tensor, folder, turned=True)
        known.setdefault((tensor.data_type, columns, rows, turned), tensor.name)


def _digest(tensor: onnx.TensorProto, folder: Path | None, *, turned: bool = False) -> bytes:
    """What stands for a tensor's values: equal ones, and no others, have the same."""
    array = values_of(tensor, folder)
    return hashlib.blake2b((array.T if turned else array).tobytes(), digest_size=32).digest()
