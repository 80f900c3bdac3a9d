"""graphsurgeon's graph back to protobuf: what no rule touched is written from its `origin`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from onnx_graphsurgeon.ir.tensor import LazyValues, SparseValues

from surgeon import nested
from surgeon.links import bodies, current, named_inputs
from surgeon.spelling import ATEN_DOMAINS, PRIM_DOMAINS

FIRST_IR_WITH_FREE_INITIALIZERS = 4  # before, every initializer had to be a graph input too
FIRST_IR_WITH_NODE_METADATA = 10
_LISTED = 64  # numbers of a list of sizes, axes or bounds


class Writer:
    """Graphsurgeon's graph back to protobuf, with what it could not carry put back.

    Args:
        main: The main graph.
        overridable: Names of initializers that stay inputs.
        version: The model's IR version.
    """

    def __init__(self, main: gs.Graph, overridable: set[str], version: int) -> None:
        self.main, self.overridable, self.version = main, overridable, version

    def graph(self, graph: gs.Graph, out: onnx.GraphProto) -> None:
        """A main graph or a body, with the initializers that live in it, into an empty `out`."""
        out.initializer.extend(self.without_weights(graph, out))

    def without_weights(self, graph: gs.Graph, out: onnx.GraphProto) -> list[onnx.TensorProto]:
        """The same but for the graph's own initializers, which it gives: in order, no copies."""
        origin: onnx.GraphProto | None = getattr(graph, "origin", None)
        out.name = graph.name
        constants = self._constants(graph)
        as_nodes = self.version < FIRST_IR_WITH_FREE_INITIALIZERS
        listed = {value.name for value in origin.input} if as_nodes and origin else set()
        listed |= self.overridable
        initializers: list[onnx.TensorProto] = []
        for constant in constants:
            values = constant._values
            if isinstance(values, SparseValues):
                out.sparse_initializer.append(values.tensor)
            elif as_nodes and constant.name not in listed:
                out.node.append(_constant_node(constant))
            else:
                initializers.append(tensor_of(constant))
        names = {constant.name for constant in constants}
        for node in graph.nodes:
            self.node(node, out.node.add())
            names.update([tensor.name for tensor in node.outputs])
        if origin is None:
            face = gs.Graph([], graph.inputs, graph.outputs, name=graph.name, opset=graph.opset)
            exported = gs.export_onnx(face, do_type_check=False).graph
            out.input.extend(exported.input)
            out.output.extend(exported.output)
            return initializers
        initializers = self._with_unread(initializers, origin, names, graph.reads)
        spare = (t for t in origin.sparse_initializer if t.values.name not in names)
        out.sparse_initializer.extend(t for t in spare if t.values.name not in graph.reads)
        keep = {tensor.name for tensor in graph.inputs} | self.overridable
        if as_nodes:
            keep.update(tensor.name for tensor in initializers)
        _write_claims(graph, origin, out, keep, names)
        return initializers

    def function(self, function: gs.Function) -> onnx.FunctionProto:
        """A function; its constants become Constant nodes."""
        out = onnx.FunctionProto()
        out.CopyFrom(function.origin)
        del out.node[:]
        for constant in self._constants(function):
            out.node.append(_constant_node(constant))
        for node in function.nodes:
            self.node(node, out.node.add())
        del out.opset_import[:]
        origin = function.origin
        made = imports(origin.opset_import, function.opset, [origin], [out])
        out.opset_import.extend(made)
        return out

    def node(self, node: gs.Node, out: onnx.NodeProto) -> None:
        """A node as it was read, or as `emit` made it; with its bodies as they are now."""
        out.CopyFrom(node.origin)
        names = [tensor.name for tensor in named_inputs(node)]
        if list(out.input) != names:
            del out.input[:]
            out.input.extend(names)
        for attribute in out.attribute:
            body = node.attrs.get(attribute.name)
            if isinstance(body, gs.Graph):
                attribute.ClearField("g")
                self.graph(body, attribute.g)
        if node.made and self.version >= FIRST_IR_WITH_NODE_METADATA:
            for key, text in node.made.items():
                set_property(out.metadata_props, key, text)

    def _with_unread(
        self,
        initializers: list[onnx.TensorProto],
        origin: onnx.GraphProto,
        names: set[str],
        read: set[str],
    ) -> list[onnx.TensorProto]:
        """And those that nobody read from the beginning, each in its place."""
        unread = (t for t in origin.initializer if t.name not in names)
        kept = [t for t in unread if t.name not in read or t.name in self.overridable]
        if not kept:
            return initializers
        order = {t.name: i for i, t in enumerate(origin.initializer)}
        return sorted([*initializers, *kept], key=lambda t: order.get(t.name, len(order)))

    def _constants(self, graph: gs.Graph) -> list[gs.Constant]:
        """The constants that live in this graph and are read in it or in its bodies, in order."""
        found: dict[int, gs.Constant] = {}
        for inner in (graph, *bodies(graph)):
            tensors = [tensor for node in inner.nodes for tensor in named_inputs(node)]
            for tensor in (*tensors, *map(current, inner.outputs)):
                if isinstance(tensor, gs.Constant) and getattr(tensor, "home", inner) is graph:
                    found.setdefault(id(tensor), tensor)
        order: dict[str, int] = {}
        if isinstance(getattr(graph, "origin", None), onnx.GraphProto):
            order = {t.name: i for i, t in enumerate(graph.origin.initializer)}
        return sorted(found.values(), key=lambda c: order.get(c.name, len(order)))


