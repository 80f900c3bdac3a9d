"""Cuts a graph into steps: the longest standard stretches, and single nodes between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from surgeon.errors import ModelError
from surgeon.nested import bodies
from surgeon.reference.arguments import ATEN_DOMAINS, PRIM_DOMAINS, constant_value, is_foreign
from surgeon.standard import STANDARD
from surgeon.tensors import array_of

CONTROL = frozenset({"If", "Loop", "Scan"})


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan.

    Attributes:
        nodes: One foreign or control node, or a stretch of standard nodes.
        standard: Whether onnxruntime runs it.
        inputs: Values it reads that are computed elsewhere or fed; constants are not among them.
        constants: Constants it reads.
        outputs: Values it makes that something after it reads.
        dead: Values nothing reads after it.
    """

    nodes: tuple[onnx.NodeProto, ...]
    standard: bool
    inputs: tuple[str, ...]
    constants: tuple[str, ...]
    outputs: tuple[str, ...]
    dead: tuple[str, ...]


class Constants:
    """Initializers and Constant nodes by name; those of the surrounding graph behind them."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        folder: Path | None,
        outer: Constants | None = None,
        overridden: Collection[str] = (),
    ) -> None:
        self._folder, self._outer = folder, outer
        self._hidden = {v.name for v in graph.input} | set(overridden)
        initializers = {t.name: t for t in graph.initializer if t.name not in overridden}
        self.sparse = {
            t.values.name: t for t in graph.sparse_initializer if t.values.name not in overridden
        }
        self._hidden -= initializers.keys()
        self._tensors: dict[str, onnx.TensorProto] = initializers
        self._values: dict[str, Any] = {}
        for node in graph.node:
            self._add(node)

    def _add(self, node: onnx.NodeProto) -> None:
        if node.domain not in STANDARD or not node.output:
            return
        name = node.output[0]
        if node.op_type == "Constant":
            tensor = next(
                (a.t for a in node.attribute if a.name == "value" and a.HasField("t")), None
            )
            if tensor is not None:
                self._tensors[name] = tensor
            else:
                value = constant_value(node)
                if value is not None and "sparse_value" not in {a.name for a in node.attribute}:
                    self._values[name] = value
        elif node.op_type == "Identity" and node.input and node.input[0] in self._tensors:
            self._tensors[name] = self._tensors[node.input[0]]
        elif node.op_type == "Identity" and node.input and node.input[0] in self._values:
            self._values[name] = self._values[node.input[0]]
        else:
            self._hidden.update(node.output)

    def __contains__(self, name: object) -> bool:
        return (
            name in self._tensors
            or name in self._values
            or name in self.sparse
            or (self._outer is not None and name not in self._hidden and name in self._outer)
        )

    def value(self, name: str) -> Any:
        """The constant as Python has it: an array; a text or a list in PyTorch's own files."""
        if name not in self._values:
            if name in self._tensors:
                self._values[name] = array_of(self._tensors[name], self._folder)
            elif self._outer is not None:
                return self._outer.value(name)
        return self._values[name]

    def embed(self, name: str, graph: onnx.GraphProto) -> bool:
        """Put the constant into a graph as an initializer; False where it has no such form."""
        if name in self._tensors:
            tensor = graph.initializer.add()
            tensor.CopyFrom(self._tensors[name])
            tensor.name = name
            return True
        if name in self.sparse:
            graph.sparse_initializer.add().CopyFrom(self.sparse[name])
            return True
        if name in self._values:
            value = self._values[name]
            if isinstance(value, (str, list)):
                return False
            graph.initializer.append(onnx.numpy_helper.from_array(value, name))
            return True
        return self._outer is not None and self._outer.embed(name, graph)


