"""The ends of a graph: what only casts or turns there, and how it is taken out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from surgeon.nested import every_body, every_node
from surgeon.renaming import names_of_values, unused
from surgeon.standard import STANDARD, opset_of

_TYPE = onnx.TensorProto
_MOVES = frozenset("Flatten Identity Reshape Slice Squeeze Transpose Unsqueeze".split())
_COUNTS = (_TYPE.INT64, _TYPE.INT32, _TYPE.UINT64, _TYPE.UINT32)
_OF_ANGLES = frozenset({"Cos", "Sin"})
_TO_ANGLES = _MOVES | frozenset("Cast Concat Div Einsum Expand MatMul Mul Split Tile".split())
_FARTHEST = 64  # values that are looked at
_ALONE = frozenset(
    "Abs Cast Ceil Clip DequantizeLinear Exp Floor Identity LeakyRelu Log Neg QuantizeLinear Relu "
    "Sigmoid Sqrt Tanh".split()  # levels by one scale for all
)
_WITH_CONSTANT = frozenset("Add Div Mul Sub".split())
FRACTIONS = (_TYPE.FLOAT, _TYPE.DOUBLE, _TYPE.FLOAT16, _TYPE.BFLOAT16)
_WORDS = ("FLOAT", "FLOAT16", "BFLOAT16", "INT32", "INT16", "UINT16", "INT8", "UINT8")
_AT_MOST_32_BITS = frozenset(_TYPE.DataType.Value(word) for word in _WORDS)
_HALVES = (_TYPE.FLOAT16, _TYPE.BFLOAT16)
_SIZES = ("Shape", "Size")  # which look at no element, of whatever type
_ALONG = frozenset("LogSoftmax Softmax".split())  # along an axis, one alone from opset 13 on
_ONE_AXIS = 13


Typed = Callable[[str], int]  # the element type of a value, 0 where that is unknown


class Ends:
    """The ends of a graph, and what reads each value."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.graph = proto.graph
        self.opset = opset_of(proto) or 1
        given = {value.name for value in self.graph.input}  # by the caller, whatever the file has
        self.constants = {t.name: t for t in self.graph.initializer if t.name not in given}
        valued = {t.name for t in self.graph.initializer}
        valued |= {t.values.name for t in self.graph.sparse_initializer}
        self.defaults = given & valued  # whose values are of the type and the order that they have
        for node in self.graph.node:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.name == "value":
                    self.constants[node.output[0]] = attribute.t
        self.outputs = {value.name for value in self.graph.output}
        self._index: dict[str, list[onnx.NodeProto | None]] | None = None
        self._makers: dict[str, onnx.NodeProto] | None = None

    def cast_of(self, value: onnx.ValueInfoProto) -> onnx.NodeProto | None:
        """Take out the Cast to float or int32 that an input comes to, behind moves of elements."""
        chain = self.casts(value)
        if not chain:
            return None
        to = _to(chain[-1])
        value.type.tensor_type.elem_type = to
        self._take_out(chain[-1], [node.output[0] for node in chain])
        return onnx.helper.make_node("Cast", [""], [""], to=to)

    def casts(self, value: onnx.ValueInfoProto) -> list[onnx.NodeProto]:
        """The nodes up to the Cast that an input comes to; none where that is not to be left."""
        given = value.type.tensor_type.elem_type
        chain = self._chain(value.name, lambda node: node.op_type in _MOVES, beside=_SIZES)
        if not chain or chain[-1].op_type != "Cast" or given == _TYPE.STRING:
            return []
        to = _to(chain[-1])
        if (given, to) == (_TYPE.FLOAT, _TYPE.FLOAT16):
            return chain
        if to not in (_TYPE.FLOAT, _TYPE.INT32) or given == to:
            return []
        if to == _TYPE.INT32 and given in FRACTIONS:
            return []
        return [] if given in _COUNTS and self._is_angle(chain[-1]) else chain

    def _is_angle(self, cast: onnx.NodeProto) -> bool:
        """Whether angles are made of what a Cast gives: then it counts, as positions do.

        A caller gives places of tokens as whole numbers, whatever the network makes of them.
        """
        seen, waiting = {cast.output[0]}, [cast.output[0]]
        while waiting and len(seen) < _FARTHEST:
            for reader in self._readers(waiting.pop(0)):
                if reader is None or reader.domain not in STANDARD:
                    continue
                if reader.op_type in _OF_ANGLES:
                    return True
                if reader.op_type in _TO_ANGLES:
                    new = set(reader.output) - seen
                    seen |= new
                    waiting.extend(sorted(new))
        return False

    def widen_input(self, value: onnx.ValueInfoProto) -> onnx.NodeProto | None:
        """Take an input of halves as float32, which has every one of them."""
        given = value.type.tensor_type.elem_type
        if given not in _HALVES or value.name in self.outputs:
            return None
        inner = self._unused(f"{value.name}/half")
        self._call(value.name, inner)
        cast = onnx.helper.make_node("Cast", [value.name], [inner], to=given)
        self.graph.node.insert(0, cast)
        value.type.tensor_type.elem_type = _TYPE.FLOAT
        return onnx.helper.make_node("Cast", [""], [""], to=_TYPE.FLOAT)

    def widen_output(self, value: onnx.ValueInfoProto) -> onnx.NodeProto | None:
        """Give an output of halves as float32."""
        given = value.type.tensor_type.elem_type
        if given not in _HALVES or value.name not in self._made:
            return None
        inner = self._unused(f"{value.name}/half")
        self._call(value.name, inner)
        self.graph.node.append(onnx.helper.make_node("Cast", [inner], [value.name], to=_TYPE.FLOAT))
        value.type.tensor_type.elem_type = _TYPE.FLOAT
        return onnx.helper.make_node("Cast", [""], [""], to=given)

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
        found = self._made_by(value.name, "Transpose", self._keeps)
        if not found or not rank:
            return None
        node, *behind = found
        perm = _perm(node, rank)
        for other in behind:
            if other.op_type in _ALONG:
                axis = next((a.i for a in other.attribute if a.name == "axis"), -1)
                kept = [a for a in other.attribute if a.name != "axis"]
                kept.append(onnx.helper.make_attribute("axis", perm[axis]))
                del other.attribute[:]
                other.attribute.extend(kept)
        _permute(value, np.argsort(perm).tolist())
        self._take_off(found, value.name)
        return onnx.helper.make_node("Transpose", [""], [""], perm=perm)

    def cast_behind(self, value: onnx.ValueInfoProto, typed: Typed) -> onnx.NodeProto | None:
        """Take out the Cast that an output is made by, in front of moves of elements."""
        found = self.casts_behind(value, typed)
        if not found:
            return None
        made = onnx.helper.make_node("Cast", [""], [""], to=_to(found[0]))
        value.type.tensor_type.elem_type = typed(found[0].input[0])
        self._take_off(found, value.name)
        return made

    def casts_behind(self, value: onnx.ValueInfoProto, typed: Typed) -> list[onnx.NodeProto]:
        """The Cast that an output is made by, and what follows; none where that is to stay.

        What is left to the caller is between floats, or loses nothing, and nobody is given
        doubles, or truth values, which fewer runtimes give than what they were cast to.
        """
        found = self._made_by(value.name, "Cast", lambda node: node.op_type in _MOVES)
        if not found:
            return []
        given, wanted = typed(found[0].input[0]), _to(found[0])
        if given not in _AT_MOST_32_BITS or wanted in (given, _TYPE.STRING, _TYPE.UNDEFINED):
            return []
        floats = given in FRACTIONS and wanted in FRACTIONS
        return found if floats or _holds(wanted, given) else []

    def _keeps(self, node: onnx.NodeProto) -> bool:
        """Whether a node treats elements apart, or along one axis."""
        if node.op_type in _ALONG:
            return self.opset >= _ONE_AXIS
        return node.op_type in _ALONE and not self._given(node)

    def _made_by(
        self, name: str, operator: str, passes: Callable[[onnx.NodeProto], bool]
    ) -> list[onnx.NodeProto]:
        """The node of an operator that an output comes from, and those behind that pass.

        None where something else reads what one of them gives, or what the first reads is an
        output itself, or no node makes it.
        """
        makers, found = self._made, list[onnx.NodeProto]()
        node = makers.get(name)
        while node is not None:
            alone = len(self._readers(name)) + (name in self.outputs) == 1
            if not alone or node.domain not in STANDARD or not node.input:
                return []
            found.insert(0, node)
            if node.op_type == operator:
                source = node.input[0]
                return found if source in makers and source not in self.outputs else []
            if not passes(node):
                return []
            name = node.input[0]
            node = makers.get(name)
        return []

    def _take_off(self, found: Sequence[onnx.NodeProto], name: str) -> None:
        """Without the first of the nodes that an output is made by."""
        node, *behind = found
        source, result = node.input[0], node.output[0]
        self._drop(node, [each.output[0] for each in found])
        if behind:
            self._call(result, source)
        else:
            self._call(source, name)

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
            if len(readers) != 1 or readers[0] is None or readers[0].domain not in STANDARD:
                return []
            reader = readers[0]
            if not reader.output:
                return []
            if reader.op_type not in _WITH_CONSTANT and reader.input[0] != name:
                return []  # it tells a shape, or a place
            chain.append(reader)
            if not goes_on(reader):
                return [] if reader.output[0] in self.outputs else chain
            name = reader.output[0]
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
        made = self._unused(f"{name}/turned")
        tensor = onnx.numpy_helper.from_array(np.ascontiguousarray(array), made)
        self.graph.initializer.append(tensor)
        self.constants[made] = tensor
        return made

    @property
    def _made(self) -> dict[str, onnx.NodeProto]:
        """The node that makes each value."""
        if self._makers is None:
            self._makers = {made: node for node in self.graph.node for made in node.output}
        return self._makers

    def _unused(self, name: str) -> str:
        return unused(name, set(names_of_values(self.graph)))

    def _take_out(self, node: onnx.NodeProto, names: Sequence[str]) -> None:
        """Without a node, whose readers read what it read."""
        source, result = node.input[0], node.output[0]
        self._drop(node, names)
        self._call(result, source)

    def _call(self, old: str, new: str) -> None:
        rename(self.graph, old, new)
        self._index = self._makers = None

    def _drop(self, node: onnx.NodeProto, names: Sequence[str]) -> None:
        self.graph.node.remove(node)
        self._index = self._makers = None
        kept = [value for value in self.graph.value_info if value.name not in names]
        del self.graph.value_info[:]
        self.graph.value_info.extend(kept)


def _to(cast: onnx.NodeProto) -> int:
    """The element type that a Cast gives; 0 where it does not say, and so is none."""
    return next((int(a.i) for a in cast.attribute if a.name == "to"), int(_TYPE.UNDEFINED))


def _holds(wider: int, narrower: int) -> bool:
    """Whether an element type has every value of another."""
    wide, narrow = (onnx.helper.tensor_dtype_to_np_dtype(kind) for kind in (wider, narrower))
    return np.can_cast(narrow, wide, "safe")


def _perm(node: onnx.NodeProto, rank: int) -> list[int]:
    given = next((list(a.ints) for a in node.attribute if a.name == "perm"), [])
    return given or list(range(rank))[::-1]


def _permute(value: onnx.ValueInfoProto, perm: Sequence[int]) -> None:
    dims = list(value.type.tensor_type.shape.dim)
    del value.type.tensor_type.shape.dim[:]
    value.type.tensor_type.shape.dim.extend(dims[place] for place in perm)


def rename(graph: onnx.GraphProto, old: str, new: str) -> None:
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
