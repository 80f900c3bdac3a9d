"""Stand-ins for operators that nobody knows: so that what stands around them is compared.

What such an operator computes, no rewrite may depend on. So both models get something else in its
place, the same in each: numbers that change with every value the operator reads, in the dtype and
the shape that the file declares of its outputs, else in those of its first input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import onnx
from onnx import TensorProto, helper

from surgeon.declared import size_of
from surgeon.inferring import NotInferred, inferred
from surgeon.isolation import unknown_operators
from surgeon.nested import bodies, every_body, every_node
from surgeon.reference.arguments import is_foreign
from surgeon.reference.plan import reads, without_calls
from surgeon.standard import opset_of

_OLDEST = 9  # opset: NonZero and ConstantOfShape, of which places are made
_LIKE = 15  # opset: CastLike, for what nobody told the dtype of
_FLOATS = frozenset(
    (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
)
_WHOLE = frozenset(
    (
        *(TensorProto.BOOL, TensorProto.INT8, TensorProto.INT16, TensorProto.INT32),
        *(TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32),
        TensorProto.UINT64,
    )
)

Dim = int | str | None


def with_stand_ins(
    before: onnx.ModelProto, after: onnx.ModelProto
) -> tuple[onnx.ModelProto, onnx.ModelProto] | str | None:
    """Both models with something in place of every operator that nobody knows, or why not.

    None where they are all known, to the witness at least.

    Args:
        before: The original.
        after: What was made of it.
    """
    before, after = without_calls(before), without_calls(after)
    names = {*unknown_operators(before), *unknown_operators(after)}
    kinds = [_kinds(model, names) for model in (before, after)]
    if kinds[0] != kinds[1]:
        name, outputs, _ = min((kinds[0] - kinds[1]) | (kinds[1] - kinds[0]))
        return f"`{name}`, which gives `{outputs}`, is not the same in both"
    if not kinds[0]:
        return None
    declared = _Declared.of(before)
    found = []
    for model in (before, after):
        made = onnx.ModelProto()
        made.CopyFrom(model)
        why = _Writer(declared, names, made).write()
        if why:
            return why
        found.append(made)
    return found[0], found[1]


def _opaque(node: onnx.NodeProto, names: set[str]) -> str:
    """The name of an operator that nobody knows, as `domain.Op`; "" of any other."""
    name = f"{node.domain or 'ai.onnx'}.{node.op_type}"
    return name if name in names and not is_foreign(node) else ""


def _kinds(model: onnx.ModelProto, names: set[str]) -> Counter[tuple[str, str, bytes]]:
    """Those on which outputs depend: the operator, what it gives, its attributes."""
    return Counter(
        (name, " ".join(node.output), _attributes(node))
        for node in every_node(_live(model.graph))
        if (name := _opaque(node, names))
    )


def _live(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    wanted = {value.name for value in graph.output}
    found = []
    for node in reversed(graph.node):
        if not wanted.isdisjoint(node.output):
            wanted.update(reads(node))
            found.append(node)
    return found[::-1]


def _attributes(node: onnx.NodeProto) -> bytes:
    by_name = sorted(node.attribute, key=lambda attribute: attribute.name)
    return b"".join(attribute.SerializeToString(deterministic=True) for attribute in by_name)


@dataclass(frozen=True, slots=True)
class _Declared:
    """What a file says of its values, and where lengths with a name are found.

    Attributes:
        types: Element types by value.
        dims: Dims by value.
        lengths: By a dim's name, an input of the graph and the axis.
    """

    types: Mapping[str, int]
    dims: Mapping[str, Sequence[Dim]]
    lengths: Mapping[str, tuple[str, int]]

    @classmethod
    def of(cls, model: onnx.ModelProto) -> _Declared:
        """What is declared, and of types what onnx infers in front of the first of them."""
        try:
            told = inferred(model)
        except NotInferred:
            told = model
        types: dict[str, int] = {}
        dims: dict[str, Sequence[Dim]] = {}
        lengths: dict[str, tuple[str, int]] = {}
        for graph in (told.graph, *every_body(told.graph.node)):
            types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
            for value in (*graph.input, *graph.value_info, *graph.output):
                tensor = value.type.tensor_type
                types[value.name] = tensor.elem_type
                if tensor.HasField("shape"):
                    dims[value.name] = [*map(size_of, tensor.shape.dim)]
        weights = {tensor.name for tensor in model.graph.initializer}
        for value in model.graph.input:
            for axis, dim in enumerate(dims.get(value.name, ())):
                if isinstance(dim, str) and value.name not in weights:
                    lengths.setdefault(dim, (value.name, axis))
        return cls(types, dims, lengths)


class _Writer:
    """Writes stand-ins into a model.

    Args:
        declared: What the original says.
        names: The operators that onnxruntime lacks.
        model: Is changed.
    """

    def __init__(self, declared: _Declared, names: set[str], model: onnx.ModelProto) -> None:
        self.names, self.model, self.lengths = names, model, declared.lengths
        self.types, self.dims = dict(declared.types), dict(declared.dims)

    def write(self) -> str:
        """Why it cannot be done; "" where it is."""
        opset = opset_of(self.model) or 1
        if opset < _OLDEST:
            return f"nothing stands in for an operator below opset {_OLDEST}"
        return self._graph(self.model.graph, opset)

    def _graph(self, graph: onnx.GraphProto, opset: int) -> str:
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            for body in bodies(node):
                if why := self._graph(body, opset):
                    return why
            name = _opaque(node, self.names)
            if not name:
                nodes.append(node)
                continue
            for place, output in enumerate(node.output):
                if output:
                    made = self._stand_in(node, place, opset)
                    if isinstance(made, str):
                        return f"`{name}` {made}"
                    nodes.extend(made)
                    self._declare(graph, output, next(filter(None, node.input), ""))
        del graph.node[:]
        graph.node.extend(nodes)
        return ""

    def _stand_in(self, node: onnx.NodeProto, place: int, opset: int) -> list[onnx.NodeProto] | str:
        """Nodes that make one output of a node that nobody knows; or why there are none."""
        output, read = node.output[place], [name for name in node.input if name]
        dims = self.dims.get(output)
        first = read[0] if read else ""
        if not first and (dims is None or not all(isinstance(dim, int) for dim in dims)):
            return f"reads nothing, and the shape of `{output}` is not declared"
        kind = self.types.get(output) or self.types.get(first, 0)
        if kind and kind not in _FLOATS | _WHOLE:
            return f"gives `{output}`, which is no tensor of numbers"
        self.types[output] = kind
        salt = crc32(f"{node.domain}.{node.op_type}.{place}".encode() + _attributes(node)) % 997
        nodes = _Nodes(output)
        told = nodes.told([name for name in read if self._is_number(name)])
        shape = self._shape(nodes, dims, first)
        places = nodes.places(shape, 0.37, salt)
        if kind in _WHOLE:
            # whole numbers index, more often than not: those that any axis of 2 has
            sign = nodes.op(
                "Cast", nodes.op("Greater", told, nodes.number(0)), to=TensorProto.FLOAT
            )
            flat = nodes.op("Greater", nodes.op("Add", places, sign), nodes.number(0))
        elif dims is None and self._is_number(first):
            scale = nodes.op("Add", nodes.op("Mul", places, nodes.number(0.5)), nodes.number(1))
            flat = nodes.op("Add", nodes.op("Mul", nodes.flat(first), scale), told)
        else:
            flat = nodes.op("Add", places, told)
        if kind:
            nodes.op("Cast", nodes.op("Reshape", flat, shape), to=kind, name=output)
        elif opset >= _LIKE:
            nodes.op("CastLike", nodes.op("Reshape", flat, shape), first, name=output)
        else:
            nodes.op("Reshape", flat, shape, name=output)
        return nodes.made

    def _declare(self, graph: onnx.GraphProto, output: str, first: str) -> None:
        """Say of what rank an output is: onnxruntime then refuses what does not fit together.

        It joins values of two ranks without a word where it learns of them only as it runs.
        """
        dims = self.dims.get(output) or self.dims.get(first)
        if dims is None or output in self.dims or not self.types[output]:
            return
        self.dims[output] = dims
        fixed = [dim if isinstance(dim, int) else None for dim in dims]
        graph.value_info.append(helper.make_tensor_value_info(output, self.types[output], fixed))

    def _is_number(self, name: str) -> bool:
        kind = self.types.get(name, 0)
        return bool(name) and (not kind or kind in _FLOATS | _WHOLE)

    def _shape(self, nodes: _Nodes, dims: Sequence[Dim] | None, first: str) -> str:
        """The shape of an output: as it is declared; where that says nothing the first input's."""
        if dims is None:
            return nodes.op("Shape", first)
        parts = [self._length(nodes, axis, dim, first) for axis, dim in enumerate(dims)]
        return nodes.op("Concat", *parts, axis=0) if parts else nodes.integers([])

    def _length(self, nodes: _Nodes, axis: int, dim: Dim, first: str) -> str:
        if isinstance(dim, int):
            return nodes.integers([dim])
        value, axis = self.lengths.get(dim or "", (first, axis))
        return nodes.op("Gather", nodes.op("Shape", value), nodes.integers([axis]), axis=0)


