"""Patterns as data, and as text again; reading text is `notation`'s, meaning is the matcher's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from surgeon.errors import Location

AttributeValue: TypeAlias = (
    int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | np.ndarray[Any, Any]
)

DTYPES: Mapping[str, str] = MappingProxyType(
    {"float": "float32", "double": "float64", "string": "object", "bool": "bool"}
    | {name: name for name in ("float16", "complex64", "complex128")}
    | {f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
"""ONNX's names of element types in text, and numpy's."""


_NO_PLACES: Mapping[str, Location] = MappingProxyType({})


def word_of(dtype: np.dtype[Any]) -> str | None:
    """ONNX's name of an element type in text; None where it has none."""
    return next((word for word, kind in DTYPES.items() if np.dtype(kind) == dtype), None)


class Argument(NamedTuple):
    """One operand of a node.

    Attributes:
        name: "" for an omitted operand, "_" for any value, else the value's name.
        optional: `x?`: the node may have it or not.
        rest: `*xs`: all operands from here on.
        through: `x~`: views between this node and the value are looked through.
        computed: `@x`: a constant computed by `let`; only in replacements.
    """

    name: str
    optional: bool = False
    rest: bool = False
    through: bool = False
    computed: bool = False


class NodePattern(NamedTuple):
    """One node to find, or to write.

    Attributes:
        domain: "" for ai.onnx, "aten" for PyTorch's operators.
        operators: The operator, or the alternatives of `A | B`, all of `domain`.
        overload: The operator's overload; "" when not written.
        inputs: Trailing omitted operands are not kept: they mean what their absence means.
        outputs: Names; "" or "_" for an output nobody names.
        attributes: The attributes written with a literal value; tensors as numpy arrays.
        captures: Attribute name to the name behind its `@`.
        rest: The name of `<*name>`, or None.
        location: Where the node begins. Equality does not look at it.
        places: Where attributes are written, by name; of a text that is read, and for errors alone.
    """

    domain: str
    operators: tuple[str, ...]
    overload: str
    inputs: tuple[Argument, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, AttributeValue]
    captures: Mapping[str, str]
    rest: str | None
    location: Location
    places: Mapping[str, Location] = _NO_PLACES

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodePattern) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def place(self, attribute: str) -> Location:
        """Where an attribute is written."""
        return self.places.get(attribute, self.location)

    def frozen_attributes(self) -> tuple[tuple[str, object], ...]:
        """The literal attributes by name, each as `frozen` gives it."""
        return tuple((name, frozen(self.attributes[name])) for name in sorted(self.attributes))

    def _key(self) -> tuple[object, ...]:
        attributes = self.frozen_attributes()
        captures = tuple(sorted(self.captures.items()))
        head = (self.domain, self.operators, self.overload, self.inputs, self.outputs)
        return (*head, attributes, captures, self.rest)


def frozen(value: AttributeValue) -> object:
    """An attribute's value to compare and hash: 1, 1.0 and a tensor of 1 all differ."""
    if isinstance(value, np.ndarray):
        content = tuple(value.ravel()) if value.dtype.hasobject else value.tobytes()
        return (str(value.dtype), value.shape, content)
    if isinstance(value, tuple):
        return tuple(frozen(item) for item in value)
    return (type(value).__name__, repr(value))


class Pattern(NamedTuple):
    """Nodes in topological order, as written; a match begins at the last one, the root."""

    nodes: tuple[NodePattern, ...]

    @property
    def root(self) -> NodePattern:
        """The last node."""
        return self.nodes[-1]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names that nodes read and none of them produces, in order; not those behind `@`."""
        produced = set(self.outputs)
        read = (argument for node in self.nodes for argument in node.inputs)
        free = (a.name for a in read if a.name not in produced and not a.computed)
        return tuple(dict.fromkeys(name for name in free if name not in ("", "_")))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Every name that a node produces, in order."""
        return tuple(n for node in self.nodes for n in node.outputs if n not in ("", "_"))

    def of_operators(self, node: NodePattern) -> list[NodePattern]:
        """The nodes that may be what another one may be."""
        asked = node.domain, {*node.operators}
        return [each for each in self.nodes if (each.domain, {*each.operators}) == asked]

    def producer(self, name: str) -> NodePattern | None:
        """The node that produces a name; None for an input of the pattern."""
        if name in ("", "_"):
            return None
        return next((node for node in self.nodes if name in node.outputs), None)


def print_pattern(pattern: Pattern) -> str:
    """The pattern as text, one node a line; reading it gives an equal pattern."""
    return "\n".join(_print_node(node) for node in pattern.nodes)


def _print_node(node: NodePattern) -> str:
    prefix = f"{node.domain}." if node.domain else ""
    overload = f":{_print_name(node.overload)}" if node.overload else ""
    attributes = [f"{_print_name(n)} = {print_value(v)}" for n, v in node.attributes.items()]
    attributes += [f"{_print_name(n)} = @{name}" for n, name in node.captures.items()]
    attributes += [f"*{node.rest}"] if node.rest is not None else []
    listed = f" <{', '.join(attributes)}>" if attributes else ""
    outputs = ", ".join(_print_name(name) for name in node.outputs)
    inputs = ", ".join(_print_argument(argument) for argument in node.inputs)
    return f"{outputs} = {prefix}{' | '.join(node.operators)}{overload}{listed} ({inputs})"


def _print_argument(argument: Argument) -> str:
    if argument.computed or argument.rest:
        return f"{'@' if argument.computed else '*'}{argument.name}"
    marks = ("?" if argument.optional else "") + ("~" if argument.through else "")
    return (_print_name(argument.name) if argument.name else "") + marks


def _print_name(name: str) -> str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    return print_value(name)


def print_value(value: Any) -> str:
    """An attribute's value as text."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return f"[{', '.join(print_value(item) for item in value)}]"
    if isinstance(value, np.ndarray):
        name = word_of(value.dtype)
        dims = f"[{','.join(map(str, value.shape))}]" if value.shape else ""
        return f"{name}{dims} {{{', '.join(print_value(i) for i in _elements(value))}}}"
    return repr(value)


def _elements(array: np.ndarray[Any, Any]) -> Iterator[object]:
    return (int(i) if isinstance(i, bool) else i for i in array.ravel().tolist())
