"""The nodes of a part in both forms: as rules see them, and as the file has them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import standard
from surgeon.captured import dtype_name
from surgeon.dialect import ATEN, PRIM, normalise
from surgeon.errors import Location, RecipeError
from surgeon.facts import Facts
from surgeon.facts.fact import Array
from surgeon.housekeeping import constant_value
from surgeon.links import toposort
from surgeon.model import Model
from surgeon.nested import bodies
from surgeon.notation import Argument, NodePattern, Pattern, print_pattern
from surgeon.notation.pattern import word_of
from surgeon.standard import STANDARD

CLEANED = "Take it from what `surgeon apply clean` makes of the model."
_FEW = 8  # whole numbers, up to which a list of them belongs to the part
_LEAST_OPSET, _NEWER = 9, 11
_MOST = 300  # nodes; patterns are searched by recursion
_MANY = 4  # values, of which all one line asks
_SCALED = ("Resize", "Upsample")  # whose scales runtimes want constant
_NOWHERE = Location("", 0, 0)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a model, its values under names of a recipe's.

    Attributes:
        model: The part.
        names: Of its values, by what the model calls them.
        inputs: The values that it is given.
        weights: The constants that it is given, and what they hold.
        numbers: The constants that belong to it.
        outputs: What it gives.
        found: Its nodes in normal form, which is what patterns speak of.
        written: The same as the file has them.
        conditions: What else has to hold where the pattern matches.
        between: Of the values that it makes for itself alone, how often it reads each.
        foreign: Operators that are not ONNX's.
    """

    model: Model
    names: Mapping[str, str]
    inputs: Sequence[str]
    weights: Mapping[str, Array]
    numbers: Mapping[str, Array]
    outputs: Sequence[str]
    found: Sequence[NodePattern]
    written: Sequence[NodePattern]
    conditions: Sequence[str]
    between: Mapping[str, int]
    foreign: Sequence[str]

    @property
    def pattern(self) -> Pattern:
        """What finds it."""
        return Pattern(tuple(self.found))

    @property
    def last(self) -> str:
        """What the model calls its last node."""
        graph = self.model.proto.graph
        node = next(each for each in graph.node if graph.output[0].name in each.output)
        return str(node.name or node.output[0])

    @property
    def operands(self) -> tuple[str, ...]:
        """What the operator that takes its place is given."""
        return (*self.inputs, *self.weights)

    @property
    def lines(self) -> str:
        """Its nodes in ONNX's text, the constants that belong to it in front."""
        constants = tuple(
            NodePattern("", ("Constant",), "", (), (name,), {"value": value}, {}, None, _NOWHERE)
            for name, value in self.numbers.items()
        )
        return print_pattern(Pattern((*constants, *self.written)))

    def call(self, operator: str) -> str:
        """One node of an operator in its place."""
        return f"{', '.join(self.outputs)} = {operator} ({', '.join(self.operands)})"

    def function(self, domain: str, op: str) -> str:
        """The function of ONNX's that computes what it does."""
        inner = "\n".join(f"  {line}" for line in self.lines.splitlines())
        head = f'<domain: "{domain}", opset_import: [{imports(self.model.proto)}]>'
        ends = f"{op} ({', '.join(self.operands)}) => ({', '.join(self.outputs)})"
        return f"{head}\n{ends} {{\n{inner}\n}}"


def imports(proto: onnx.ModelProto, *more: str) -> str:
    """The opsets of a model as ONNX's text has them, and version 1 of further domains."""
    versions = {"" if e.domain == "ai.onnx" else e.domain: e.version for e in proto.opset_import}
    versions |= {domain: 1 for domain in more if domain not in versions}
    return ", ".join(f'"{domain}": {version}' for domain, version in versions.items())


def piece_of(part: Model, reads: Mapping[str, int]) -> Piece:
    """Read a part of a model, as `extract` gives it.

    Args:
        part: Not changed.
        reads: How often the whole model reads each value.

    Raises:
        RecipeError: It has no single last node, or no pattern describes it.
    """
    proto = part.proto
    for node in proto.graph.node:
        if next(iter(bodies(node)), None) is not None:
            raise no_rule(f"a {node.op_type} has a body, which no pattern describes")
    if proto.functions:
        raise no_rule("it calls a function of the model, and rules see the nodes in it", CLEANED)
    return _Reader(part, reads).read()