class _Nodes:
    """Nodes in the making, named after the value they are for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.made: list[onnx.NodeProto] = []

    def op(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """The output of one more node."""
        name = name or f"{self.name}/stand-in.{len(self.made)}"
        self.made.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def number(self, value: float) -> str:
        """A float32."""
        return self.op("Constant", value=helper.make_tensor("", TensorProto.FLOAT, [], [value]))

    def integers(self, values: Sequence[int]) -> str:
        """A list of int64."""
        tensor = helper.make_tensor("", TensorProto.INT64, [len(values)], values)
        return self.op("Constant", value=tensor)

    def flat(self, value: str) -> str:
        """A value as one line of float32."""
        line = self.op("Reshape", value, self.integers([-1]))
        return self.op("Cast", line, to=TensorProto.FLOAT)

    def places(self, shape: str, step: float, begin: float) -> str:
        """Another number between -1 and 1 at every place of a shape, in one line."""
        one = helper.make_tensor("", TensorProto.FLOAT, [1], [1.0])
        line = self.op("Reshape", self.op("ConstantOfShape", shape, value=one), self.integers([-1]))
        places = self.op("Reshape", self.op("NonZero", line), self.integers([-1]))
        turned = self.op("Mul", self.op("Cast", places, to=TensorProto.FLOAT), self.number(step))
        return self.op("Sin", self.op("Add", turned, self.number(begin)))

    def told(self, values: Sequence[str]) -> str:
        """A number that changes with every element of some values, each at its place."""
        total = self.number(0)
        for order, value in enumerate(values):
            line = self.flat(value)
            places = self.places(self.op("Shape", line), 0.73, order)
            weighed = self.op("ReduceSum", self.op("Mul", line, places), keepdims=0)
            count = self.op("Cast", self.op("Size", line), to=TensorProto.FLOAT)
            root = self.op("Sqrt", self.op("Add", count, self.number(1)))
            part = self.op("Tanh", self.op("Div", weighed, root))
            total = self.op("Add", total, part)
        return total
