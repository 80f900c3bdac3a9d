"""Takes what is only cast, or only turned, at the ends of a model out of it: its caller does it.

An input that is cast before anything computes with it is given in that type, and one that is
turned, from rows of pixels to planes of channels say, in that order; outputs are given in the order
that they were computed in. What was taken out is kept, and put back where the result is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from surgeon.errors import SurgeonError
from surgeon.nested import every_body, every_node

STEP = "as-read"
WHY = "What stands at an end of the network and computes nothing is the caller's."
CONTRACT = "changes the interface: {what}"
COMPARED = "for the comparison with the original the interface was put back"
_TYPE = onnx.TensorProto
_MOVES = frozenset("Flatten Identity Reshape Slice Squeeze Transpose Unsqueeze".split())
_ALONE = frozenset(
    "Abs Cast Ceil Clip Exp Floor Identity LeakyRelu Log Neg Relu Sigmoid Sqrt Tanh".split()
)
_WITH_CONSTANT = frozenset("Add Div Mul Sub".split())
_FRACTIONS = (_TYPE.FLOAT, _TYPE.DOUBLE, _TYPE.FLOAT16, _TYPE.BFLOAT16)
_SIZES = ("Shape", "Size")  # which look at no element, of whatever type
_ALONG = frozenset("LogSoftmax Softmax".split())  # along an axis, one alone from opset 13 on
_ONE_AXIS = 13


@dataclass
class Layer:
    """What one step left to the caller.

    Attributes:
        inputs: Of inputs, what the file said of each, and the node in front of it.
        outputs: The same of outputs, and the node behind.
        names: What ends are called now, and what they were called.
        gone: Inputs that are there no longer, and the places they had.
        constants: Those of them that have a value in the file.
    """

    inputs: dict[str, tuple[onnx.ValueInfoProto, onnx.NodeProto]] = field(default_factory=dict)
    outputs: dict[str, tuple[onnx.ValueInfoProto, onnx.NodeProto]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    gone: list[tuple[int, onnx.ValueInfoProto]] = field(default_factory=list)
    constants: tuple[str, ...] = ()

    def told(self) -> str:
        """What changed, in words."""
        said = [
            f"{kind} `{name}` is without its {_told(node)}"
            for kind, ends in (("input", self.inputs), ("output", self.outputs))
            for name, (_, node) in ends.items()
        ]
        said += [f"`{old}` is called `{new}`" for new, old in self.names.items()]
        said += [f"`{value.name}`, which nothing reads, is no input" for _, value in self.gone]
        said += [f"`{name}` is a constant and no input" for name in self.constants]
        return ", ".join(said[:6]) + f" and {len(said) - 6} more" * (len(said) > 6)

    def put_back(self, graph: onnx.GraphProto, place: int) -> None:
        """The interface as it was before the step, in a graph of one's own.

        Args:
            graph: Is changed.
            place: Of this layer among all.
        """
        for new, old in self.names.items():
            _rename(graph, new, f"{old}/was")  # two may have changed names
        for old in self.names.values():
            _rename(graph, f"{old}/was", old)
        if self.gone:
            inputs = list(graph.input)
            for at, value in self.gone:
                inputs.insert(at, value)
            del graph.input[:]
            graph.input.extend(inputs)
        before: list[onnx.NodeProto] = []
        for value in (*graph.input, *graph.output, *graph.initializer):
            value.name = self.names.get(value.name, value.name)
        for value in graph.input:
            if value.name in self.inputs:
                original, node = self.inputs[value.name]
                inner = f"{value.name}/as-read/{place}"
                _rename(graph, value.name, inner)
                before.append(_between(node, value.name, inner))
                value.CopyFrom(original)
        for value in graph.output:
            if value.name in self.outputs:
                original, node = self.outputs[value.name]
                inner = f"{value.name}/as-made/{place}"
                _rename(graph, value.name, inner)
                graph.node.append(_between(node, inner, value.name))
                value.CopyFrom(original)
        kept = list(graph.node)
        del graph.node[:], graph.value_info[:]
        graph.node.extend([*before, *kept])


@dataclass
class Handed:
    """What the caller does since, step by step."""

    layers: list[Layer] = field(default_factory=list)

    def put_back(self, proto: onnx.ModelProto) -> onnx.ModelProto:
        """The model with the interface of the original."""
        if not self.layers:
            return proto
        whole = onnx.ModelProto()
        whole.CopyFrom(proto)
        for place, layer in reversed([*enumerate(self.layers)]):
            layer.put_back(whole.graph, place)
        return whole


def as_read(
    proto: onnx.ModelProto, what: str, handed: Handed, fixed: Sequence[str] = ()
) -> onnx.ModelProto:
    """The model without casts of inputs (`types`), or Transposes at its ends (`order`).

    Args:
        proto: A model without functions around its ends.
        what: `types` or `order`.
        handed: Is given what was taken out.
        fixed: Inputs of which somebody told the shape, which is that of the file.

    Raises:
        SurgeonError: There is nothing of the kind.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    ends, layer = _Ends(changed), Layer()
    for value in changed.graph.input:
        if value.name in ends.constants or (what == "order" and value.name in fixed):
            continue
        original = onnx.ValueInfoProto()
        original.CopyFrom(value)
        made = ends.cast_of(value) if what == "types" else ends.turn_of(value)
        if made is not None:
            layer.inputs[value.name] = (original, made)
    for value in changed.graph.output if what == "order" else ():
        original = onnx.ValueInfoProto()
        original.CopyFrom(value)
        made = ends.turn_behind(value)
        if made is not None:
            layer.outputs[value.name] = (original, made)
    if not layer.inputs and not layer.outputs:
        kind = "cast" if what == "types" else "turned"
        raise SurgeonError(
            f"no input is {kind} before anything else reads it, and by a node that alone does",
            where=f"{STEP}: {what}",
            mend="Put `clean` in front, or leave the step out.",
        )
    handed.layers.append(layer)
    return changed


