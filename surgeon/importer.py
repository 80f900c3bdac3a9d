"""A protobuf as graphsurgeon's graph: what `gs.import_onnx` gives, at under half of its cost.

graphsurgeon's own import is most of what a large model costs to read (docs/decisions/0008). A test
holds the two beside one another. Different on purpose:

* bodies are linked when everything around them is there: nodes may stand in any order;
* an initializer of a body is its own, also where the graph around it has the name;
* element types and shapes that `value_info` claims are not put on tensors: facts say what is known;
* the objects carry what surgeon keeps on them (see `model`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
import onnx_graphsurgeon as gs
from onnx import AttributeProto
from onnx_graphsurgeon.importers.onnx_importer import OnnxImporter
from onnx_graphsurgeon.ir.tensor import LazyValues, SparseValues
from onnx_graphsurgeon.util.misc import convert_from_onnx_attr_type

from surgeon.objects import make_constant, make_node, make_variable
from surgeon.soundness.scopes import Scope
from surgeon.standard import opset_of

_READ: dict[int, Callable[[AttributeProto], Any]] = {
    AttributeProto.FLOAT: lambda a: a.f,
    AttributeProto.INT: lambda a: a.i,
    AttributeProto.STRING: lambda a: _text(a.s),
    AttributeProto.TENSOR: lambda a: OnnxImporter.import_tensor(a.t),
    AttributeProto.FLOATS: lambda a: list(a.floats),
    AttributeProto.INTS: lambda a: list(a.ints),
    AttributeProto.STRINGS: lambda a: [_text(text) for text in a.strings],
}


def _text(data: bytes) -> str | bytes:
    """What an attribute says: text, or the bytes where it is none (a serialised plan, say)."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def import_graph(proto: onnx.ModelProto, scopes: Sequence[Scope]) -> gs.Graph:
    """The graph of a model, with bodies and functions.

    Args:
        proto: The model; not changed.
        scopes: Its graph and its functions, as they were read.

    Raises:
        Exception: Of graphsurgeon or Python, where a tensor or text is none that they know.
    """
    opset = opset_of(proto)
    main, *inner = scopes
    functions = [_function(scope, opset, proto.opset_import) for scope in inner]
    graph = gs.Graph(
        name=main.proto.name,
        doc_string=main.proto.doc_string,
        opset=opset,
        import_domains=proto.opset_import,
        producer_name=proto.producer_name,
        producer_version=proto.producer_version,
        functions=functions,
        ir_version=proto.ir_version,
    )
    _fill(graph, main)
    return graph


def _function(scope: Scope, opset: int | None, domains: Any) -> gs.Function:
    proto = scope.proto
    function = gs.Function(
        proto.name,
        proto.domain,
        doc_string=proto.doc_string,
        opset=opset_of(proto) or opset,
        import_domains=proto.opset_import or domains,
        attrs=dict.fromkeys(proto.attribute) | _attributes(proto.attribute_proto),
    )
    _fill(function, scope)
    return function


def types_given(proto: onnx.ModelProto) -> list[int]:
    """The element types of inputs and initializers."""
    kinds = [value.type.tensor_type.elem_type for value in proto.graph.input]
    return [*kinds, *(tensor.data_type for tensor in proto.graph.initializer)]


def _fill(top: gs.Graph, scope: Scope) -> None:
    """Link a graph or function, then the bodies in it, outer before inner."""
    stack: list[tuple[gs.Graph, Scope, Mapping[str, gs.Tensor], tuple[set[str], ...]]] = [
        (top, scope, {}, ())
    ]
    while stack:
        graph, scope, outer, around = stack.pop()
        tensors = _declared(graph, scope.proto)
        constants = {name for name, tensor in tensors.items() if type(tensor) is gs.Constant}
        graph.nodes = _nodes(graph, scope, tensors, outer)
        read = {name for node in scope.nodes for name in node.inputs}
        from_around = read.intersection(outer).difference(tensors)
        graph.reads = read.intersection(constants)
        graph.reads.update([tensor.name for tensor in graph.outputs], from_around)
        for names in around:
            names |= from_around
        seen: Mapping[str, gs.Tensor] = {}
        for node, said in zip(graph.nodes, scope.nodes, strict=True):
            bodies = [body for body in said.bodies if body.held_as]
            if bodies:
                seen = seen or {**outer, **tensors}
                for body in bodies:
                    held = gs.Graph(
                        name=body.proto.name,
                        doc_string=body.proto.doc_string,
                        opset=graph.opset,
                        import_domains=graph.import_domains,
                    )
                    node.attrs[body.held_as] = held
                    stack.append((held, body, seen, (*around, graph.reads)))


def _declared(graph: gs.Graph, proto: Any) -> dict[str, gs.Tensor]:
    """The initializers, inputs and outputs of a graph by name; its inputs and outputs are set."""
    tensors: dict[str, gs.Tensor] = {}
    if isinstance(proto, onnx.FunctionProto):
        for name in (*proto.input, *proto.output):
            tensors.setdefault(name, make_variable(name))
        graph.inputs = [tensors[name] for name in proto.input]
    else:
        for initializer in proto.initializer:
            outside = initializer.data_location if initializer.HasField("data_location") else None
            values = LazyValues(initializer)
            tensors[initializer.name] = make_constant(initializer.name, values, graph, outside)
        for sparse in proto.sparse_initializer:
            tensors[sparse.values.name] = make_constant(
                sparse.values.name, SparseValues(sparse), graph, sparse.values.data_location
            )
        inputs = [value for value in proto.input if value.name not in tensors]
        for value in (*inputs, *proto.output):
            if value.name not in tensors:
                tensors[value.name] = OnnxImporter.import_tensor(value)
        graph.inputs = [tensors[value.name] for value in inputs]
    graph.outputs = [tensors[getattr(value, "name", value)] for value in proto.output]
    graph.origin = proto
    return tensors


def _nodes(
    graph: gs.Graph,
    scope: Scope,
    tensors: dict[str, gs.Tensor],
    outer: Mapping[str, gs.Tensor],
) -> list[gs.Node]:
    """The nodes of one graph, linked by `tensors`, which grows, and then by what is around it."""
    nodes = []
    find = tensors.get
    for said in scope.nodes:
        inputs, outputs = [], []
        for name in said.inputs:
            tensor = find(name) if name else make_variable("")
            if tensor is None:
                tensor = outer.get(name)
                if tensor is None:
                    tensor = tensors[name] = make_variable(name)
            inputs.append(tensor)
        for name in said.outputs:
            tensor = find(name) if name else make_variable("")
            if tensor is None:
                tensor = tensors[name] = make_variable(name)
            outputs.append(tensor)
        proto = said.proto
        attrs = _attributes(said.attributes) if said.attributes else {}
        domain = proto.domain if proto.HasField("domain") else None
        nodes.append(
            make_node(proto.op_type, proto.name, attrs, inputs, outputs, domain, proto, graph)
        )
    return nodes


def _attributes(protos: Sequence[AttributeProto]) -> dict[str, Any]:
    """The values by name; a body's place is kept for it."""
    values: dict[str, Any] = {}
    for proto in protos:
        kind = proto.type
        if proto.ref_attr_name:
            if kind in _READ or kind == AttributeProto.UNDEFINED:  # as texts of functions have it
                type_ = convert_from_onnx_attr_type(kind) if kind in _READ else None
                values[proto.name] = gs.Node.AttributeRef(proto.ref_attr_name, type_)
        elif kind in _READ:
            values[proto.name] = _READ[kind](proto)
        elif kind == AttributeProto.GRAPH:
            values[proto.name] = None
    return values
