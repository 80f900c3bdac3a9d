"""Whether a protobuf that was read is a model at all: asked before anything is made of it.

protobuf reads whatever has the right shape of bytes. What other tools stumble over later, or write
out again as if nothing was wrong, is refused here by name: values that nobody gives or that two
give, circles among nodes and functions, tensors whose values are not as many as their dims say,
attributes of another kind than the operator has, and external data that is not the model's own.
Nothing is read but the protobuf and the sizes of data files, and nothing recurses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnx import AttributeProto

from surgeon.errors import ModelError
from surgeon.reading import external_path
from surgeon.soundness.apart import outputs_to_copy, repeated
from surgeon.soundness.control import check_bodies
from surgeon.soundness.scopes import Node, Scope
from surgeon.soundness.tensors import Broken, check_tensor, quoted
from surgeon.soundness.texts import check_texts
from surgeon.standard import STANDARD, first_opset, opset_of, schema

LARGEST_CALLS = 1_000_000  # nodes after every call of a function is written out
_MEND = "Export or download the model again; `onnx.checker` may say more."
_FIRST_IR_WITH_IMPORTS = 3


class Sound(NamedTuple):
    """What was seen of a model on the way.

    Attributes:
        outside: Whether values of it lie in other files.
        shared: Names that several nodes of one graph have.
        again: Values that a body gives as several of its outputs, or that are not its own.
        twice: What nodes give that say again what one before them says.
        scopes: Its graph and its functions as they were read, for who links them and takes them.
    """

    outside: bool
    shared: tuple[str, ...]
    again: tuple[str, ...]
    twice: tuple[str, ...]
    scopes: list[Scope]

    def take_scopes(self, proto: onnx.ModelProto) -> list[Scope]:
        """The scopes; read from `proto` again where somebody has them already."""
        taken, self.scopes[:] = self.scopes[:], []
        return taken or scopes_of(proto)


def check(proto: onnx.ModelProto, folder: Path | None, *, where: str) -> Sound:
    """Refuse what is no model, and say what was seen of it.

    Args:
        proto: As it was read.
        folder: Where external data lies; None where that is not known, and so not looked at.
        where: What the errors say.

    Raises:
        ModelError: It is broken; says where.
    """
    try:
        main, *functions = scopes = scopes_of(proto)
        check_texts(proto, (main, *functions))
        _check_functions(main, functions)
        opset = opset_of(proto) or 1
        _check_imports(proto)
        outside = False
        shared: dict[str, None] = {}
        again: dict[str, None] = {}
        twice: dict[str, None] = {}
        for top in (main, *functions):
            _check_names(top)
            for scope in top.with_bodies():
                shared.update(dict.fromkeys(sorted(repeated(n.proto.name for n in scope.nodes))))
                twice.update((next(filter(None, node.outputs)), None) for node in scope.again)
                if scope is not top:
                    again.update(dict.fromkeys(sorted(outputs_to_copy(scope.proto))))
                _check_order(scope)
                for node in scope.nodes:
                    if not node.outputs:
                        _check_gives(node)
                    if node.attributes:
                        _check_attributes(node, opset)
                    check_bodies(node, opset)
                for tensor in scope.tensors():
                    check_tensor(tensor, folder)
                    outside = outside or tensor.data_location == tensor.EXTERNAL
    except Broken as broken:
        raise ModelError(str(broken), where=where, mend=_MEND) from None
    return Sound(outside, tuple(shared), tuple(again), tuple(twice), scopes)


def see_texts(proto: onnx.ModelProto, *, where: str) -> None:
    """Refuse what holds a text that is none: nothing can be shown of it.

    Args:
        proto: As it was read.
        where: What the error says.

    Raises:
        ModelError: A text is not UTF-8.
    """
    try:
        check_texts(proto, scopes_of(proto))
    except Broken as broken:
        raise ModelError(str(broken), where=where, mend=_MEND) from None


def see_outside(tensors: Iterable[onnx.TensorProto], folder: Path, *, where: str) -> None:
    """See that what lies outside a model is there, and as much as the model says.

    Args:
        tensors: Those whose values lie in other files.
        folder: Where the files are.
        where: What the errors say.

    Raises:
        ModelError: A file is missing, lies outside the folder, or is too short; or what the model
            says of one is no number, or does not fit the tensor's shape.
    """
    for tensor in tensors:
        told = [entry.value for entry in tensor.external_data if entry.key == "location"]
        external_path(told[-1] if told else "", folder)
        try:
            check_tensor(tensor, folder)
        except Broken as broken:
            raise ModelError(str(broken), where=where, mend=_MEND) from None


def scopes_of(proto: onnx.ModelProto) -> list[Scope]:
    """The graph and the functions of a model, read once.

    Raises:
        Broken: A text is none.
    """
    try:
        return [Scope(top) for top in (proto.graph, *proto.functions)]
    except UnicodeDecodeError:
        raise Broken("a text in its NodeProto is not UTF-8") from None


# ------------------------------------------------------------------------------------- names


def _check_names(top: Scope) -> None:
    """Every name that is read is given, once, where the reader can see it."""
    stack: list[tuple[Scope, frozenset[str] | set[str]]] = [(top, frozenset())]
    while stack:
        scope, outside = stack.pop()
        given = _given(scope)
        seen = outside | given if outside else given
        for node in scope.nodes:
            for name in node.inputs:
                if name and name not in seen:
                    raise Broken(f"{node} reads {quoted(name)}, which nothing gives")
            if node.bodies:
                stack.extend((body, seen) for body in node.bodies)
        for name in _names(scope.proto.output):
            if name not in seen:
                raise Broken(f"the output {quoted(name)} is given by nothing")


def _given(scope: Scope) -> set[str]:
    """The names a graph gives.

    Raises:
        Broken: Two of its values have the same.
    """
    graph = scope.proto
    given = set()
    for name in _names(graph.input):
        if name in given:
            raise Broken(f"two inputs are called {quoted(name)}")
        given.add(name)
    if isinstance(graph, onnx.GraphProto):
        initializers: dict[str, onnx.TensorProto] = {}
        for tensor in (*graph.initializer, *(s.values for s in graph.sparse_initializer)):
            known = initializers.setdefault(tensor.name, tensor)
            if known is not tensor and known != tensor:  # equal ones onnxruntime takes for one
                raise Broken(f"two initializers are called {quoted(tensor.name)}")
        given |= initializers.keys()
    for node in scope.nodes:
        for name in node.outputs:
            if name and name in given:
                raise Broken(
                    f"{node} gives {quoted(name)}, which is there already: every value "
                    "needs a name of its own"
                )
            given.add(name)
    return given


def _names(values: Iterable[Any]) -> Iterator[str]:
    """Of a function's inputs and outputs, which are names, or a graph's."""
    for value in values:
        yield value if isinstance(value, str) else value.name


def _check_order(scope: Scope) -> None:
    """Refuse a circle: a node that reads what it gives itself, directly or by others."""
    made = {name: i for i, node in enumerate(scope.nodes) for name in node.outputs if name}
    reads = [_reads(node) if node.bodies else node.inputs for node in scope.nodes]
    if not any(made.get(name, -1) >= i for i, names in enumerate(reads) for name in names):
        return  # the file's order is an order
    waits = [{made[name] for name in names if name in made} for names in reads]
    readers: dict[int, list[int]] = {}
    for i, before in enumerate(waits):
        for j in before:
            readers.setdefault(j, []).append(i)
    free = [i for i, before in enumerate(waits) if not before]
    done = 0
    while free:
        i = free.pop()
        done += 1
        for j in readers.get(i, ()):
            waits[j].discard(i)
            if not waits[j]:
                free.append(j)
    if done < len(waits):
        at = next(i for i, before in enumerate(waits) if before)
        seen: set[int] = set()
        while at not in seen:  # what waits, waits for one that does
            seen.add(at)
            at = min(waits[at])
        raise Broken(f"the graph has a cycle through {scope.nodes[at]}")


def _reads(node: Node) -> list[str]:
    """The names that a node and its bodies read, of those around it."""
    own: set[str] = set()
    read: set[str] = set()
    for body in (inner for top in node.bodies for inner in top.with_bodies()):
        own.update(value.name for value in body.proto.input)
        read.update(value.name for value in body.proto.output)
        for inner_node in body.nodes:
            own.update(inner_node.outputs)
            read.update(inner_node.inputs)
    return [*node.inputs, *(read - own)]


# --------------------------------------------------------------------------------- functions


def _check_functions(main: Scope, functions: Sequence[Scope]) -> None:
    """No function is there twice, calls itself, or grows beyond bounds when it is written out."""
    known: dict[tuple[str, str, str], Scope] = {}
    for scope in functions:
        function = scope.proto
        key = (function.domain, function.name, getattr(function, "overload", ""))
        if key in known:
            raise Broken(f"the function {quoted(function.name)} is there twice")
        known[key] = scope
    if not known:
        return
    calls = {key: _calls(function, known) for key, function in known.items()}
    sizes: dict[Any, int] = {}
    for start in known:
        path = [start]
        on_path = {start}
        while path:
            waiting = [key for key in calls[path[-1]] if key not in sizes]
            if waiting:
                if waiting[0] in on_path:
                    raise Broken(f"the function {quoted(waiting[0][1])} calls itself")
                path.append(waiting[0])
                on_path.add(waiting[0])
                continue
            key = path.pop()
            on_path.discard(key)
            inner = sum(sizes[called] * count for called, count in calls[key].items())
            sizes[key] = len(known[key].nodes) + inner
    total = sum(sizes[key] * n for key, n in _calls(main, known).items())
    if total > LARGEST_CALLS:
        raise Broken(f"its functions call one another {total:.2g} times: no runtime can hold that")


def _calls(top: Scope, functions: Any) -> Counter[Any]:
    """How often a graph calls each function."""
    return Counter(
        node.key for scope in top.with_bodies() for node in scope.nodes if node.key in functions
    )


# ------------------------------------------------------------------------ attributes, branches


def _check_imports(proto: onnx.ModelProto) -> None:
    """Standard nodes mean nothing without the operator set's version, which IR 3 made a duty."""
    for part in (proto, *proto.functions):
        _check_versions(part)
    if proto.graph.node and not proto.graph.output:
        raise Broken("it has no outputs, so that nothing it computes can be had")
    if proto.ir_version < _FIRST_IR_WITH_IMPORTS or opset_of(proto) is not None:
        return
    for node in proto.graph.node:
        if node.domain in STANDARD and node.op_type != "ATen":
            raise Broken(
                f"it imports no version of ONNX's own operator set, which node `{node.name}` "
                f"({node.op_type}) is of: `opset_import` has to name the one it was written for"
            )