def could_be_left(proto: onnx.ModelProto) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Inputs whose Cast, and inputs whose Transpose, could be left to the caller."""
    ends = _Ends(proto)
    given = [value for value in proto.graph.input if value.name not in ends.constants]
    return (
        tuple(value.name for value in given if ends.casts(value)),
        tuple(value.name for value in given if ends.turns(value)),
    )


class _Ends:
    """The ends of a graph, and what reads each value."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.graph = proto.graph
        versions = [e.version for e in proto.opset_import if e.domain in ("", "ai.onnx")]
        self.opset = max(versions, default=1)
        self.constants = {tensor.name: tensor for tensor in self.graph.initializer}
        for node in self.graph.node:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.name == "value":
                    self.constants[node.output[0]] = attribute.t
        self.outputs = {value.name for value in self.graph.output}
        self._index: dict[str, list[onnx.NodeProto | None]] | None = None

    def cast_of(self, value: onnx.ValueInfoProto) -> onnx.NodeProto | None:
        """Take out the Cast to float or int32 that an input comes to, behind moves of elements."""
        chain = self.casts(value)
        if not chain:
            return None
        (to,) = (a.i for a in chain[-1].attribute if a.name == "to")
        value.type.tensor_type.elem_type = to
        self._take_out(chain[-1], [node.output[0] for node in chain])
        return onnx.helper.make_node("Cast", [""], [""], to=to)

    def casts(self, value: onnx.ValueInfoProto) -> list[onnx.NodeProto]:
        """The nodes up to the Cast that an input comes to; none where that is not to be left."""
        given = value.type.tensor_type.elem_type
        chain = self._chain(value.name, lambda node: node.op_type in _MOVES, beside=_SIZES)
        if not chain or chain[-1].op_type != "Cast" or given == _TYPE.STRING:
            return []
        (to,) = (a.i for a in chain[-1].attribute if a.name == "to")
        if (given, to) == (_TYPE.FLOAT, _TYPE.FLOAT16):
            return chain
        if to not in (_TYPE.FLOAT, _TYPE.INT32) or given == to:
            return []
        return [] if to == _TYPE.INT32 and given in _FRACTIONS else chain

    def turn_of(self, value: onnx.ValueInfoProto) -> onnx.NodeProto | None:
        """Take out the Transpose that an input comes to, behind what treats elements apart."""
        chain, rank = self.turns(value), len(value.type.tensor_type.shape.dim)
        if not chain:
            return None
        turn, perm = chain[-1], _perm(chain[-1], rank)
        for node in chain[:-1]:
            for index, name in enumerate(node.input):
                if name in self.constants:
                    node.input[index] = self._turned(name, perm)
        _permute(value, perm)
        self._take_out(turn, [node.output[0] for node in chain])
        return onnx.helper.make_node("Transpose", [""], [""], perm=perm)

    def turns(self, value: onnx.ValueInfoProto) -> list[onnx.NodeProto]:
        """The nodes up to the Transpose that an input comes to; none where there is none."""
        rank = len(value.type.tensor_type.shape.dim)
        chain = self._chain(value.name, lambda node: self._apart(node, rank))
        return chain if rank and chain and chain[-1].op_type == "Transpose" else []

    def turn_behind(self, value: onnx.ValueInfoProto) -> onnx.NodeProto | None:
        """Take out the Transpose that an output is made by, in front of what keeps elements."""
        rank = len(value.type.tensor_type.shape.dim)
        makers = {name: node for node in self.graph.node for name in node.output}
        behind: list[onnx.NodeProto] = []
        node = makers.get(value.name)
        while node is not None and node.op_type != "Transpose":
            along = node.op_type in _ALONG and self.opset >= _ONE_AXIS
            if not along and (node.op_type not in _ALONE or self._given(node)):
                return None
            behind.append(node)
            node = makers.get(node.input[0])
        if node is None or not rank or node.input[0] not in makers:
            return None
        names = [node.output[0], *(n.output[0] for n in behind)]
        alone = all(len(self._readers(name)) + (name in self.outputs) == 1 for name in names)
        if not alone or node.domain or node.input[0] in self.outputs:
            return None
        perm = _perm(node, rank)
        for other in behind:
            if other.op_type in _ALONG:
                axis = next((a.i for a in other.attribute if a.name == "axis"), -1)
                kept = [a for a in other.attribute if a.name != "axis"]
                kept.append(onnx.helper.make_attribute("axis", perm[axis]))
                del other.attribute[:]
                other.attribute.extend(kept)
        _permute(value, np.argsort(perm).tolist())
        inner = node.input[0]
        self._drop(node, names)
        if behind:
            self._call(names[0], inner)
        else:
            self._call(inner, value.name)
        return onnx.helper.make_node("Transpose", [""], [""], perm=perm)

    def _chain(
        self,
        name: str,
        goes_on: Callable[[onnx.NodeProto], bool],
        beside: Sequence[str] = (),
    ) -> list[onnx.NodeProto]:
        """The nodes that read a value one behind the other, each alone but for those `beside`."""
        chain: list[onnx.NodeProto] = []
        while name not in self.outputs:
            found = self._readers(name)
            readers = [r for r in found if r is None or r.op_type not in beside]
            if len(readers) != 1 or readers[0] is None or readers[0].domain not in ("", "ai.onnx"):
                return []
            chain.append(readers[0])
            if not goes_on(readers[0]):
                return [] if readers[0].output[0] in self.outputs else chain
            name = readers[0].output[0]
        return []

    def _apart(self, node: onnx.NodeProto, rank: int) -> bool:
        """Whether a node treats each element by itself, with a constant that can be turned."""
        if node.op_type in _ALONE:
            return not self._given(node)
        if node.op_type not in _WITH_CONSTANT:
            return False
        found = [self.constants[name] for name in node.input if name in self.constants]
        outside = any(t.data_location == _TYPE.EXTERNAL for t in found)
        return len(found) == 1 and not outside and len(found[0].dims) <= rank

    def _given(self, node: onnx.NodeProto) -> bool:
        """Whether it has an operand beside its first that is no number."""
        names = [name for name in node.input[1:] if name]
        return any(name not in self.constants or self.constants[name].dims for name in names)

    def _readers(self, name: str) -> list[onnx.NodeProto | None]:
        """The nodes that read a value, once for each operand; None for one in a body."""
        if self._index is None:
            self._index = {}
            for node in self.graph.node:
                for read in node.input:
                    self._index.setdefault(read, []).append(node)
                for body in every_body([node]):
                    inner = [read for other in body.node for read in other.input]
                    for read in (*inner, *(value.name for value in body.output)):
                        self._index.setdefault(read, []).append(None)
        return self._index.get(name, [])

    def _turned(self, name: str, perm: Sequence[int]) -> str:
        array = onnx.numpy_helper.to_array(self.constants[name])
        if array.size == 1:
            return name
        array = array.reshape((1,) * (len(perm) - array.ndim) + array.shape).transpose(perm)
        made = f"{name}/turned"
        while made in self.constants:
            made += "_"
        tensor = onnx.numpy_helper.from_array(np.ascontiguousarray(array), made)
        self.graph.initializer.append(tensor)
        self.constants[made] = tensor
        return made

    def _take_out(self, node: onnx.NodeProto, names: Sequence[str]) -> None:
        """Without a node, whose readers read what it read."""
        source, result = node.input[0], node.output[0]
        self._drop(node, names)
        self._call(result, source)

    def _call(self, old: str, new: str) -> None:
        _rename(self.graph, old, new)
        self._index = None

    def _drop(self, node: onnx.NodeProto, names: Sequence[str]) -> None:
        self.graph.node.remove(node)
        self._index = None
        kept = [value for value in self.graph.value_info if value.name not in names]
        del self.graph.value_info[:]
        self.graph.value_info.extend(kept)