class _Reader:
    """Names the values of a part, and says its nodes."""

    def __init__(self, part: Model, reads: Mapping[str, int]) -> None:
        self.part, self.proto, self.of_all = part, part.proto, reads
        self.flat = flat = Model(self.proto, folder=part.folder)
        for node in [each for each in flat.graph.nodes if each.op == "Constant"]:
            node.outputs[0].to_constant(constant_value(node))
            flat.graph.nodes.remove(node)
        self.constants = {
            name: tensor
            for name, tensor in flat.graph.tensors().items()
            if isinstance(tensor, gs.Constant)
        }
        facts = Facts(flat)
        facts.enter(flat.graph)
        self.nodes = toposort(flat.graph)
        for node in self.nodes:
            normalise(node, flat.opset, facts, lambda tensor: False)
            facts.infer(node)
        self.given = [value.name for value in self.proto.graph.output]
        self.reads = Counter(t.name for node in self.nodes for t in node.inputs if t.name)
        self.names: dict[str, str] = {}
        self.weights: dict[str, Array] = {}
        self.numbers: dict[str, Array] = {}
        self.counted = itertools.count(1)  # the constants that are asked for
        self.asked: list[str] = []  # conditions

    def read(self) -> Piece:
        """The piece.

        Raises:
            RecipeError: There is no single last node, or no pattern describes one.
        """
        if not self.nodes:
            raise no_rule("all that it gives is constant")
        if self.flat.opset < _LEAST_OPSET:
            mend = f"Bring it to a newer one: surgeon apply clean IN OUT --opset {_NEWER}."
            raise no_rule(f"cases want opset {_LEAST_OPSET}, and it is of {self.flat.opset}", mend)
        if len(self.nodes) > _MOST:
            raise no_rule(f"it has {len(self.nodes):,} nodes, and rules {_MOST} at the most")
        last = {tensor.name for tensor in self.nodes[-1].outputs}
        if other := next((name for name in self.given if name not in last), None):
            raise no_rule(f"`{other}` is given out too, and a rule ends at one node")
        if read := next((name for name in last if self._is_read_behind(name)), None):
            raise no_rule(f"its last node gives `{read}` too, which is read: add `--to {read}`")
        begun = [v.name for v in self.proto.graph.input if v.name not in self.constants]
        made = [t.name for node in self.nodes for t in node.outputs if t.name]
        inner = [name for name in made if name not in self.given]
        for letter, kind in (("x", begun), ("y", self.given), ("h", inner)):
            for count, name in enumerate(kind, 1):
                self.names[name] = letter if len(kind) == 1 else f"{letter}{count}"
        in_file = self._in_file()
        for name in dict.fromkeys(name for node in in_file for name in node.input):
            if name in self.constants:
                self._name_constant(name)
        found = [self._node(node) for node in self.nodes]
        between = {
            self.names[name]: self.reads[name]
            for name in inner
            if self.reads[name] == self.of_all.get(name)
        }
        self.asked += _of_all("is_constant", list(self.weights))
        for count in sorted(set(between.values())):
            alike = [name for name, times in between.items() if times == count]
            self.asked += _of_all(f"consumers == {count}", alike)
        return Piece(
            model=self.part,
            names=self.names,
            inputs=[self.names[name] for name in begun],
            weights=self.weights,
            numbers=self.numbers,
            outputs=[self.names[name] for name in self.given],
            found=found,
            written=[self._as_written(node) for node in in_file],
            conditions=self.asked,
            between=between,
            foreign=sorted({f"{each.domain}.{each.operators[0]}" for each in found if each.domain}),
        )

    def _is_read_behind(self, name: str) -> bool:
        return name not in self.given and bool(self.of_all.get(name))

    def _in_file(self) -> list[onnx.NodeProto]:
        """The nodes that are no constants, producers first."""
        places = {t.name: at for at, node in enumerate(self.nodes) for t in node.outputs}
        nodes = [node for node in self.proto.graph.node if node.op_type != "Constant"]
        return sorted(nodes, key=lambda node: places[next(filter(None, node.output))])

    def _name_constant(self, name: str) -> None:
        """One number, a few whole ones and factors of sizes belong to the part; more is given."""
        tensor = self.constants[name]
        value = self.flat.array(tensor)
        few = value.dtype.kind in "iub" or any(node.op in _SCALED for node in tensor.outputs)
        if value.size == 1 or (few and value.size <= _FEW):
            self.names[name] = self._ask_number(value)
            self.numbers[self.names[name]] = value
        else:
            self.names[name] = f"w{len(self.weights) + 1}"
            self.weights[self.names[name]] = value

    def _ask_number(self, value: Array) -> str:
        """A name for a constant, of which the rule asks for what it holds."""
        name = f"c{next(self.counted)}"
        asked = f"{name}.value == {_numbers(value)}"
        if value.dtype.kind == "f":  # in another one what the operator computes has no type
            dtype = dtype_name(onnx.helper.np_dtype_to_tensor_dtype(value.dtype))
            asked += f" and {name}.dtype == {dtype}"
        self.asked.append(asked)
        return name

    def _node(self, node: gs.Node) -> NodePattern:
        """A node in normal form; what a pattern cannot say of it becomes a condition."""
        attributes = dict(node.attrs)
        domain, overload = node.domain or "", ""
        if domain in (ATEN, PRIM):
            overload = str(attributes.pop("overload", ""))
        outputs = tuple(
            self.names[t.name] if self.reads[t.name] or t.name in self.given else "_"
            for t in node.outputs
        )
        if domain in STANDARD:
            domain = ""
            attributes, unsaid = _with_defaults(node.op, attributes, self.flat.opset)
            named = next(name for name in outputs if name != "_")
            self.asked += [f"'{key}' not in {named}.attributes" for key in unsaid]
        inputs = [Argument(self._operand(tensor)) for tensor in node.inputs]
        return _pattern(domain, node.op, overload, inputs, outputs, attributes)

    def _operand(self, tensor: gs.Tensor) -> str:
        """An operand's name; one that was an attribute in the file is asked for by its value."""
        if tensor.is_empty():
            return ""
        if tensor.name not in self.names:
            self.names[tensor.name] = self._ask_number(self.flat.array(tensor))
        return self.names[tensor.name]

    def _as_written(self, node: onnx.NodeProto) -> NodePattern:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        inputs = [Argument(self.names[name] if name else "") for name in node.input]
        outputs = tuple(self.names[name] if name else "" for name in node.output)
        domain = "" if node.domain in STANDARD else node.domain
        return _pattern(domain, node.op_type, "", inputs, outputs, attributes)