def _check_versions(part: onnx.ModelProto | onnx.FunctionProto) -> None:
    """Of two versions of one domain onnxruntime takes the last, and onnx the higher one."""
    versions: dict[str, int] = {}
    for entry in part.opset_import:
        domain = "" if entry.domain in STANDARD else entry.domain
        if versions.setdefault(domain, entry.version) != entry.version:
            whose = quoted(domain) if domain else "ONNX's own operator set"
            raise Broken(
                f"it imports two versions of {whose}, {versions[domain]} and {entry.version}: "
                "`opset_import` has to name only the one it was written for"
            )


def _check_gives(node: Node) -> None:
    """Each of ONNX's operators gives something; others may be there for what they do."""
    if node.proto.domain in STANDARD and first_opset(node.proto.op_type):
        raise Broken(f"{node} gives nothing")


def _check_attributes(node: Node, opset: int) -> None:
    """A standard operator's attributes are of the kinds that it has."""
    operator = node.proto.op_type
    # torch 1.4 says Constant in kinds of its own, and they are read
    if operator == "Constant" or node.proto.domain not in STANDARD:
        return
    kinds = _kinds(operator, opset)
    for attribute in node.attributes:
        kind = kinds.get(attribute.name)
        if kind is None or attribute.type == kind or attribute.ref_attr_name:
            continue
        found = attribute.type or _kind_by_content(attribute)
        if found != kind:
            raise Broken(
                f"attribute {quoted(attribute.name)} of {node} is of kind "
                f"{_kind_name(found)}, and the operator's is {_kind_name(kind)}"
            )


@cache
def _kinds(op: str, opset: int) -> dict[str, int]:
    known = schema(op, opset)
    if known is None:  # not in this opset, or in none: not for us to say
        return {}
    kinds: dict[str, Any] = {name: a.type for name, a in known.attributes.items()}
    return {name: int(kind.value) for name, kind in kinds.items()}


def _kind_name(kind: int) -> str:
    names: dict[int, str] = {v: k for k, v in AttributeProto.AttributeType.items()}
    return names.get(kind, str(kind)).lower()


def _kind_by_content(attribute: onnx.AttributeProto) -> int:
    """IR versions before 2 had no `type`."""
    for field, kind in (
        ("f", AttributeProto.FLOAT),
        ("i", AttributeProto.INT),
        ("s", AttributeProto.STRING),
        ("t", AttributeProto.TENSOR),
        ("g", AttributeProto.GRAPH),
    ):
        if attribute.HasField(field):
            return int(kind)
    for field, kind in (
        ("floats", AttributeProto.FLOATS),
        ("ints", AttributeProto.INTS),
        ("strings", AttributeProto.STRINGS),
    ):
        if len(getattr(attribute, field)):
            return int(kind)
    return 0