def _told(node: onnx.NodeProto) -> str:
    """A node of those that are taken out, with what it does."""
    if node.op_type == "Cast":
        return f"Cast to {_TYPE.DataType.Name(node.attribute[0].i).lower()}"
    return f"Transpose by {list(node.attribute[0].ints)}"


def _perm(node: onnx.NodeProto, rank: int) -> list[int]:
    given = next((list(a.ints) for a in node.attribute if a.name == "perm"), [])
    return given or list(range(rank))[::-1]


def _permute(value: onnx.ValueInfoProto, perm: Sequence[int]) -> None:
    dims = list(value.type.tensor_type.shape.dim)
    del value.type.tensor_type.shape.dim[:]
    value.type.tensor_type.shape.dim.extend(dims[place] for place in perm)


def _between(node: onnx.NodeProto, first: str, last: str) -> onnx.NodeProto:
    """A copy of a node that reads one value and makes the other."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[0], copy.output[0] = first, last
    return copy


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Call a value otherwise wherever nodes, and bodies that see it, make or read it."""
    for node in graph.node:
        for inner in every_node([node]):
            for names in (inner.input, inner.output):
                for index, name in enumerate(names):
                    if name == old:
                        names[index] = new
        for body in every_body([node]):
            for value in body.output:
                if value.name == old:
                    value.name = new
