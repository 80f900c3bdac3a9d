"""The types of a model's values, as they are proven; where they are not, as the file claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import onnx
import onnx.parser

from surgeon.declared import tensor_of
from surgeon.dialect import normalise
from surgeon.errors import ModelError, RecipeError, SurgeonError
from surgeon.facts import Fact, Facts
from surgeon.inferring import NotInferred, inferred
from surgeon.links import toposort
from surgeon.model import Model
from surgeon.reference.plan import without_calls
from surgeon.sizenames import formula

TYPE = "--type"
_T = onnx.TensorProto


def types_of(
    model: Model, names: Sequence[str], said: Mapping[str, str] = MappingProxyType({})
) -> dict[str, onnx.TypeProto]:
    """The types of values of the main graph.

    Args:
        model: The model.
        names: Of the values.
        said: By a value's name, what its type was said to be, as ONNX's text has it.

    Raises:
        ModelError: The type of one is unknown.
        RecipeError: What was said is no type, of no such value, or not what is known.
    """
    found = known_types(model, names)
    for name, text in said.items():
        type_ = _read(name, text)
        known = tensor_of(found[name]) if name in found else None
        if name not in names or (known and known.elem_type != type_.tensor_type.elem_type):
            what = f"its elements are {_T.DataType.Name(known.elem_type).lower()}" if known else ""
            raise RecipeError(
                f"`{name}` is not of the type `{text}`: {what or 'the part has no such end'}",
                where=TYPE,
                mend="Say the type of a value that `--from` or `--to` names, where none is known.",
            )
        found[name] = type_
    for name in names:
        if name not in found:
            raise ModelError(
                f"the type of `{name}` is unknown",
                where=str(model.path or "model"),
                mend=f"Say it: `{TYPE} '{name}=int64[n,t]'`, say; or mend what stands before it, "
                "by `surgeon apply aten clean`, and cut then.",
            )
    return found


def _read(name: str, text: str) -> onnx.TypeProto:
    """A type as ONNX's text has it, `int64[n,t]`."""
    try:
        graph = onnx.parser.parse_graph(f"g ({text} x) => ({text} y) {{ y = Identity (x) }}")
    except onnx.parser.ParseError:
        graph = onnx.GraphProto()
    types: list[onnx.TypeProto] = [value.type for value in graph.input if tensor_of(value.type)]
    if len(types) != 1:
        raise RecipeError(
            f"the type of `{name}`, `{text}`, is none",
            where=TYPE,
            mend="Write it as `int64[n,t]` or `float[1,3,8,8]`.",
        )
    return types[0]


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
