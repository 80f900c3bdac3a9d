"""Whether a protobuf that was read is a model at all: asked before anything is made of it.

protobuf reads whatever has the right shape of bytes. What other tools stumble over later, or write
out again as if nothing was wrong, is refused here by name: values that nobody gives or that two
give, circles among nodes and functions, tensors whose values are not as many as their dims say,
attributes of another kind than the operator has, and external data that is not the model's own.
Nothing is read but the protobuf and the sizes of data files, and nothing recurses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto

from surgeon.errors import ModelError
from surgeon.soundness.tensors import Broken, check_tensor, quoted

LARGEST_CALLS = 1_000_000  # nodes after every call of a function is written out
_MEND = "Export or download the model again; `onnx.checker` may say more."
_STANDARD = ("", "ai.onnx")


def check(proto: onnx.ModelProto, folder: Path | None, *, where: str) -> None:
    """Refuse what is no model.

    Args:
        proto: As it was read.
        folder: Where external data lies; None where that is not known, and so not looked at.
        where: What the errors say.

    Raises:
        ModelError: It is broken; says where.
    """
    try:
        _check_texts(proto)
        _check_functions(proto)
        opset = max((e.version for e in proto.opset_import if e.domain in _STANDARD), default=1)
        for top in (proto.graph, *proto.functions):
            _check_names(top)
            for graph in _with_bodies(top):
                _check_order(graph)
                for node in graph.node:
                    _check_attributes(node, opset)
                    _check_branches(node)
        for tensor in tensors(proto):
            check_tensor(tensor, folder)
    except Broken as broken:
        raise ModelError(str(broken), where=where, mend=_MEND) from None


def tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of the model: initializers, attributes, and the values of sparse ones."""
    for top in (proto.graph, *proto.functions):
        for graph in _with_bodies(top):
            if isinstance(graph, onnx.GraphProto):
                yield from graph.initializer
                for sparse in graph.sparse_initializer:
                    yield from (sparse.values, sparse.indices)
            for node in graph.node:
                for attribute in node.attribute:
                    if attribute.HasField("t"):
                        yield attribute.t
                    yield from attribute.tensors
                    sparses = list(attribute.sparse_tensors)
                    if attribute.HasField("sparse_tensor"):
                        sparses.append(attribute.sparse_tensor)
                    for sparse in sparses:
                        yield from (sparse.values, sparse.indices)


def with_names_of_their_own(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, list[str]]:
    """The model with the nodes of each graph named apart, and the names that several had.

    onnxruntime refuses two nodes of one name. The model itself where there are none.
    """
    if not any(_repeated(graph) for graph in _every_graph(proto)):
        return proto, []
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    names: dict[str, None] = {}
    for graph in _every_graph(out):
        repeated = _repeated(graph)
        names.update(dict.fromkeys(repeated))
        taken = {node.name for node in graph.node}
        seen: Counter[str] = Counter()
        for node in graph.node:
            if node.name not in repeated:
                continue
            stem = node.name
            seen[stem] += 1
            while seen[stem] > 1 and node.name in taken:
                node.name = f"{stem}_{seen[stem]}"
                seen[stem] += node.name in taken
            taken.add(node.name)
    return out, list(names)


def _every_graph(proto: onnx.ModelProto) -> Iterator[Any]:
    for top in (proto.graph, *proto.functions):
        yield from _with_bodies(top)


def _repeated(graph: Any) -> set[str]:
    counts = Counter(node.name for node in graph.node if node.name)
    return {name for name, count in counts.items() if count > 1}


def _with_bodies(graph: Any) -> Iterator[Any]:
    """A graph or function, and every body in it, outer before inner."""
    stack = [graph]
    while stack:
        graph = stack.pop()
        yield graph
        for node in graph.node:
            stack.extend(_bodies(node))


def _bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    found = []
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found.append(attribute.g)
        found.extend(attribute.graphs)
    return found


def _called(node: onnx.NodeProto) -> str:
    name = node.name or next((name for name in node.output if name), "")
    return f"node {quoted(name)} ({quoted(node.op_type)[1:-1]})"


def _check_texts(proto: onnx.ModelProto) -> None:
    """Every text is UTF-8: protobuf's reader lets others through, and fails when asked for them."""
    stack: list[Any] = [proto]
    while stack:
        message = stack.pop()
        texts, lists, messages, groups = _fields(message.DESCRIPTOR)
        try:
            found = [getattr(message, name) for name in texts]
            for name in lists:
                found += getattr(message, name)
        except UnicodeDecodeError:
            found = [b""]
        if any(isinstance(text, bytes) for text in found):
            raise Broken(f"a text in its {message.DESCRIPTOR.name} is not UTF-8")
        stack += [getattr(message, name) for name in messages if message.HasField(name)]
        for name in groups:
            stack += getattr(message, name)


@cache
def _fields(descriptor: Any) -> tuple[list[str], list[str], list[str], list[str]]:
    """The names of a message's fields: texts, lists of texts, messages, lists of messages."""
    found: tuple[list[str], ...] = ([], [], [], [])
    for field in descriptor.fields:
        many = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
        if field.type == field.TYPE_STRING:
            found[many].append(field.name)
        elif field.type == field.TYPE_MESSAGE:
            found[2 + many].append(field.name)
    return found[0], found[1], found[2], found[3]


