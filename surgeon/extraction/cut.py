"""What of a model makes some of its values of others: found from the outputs back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.nested import bodies
from surgeon.reference.plan import reads

FROM, TO = "--from", "--to"
_FEW = 5


@dataclass(frozen=True, slots=True)
class End:
    """A value at which a model is cut.

    Attributes:
        value: What the model calls it.
        name: What the part is to call it.
    """

    value: str
    name: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of a model.

    Attributes:
        inputs: The values that it is given; where none were chosen, the graph inputs it reads.
        outputs: The values that it gives.
        nodes: Its nodes, in the model's order.
        reads: The names of all values that they read, captured ones included.
    """

    inputs: tuple[End, ...]
    outputs: tuple[End, ...]
    nodes: tuple[onnx.NodeProto, ...]
    reads: frozenset[str]


class Wiring:
    """Which node of the main graph makes which value, and which values are given.

    Args:
        graph: Not changed.
    """

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.nodes = list(graph.node)
        self.makers = {
            name: index for index, node in enumerate(self.nodes) for name in node.output if name
        }
        self.constants = {t.name for t in graph.initializer}
        self.constants |= {t.values.name for t in graph.sparse_initializer}
        self.inputs = [v.name for v in graph.input]
        self.required = [name for name in self.inputs if name not in self.constants]

    def is_constant(self, name: str) -> bool:
        """Whether a value is one that nobody can give."""
        if name in self.makers:
            return bool(self.nodes[self.makers[name]].op_type == "Constant")
        return name not in self.inputs

    def behind(self, wanted: Sequence[str], stops: set[str]) -> tuple[list[int], dict[str, int]]:
        """The nodes that make values of others, and what they read, each with a node that does.

        Args:
            wanted: The values.
            stops: The values that are given: what makes them is not looked at.
        """
        found: set[int] = set()
        read: dict[str, int] = {}
        pending = [self.makers[name] for name in wanted if name in self.makers]
        while pending:
            index = pending.pop()
            if index in found:
                continue
            found.add(index)
            for name in reads(self.nodes[index]):
                read.setdefault(name, index)
                if name in self.makers and name not in stops:
                    pending.append(self.makers[name])
        return sorted(found), read


def read_end(text: str, wiring: Wiring, where: str) -> End:
    """A value by its name, or as `NAME=VALUE` where the part is to call it otherwise.

    Raises:
        RecipeError: The main graph has no such value.
    """
    known = {*wiring.makers, *wiring.inputs, *wiring.constants}
    if text in known:
        return End(text, text)
    name, equals, value = text.partition("=")
    if equals and name and value in known:
        return End(value, name)
    raise _unknown(value if equals and name else text, wiring, where)


def cut(
    wiring: Wiring, inputs: Sequence[End], outputs: Sequence[End], weights: Sequence[End] = ()
) -> Cut:
    """The part of a model between values.

    Args:
        wiring: Of the model.
        inputs: Where it begins; with none, at the graph's inputs.
        outputs: Where it ends; with none, at the graph's outputs.
        weights: Those that are inputs of the part, behind the others.

    Raises:
        RecipeError: A value is named twice, is no such end, or the part reads more than is given.
    """
    outputs = outputs or [End(v.name, v.name) for v in wiring.graph.output]
    for ends, where in ((inputs, FROM), (outputs, TO)):
        _check_once(ends, where)
    given = {end.value for end in inputs}
    for end in outputs:
        if end.value in given or end.value not in wiring.makers:
            what = "is where the part begins" if end.value in given else "is computed by no node"
            raise RecipeError(
                f"`{end.value}` {what}", where=TO, mend="Name a value that a node behind it makes."
            )
    if constant := next((end.value for end in inputs if wiring.is_constant(end.value)), None):
        raise RecipeError(
            f"`{constant}` is a constant: the part has it already", where=FROM, mend="Leave it out."
        )
    indices, read = wiring.behind([end.value for end in outputs], given)
    if not inputs:
        inputs = [End(name, name) for name in wiring.required if name in read]
        given = {end.value for end in inputs}
    if idle := [end.value for end in inputs if end.value not in read]:
        raise RecipeError(
            f"no node of the part reads {_names(idle)}",
            where=FROM,
            mend="Leave it out, or see between which values the part lies: surgeon inspect.",
        )
    if lacking := [name for name in wiring.required if name in read and name not in given]:
        reader = wiring.nodes[read[lacking[0]]]
        raise RecipeError(
            f"the part reads {_names(lacking)} too, for `{next(filter(None, reader.output))}` "
            f"({reader.op_type})",
            where=FROM,
            mend=f"Add `{FROM} {lacking[0]}`, or a value between it and the part's outputs.",
        )
    inputs = [*inputs, *weights]
    nodes = tuple(wiring.nodes[index] for index in indices)
    _check_names(wiring, inputs, outputs, nodes)
    return Cut(tuple(inputs), tuple(outputs), nodes, frozenset(read))