def without_calls(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its functions written out; as it is, where onnx cannot do that."""
    if not model.functions:
        return model
    from onnx import inliner

    try:
        flat: onnx.ModelProto = inliner.inline_local_functions(model)
    except Exception:  # whatever C++ has against the model
        return model
    return flat


def captures(graph: onnx.GraphProto) -> dict[str, None]:
    """Names a body reads from around it, in order of first use."""
    made = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    made |= {t.values.name for t in graph.sparse_initializer}
    for node in graph.node:
        made.update(node.output)
    used: dict[str, None] = {}
    for node in graph.node:
        used.update(reads(node))
    used.update(dict.fromkeys(v.name for v in graph.output))
    return {name: None for name in used if name not in made}


def reads(node: onnx.NodeProto) -> dict[str, None]:
    """Names a node reads, its bodies' captures included."""
    names = dict.fromkeys(name for name in node.input if name)
    for graph in bodies(node):
        names.update(captures(graph))
    return names


def holds_foreign(node: onnx.NodeProto) -> bool:
    """Whether a body of this node, however deep, holds a foreign node."""
    return any(
        is_foreign(inner) or holds_foreign(inner) for graph in bodies(node) for inner in graph.node
    )


def make_plan(
    graph: onnx.GraphProto,
    constants: Constants,
    available: Collection[str],
    requested: Sequence[str],
) -> tuple[Step, ...]:
    """The steps that compute the requested values.

    Args:
        graph: Main graph or body.
        constants: What needs no computing.
        available: Names that are fed, or captured from around the graph.
        requested: Names to keep to the end.

    Raises:
        ModelError: A value is read that nothing produces, or nodes read each other in a circle.
    """
    nodes = _needed(graph, constants, requested)
    groups = list(_groups(nodes, constants, available))
    last_read: dict[str, int] = {}
    for index, group in enumerate(groups):
        for node in group:
            for name in reads(node):
                last_read[name] = index
    keep = set(requested)
    steps = []
    for index, group in enumerate(groups):
        used: dict[str, None] = {}
        for node in group:
            used.update(reads(node))
        made = dict.fromkeys(name for node in group for name in node.output if name)
        outside = [name for name in used if name not in made]
        standard = _is_standard(group[0])
        outputs = [n for n in made if n in keep or last_read.get(n, -1) > index]
        steps.append(
            Step(
                nodes=tuple(group),
                standard=standard,
                inputs=tuple(name for name in outside if name not in constants),
                constants=tuple(name for name in outside if name in constants),
                outputs=tuple(outputs if standard else made),
                dead=tuple(n for n in used if last_read[n] == index and n not in keep),
            )
        )
    return tuple(step for step in steps if step.outputs or not step.standard)


def _is_standard(node: onnx.NodeProto) -> bool:
    return not is_foreign(node) and not (node.op_type in CONTROL and holds_foreign(node))


def _needed(
    graph: onnx.GraphProto, constants: Constants, requested: Iterable[str]
) -> list[onnx.NodeProto]:
    producer = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    found: set[int] = set()
    pending = [name for name in requested if name not in constants]
    while pending:
        index = producer.get(pending.pop())
        if index is not None and index not in found:
            found.add(index)
            pending += [name for name in reads(graph.node[index]) if name not in constants]
    return [graph.node[index] for index in sorted(found)]


def _groups(
    nodes: Sequence[onnx.NodeProto], constants: Constants, available: Collection[str]
) -> Iterator[list[onnx.NodeProto]]:
    """All standard nodes that can run, as one group; then each other node that can; and again."""
    producer = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    waiting, readers = [], [list[int]() for _ in nodes]
    for index, node in enumerate(nodes):
        before = {producer[n] for n in reads(node) if n in producer and n not in constants}
        waiting.append(len(before))
        for other in before:
            readers[other].append(index)
        for name in reads(node):
            if name not in producer and name not in constants and name not in available:
                raise ModelError(
                    f"`{name}` is read but nothing produces it",
                    where=f"node '{node.name or next(iter(node.output), '')}' ({node.op_type})",
                    mend="Export the model again: this file is damaged.",
                )
    standard: deque[int] = deque()
    single: deque[int] = deque()

    def ready(index: int) -> None:
        (standard if _is_standard(nodes[index]) else single).append(index)

    def finish(index: int) -> None:
        for reader in readers[index]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                ready(reader)

    for index, count in enumerate(waiting):
        if count == 0:
            ready(index)
    done = 0
    while standard or single:
        group = []
        while standard:
            index = standard.popleft()
            group.append(nodes[index])
            finish(index)
        if group:
            done += len(group)
            yield group
        while single:
            index = single.popleft()
            done += 1
            yield [nodes[index]]
            finish(index)
    if done < len(nodes):
        raise ModelError(
            "nodes read each other's outputs in a circle",
            where="the graph",
            mend="Export the model again: this file is damaged.",
        )


def operator_sets(model: onnx.ModelProto) -> Mapping[str, int]:
    """The operator sets onnxruntime is told of: PyTorch's own namespaces are none."""
    return {
        entry.domain: entry.version
        for entry in model.opset_import
        if entry.domain not in ATEN_DOMAINS | PRIM_DOMAINS
    }