# ------------------------------------------------------------------------------------- names


def _check_names(top: Any) -> None:
    """Every name that is read is given, once, where the reader can see it."""
    stack: list[tuple[Any, frozenset[str] | set[str]]] = [(top, frozenset())]
    while stack:
        graph, outside = stack.pop()
        given = _given(graph)
        seen = outside | given if outside else given
        for node in graph.node:
            for name in node.input:
                if name and name not in seen:
                    raise Broken(f"{_called(node)} reads {quoted(name)}, which nothing gives")
            stack.extend((body, seen) for body in _bodies(node))
        for name in _names(graph.output):
            if name not in seen:
                raise Broken(f"the output {quoted(name)} is given by nothing")


def _given(graph: Any) -> set[str]:
    """The names a graph gives.

    Raises:
        Broken: Two of its values have the same.
    """
    given = set()
    for name in _names(graph.input):
        if name in given:
            raise Broken(f"two inputs are called {quoted(name)}")
        given.add(name)
    if isinstance(graph, onnx.GraphProto):
        initializers = set()
        sparse = (s.values.name for s in graph.sparse_initializer)
        for name in (*(t.name for t in graph.initializer), *sparse):
            if name in initializers:
                raise Broken(f"two initializers are called {quoted(name)}")
            initializers.add(name)
        given |= initializers
    for node in graph.node:
        for name in node.output:
            if name and name in given:
                raise Broken(
                    f"{_called(node)} gives {quoted(name)}, which is there already: every value "
                    "needs a name of its own"
                )
            given.add(name)
    return given


def _names(values: Iterable[Any]) -> Iterator[str]:
    """Of a function's inputs and outputs, which are names, or a graph's."""
    for value in values:
        yield value if isinstance(value, str) else value.name


def _check_order(graph: Any) -> None:
    """Refuse a circle: a node that reads what it gives itself, directly or by others."""
    made = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    ahead = any(
        made.get(name, -1) >= i for i, node in enumerate(graph.node) for name in _reads(node)
    )
    if not ahead:  # the file's order is an order
        return
    waits = [{made[name] for name in _reads(node) if name in made} for node in graph.node]
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
        raise Broken(f"the graph has a cycle through {_called(graph.node[at])}")


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node and its bodies read, of those around it."""
    if not any(a.HasField("g") or a.graphs for a in node.attribute):
        yield from node.input
        return
    stack: list[Any] = [node]
    yield from node.input
    own: set[str] = set()
    read: set[str] = set()
    while stack:
        for body in _bodies(stack.pop()):
            own.update(value.name for value in body.input)
            read.update(value.name for value in body.output)
            for inner in body.node:
                own.update(inner.output)
                read.update(inner.input)
                stack.append(inner)
    yield from read - own


# --------------------------------------------------------------------------------- functions


def _check_functions(proto: onnx.ModelProto) -> None:
    """No function is there twice, calls itself, or grows beyond bounds when it is written out."""
    functions = {}
    for function in proto.functions:
        key = (function.domain, function.name, getattr(function, "overload", ""))
        if key in functions:
            raise Broken(f"the function {quoted(function.name)} is there twice")
        functions[key] = function
    calls = {key: _calls(function, functions) for key, function in functions.items()}
    sizes: dict[Any, int] = {}
    for start in functions:
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
            sizes[key] = len(functions[key].node) + inner
    total = sum(sizes[key] * n for key, n in _calls(proto.graph, functions).items())
    if total > LARGEST_CALLS:
        raise Broken(f"its functions call one another {total:.2g} times: no runtime can hold that")


def _calls(top: Any, functions: Any) -> Counter[Any]:
    """How often a graph calls each function."""
    return Counter(
        key
        for graph in _with_bodies(top)
        for node in graph.node
        if (key := (node.domain, node.op_type, getattr(node, "overload", ""))) in functions
    )


# ------------------------------------------------------------------------ attributes, tensors


def _check_attributes(node: onnx.NodeProto, opset: int) -> None:
    """A standard operator's attributes are of the kinds that it has."""
    if node.domain not in _STANDARD or not node.attribute:
        return
    if node.op_type == "Constant":  # torch 1.4 says it in kinds of its own, and they are read
        return
    kinds = _kinds(node.op_type, opset)
    for attribute in node.attribute:
        kind = kinds.get(attribute.name)
        if kind is None or attribute.ref_attr_name:
            continue
        found = attribute.type or _kind_by_content(attribute)
        if found != kind:
            raise Broken(
                f"attribute {quoted(attribute.name)} of {_called(node)} is of kind "
                f"{_kind_name(found)}, and the operator's is {_kind_name(kind)}"
            )


def _check_branches(node: onnx.NodeProto) -> None:
    """The branches of an If give what it gives."""
    if node.op_type == "If" and node.domain in _STANDARD:
        for body in _bodies(node):
            if len(body.output) < len(node.output):
                raise Broken(f"a branch of {_called(node)} gives fewer values than the node")


@cache
def _kinds(op: str, opset: int) -> dict[str, int]:
    try:
        schema = onnx.defs.get_schema(op, min(max(opset, 1), 2**31 - 1), "")
    except Exception:  # not in this opset, or in none: not for us to say
        return {}
    kinds: dict[str, Any] = {name: a.type for name, a in schema.attributes.items()}
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
