"""What a file says of the types of its values, held against facts.

Exporters guess the type of what they have no operator for, say nothing of what a scripted module's
Loop carries, and converters of halves state halves everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx

from surgeon import dims
from surgeon.dims import Dim, Expr
from surgeon.facts import Fact, Facts
from surgeon.links import bodies
from surgeon.model import Model


def as_they_came(model: Model) -> Iterator[tuple[Any, onnx.GraphProto]]:
    """The main graph and every body of the file that is still there, with what was read."""
    for graph in (model.graph, *bodies(model.graph)):
        origin = getattr(graph, "origin", None)
        if isinstance(origin, onnx.GraphProto):
            yield graph, origin


def correct_types(model: Model, facts: Facts) -> list[str]:
    """Correct every false element type of an output, in bodies too; names what was corrected.

    Exporters guess the type of what they have no operator for.

    Args:
        model: Its graphs are given `declared`, which the writer uses.
        facts: What is proven.
    """
    found: list[str] = []
    for graph, origin in as_they_came(model):
        declared = dict(getattr(graph, "declared", {}))
        for value, tensor in zip(origin.output, graph.outputs, strict=False):
            proven = facts.of(tensor).dtype
            claimed = value.type.tensor_type.elem_type
            if not tensor.inputs or not proven or claimed in (0, proven):
                continue
            mended = onnx.ValueInfoProto()
            mended.CopyFrom(declared.get(value.name, value))
            mended.type.tensor_type.elem_type = proven
            declared[value.name] = mended
            found.append(value.name)
        graph.declared = declared
    return found


def declare_tables(model: Model, facts: Facts) -> list[str]:
    """Declare as tensors what the file declares as lists of maps, and is one; names the outputs.

    Args:
        model: It is given `declared`, which the writer uses.
        facts: What is proven.
    """
    found: list[str] = []
    for graph, origin in as_they_came(model):
        declared = dict(getattr(graph, "declared", {}))
        for value, tensor in zip(origin.output, graph.outputs, strict=False):
            fact = facts.of(tensor)
            item = value.type.sequence_type.elem_type
            if item.WhichOneof("value") == "map_type" and fact.dtype and fact.items is None:
                shape = [
                    dims.named(dim) or f"{value.name}_{i}" if not isinstance(dim, int) else dim
                    for i, dim in enumerate(fact.shape or ())
                ]
                declared[value.name] = onnx.helper.make_tensor_value_info(
                    value.name, fact.dtype, None if fact.shape is None else shape
                )
                found.append(value.name)
        graph.declared = declared
    return found


def declare_numbers(model: Model, facts: Facts) -> None:
    """Declare the number and the condition of a Loop's turn where the file says nothing of them.

    onnxruntime runs no Loop whose turn has an unknown shape.

    Args:
        model: The bodies of its Loops are given `declared`, which the writer uses.
        facts: What is proven.
    """
    for graph, origin in as_they_came(model):
        declared = dict(getattr(graph, "declared", {}))
        for value, tensor in zip(origin.input, graph.inputs, strict=False):
            proven, claimed = facts.of(tensor), value.type.tensor_type
            silent = not claimed.HasField("shape") and claimed.elem_type in (0, proven.dtype)
            if silent and proven.dtype and proven.shape == ():
                declared[value.name] = onnx.helper.make_tensor_value_info(
                    value.name, proven.dtype, ()
                )
        graph.declared = declared


def declare_types(model: Model, facts: Facts) -> None:
    """Declare what is proven of values whose type the file leaves empty, or says in part.

    Exporters write so what a scripted module's Loop carries, lists above all, and no runtime reads
    it. What is not proven is not declared, so that a runtime infers it.

    Args:
        model: Its graphs are given `declared`, which the writer uses.
        facts: What is proven.
    """
    for graph, origin in as_they_came(model):
        declared = dict(getattr(graph, "declared", {}))
        pairs = [*zip(origin.input, graph.inputs, strict=False)] if graph is not model.graph else []
        for value, tensor in (*pairs, *zip(origin.output, graph.outputs, strict=False)):
            fact, mended = facts.of(tensor), onnx.ValueInfoProto(name=value.name)
            if value.name in declared or not _says_too_little(value.type, fact):
                continue
            if fact.items is not None and (fact.items.dtype or fact.items.empty):
                item = mended.type.sequence_type.elem_type.tensor_type
                item.elem_type = fact.items.dtype or onnx.TensorProto.FLOAT
            elif fact.items is None and fact.dtype:
                mended.type.tensor_type.elem_type = fact.dtype
            declared[value.name] = mended
        graph.declared = declared


def _says_too_little(claimed: onnx.TypeProto, fact: Fact) -> bool:
    """Whether a type has no kind, or is not that of a list, or not of what is in the list."""
    kind = claimed.WhichOneof("value")
    if kind is None:
        return True
    if kind == "tensor_type":
        return fact.items is not None or (not claimed.tensor_type.elem_type and bool(fact.dtype))
    if kind != "sequence_type" or fact.items is None:
        return False
    item = claimed.sequence_type.elem_type
    said = item.tensor_type.elem_type if item.WhichOneof("value") == "tensor_type" else 0
    return said == 0 or (fact.items.dtype not in (0, said))


def as_tensor(value: onnx.ValueInfoProto, fact: Fact) -> onnx.ValueInfoProto | None:
    """The claim where a tensor is said to be a list; None where it is not.

    PyTorch's exporter says so of sizes that a scripted module asks for.
    """
    if not value.type.HasField("sequence_type") or fact.items is not None or not fact.dtype:
        return None
    shape = None if fact.shape is None else [name_of(dim) for dim in fact.shape]
    return onnx.helper.make_tensor_value_info(value.name, fact.dtype, shape)


def of_type(value: onnx.ValueInfoProto, dtype: int) -> onnx.ValueInfoProto | None:
    """The claim with the element type that is proven; None where that is not false."""
    claimed = value.type.tensor_type.elem_type
    if not value.type.HasField("tensor_type") or not dtype or claimed in (0, dtype):
        return None
    mended = onnx.ValueInfoProto()
    mended.CopyFrom(value)
    mended.type.tensor_type.elem_type = dtype
    return mended


def name_of(dim: Dim) -> int | str:
    """A dimension as a file can say it: a number, a symbol's name, or nothing."""
    if isinstance(dim, Expr):
        names = dims.symbols(dim)
        return str(dim) if len(names) == 1 and str(dim) in names else ""
    return dim