def _of_all(what: str, names: list[str]) -> list[str]:
    """A condition on each of some values, in one line where they are many."""
    if len(names) < _MANY:
        return [f"{name}.{what}" for name in names]
    return [f"all(v.{what} for v in [{', '.join(names)}])"]


def _pattern(
    domain: str,
    op: str,
    overload: str,
    inputs: list[Argument],
    outputs: tuple[str, ...],
    attributes: Mapping[str, Any],
) -> NodePattern:
    while inputs and not inputs[-1].name:
        inputs.pop()
    literal = {key: _literal(op, key, value) for key, value in attributes.items()}
    return NodePattern(domain, (op,), overload, tuple(inputs), outputs, literal, {}, None, _NOWHERE)


def _with_defaults(
    op: str, stated: Mapping[str, Any], opset: int
) -> tuple[dict[str, Any], list[str]]:
    """The attributes with the defaults of those left out, and those that have no default.

    What later opsets than the file's added means by default what was before, and what they have as
    inputs is an operand in normal form.
    """
    schemas = [standard.schema(op, each) for each in (opset, standard.newest_opset())]
    known, newest = ({} if each is None else each.attributes for each in schemas)
    usual = standard.defaults(op, opset)
    found, unsaid = dict(stated), []
    for key in sorted((known.keys() & newest.keys()) - stated.keys()):
        if key in usual:
            found[key] = usual[key]
        else:
            unsaid.append(key)
    return found, unsaid


def _literal(op: str, key: str, value: Any) -> Any:
    """An attribute's value as patterns have it.

    Raises:
        RecipeError: It has no text.
    """
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    elif isinstance(value, gs.Constant):
        value = value.values
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, (list, tuple)):
        value = tuple(_literal(op, key, item) for item in value)
    array = np.asarray(value)
    if isinstance(value, tuple) and not value:
        raise no_rule(f"`{key}` of {op} is an empty list, which has no form in text")
    if word_of(array.dtype) is None and array.dtype.kind != "U":
        raise no_rule(f"`{key}` of {op} has no form in text")
    return value


def _numbers(value: Array) -> str:
    """Elements as expressions write them; an infinite one is a number beyond all others."""
    if value.dtype.kind not in "iubf" or (value.dtype.kind == "f" and np.isnan(value).any()):
        held = "texts" if value.dtype.kind in "OUS" else f"{value.dtype} of which some are NaN"
        raise no_rule(f"it holds a constant of {held}, for which no rule can ask")
    return str(value.tolist()).replace("inf", "1e999")


def no_rule(why: str, mend: str = "") -> RecipeError:
    """What to raise where no rule can be written of a part."""
    else_ = "Choose a part that ends at one node: surgeon extract shows it."
    return RecipeError(why, where="--to", mend=mend or else_)