def imports(
    original: Any, opset: int, before: Sequence[Any], now: Sequence[Any], *, plain: bool = False
) -> list[onnx.OperatorSetIdProto]:
    """The operator sets that were imported, but for those whose last node went, and new ones.

    PyTorch's exporter imports its own wherever something may fall back: they need a node to stay.
    So do all others where a plain file is asked for: onnxruntime's sessions import all that they
    know, and of ONNX's own domains an older runtime refuses the version, used or not.

    Args:
        original: What was imported.
        opset: The version of ONNX's own operators, where none of them was imported.
        before: The graphs and functions as they were read.
        now: As they are written.
        plain: Whether those go that no node needed from the beginning.
    """
    are, imported = _domains(now), {_plain(e.domain) for e in original}
    were = _domains(before) if are ^ imported else are
    gone = (imported if plain else were) - are - {""}
    gone |= (ATEN_DOMAINS | PRIM_DOMAINS) - are
    kept = [e for e in original if _plain(e.domain) not in gone]
    missing = are - were - imported
    made = (onnx.helper.make_opsetid(d, 1 if d else opset) for d in sorted(missing))
    return [*kept, *made]


def _domains(graphs: Sequence[Any]) -> set[str]:
    """The domains of all nodes."""
    used = set()
    stack = list(graphs)
    while stack:
        for node in stack.pop().node:
            used.add(_plain(node.domain))
            stack.extend(nested.bodies(node))
    return used


def _plain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def set_property(properties: Any, key: str, text: str) -> None:
    """Set one of the metadata_props of a model or node."""
    for entry in properties:
        if entry.key == key:
            entry.value = text
            return
    properties.add(key=key, value=text)


def tensor_of(constant: gs.Constant) -> onnx.TensorProto:
    """A constant as files have it."""
    values = constant._values
    if isinstance(values, LazyValues):
        out: onnx.TensorProto = values.tensor
        if out.name != constant.name:
            out = onnx.TensorProto()
            out.CopyFrom(values.tensor)
            out.name = constant.name
        return out
    array = np.asarray(values)
    # As numbers and not as bytes: Rockchip's converter writes into the sizes of a Split.
    if array.dtype == np.int64 and array.ndim == 1 and array.size <= _LISTED:
        return onnx.helper.make_tensor(
            constant.name, onnx.TensorProto.INT64, array.shape, array.tolist()
        )
    return onnx.numpy_helper.from_array(array, constant.name)


def _write_claims(
    graph: gs.Graph,
    origin: onnx.GraphProto,
    out: onnx.GraphProto,
    kept: Collection[str],
    names: Collection[str],
) -> None:
    """What a graph says of itself and of its values, as it was read or as it was corrected.

    Args:
        graph: Holds what was corrected.
        origin: What was read.
        out: Where it is written.
        kept: The names of its inputs.
        names: Of the values that it makes.
    """
    declared = getattr(graph, "declared", {})
    out.input.extend(declared.get(v.name, v) for v in origin.input if v.name in kept)
    out.output.extend(declared.get(v.name, v) for v in origin.output)
    claims = getattr(graph, "corrected", {})
    out.value_info.extend(claims.get(v.name, v) for v in origin.value_info if v.name in names)
    out.value_info.extend(v for v in getattr(graph, "stated", ()) if v.name in names)
    if origin.HasField("doc_string"):
        out.doc_string = origin.doc_string
    out.metadata_props.extend(origin.metadata_props)
    for note in origin.quantization_annotation:
        if note.tensor_name in names or note.tensor_name in kept:
            out.quantization_annotation.append(note)


def _constant_node(constant: gs.Constant) -> onnx.NodeProto:
    return onnx.helper.make_node("Constant", [], [constant.name], value=tensor_of(constant))
