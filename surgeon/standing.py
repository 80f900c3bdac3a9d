"""Where nodes stand: what they read and give, of which types, who makes it and who reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import onnx

from surgeon.document import suggest
from surgeon.ends import Value, value_of
from surgeon.errors import RecipeError
from surgeon.extraction.types import known_types
from surgeon.helpful import recipes_about
from surgeon.inspection import nodes_of
from surgeon.listing import written
from surgeon.model import Model
from surgeon.reference.plan import reads
from surgeon.spelling import operator_name
from surgeon.standard import attribute_value

_SCOPES = ("namespace", "pkg.torch.onnx.name_scopes")  # of PyTorch's newer exporter
_STACK = "pkg.torch.onnx.stack_trace"
_LONGEST = 80  # characters of an attribute's value
_LONGEST_LINE = 200


@dataclass(frozen=True, slots=True)
class Wire:
    """A value beside a node.

    Attributes:
        value: Its name and, where that is known, its type.
        others: For what the node reads, what makes it: a node, or `input`, `weight`, `constant`;
            for what it gives, the nodes that read it, and `output`.
        given: Whether no node makes it at run time: it is an input of the model, or a constant.
    """

    value: Value
    others: tuple[str, ...]
    given: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """A node and what is around it.

    Attributes:
        name: The node's, or its first output's.
        operator: As recipes write it.
        attributes: Their values as text, long ones cut.
        inputs: What it reads, in order; without those that are left out.
        outputs: What it gives, in order.
        scope: The module that it is of, as its exporter wrote it; empty where it wrote none.
        source: The line of the program that it is of, as its exporter wrote it.
        inside: Whether it stands in a body or a function.
        recipes: Bundled recipes with rules about its operator.
        pattern: What finds such nodes, for the `match` of a rule; empty of a Constant.
    """

    name: str
    operator: str
    attributes: Mapping[str, str]
    inputs: tuple[Wire, ...]
    outputs: tuple[Wire, ...]
    scope: str
    source: str
    inside: bool
    recipes: tuple[str, ...]
    pattern: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def standings(model: Model, name: str) -> tuple[Standing, ...]:
    """The nodes of a name, or that give a value of that name, or all of an operator.

    Args:
        model: Looked at, not changed.
        name: A node's name, a value's, or an operator as recipes or files write it.

    Raises:
        RecipeError: There is none.
    """
    nodes = list(nodes_of(model.proto))
    found = [node for node in nodes if name and name in (node.name, *node.output)]
    found = found or [node for node in nodes if name in (operator_name(node), node.op_type)]
    if not found:
        names = [text for node in nodes for text in (node.name, *node.output, node.op_type)]
        raise RecipeError(
            f"the model has no node, value of a node, or operator `{name}`",
            where="--node",
            mend=suggest(name, dict.fromkeys(filter(None, names))),
        )
    around = _Around(model, [text for node in found for text in (*reads(node), *node.output)])
    return tuple(around.of(node) for node in found)


class _Around:
    """What makes and reads the values of a model, and the types of some."""

    def __init__(self, model: Model, names: list[str]) -> None:
        graph = model.proto.graph
        self.outermost = {id(node) for node in graph.node}
        self.makers: dict[str, str] = {}
        self.readers: dict[str, list[str]] = {}
        for node in nodes_of(model.proto):
            label = _label(node)
            for name in node.output:
                self.makers.setdefault(name, label)
            for name in dict.fromkeys(reads(node)):
                self.readers.setdefault(name, []).append(label)
        self.ends = {value.name for value in graph.output}
        weights = {t.name for t in graph.initializer}
        self.given = dict.fromkeys((value.name for value in graph.input), "input")
        self.given |= dict.fromkeys((t.values.name for t in graph.sparse_initializer), "weight")
        self.given |= dict.fromkeys(weights, "weight")
        for node in graph.node:
            if node.op_type == "Constant":
                self.given |= dict.fromkeys(node.output, "constant")
        types = known_types(model, [n for n in dict.fromkeys(names) if n not in weights])
        self.types = {n: onnx.helper.make_value_info(n, type_) for n, type_ in types.items()}
        for tensor in graph.initializer:
            kind, dims = tensor.data_type, list(tensor.dims)
            self.types[tensor.name] = onnx.helper.make_tensor_value_info(tensor.name, kind, dims)

    def of(self, node: onnx.NodeProto) -> Standing:
        told = {entry.key: entry.value for entry in node.metadata_props}
        scopes = (told[key] for key in _SCOPES if told.get(key))
        operator = operator_name(node)
        return Standing(
            name=node.name or next(filter(None, node.output), ""),
            operator=operator,
            attributes={a.name: _shown(a) for a in node.attribute},
            inputs=tuple(self._read(name) for name in reads(node)),
            outputs=tuple(self._given(name) for name in node.output if name),
            scope=next(scopes, ""),
            source=_line(told.get(_STACK, "") or node.doc_string),
            inside=id(node) not in self.outermost,
            recipes=recipes_about(operator),
            pattern=written(node, {}).pattern,
        )

    def _read(self, name: str) -> Wire:
        made = self.given.get(name) or self.makers.get(name, "input of a body")
        return Wire(self._value(name), (made,), name in self.given)

    def _given(self, name: str) -> Wire:
        ends = ["output"] if name in self.ends else []
        return Wire(self._value(name), (*self.readers.get(name, ()), *ends), given=False)

    def _value(self, name: str) -> Value:
        info = self.types.get(name)
        return Value(name, "", None) if info is None else value_of(info)


def _label(node: onnx.NodeProto) -> str:
    name = node.name or next(filter(None, node.output), "")
    return f"{operator_name(node)} {name}"


def _shown(attribute: onnx.AttributeProto) -> str:
    if attribute.HasField("g") or attribute.graphs:
        return "a body"
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    value = attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        dtype = onnx.TensorProto.DataType.Name(value.data_type).lower()
        return f"{dtype}{list(value.dims)}"
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _line(trace: str) -> str:
    """The line of a program that a trace ends at, which newer exporters write last, older first."""
    files = [line.strip() for line in trace.splitlines() if ".py" in line]
    newer = bool(files) and files[-1].startswith("File ")
    return files[-1 if newer else 0][:_LONGEST_LINE] if files else ""
