"""What a node need not say leaves: attributes that came later, and operands left out at the end.

An exporter of today writes `reduction = "none"` beside ScatterND and `allowzero = 0` beside
Reshape. What such an attribute says is what the operator did before there was one, and converters
that know the operator refuse the attribute. Others take the empty name at the end of
`Clip (x, low, "")` for a bound that is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import onnx

from surgeon.errors import SurgeonError
from surgeon.nested import every_node
from surgeon.standard import STANDARD, attribute_value, defaults, newest_opset

STEP = "plain-attributes"
_OTHERWISE = {  # which meant something else by default before
    "Resize": frozenset({"coordinate_transformation_mode", "nearest_mode"}),
    "RoiAlign": frozenset({"coordinate_transformation_mode"}),
}


def plain_attributes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model without such attributes and operands.

    Raises:
        SurgeonError: There is none.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    gone = 0
    for node in _nodes(changed):
        later = _later(node.op_type) if node.domain in STANDARD else {}
        kept = [a for a in node.attribute if not _is_needless(a, later)]
        for names, end in _left_out(node):
            gone += len(names) - end
            del names[end:]
        if len(kept) < len(node.attribute):
            gone += len(node.attribute) - len(kept)
            copies = [onnx.AttributeProto.FromString(a.SerializeToString()) for a in kept]
            del node.attribute[:]
            node.attribute.extend(copies)
    if not gone:
        raise SurgeonError(
            "no attribute says what its operator did before there was one, and no operand is left "
            "out at the end",
            where=STEP,
            mend="Leave the step out.",
        )
    return changed


def has_such(proto: onnx.ModelProto) -> bool:
    """Whether a file has such attributes or operands."""
    if any(any(_left_out(node)) for node in _nodes(proto)):
        return True
    return any(
        _is_needless(attribute, _later(node.op_type))
        for node in _nodes(proto)
        if node.domain in STANDARD and node.attribute
        for attribute in node.attribute
    )


def _nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    for graph in (proto.graph, *proto.functions):
        yield from every_node(graph.node)


def _left_out(node: onnx.NodeProto) -> Iterator[tuple[Any, int]]:
    """The inputs or outputs of a node of ONNX's own that end in empty names, and where to end."""
    if not any(names and not names[-1] for names in (node.input, node.output)):
        return
    versions = _versions().get(node.op_type, ()) if node.domain in STANDARD else ()
    if not versions:
        return
    least = max(each.min_input for each in versions), max(_kept_outputs(v, node) for v in versions)
    for names, needed in zip((node.input, node.output), least, strict=True):
        end = len(names)
        while end > needed and not names[end - 1]:
            end -= 1
        if end < len(names):
            yield names, end


def _kept_outputs(version: Any, node: onnx.NodeProto) -> int:
    """How many outputs have to be named: all, where their number says what each is, as in Split."""
    if any(each.option == version.FormalParameterOption.Variadic for each in version.outputs):
        return len(node.output)
    return int(version.min_output)


def _is_needless(attribute: onnx.AttributeProto, later: dict[str, Any]) -> bool:
    name = attribute.name
    if name not in later or attribute.ref_attr_name:
        return False
    return bool(attribute_value(attribute) == later[name])


@cache
def _later(op: str) -> dict[str, Any]:
    """The attributes that an operator has had later than others, with what they are by default."""
    versions = sorted(_versions().get(op, ()), key=lambda schema: schema.since_version)
    if len(versions) < 2:
        return {}
    others = {*versions[0].attributes, *_OTHERWISE.get(op, ())}
    usual = defaults(op, newest_opset())
    return {name: value for name, value in usual.items() if name not in others}


@cache
def _versions() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in STANDARD:
            found.setdefault(schema.name, []).append(schema)
    return found
