"""The types of a model's values, as they are proven; where they are not, as the file claims."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from surgeon.declared import tensor_of
from surgeon.dialect import normalise
from surgeon.errors import ModelError, SurgeonError
from surgeon.facts import Fact, Facts
from surgeon.inferring import NotInferred, inferred
from surgeon.links import toposort
from surgeon.model import Model
from surgeon.reference.plan import without_calls
from surgeon.sizenames import formula


def types_of(model: Model, names: Sequence[str]) -> dict[str, onnx.TypeProto]:
    """The types of values of the main graph.

    Raises:
        ModelError: The type of one is unknown.
    """
    found = known_types(model, names)
    for name in names:
        if name not in found:
            raise ModelError(
                f"the type of `{name}` is unknown",
                where=str(model.path or "model"),
                mend="Mend what stands before it, by `surgeon apply aten clean` say, and cut then.",
            )
    return found


def known_types(model: Model, names: Sequence[str]) -> dict[str, onnx.TypeProto]:
    """The types of those values of the main graph of which one is known."""
    graph = model.proto.graph
    declared = {
        t.name: onnx.helper.make_tensor_type_proto(t.data_type, t.dims) for t in graph.initializer
    }
    declared |= {v.name: v.type for v in (*graph.input, *graph.output)}
    claimed = {v.name: v.type for v in graph.value_info} | declared
    proven: dict[str, Fact] = {}
    if asked := set(names) - declared.keys():
        proven = _proven(model, asked)
        if any(name not in proven and not _is_told(claimed.get(name)) for name in asked):
            claimed |= _inferred(model)
    found = {}
    for name in names:
        if name in declared:
            found[name] = declared[name]
        elif name in proven:
            found[name] = _type(proven[name])
        elif _is_told(claimed.get(name)):
            found[name] = claimed[name]
    return found


def _proven(model: Model, names: set[str]) -> dict[str, Fact]:
    """What is known of tensors whose dtype is."""
    try:
        flat = model.with_proto(without_calls(model.proto))
        facts = Facts(flat)
        facts.enter(flat.graph)
        found = {}
        for node in toposort(flat.graph):
            made = {t.name: t for t in node.outputs if t.name in names}
            normalise(node, flat.opset, facts, lambda tensor: False)
            facts.infer(node)
            for name, tensor in made.items():
                fact = facts.of(tensor)
                if fact.dtype:
                    found[name] = fact
    except (SurgeonError, ValueError):  # no model, or a circle: whoever runs it says so
        return {}
    return found


def _type(fact: Fact) -> onnx.TypeProto:
    shape = None if fact.shape is None else [formula(dim) for dim in fact.shape]
    return onnx.helper.make_tensor_type_proto(fact.dtype, shape)


def _inferred(model: Model) -> dict[str, onnx.TypeProto]:
    """What onnx infers: of lists, and of what an If gives, too."""
    try:
        whole = inferred(model.proto)
    except NotInferred:
        return {}
    return {value.name: value.type for value in whole.graph.value_info}


def _is_told(type_: onnx.TypeProto | None) -> bool:
    """Whether a type says what the elements are."""
    tensor = None if type_ is None else tensor_of(type_)
    return tensor is not None and bool(tensor.elem_type)
