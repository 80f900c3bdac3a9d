"""Whether two graphs are the same but for names, the order of nodes, and how constants are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx

from surgeon.opsets import MOVED
from surgeon.standard import STANDARD, attribute_value, defaults, opset_of, schema

_COMMUTATIVE = frozenset("Add Mul And Or Xor Equal Min Max Sum Mean".split())
# Attributes that say what holds anyway; onnx's schemas give them no default value.
_USUAL: Mapping[str, Any] = {
    **{"strides": 1, "dilations": 1, "pads": 0, "output_padding": 0},
    **{"auto_pad": "NOTSET"},
}
_KERNEL_FROM_WEIGHT = frozenset({"Conv", "ConvTranspose"})
RELATIVE = 1e-5  # constants are written in the recipe's cases with some digits only


def difference(actual: onnx.ModelProto, expected: onnx.ModelProto) -> str | None:
    """The first difference of two models, in words; None where there is none.

    Args:
        actual: What came out.
        expected: What is to come out; an input that `actual` lacks stands for any constant of
            that type and shape.
    """
    left, right = _view(actual), _view(expected)
    names = [value.name for value in actual.graph.input]
    wanted = [value.name for value in expected.graph.input]
    if names != [name for name in wanted if name in names]:
        return f"its inputs are {', '.join(names)}, not {', '.join(wanted)}"
    right.free = {v.name: v for v in expected.graph.input if v.name not in names}
    outputs = [value.name for value in actual.graph.output]
    if outputs != (wanted := [value.name for value in expected.graph.output]):
        return f"its outputs are {', '.join(outputs)}, not {', '.join(wanted)}"
    pairing = Pairing()
    for name in outputs:
        if found := pairing.value(left, name, right, name):
            return f"at output `{name}`: {found}"
    if len(left.nodes) != len(right.nodes):
        return f"it has {len(left.nodes)} nodes, `after` has {len(right.nodes)}"
    return None


def _view(model: onnx.ModelProto) -> View:
    opset = opset_of(model) or 1
    graph = onnx.shape_inference.infer_shapes(model).graph
    values = (*graph.input, *graph.output, *graph.value_info)
    kinds = [(value.name, value.type.tensor_type) for value in values]
    ranks = {name: len(kind.shape.dim) for name, kind in kinds if kind.HasField("shape")}
    ranks.update((tensor.name, len(tensor.dims)) for tensor in graph.initializer)
    return View(model.graph, opset, ranks=ranks)


class View:
    """A graph by value names: who makes what; attributes that became inputs are operands."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        opset: int,
        outer: View | None = None,
        ranks: Mapping[str, int] | None = None,
    ) -> None:
        self.graph, self.opset, self.outer = graph, opset, outer
        self.ranks: Mapping[str, int] = ranks or {}
        self.inputs = {value.name: place for place, value in enumerate(graph.input)}
        self.free: dict[str, onnx.ValueInfoProto] = {}
        self.constants = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
        self.nodes: list[onnx.NodeProto] = []
        self.made: dict[str, tuple[onnx.NodeProto, int]] = {}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                self.constants[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
                continue
            self.nodes.append(node)
            self.made.update({name: (node, at) for at, name in enumerate(node.output) if name})

    def home(self, name: str) -> View:
        """The view that knows the value: this one, or one around it."""
        known = name in self.inputs or name in self.constants or name in self.made
        return self if known or self.outer is None else self.outer.home(name)

    def operands(self, node: onnx.NodeProto) -> list[Any]:
        """Names, and arrays for what is an attribute at this opset; trailing gaps cut."""
        found: list[Any] = list(node.input)
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        for move in MOVED.get(node.op_type, ()) if node.domain in STANDARD else ():
            if move.attribute in attributes and self.opset < move.since:
                while len(found) <= move.index:
                    found.append("")
                # ONNX calls float what has 32 bits; numpy's has 64
                kind = np.float32 if move.like_input else np.int64
                found[move.index] = np.asarray(attributes[move.attribute], kind)
        while found and isinstance(found[-1], str) and found[-1] == "":
            found.pop()
        return found

    def attributes(self, node: onnx.NodeProto) -> dict[str, Any]:
        """Those that say something: not the defaults, not what is an operand."""
        moved = {m.attribute for m in MOVED.get(node.op_type, ()) if self.opset < m.since}
        known = node.domain in STANDARD and schema(node.op_type, self.opset) is not None
        usual = defaults(node.op_type, self.opset) if known else {}
        found: dict[str, Any] = self._axis(node, usual)
        for attribute in node.attribute:
            key, value = attribute.name, attribute_value(attribute)
            if known and key in moved:
                continue
            if key == "axis" or (key == "kernel_shape" and node.op_type in _KERNEL_FROM_WEIGHT):
                continue
            if key in usual and usual[key] == value:
                continue
            if key in _USUAL and np.all(np.asarray(value) == _USUAL[key]):
                continue
            found[key] = value
        return found

    def _axis(self, node: onnx.NodeProto, usual: Mapping[str, Any]) -> dict[str, Any]:
        """The axis, its default put in, counted from the front where the rank is known."""
        given = [a.i for a in node.attribute if a.name == "axis"]
        if not given and "axis" not in usual:
            return {}
        given = given or [usual["axis"]]
        rank = self.ranks.get(node.input[0])
        return {"axis": given[0] % rank if rank else given[0]}


class Pairing:
    """Which value of one graph is which of the other; one for one."""

    def __init__(self) -> None:
        self.there: dict[tuple[int, str], tuple[int, str]] = {}
        self.back: dict[tuple[int, str], tuple[int, str]] = {}
        self.views: list[View] = []  # kept, as they are known by their ids

    def value(self, left: View, name: str, right: View, other: str) -> str | None:
        """The first difference between two values and all that is behind them."""
        if not name or not other:
            return None if name == other else f"`{name or other}` is given on one side only"
        left, right = left.home(name), right.home(other)
        array = left.constants.get(name)
        if array is not None or other in right.constants or other in right.free:
            return _constants(name, array, right, other)
        key, key_of_other = (id(left), name), (id(right), other)
        if key in self.there or key_of_other in self.back:
            if self.there.get(key) == key_of_other:
                return None
            return f"`{name}` is no longer one value, or became one: `after` has it as `{other}`"
        if name in left.inputs or other in right.inputs:
            if left.inputs.get(name) != right.inputs.get(other):
                return f"`{name}` is read where `after` reads `{other}`"
        elif name in left.made and other in right.made:
            (node, at), (its, place) = left.made[name], right.made[other]
            if at != place:
                return f"output {at} of {_say(node)} is read, not output {place}"
            saved = dict(self.there), dict(self.back)
            for mine, theirs in zip(node.output, its.output, strict=False):
                if not mine or not theirs:
                    continue
                self.there[id(left), mine] = (id(right), theirs)
                self.back[id(right), theirs] = (id(left), mine)
            if found := self._node(left, node, right, its):
                self.there, self.back = saved
                return found
        else:
            return f"`{name}` is made by nothing"
        self.there[key], self.back[key_of_other] = key_of_other, key
        return None

    def _node(
        self, left: View, node: onnx.NodeProto, right: View, other: onnx.NodeProto
    ) -> str | None:
        domains = [n.domain if n.domain not in STANDARD else "" for n in (node, other)]
        if node.op_type != other.op_type or domains[0] != domains[1]:
            return f"{_say(node)} stands where `after` has {_say(other)}"
        if found := self._attributes(left, node, right, other):
            return found
        mine, theirs = left.operands(node), right.operands(other)
        if len(mine) != len(theirs):
            return f"{_say(node)} has {len(mine)} operands, not {len(theirs)}"
        first: str | None = None
        for order in _orders(node.op_type, theirs):
            saved = dict(self.there), dict(self.back)
            found = self._operands(left, mine, right, order)
            if found is None:
                return None
            first = first or f"{found}, read by {_say(node)}"
            self.there, self.back = saved
        return first

    def _operands(self, left: View, mine: list[Any], right: View, theirs: list[Any]) -> str | None:
        for one, two in zip(mine, theirs, strict=True):
            if isinstance(one, str) and isinstance(two, str):
                found = self.value(left, one, right, two)
            else:
                arrays = [
                    v.home(x).constants.get(x) if isinstance(x, str) else x
                    for v, x in ((left, one), (right, two))
                ]
                found = _arrays("an operand", arrays[0], arrays[1])
            if found:
                return found
        return None

    def _attributes(
        self, left: View, node: onnx.NodeProto, right: View, other: onnx.NodeProto
    ) -> str | None:
        mine, theirs = left.attributes(node), right.attributes(other)
        for key in sorted({*mine, *theirs}):
            one, two = mine.get(key), theirs.get(key)
            if isinstance(one, onnx.GraphProto) and isinstance(two, onnx.GraphProto):
                if found := self._body(left, one, right, two):
                    return f"in `{key}` of {_say(node)}: {found}"
                continue
            if isinstance(one, onnx.TensorProto) and isinstance(two, onnx.TensorProto):
                one, two = (onnx.numpy_helper.to_array(t).tolist() for t in (one, two))
            if one != two:
                return f"`{key}` of {_say(node)} is {one}, not {two}"
        return None

    def _body(
        self, left: View, one: onnx.GraphProto, right: View, two: onnx.GraphProto
    ) -> str | None:
        inner, other = View(one, left.opset, left), View(two, right.opset, right)
        self.views += [inner, other]
        for mine, theirs in zip(one.output, two.output, strict=False):
            if found := self.value(inner, mine.name, other, theirs.name):
                return found
        if len(inner.nodes) != len(other.nodes):
            return f"it has {len(inner.nodes)} nodes, `after` has {len(other.nodes)}"
        return None


def _orders(operator: str, operands: list[Any]) -> Iterator[list[Any]]:
    yield operands
    if operator in _COMMUTATIVE and len(operands) == 2:
        yield operands[::-1]


def _constants(name: str, array: Any, right: View, other: str) -> str | None:
    if array is None:
        return f"`{name}` is computed, the constant `{other}` in `after`"
    if other in right.free:
        tensor = right.free[other].type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        shape = tuple(dim.dim_value for dim in tensor.shape.dim)
        if (array.dtype, array.shape) == (dtype, shape):
            return None
        kind = f"{array.dtype.name}{list(array.shape)}"
        return f"the constant `{name}` is {kind}, not {dtype.name}{list(shape)}"
    if other not in right.constants:
        return f"`{name}` is a constant, `{other}` in `after` is computed"
    return _arrays(f"the constant `{name}`", array, right.constants[other])


def _arrays(what: str, one: Any, two: Any) -> str | None:
    if one is None or two is None:
        return f"{what} is constant on one side only"
    one, two = np.asarray(one), np.asarray(two)
    if one.dtype != two.dtype or one.shape != two.shape:
        kinds = [f"{a.dtype.name}{list(a.shape)}" for a in (one, two)]
        return f"{what} is {kinds[0]}, not {kinds[1]}"
    if one.dtype.kind in "fc":
        wide = one.astype(np.float64), two.astype(np.float64)
        largest = float(np.abs(wide[1][np.isfinite(wide[1])]).max(initial=0.0))
        same = np.allclose(*wide, rtol=RELATIVE, atol=RELATIVE * largest, equal_nan=True)
    else:
        same = np.array_equal(one, two)
    if same:
        return None
    short = [np.array2string(a.reshape(-1), threshold=8, separator=", ") for a in (one, two)]
    return f"{what} is {short[0]}, not {short[1]}"


def _say(node: onnx.NodeProto) -> str:
    return f"{node.domain + '.' if node.domain not in STANDARD else ''}{node.op_type}"
