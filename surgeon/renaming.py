"""Calls values, nodes and sizes of a graph otherwise, in the bodies inside it too."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

import onnx

from surgeon.nested import every_body

_NONE: Mapping[str, str] = MappingProxyType({})


def rename(
    top: onnx.GraphProto,
    values: Mapping[str, str] = _NONE,
    nodes: Mapping[str, str] = _NONE,
    sizes: Mapping[str, str] = _NONE,
) -> None:
    """Give new names in place of old ones, wherever these stand.

    Args:
        top: Is changed.
        values: Names of values: inputs, outputs, initializers, and what nodes make and read.
        nodes: Names of nodes.
        sizes: Names of dimensions.
    """
    for graph in (top, *every_body(top.node)):
        for node in graph.node:
            node.input[:] = [values.get(name, name) for name in node.input]
            node.output[:] = [values.get(name, name) for name in node.output]
            if node.name in nodes:
                node.name = nodes[node.name]
        for value in (*graph.input, *graph.output, *graph.value_info):
            value.name = values.get(value.name, value.name)
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_param = sizes[dim.dim_param]
        for tensor in graph.initializer:
            tensor.name = values.get(tensor.name, tensor.name)
        for sparse in graph.sparse_initializer:
            sparse.values.name = values.get(sparse.values.name, sparse.values.name)
        for note in graph.quantization_annotation:
            note.tensor_name = values.get(note.tensor_name, note.tensor_name)
            for entry in note.quant_parameter_tensor_names:
                entry.value = values.get(entry.value, entry.value)


def names_of_values(top: onnx.GraphProto) -> Iterator[str]:
    """The names of all values, those of inputs and outputs first."""
    graphs = [top, *every_body(top.node)]
    for graph in graphs:
        yield from (value.name for value in (*graph.input, *graph.output))
    for graph in graphs:
        yield from (tensor.name for tensor in graph.initializer)
        yield from (tensor.values.name for tensor in graph.sparse_initializer)
        yield from (value.name for value in graph.value_info)
        for node in graph.node:
            yield from (*node.input, *node.output)


def names_of_sizes(top: onnx.GraphProto) -> Iterator[str]:
    """The names of dimensions, and an empty one for each that has a number or none."""
    for graph in (top, *every_body(top.node)):
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)


def unused(name: str, taken: Collection[str]) -> str:
    """The name, or one like it that is not taken."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found
