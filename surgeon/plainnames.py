"""Names of values and nodes as ONNX wants them: identifiers of C, without colons, slashes, dots.

Exporters write what their framework has (`StatefulPartitionedCall:0`, `/model.0/conv/Conv`), and
what makes source code of a model, or nodes of TensorFlow, takes no such names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator

import onnx

from surgeon.asread import Handed, Layer
from surgeon.errors import SurgeonError
from surgeon.nested import every_body

STEP = "plain-names"
WHY = "ONNX's own document wants identifiers, and what makes source code of a model does too."
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STRANGE = re.compile(r"[^A-Za-z0-9_]+")


def plain_names(
    proto: onnx.ModelProto, handed: Handed, fixed: Collection[str] = ()
) -> onnx.ModelProto:
    """The model in which every value, node and named size is called by an identifier.

    Args:
        proto: The model; what its own functions call their values stays.
        handed: Is given what inputs and outputs were called.
        fixed: Inputs of which somebody told the shape by name.

    Raises:
        SurgeonError: Every name is one already, or a name that was told would change.
    """
    values = _renamed(dict.fromkeys(_values(proto.graph)))
    nodes = _renamed(dict.fromkeys(n.name for g in _graphs(proto.graph) for n in g.node))
    sizes = _renamed(dict.fromkeys(_sizes(proto.graph)))
    told = [name for name in fixed if name in values]
    if told:
        raise SurgeonError(
            f"the shape of `{told[0]}` was told by that name",
            where=STEP,
            mend="Fix the shapes in a run in front of this one.",
        )
    if not values and not nodes and not sizes:
        raise SurgeonError("every name is plain", where=STEP, mend="Leave the step out.")
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for graph in _graphs(changed.graph):
        _rename(graph, values, nodes, sizes)
    names = [value.name for value in (*proto.graph.input, *proto.graph.output)]
    handed.layers.append(Layer(names={values[n]: n for n in names if n in values}))
    return changed


def _renamed(names: Collection[str]) -> dict[str, str]:
    """The names that are no identifiers, each with one that nothing else has."""
    taken = {name for name in names if _PLAIN.fullmatch(name)}
    found: dict[str, str] = {}
    for name in names:
        if not name or name in taken:
            continue
        stem = _STRANGE.sub("_", name).strip("_") or "value"
        stem = f"v{stem}" if stem[0].isdigit() else stem
        plain, count = stem, 1
        while plain in taken:
            count += 1
            plain = f"{stem}_{count}"
        taken.add(plain)
        found[name] = plain
    return found


def _rename(
    graph: onnx.GraphProto, values: dict[str, str], nodes: dict[str, str], sizes: dict[str, str]
) -> None:
    call: Callable[[str], str] = lambda name: values.get(name, name)  # noqa: E731
    for node in graph.node:
        node.input[:] = map(call, node.input)
        node.output[:] = map(call, node.output)
        node.name = nodes.get(node.name, node.name)
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.name = call(value.name)
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = sizes.get(dim.dim_param, dim.dim_param)
    for tensor in graph.initializer:
        tensor.name = call(tensor.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = call(sparse.values.name)
    for note in graph.quantization_annotation:
        note.tensor_name = call(note.tensor_name)
        for entry in note.quant_parameter_tensor_names:
            entry.value = call(entry.value)


def _values(graph: onnx.GraphProto) -> Iterator[str]:
    """The names of all values, those of inputs and outputs first, which keep the plainest."""
    for each in _graphs(graph):
        yield from (value.name for value in (*each.input, *each.output))
    for each in _graphs(graph):
        yield from (tensor.name for tensor in each.initializer)
        yield from (tensor.values.name for tensor in each.sparse_initializer)
        yield from (value.name for value in each.value_info)
        for node in each.node:
            yield from (*node.input, *node.output)


def _sizes(graph: onnx.GraphProto) -> Iterable[str]:
    for each in _graphs(graph):
        for value in (*each.input, *each.output, *each.value_info):
            yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    yield from every_body(graph.node)
