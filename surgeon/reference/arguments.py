"""How exporters spell ATen nodes: operator, overload and arguments out of any of the spellings.

Met in files: `org.pytorch.aten::ATen` with `operator` and maybe `overload_name`, all arguments
positional; the operator's own name as op_type in that domain, no attributes; `ATen` in the default
domain with some arguments as attributes; `com.microsoft::ATenOp` with `name`, of ONNX Runtime's
first trainer, and the arguments maybe as JSON; and the `prim` nodes that make and open lists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto

from surgeon.reference import libraries
from surgeon.reference.errors import Unsuited
from surgeon.reference.schema import Mismatch, bind, parse_schema
from surgeon.standard import STANDARD

_LIBRARIES = ("aten", "torchvision", "torchaudio", "quantized_decomposed", "torchao")
ATEN_DOMAINS = frozenset({*_LIBRARIES, *(f"org.pytorch.{name}" for name in _LIBRARIES)})
PRIM_DOMAINS = frozenset({"org.pytorch.prim", "prim"})
_COMPLEX = frozenset({onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128})
# What torch.jit's builtin functions say of lists by the name of an operator of tensors.
_OF_LISTS = {
    "add": ("t",),
    "mul": ("left_t", "right_t", "right_"),
    "eq": ("int_list", "float_list", "bool_list", "str_list", "Tensor_list"),
    "ne": ("int_list", "float_list", "bool_list", "str_list", "Tensor_list"),
    "index": ("list_int", "list_float", "list_bool", "list_str", "list_Tensor"),
}
_NOT_ARGUMENTS = frozenset({"operator", "overload_name", "_outputs"})
_TRAINER = ("com.microsoft", "ATenOp")
_IN_JSON = "custom_attributes_json"


@dataclass(frozen=True, slots=True)
class Call:
    """What an ATen node asks for.

    Attributes:
        operator: PyTorch's name, without namespace.
        overload: As the file says, most often empty.
        attributes: The arguments it gives by name.
    """

    operator: str
    overload: str
    attributes: Mapping[str, Any]


def is_foreign(node: onnx.NodeProto) -> bool:
    """Whether this node is PyTorch's own, an ATen or prim node in any spelling, or another tool's.

    Of other tools only what `libraries` executes is.
    """
    if node.domain in ATEN_DOMAINS or node.domain in PRIM_DOMAINS:
        return True
    if libraries.is_known(node):
        return True
    if node.op_type == "DynamicSlice":  # on trial in ONNX before opset 9, and dropped
        return node.domain in STANDARD
    if node.op_type == "Unsqueeze":  # a bound of a slice that was left out
        return node.domain in STANDARD and not any(node.input[:1])
    if node.op_type == "SequenceConstruct":  # indices of which one is None: no sequence of tensors
        return node.domain in STANDARD and "" in node.input
    if node.op_type == "Cast":  # no runtime has complex values
        return node.domain in STANDARD and any(a.i in _COMPLEX for a in node.attribute)
    if (node.domain, node.op_type) == _TRAINER:
        return True
    return node.op_type == "ATen" and node.domain in ("", "ai.onnx", "com.microsoft")


def is_prim(node: onnx.NodeProto) -> bool:
    """Whether this is one of TorchScript's own operators on lists and constants."""
    return node.domain in PRIM_DOMAINS


def decode(node: onnx.NodeProto) -> Call:
    """The operator a foreign node stands for, and the arguments it gives by name."""
    attributes = {a.name: attribute_value(a) for a in node.attribute}
    by_trainer = (node.domain, node.op_type) == _TRAINER
    if by_trainer:
        attributes["operator"] = attributes.pop("name", "")
        attributes.update(_from_json(attributes.pop(_IN_JSON, "")))
    operator, overload = node.op_type, ""
    if by_trainer or node.op_type == "ATen":
        operator = str(attributes.get("operator", ""))
        overload = str(attributes.get("overload_name", ""))
    operator = operator.rpartition("::")[2]
    if "." in operator:
        operator, _, overload = operator.partition(".")
    if operator.startswith("__") and operator.endswith("_") and not operator.endswith("__"):
        operator += "_"  # exporters cut one underscore off `__and__`
    arguments = {k: v for k, v in attributes.items() if k not in _NOT_ARGUMENTS}
    values = len(node.input) + len(arguments), len(node.output)
    if operator in ("max", "min") and values == (2, 1) and "dim" not in arguments:
        overload = "other"  # over a dim there are a third argument and a second output
    if operator == "gradient" and values[0] == 3:
        overload = overload or "array"  # PyTorch writes every argument: the others have four
    return Call(operator, overload, arguments)


