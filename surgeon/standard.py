"""What onnx says of standard operators: which opsets have them, and of which types they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

import onnx
import onnx.defs

STANDARD = ("", "ai.onnx")  # the two names of the default domain

# Operators that draw at random, or do in training: two runs give two results.
DRAWING = frozenset(
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli "
    "Dropout".split()
)


@cache
def newest_opset() -> int:
    """The newest default opset that onnx knows."""
    return int(onnx.defs.onnx_opset_version())


def opset_of(proto: onnx.ModelProto | onnx.FunctionProto) -> int | None:
    """The version of the default operator set; None where none is imported."""
    return next((e.version for e in proto.opset_import if e.domain in STANDARD), None)


@cache
def schema(op: str, opset: int) -> onnx.defs.OpSchema | None:
    """A standard operator as an opset has it; None where it has none of the name."""
    try:
        return onnx.defs.get_schema(op, max(0, min(opset, newest_opset())), "")  # takes an int32
    except onnx.defs.SchemaError:
        return None


@cache
def defaults(op: str, opset: int) -> Mapping[str, Any]:
    """What a standard operator's attributes say where they are not given, by name; texts as str."""
    own = schema(op, opset)
    said = own.attributes if own is not None else {}
    return {
        name: attribute_value(entry.default_value)
        for name, entry in said.items()
        if entry.default_value.type
    }


def attribute_value(attribute: onnx.AttributeProto) -> Any:
    """What an attribute says; a text as str."""
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def first_opset(op: str) -> int | None:
    """The first opset that has the operator; None where none has."""
    return _first().get(op)


def known_operators() -> Collection[str]:
    """The names of all standard operators, of whatever opset."""
    return _first().keys()


@cache
def _first() -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in onnx.defs.get_all_schemas_with_history():
        if entry.domain == "":
            found[entry.name] = min(found.get(entry.name, 10**6), entry.since_version)
    return found


@cache
def takes(op: str, opset: int, index: int, dtype: int) -> bool:
    """Whether a standard operator takes tensors of a type as an input; of no schema, any."""
    allowed = _allowed(op, opset, index)
    return not allowed or f"tensor({onnx.TensorProto.DataType.Name(dtype).lower()})" in allowed


@cache
def fits(op: str, opset: int, kinds: tuple[int, ...]) -> bool:
    """Whether a standard operator takes operands of these element types beside one another.

    Args:
        op: Its name.
        opset: Of which its schema is.
        kinds: Of its inputs in order; 0 where one is not known or left out.
    """
    own = schema(op, opset)
    if own is None or not own.inputs:
        return True
    seen: dict[str, int] = {}
    last = own.inputs[-1]
    for place, kind in enumerate(kinds):
        index = min(place, len(own.inputs) - 1)
        if index < place and last.option != last.option.Variadic:
            break  # of what is an attribute in this opset
        entry = own.inputs[index]
        if kind and not takes(op, opset, index, kind):
            return False
        if kind and entry.is_homogeneous and seen.setdefault(entry.type_str, kind) != kind:
            return False
    return True


def gives(op: str, opset: int, dtype: int) -> bool:
    """Whether an operator's first output can be of an element type; not where there is none."""
    own = schema(op, opset)
    return own is not None and dtype in map(element_type, own.outputs[0].types)


def typed_by(op: str, opset: int, operands: Collection[int], place: int = 0) -> bool:
    """Whether the element type of an output is that of one of these operands.

    A power is of the type of its first operand, whatever its second one is. What is an attribute
    of the opset, and stands behind its operands, has no say.
    """
    own = schema(op, opset)
    if own is None:
        return False
    last = len(own.inputs) - 1
    kinds = {own.inputs[min(n, last)].type_str for n in operands if n < own.max_input}
    return own.outputs[min(place, len(own.outputs) - 1)].type_str in kinds


@cache
def _allowed(op: str, opset: int, index: int) -> frozenset[str]:
    own = schema(op, opset)
    return frozenset(own.inputs[index].types) if own else frozenset()


@cache
def element_type(text: str) -> int:
    """The number of the element type in `tensor(NAME)`, as schemas write it; 0 in other texts."""
    name = text.removeprefix("tensor(").removesuffix(")")
    if f"tensor({name})" != text:
        return 0
    return int(dict(onnx.TensorProto.DataType.items()).get(name.upper(), 0))
