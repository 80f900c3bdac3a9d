"""Writes what is proven of values' types and shapes into the file, for tools that infer none."""

from __future__ import annotations

from typing import Any

import onnx

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts import Fact, Facts
from surgeon.links import bodies
from surgeon.model import Model


def state_shapes(model: Model, facts: Facts) -> int:
    """Say of each value what is proven: its dtype, its rank, numbers, and sizes of inputs by name.

    A size that is computed otherwise is left open. What the file said of a value, an output
    included, is replaced; where nothing is proven it stays. Gives of how many values the file said
    something else, or nothing.

    Args:
        model: Its graphs are given `stated`, `corrected` and `declared`, which the writer uses.
        facts: What is proven.
    """
    names = {
        dim.dim_param
        for value in model.proto.graph.input
        for dim in value.type.tensor_type.shape.dim
        if dim.dim_param
    }
    news = 0
    for graph in (model.graph, *bodies(model.graph)):
        origin: Any = getattr(graph, "origin", None)
        if not isinstance(origin, onnx.GraphProto):
            continue
        said = {value.name: value for value in origin.value_info}
        outputs = {value.name for value in origin.output}
        stated = {value.name: value for value in getattr(graph, "stated", ())}
        corrected = dict(getattr(graph, "corrected", {}))
        for node in graph.nodes:
            for tensor in node.outputs:
                fact = facts.of(tensor)
                if not tensor.name or tensor.name in outputs or not _is_known(fact):
                    continue
                value = _value(tensor.name, fact, names)
                (corrected if tensor.name in said else stated)[tensor.name] = value
                news += said.get(tensor.name) != value
        graph.stated, graph.corrected = list(stated.values()), corrected
    return news + _state_outputs(model, facts, names)


def _is_known(fact: Fact) -> bool:
    return fact.items is None and bool(fact.dtype) and fact.rank is not None


def _state_outputs(model: Model, facts: Facts, names: set[str]) -> int:
    """Outputs of the model; a size that is proven to be an input's has its name."""
    origin: Any = getattr(model.graph, "origin", None)
    declared = dict(getattr(model.graph, "declared", {}))
    news = 0
    for value, tensor in zip(origin.output, model.graph.outputs, strict=False):
        fact = facts.of(tensor)
        if _is_known(fact) and tensor.inputs:
            declared[value.name] = _value(value.name, fact, names)
            news += value != declared[value.name]
    model.graph.declared = declared
    return news


def _value(name: str, fact: Fact, names: set[str]) -> onnx.ValueInfoProto:
    shape = [_size(dim, names) for dim in fact.shape or ()]
    return onnx.helper.make_tensor_value_info(name, fact.dtype, shape)


def _size(dim: Dim, names: set[str]) -> int | str | None:
    if isinstance(dim, int):
        return dim
    name = dims.named(dim)
    return name if name in names else None