def _check_once(ends: Sequence[End], where: str) -> None:
    for kind, names in (("value", [e.value for e in ends]), ("name", [e.name for e in ends])):
        if twice := next((name for name, count in Counter(names).items() if count > 1), None):
            raise RecipeError(
                f"the {kind} `{twice}` is given twice", where=where, mend="Leave one of them out."
            )


def _check_names(
    wiring: Wiring, inputs: Sequence[End], outputs: Sequence[End], nodes: Sequence[onnx.NodeProto]
) -> None:
    """A name that the part is to call a value by must be no other value's.

    Raises:
        RecipeError: It is.
    """
    taken = {name for node in nodes for name in _every_name(node)} | wiring.constants
    taken -= {end.value for end in (*inputs, *outputs) if end.name != end.value}
    begun = {end.name for end in inputs}
    for ends, where in ((inputs, FROM), (outputs, TO)):
        for end in ends:
            clash = end.name != end.value and end.name in taken
            if clash or (where == TO and end.name in begun):
                raise RecipeError(
                    f"`{end.name}` is the name of another value of the part",
                    where=where,
                    mend=f"Call `{end.value}` otherwise.",
                )


def _every_name(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    yield from node.output
    for body in bodies(node):
        yield from (value.name for value in (*body.input, *body.output, *body.initializer))
        for inner in body.node:
            yield from _every_name(inner)


def _unknown(value: str, wiring: Wiring, where: str) -> RecipeError:
    known = {*wiring.makers, *wiring.inputs}
    for node in wiring.nodes:
        if node.name and node.name == value:
            made = _names([name for name in node.output if name])
            return RecipeError(
                f"`{value}` is a node, and the model is cut at values",
                where=where,
                mend=f"Name what it gives: {made}.",
            )
        if any(value in _every_name(inner) for body in bodies(node) for inner in body.node):
            return RecipeError(
                f"`{value}` is a value of a body of node `{node.name or node.output[0]}` "
                f"({node.op_type})",
                where=where,
                mend="Name values of the main graph.",
            )
    outputs = _names([v.name for v in wiring.graph.output])
    listed = f"Name an input ({_names(wiring.required)}), an output ({outputs}) or a value between."
    mend = suggest(value, known, listed)
    return RecipeError(f"the model has no value `{value}`", where=where, mend=mend)


def _names(names: Sequence[str]) -> str:
    said = ", ".join(f"`{name}`" for name in names[:_FEW])
    return f"{said} and {len(names) - _FEW} more" if len(names) > _FEW else said


def renamed(nodes: Sequence[onnx.NodeProto], names: Mapping[str, str]) -> list[onnx.NodeProto]:
    """Copies of nodes that call values otherwise, in their bodies too.

    Args:
        nodes: Not changed.
        names: The new names by the old.
    """
    made = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if names:
            _rename(copy, names)
        made.append(copy)
    return made


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    for field in (node.input, node.output):
        for index, name in enumerate(field):
            if name in names:
                field[index] = names[name]
    for body in bodies(node):
        own = {v.name for v in (*body.input, *body.initializer)}
        own |= {t.values.name for t in body.sparse_initializer}
        own |= {name for inner in body.node for name in inner.output}
        outside = {old: new for old, new in names.items() if old not in own}
        if outside:
            for inner in body.node:
                _rename(inner, outside)
            for value in body.output:
                value.name = outside.get(value.name, value.name)