def _from_json(text: str) -> dict[str, Any]:
    """The arguments by name; what is no JSON fits no schema as it stands."""
    try:
        given = json.loads(text) if text else {}
    except ValueError:
        return {_IN_JSON: text}
    if not isinstance(given, dict):
        return {_IN_JSON: text}
    return {name: value for name, value in given.items() if value is not None}


def attribute_value(attribute: AttributeProto) -> Any:
    """An attribute's value; the non-standard kinds of exporters included."""
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.STRING:
        return value.decode(errors="replace")
    if attribute.type == AttributeProto.STRINGS:
        return [item.decode(errors="replace") for item in value]
    if attribute.type == AttributeProto.TENSOR:
        return onnx.numpy_helper.to_array(value)
    if attribute.type == AttributeProto.TENSORS:
        return [onnx.numpy_helper.to_array(item) for item in value]
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return list(value)
    return value


def constant_value(node: onnx.NodeProto) -> Any:
    """What a Constant node holds: an array; a text or a list of arrays in PyTorch's own files."""
    for attribute in node.attribute:
        value = attribute_value(attribute)
        if attribute.name == "value":
            return value
        if attribute.name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
        if attribute.name in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
        if attribute.name in ("value_string", "value_strings"):
            return np.asarray(value, object)
    return None


def fit(schemas: Sequence[str], call: Call, values: Sequence[Any]) -> tuple[int, dict[str, Any]]:
    """The first schema the arguments fit, by its place, and every parameter's value by name.

    Args:
        schemas: In PyTorch's own notation, older signatures first.
        call: The node's operator.
        values: What the node's inputs hold; None for an empty name.

    Raises:
        Mismatch: No schema fits; the text gives each one's reason.
    """
    reasons = []
    order = range(len(schemas))
    named = [
        i for i in order if call.overload and parse_schema(schemas[i]).overload == call.overload
    ]
    if not named and call.overload in _OF_LISTS.get(call.operator, ()):
        raise Mismatch(f"`{call.operator}.{call.overload}` is of Python's lists")
    # a trace loses the `int()` around a size: fractions are cut where no signature has fractions
    for cut in (False, True):
        for index in named or order:
            schema = parse_schema(schemas[index])
            try:
                return index, bind(schema, values, call.attributes, cut=cut)
            except Mismatch as error:
                reasons.append(f"{schemas[index].partition(' ->')[0]}: {error}")
    raise Mismatch("; ".join(dict.fromkeys(reasons)))


def is_written_to(schemas: Sequence[str], values: Sequence[Any]) -> bool:
    """Whether the last value is of floats or booleans where no schema takes a tensor: `out=`."""
    last, place = values[-1] if len(values) > 1 else None, len(values) - 1
    if not isinstance(last, np.ndarray) or last.dtype.kind not in "fb":
        return False
    parameters = [parse_schema(schema).parameters for schema in schemas]
    there = [given[place].type for given in parameters if len(given) > place]
    if there and last.ndim == 0:  # a number, perhaps
        return False
    return "Tensor" not in there and place in map(len, parameters)


def written_to(out: np.ndarray[Any, Any], result: Any) -> np.ndarray[Any, Any]:
    """The result as it stands in `out=`, which has its own dtype and, unless it is empty, shape.

    Raises:
        Unsuited: It is no tensor, or of another shape.
    """
    if not isinstance(result, np.ndarray) or (out.size and out.shape != result.shape):
        raise Unsuited("its last argument is not what the result is written to")
    return result.astype(out.dtype)
