"""A model with everything that a rewrite may lose, and a rule that changes one node of it."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from truth import parse

import surgeon
from surgeon.authoring import rule
from surgeon.match import Match
from surgeon.rewrite import Draft

F32 = np.float32


@rule("y = Neg (x)", exact="rounding")
def neg_by_sub(draft: Draft, match: Match) -> gs.Tensor:
    """Negation as a difference from zero."""
    x = match.values["x"]
    return draft.op("Sub", draft.constant(np.zeros((), F32), "zero"), x)


def rich(ir: int = 10) -> onnx.ModelProto:
    """A model with everything that graphsurgeon drops, and one Neg that a rule changes."""
    proto = parse(
        """
        g (float[b,4] x, float[b,4] unread, float[4] w) => (float[b,4] y, float[b,4] q)
        <float[4] w = {1, 2, 3, 4}, float[2] spare = {5, 6}, float[b,4] a>
        {
          a = Relu (x)
          m = Mul (a, w)
          y = Neg (m)
          q = my.twice (x)
        }
        <domain: "my", opset_import: ["": 17], doc_string: "doubles">
        twice (v) => (o) { o = Add (v, v) }
        """,
        ir=ir,
        domains=', "my": 1, "spare.domain": 3',
    )
    proto.doc_string, proto.domain, proto.model_version = "model doc", "org.example", 7
    proto.producer_name, proto.producer_version = "maker", "1.2"
    proto.metadata_props.add(key="author", value="someone")
    graph = proto.graph
    graph.doc_string = "graph doc"
    graph.metadata_props.add(key="graph", value="props")
    graph.input[0].doc_string = "input doc"
    graph.output[0].doc_string = "output doc"
    graph.input[0].metadata_props.add(key="input", value="props")
    for node in graph.node:
        node.name = f"n_{node.output[0]}"
        node.doc_string = f"doc of {node.output[0]}"
        node.metadata_props.add(key="namespace", value=f"/{node.output[0]}")
    note = graph.quantization_annotation.add(tensor_name="a")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    for tensor in graph.initializer:
        tensor.doc_string = f"doc of {tensor.name}"
    return proto


def without(proto: onnx.ModelProto, *names: str) -> onnx.ModelProto:
    """The model without the nodes and initializers of these outputs, and what surgeon writes."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    for node in [n for n in out.graph.node if set(n.output) & set(names)]:
        out.graph.node.remove(node)
    for tensor in [t for t in out.graph.initializer if t.name.startswith(names)]:
        out.graph.initializer.remove(tensor)
    for entry in [e for e in out.metadata_props if e.key.startswith("surgeon.")]:
        out.metadata_props.remove(entry)
    return out


def changed(proto: onnx.ModelProto, **options: object) -> onnx.ModelProto:
    """The model after `neg_by_sub`, which must have fired."""
    result = surgeon.apply(proto, neg_by_sub, verify=False, **options)
    assert result.report.fired.total() == 1
    return result.model.to_proto()
