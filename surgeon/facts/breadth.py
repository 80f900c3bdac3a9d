"""onnx's own inference for one node: every standard operator at every opset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import onnx
import onnx.shape_inference
import onnx_graphsurgeon as gs

from surgeon import standard
from surgeon.dims import Dim
from surgeon.facts.fact import INTEGERS, Fact
from surgeon.facts.kinds import known_type
from surgeon.links import named_inputs
from surgeon.model import Model
from surgeon.nested import every_node
from surgeon.standard import STANDARD

_NOT_KNOWN = onnx.AttributeProto()  # what the caller of a function gives, outside of calls
_LARGEST_HINT = 1024  # elements of an operand that inference may want to see
_OF_AS_MANY_AXES = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0}  # as this operand is long


class Breadth:
    """Asks `onnx.shape_inference.infer_node_outputs`; symbolic dims travel as names.

    Args:
        model: Gives the operator sets.
        new_dim: Gives the dimension of a value's axis of which nothing is known.

    """

    def __init__(self, model: Model, new_dim: Callable[[str, int], Dim]) -> None:
        self.model, self.new_dim = model, new_dim
        self.imports = [
            entry for entry in model.proto.opset_import if entry.domain in STANDARD
        ] or [onnx.helper.make_opsetid("", model.opset)]
        self._given: Mapping[str, onnx.AttributeProto] | None = None
        self._names: dict[Dim, str] = {}
        self._dims: dict[str, Dim] = {}

    def infer(self, node: gs.Node, fact_of: Callable[[gs.Tensor], Fact]) -> dict[str, Fact]:
        """The facts of the outputs that onnx can infer, by name; empty where it cannot."""
        proto = self._as_called(node.origin)
        if proto is None or any(isinstance(v, gs.Graph) for v in node.attrs.values()):
            return {}
        schema = standard.schema(proto.op_type, self.model.opset)
        if schema is None:
            return {}
        facts = [fact_of(tensor) for tensor in named_inputs(node)]
        types: dict[str, onnx.TypeProto] = {}
        data: dict[str, onnx.TensorProto] = {}
        for name, fact in zip(proto.input, facts, strict=True):
            if not name:
                continue
            if not fact.dtype:
                return self._dtypes_alone(schema, proto, facts)
            types[name] = self._type(fact)
            if fact.concrete is not None and fact.concrete.size <= _LARGEST_HINT:
                data[name] = onnx.numpy_helper.from_array(fact.concrete, name)
        if node.op == "Squeeze" and len(node.inputs) > 1:
            axes = fact_of(node.inputs[1]).concrete
            if axes is not None and not axes.size:  # `shapes` says where it means one thing
                return self._dtypes_alone(schema, proto, facts)
        place = _OF_AS_MANY_AXES.get(node.op)
        if place is not None and place < len(facts) and _is_long(facts[place]):
            return self._dtypes_alone(schema, proto, facts)
        if node.op == "Attention":  # onnx 1.23 makes of what it does not know 0, or no axis at all
            return self._dtypes_alone(schema, proto, facts)
        if node.op == "GatherND" and any(each.i < 0 for each in proto.attribute):
            # onnx reads in front of a list of axes, and ends the process
            return self._dtypes_alone(schema, proto, facts)
        try:
            found = onnx.shape_inference.infer_node_outputs(
                schema, proto, types, data, opset_imports=self.imports
            )
        except Exception:  # an inference error: nothing is proven
            return {}
        outputs = set(proto.output) - {""}
        return {
            name: self._fact(type_, name)
            for name, type_ in found.items()
            if name in outputs and type_.HasField("tensor_type")
        }

    def _as_called(self, proto: onnx.NodeProto | None) -> onnx.NodeProto | None:
        """A node with the attributes that its function's caller gives; None where nobody says."""
        if proto is None or not any(each.ref_attr_name for each in proto.attribute):
            return proto
        made = onnx.NodeProto()
        made.CopyFrom(proto)
        del made.attribute[:]
        for each in proto.attribute:
            said = self._said(each)
            if said is _NOT_KNOWN:
                return None
            if said is not None:
                made.attribute.append(said)
                made.attribute[-1].name = each.name
        return made

    def _said(self, attribute: onnx.AttributeProto) -> onnx.AttributeProto | None:
        """What an attribute says in this call; None where the caller leaves it out."""
        name = attribute.ref_attr_name
        if not name:
            return attribute
        return _NOT_KNOWN if self._given is None else self._given.get(name)

    @contextmanager
    def called(self, node: gs.Node, function: gs.Function) -> Iterator[None]:
        """Take what a call gives for the attributes that its function's nodes leave to it."""
        outer = self._given
        said = (*function.origin.attribute_proto, *node.origin.attribute)
        found = ((each.name, self._said(each)) for each in said)
        self._given = {name: value for name, value in found if value is not None}
        try:
            yield
        finally:
            self._given = outer

    def infer_by_function(
        self, node: gs.Node, function: onnx.FunctionProto, fact_of: Callable[[gs.Tensor], Fact]
    ) -> dict[str, Fact]:
        """The same of an operator that a function says; empty where onnx cannot infer it."""
        proto: onnx.NodeProto | None = node.origin
        if proto is None:
            return {}
        if any(each.op_type == "GatherND" for each in every_node(function.node)):
            return {}  # see above
        graph = onnx.GraphProto(name="call", node=[proto])
        graph.node[0].domain = function.domain
        facts = map(fact_of, named_inputs(node))
        for name, fact in dict(zip(proto.input, facts, strict=True)).items():
            if not name:
                continue
            if not fact.dtype or _is_long(fact):
                return {}
            graph.input.add(name=name, type=self._type(fact))
            if fact.concrete is not None and fact.concrete.size <= _LARGEST_HINT:
                graph.initializer.append(onnx.numpy_helper.from_array(fact.concrete, name))
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in proto.output if name)
        imports = [*self.imports, onnx.helper.make_opsetid(function.domain, 1)]
        model = onnx.helper.make_model(graph, opset_imports=imports, functions=[function])
        for entry in model.functions[0].opset_import:  # every operator in it is the same there
            if entry.domain in STANDARD:
                entry.version = self.model.opset
        try:
            found = onnx.shape_inference.infer_shapes(model)  # without data: a Range may be long
        except Exception:  # an inference error: nothing is proven
            return {}
        return {
            value.name: self._fact(value.type, value.name)
            for value in found.graph.output
            if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type
        }

    def _dtypes_alone(
        self, schema: onnx.defs.OpSchema, proto: onnx.NodeProto, inputs: list[Fact]
    ) -> dict[str, Fact]:
        """Element types that the schema gives although one of the operands has none.

        An output has the type of the operands that share its type parameter, the only type its
        parameter may have, or what Cast says.
        """
        known: dict[str, int] = {}
        for constraint in schema.type_constraints:
            allowed = constraint.allowed_type_strs
            if len(allowed) == 1:
                known[constraint.type_param_str] = standard.element_type(allowed[0])
        for index, fact in enumerate(inputs if schema.inputs else ()):  # it may have none to have
            formal = schema.inputs[min(index, len(schema.inputs) - 1)]
            if formal.is_homogeneous and fact.dtype:
                known[formal.type_str] = fact.dtype
        found = {}
        for index, name in enumerate(proto.output if schema.outputs else ()):
            formal = schema.outputs[min(index, len(schema.outputs) - 1)]
            dtype = known.get(formal.type_str) or standard.element_type(formal.type_str)
            if proto.op_type == "Cast":
                dtype = known_type(next((a.i for a in proto.attribute if a.name == "to"), 0))
            if name and dtype and formal.is_homogeneous:
                found[name] = Fact(dtype)
        return found

    def _type(self, fact: Fact) -> onnx.TypeProto:
        type_ = onnx.TypeProto()
        tensor = type_.tensor_type
        tensor.elem_type = fact.dtype
        if fact.shape is not None:
            tensor.shape.SetInParent()
            for dim in fact.shape:
                if isinstance(dim, int):
                    tensor.shape.dim.add(dim_value=dim)
                else:
                    tensor.shape.dim.add(dim_param=self._name(dim))
        return type_

    def _name(self, dim: Dim) -> str:
        name = self._names.get(dim)
        if name is None:
            name = self._names[dim] = f"surgeon_{len(self._names)}"
            self._dims[name] = dim
        return name

    def _fact(self, type_: onnx.TypeProto, name: str) -> Fact:
        tensor = type_.tensor_type
        if not tensor.HasField("shape"):
            return Fact(known_type(tensor.elem_type))
        shape: list[Dim] = []
        for axis, dim in enumerate(tensor.shape.dim):
            if dim.dim_value >= 0 and dim.HasField("dim_value"):  # below 0 it is onnx's error
                shape.append(dim.dim_value)
            else:
                known = self._dims.get(dim.dim_param)
                shape.append(self.new_dim(name, axis) if known is None else known)
        return Fact(known_type(tensor.elem_type), tuple(shape))


def _is_long(fact: Fact) -> bool:
    """Whether onnx 1.22, which makes a dimension of each number of a shape, is to be spared it."""
    length = fact.shape[0] if fact.shape else 0
    return fact.dtype in INTEGERS and isinstance(length, int) and length > _LARGEST_HINT
