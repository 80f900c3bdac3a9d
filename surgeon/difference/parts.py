"""All that a message of a model says, part by part, so that nothing of it goes uncompared.

A part is a text, or a tensor whose values are compared. Fields are found by what the protobuf
itself lists: one that a later version of ONNX adds is compared like the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx

from surgeon.difference.texts import Tensor, type_said
from surgeon.standard import STANDARD, attribute_value, defaults, newest_opset

Part = str | Tensor

PLAIN = frozenset({"doc_string", "metadata_props"})  # nothing computes from them
GRAPH = "graph"  # the part of a graph: its nodes are compared by themselves

_KINDS = onnx.AttributeProto.AttributeType
_FIELDS: dict[int, str] = {
    _KINDS.FLOAT: "f",
    _KINDS.INT: "i",
    _KINDS.STRING: "s",
    _KINDS.TENSOR: "t",
    _KINDS.GRAPH: "g",
    _KINDS.SPARSE_TENSOR: "sparse_tensor",
    _KINDS.TYPE_PROTO: "tp",
    _KINDS.FLOATS: "floats",
    _KINDS.INTS: "ints",
    _KINDS.STRINGS: "strings",
    _KINDS.TENSORS: "tensors",
    _KINDS.GRAPHS: "graphs",
    _KINDS.SPARSE_TENSORS: "sparse_tensors",
    _KINDS.TYPE_PROTOS: "type_protos",
}
_LABELS = {"opset_import": "opset of", "metadata_props": "metadata", "attribute_proto": "attribute"}
_SCALARS = (str, bytes, int, float)
_NAMED_BY = ("tensor_name", "name", "key", "domain")


def parts_of(
    message: Any, told: frozenset[str] = frozenset(), names: Mapping[str, str] | None = None
) -> dict[str, Part]:
    """What a message says, by what it says it of; fields that are not set say nothing.

    Args:
        message: A model, graph, function or node, or what these hold.
        told: Fields that are told in other words.
        names: Of values that have other names in the other model; held messages name values.
    """
    found: dict[str, Part] = {}
    seen: dict[str, int] = {}
    for field, value in message.ListFields():
        # some exporters write an empty text or a zero where others write nothing
        if field.name in told or (isinstance(value, _SCALARS) and not value):
            continue
        label = _LABELS.get(field.name, field.name)
        for name, part in _parts(label, value, names or {}):
            count = seen[name] = seen.get(name, 0) + 1  # a key may be there twice
            found[name if count == 1 else f"{name} ({count})"] = part
    return found


def needless(one: onnx.NodeProto, other: onnx.NodeProto) -> set[str]:
    """Attributes that one of two nodes leaves out, and the other gives as they are anyway."""
    given = [{each.name: each for each in node.attribute} for node in (one, other)]
    usual = _usual(one.op_type) if one.domain in STANDARD else {}
    in_one = {name: {**given[0], **given[1]}[name] for name in given[0].keys() ^ given[1].keys()}
    return {
        name
        for name, said in in_one.items()
        if name in usual and not said.ref_attr_name and attribute_value(said) == usual[name]
    }


@cache
def _usual(op: str) -> dict[str, Any]:
    """What attributes are where they are not given, in whatever opset."""
    every = [defaults(op, opset) for opset in range(1, newest_opset() + 1)]
    return {
        name: value
        for name, value in every[-1].items()
        if all(known.get(name, value) == value for known in every)
    }


def attribute_parts(attribute: onnx.AttributeProto) -> Iterator[tuple[str, Part]]:
    """The value of an attribute; of lists of tensors, types and graphs each by its index."""
    kind = attribute.type or _kind_by_content(attribute)
    word = _KINDS.Name(kind).lower() if kind in _FIELDS else f"kind {kind}"
    if attribute.ref_attr_name:
        yield "", f"@{attribute.ref_attr_name} ({word})"
    elif kind not in _FIELDS:
        yield "", f"of {word}"
    elif kind in (_KINDS.FLOAT, _KINDS.INT, _KINDS.STRING):
        yield "", _number_or_text(getattr(attribute, _FIELDS[kind]), kind == _KINDS.FLOAT)
    elif kind in (_KINDS.FLOATS, _KINDS.INTS, _KINDS.STRINGS):
        held = getattr(attribute, _FIELDS[kind])
        said = ", ".join(_number_or_text(each, kind == _KINDS.FLOATS) for each in held)
        yield "", f"[{said}]" if held else f"no {word}"
    elif kind in (_KINDS.TENSOR, _KINDS.SPARSE_TENSOR, _KINDS.TYPE_PROTO, _KINDS.GRAPH):
        yield "", _held(getattr(attribute, _FIELDS[kind]))
    else:
        held = getattr(attribute, _FIELDS[kind])
        if not held:
            yield "", f"no {word}"
        yield from ((f"[{index}]", _held(each)) for index, each in enumerate(held))


def graphs_of(attribute: onnx.AttributeProto) -> Iterator[str]:
    """A label for each graph of an attribute, in the order in which `Scope` reads them."""
    if attribute.HasField("g"):
        yield attribute.name
    yield from (f"{attribute.name}[{index}]" for index in range(len(attribute.graphs)))


def _parts(label: str, value: Any, names: Mapping[str, str]) -> Iterator[tuple[str, Part]]:
    """The parts of one field: of a value, a message, or several of them."""
    if isinstance(value, _SCALARS):
        yield label, str(value)
        return
    if hasattr(value, "ListFields"):
        yield from _message(label, value, names)
        return
    if not all(hasattr(each, "ListFields") for each in value):
        if label == "attribute":  # a function's: those without a default
            yield from ((f"attribute {name}", "required") for name in value)
        else:
            yield label, ", ".join(names.get(str(each), str(each)) for each in value)
        return
    for index, each in enumerate(value):
        if isinstance(each, onnx.StringStringEntryProto):
            named = {} if label == "metadata" else names  # texts, and no values
            yield f"{label} {each.key}", named.get(each.value, each.value)
        elif isinstance(each, onnx.OperatorSetIdProto):
            yield f"{label} {each.domain or 'ai.onnx'}", str(each.version)
        elif isinstance(each, onnx.AttributeProto):
            for place, part in attribute_parts(each):
                yield f"{label} {each.name}{place}", part
        else:
            naming = _naming_field(each)
            name = str(getattr(each, naming)) if naming else str(index)
            yield from _message(f"{label} {names.get(name, name)}", each, names, naming)


def _message(
    label: str, value: Any, names: Mapping[str, str], naming: str = ""
) -> Iterator[tuple[str, Part]]:
    """The parts of a message that is held; `naming` is the field that the label has already."""
    if isinstance(value, Tensor | onnx.TypeProto | onnx.GraphProto):
        yield label, _held(value)
        return
    empty = True
    for field, held in value.ListFields():
        if field.name not in PLAIN and field.name != naming:
            known = names.get(held, held) if isinstance(held, str) else held
            for part in _parts(f"{label} {field.name}", known, names):
                empty = False
                yield part
    if empty:
        yield label, "there"


def _naming_field(message: Any) -> str:
    """The field that tells a message from its siblings."""
    return next((field for field in _NAMED_BY if getattr(message, field, "")), "")


def _held(value: Any) -> Part:
    if isinstance(value, Tensor):
        return value
    return GRAPH if isinstance(value, onnx.GraphProto) else type_said(value)


def _number_or_text(value: Any, single: bool) -> str:
    if isinstance(value, bytes):
        try:
            return repr(value.decode())
        except UnicodeDecodeError:
            return repr(value)
    return str(np.float32(value)) if single else str(value)


def _kind_by_content(attribute: onnx.AttributeProto) -> int:
    """IR versions before 2 had no `type`."""
    held = {field.name for field, _ in attribute.ListFields()}
    return next((kind for kind, field in _FIELDS.items() if field in held), 0)
