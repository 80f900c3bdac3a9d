"""The same model in other words: every name another, the nodes in another order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx

from surgeon.nested import bodies

Names = Mapping[str, str]


def in_other_words(model: onnx.ModelProto, seed: int) -> tuple[onnx.ModelProto, Names]:
    """A copy with all values and nodes renamed, and the nodes in another topological order.

    Args:
        model: Not changed. Functions keep the names inside them.
        seed: What names and order are drawn from; with 0 the last node that can come, comes.

    Returns:
        The copy, and the new name of each value.
    """
    generator = np.random.default_rng([seed, 21])
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    names = _renaming(copy.graph, generator)
    _rename(copy.graph, names, generator, backwards=seed == 0)
    return copy, names


def _renaming(graph: onnx.GraphProto, generator: np.random.Generator) -> dict[str, str]:
    old = sorted(set(_names(graph)))
    numbers = generator.permutation(len(old))
    forms = ("/layer.{}/Op_output_0", "{}", "t{}", "x:{}")
    return {
        name: forms[int(number) % len(forms)].format(int(number) + 1)
        for name, number in zip(old, numbers, strict=True)
    }


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    yield from (value.name for value in (*graph.input, *graph.output))
    yield from (tensor.name for tensor in graph.initializer)
    for node in graph.node:
        yield from (name for name in (*node.input, *node.output) if name)
        for body in bodies(node):
            yield from _names(body)


def _rename(
    graph: onnx.GraphProto, names: Names, generator: np.random.Generator, *, backwards: bool
) -> None:
    for item in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        item.name = names.get(item.name, item.name)
    nodes = list(graph.node)
    for node in nodes:
        node.name = f"node {int(generator.integers(1 << 40))}"
        for field in (node.input, node.output):
            new = [names.get(name, "") for name in field]
            del field[:]
            field.extend(new)
        for body in bodies(node):
            _rename(body, names, generator, backwards=backwards)
    order = _shuffled(nodes, generator, backwards=backwards)
    del graph.node[:]
    graph.node.extend(order)
    constants = list(graph.initializer)
    del graph.initializer[:]
    graph.initializer.extend(constants[int(i)] for i in generator.permutation(len(constants)))


def _shuffled(
    nodes: list[onnx.NodeProto], generator: np.random.Generator, *, backwards: bool
) -> list[onnx.NodeProto]:
    """Another order in which every node comes behind those it reads."""
    maker = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    waits = [{maker[name] for name in _read(node) if name in maker} for node in nodes]
    order: list[onnx.NodeProto] = []
    done: set[int] = set()
    while len(order) < len(nodes):
        ready = [i for i in range(len(nodes)) if i not in done and waits[i] <= done]
        chosen = ready[-1] if backwards else int(generator.choice(ready))
        order.append(nodes[chosen])
        done.add(chosen)
    return order


def _read(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    for body in bodies(node):
        for inner in body.node:
            yield from _read(inner)
        yield from (value.name for value in body.output)
