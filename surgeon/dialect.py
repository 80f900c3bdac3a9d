"""One form for what exporters say in many ways, before any rule looks.

The normal form is a view: a node that no rule touches is written back from its `origin`. ATen nodes
of every spelling become domain `aten`, op_type = operator, positional inputs; `prim` nodes become
domain `prim`; standard nodes get their newest form (see `opsets`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.facts import Facts
from surgeon.facts.elementwise import ELEMENTWISE
from surgeon.facts.fact import BOOL
from surgeon.facts.kinds import FLOATS
from surgeon.model import Model
from surgeon.objects import make_variable
from surgeon.schemas import Parameter, Schema, ends_with_out, overloads
from surgeon.schemas.aliases import out_of_place, plain_name
from surgeon.spelling import (
    ATEN_DOMAINS,
    BY_NAME,
    LOST_WRITE,
    OVERLOAD,
    PRIM_DOMAINS,
    named_operator,
    names_operator,
)
from surgeon.standard import STANDARD
from surgeon.writer import FIRST_IR_WITH_FREE_INITIALIZERS

_AttributeRef = gs.Node.AttributeRef
ATEN = "aten"
PRIM = "prim"
# Domains that other tools gave up for a common one.
_FORMER = {
    **dict.fromkeys(("onnx.brevitas", "finn.custom_op.general"), "qonnx.custom_op.general"),
    "com.vai.quantize": "com.amd.quark",
}
WRITTEN = "_written"  # an operator that wrote into its input, whose dtype the result has
PASSED = "passed"  # of a node of the main graph: a sweep, in the file's order, has been there
# Whose results share no memory with what they are computed of; of `x.to(x.dtype)` it does.
_ANEW = ELEMENTWISE - {"Cast", "Identity"}
# Of what these give, `out=`, nothing is read.
_MAKING_ROOM = frozenset(
    """ConstantOfShape Expand empty empty_like full full_like new_empty new_full new_ones new_zeros
    ones ones_like zeros zeros_like""".split()
)
_UNPACKED = "_outputs"  # how many elements of its list the node gives out, each by itself
_DTYPES = {"int": np.int64, "bool": np.bool_, "float": np.float64}
_NUMBERS = frozenset((*_DTYPES, "number"))


def wants_listed(model: Model) -> bool:
    """Whether the model's format has no initializer that is not listed among the inputs too."""
    return model.proto.ir_version < FIRST_IR_WITH_FREE_INITIALIZERS


def strip_initializer_inputs(model: Model, *, keep: bool) -> str:
    """Take the initializers that are graph inputs too for constants, where the exporter meant so.

    torch 1.1 to 2.4 list every initializer as an input in fallback mode; where some alone are
    listed, somebody means them to be given: the states that a network begins with, say. Where the
    format itself wants them there (`wants_listed`), no runtime overrides one.

    Args:
        model: Its `overridable` names are cleared where they are constants.
        keep: Keep them overridable, and so not constant.

    Returns:
        What becomes of them, in a sentence; "" where nothing does.
    """
    listed = wants_listed(model)
    if keep or not model.overridable or not (listed or model.listed):
        return ""
    count = f"{len(model.overridable)} initializers that "
    model.overridable.clear()
    kept = "(`--keep-overridable` keeps them)"
    if listed:
        return (
            f"{count}the inputs list, as IR version {model.proto.ir_version} wants, are constants: "
            f"those that nothing reads any more leave {kept}"
        )
    return f"{count}the exporter lists as inputs are constants, and leave the inputs {kept}"


def normalise(
    node: gs.Node, opset: int, facts: Facts, is_output: Callable[[gs.Tensor], bool]
) -> None:
    """Bring one node to normal form, in place; `origin` keeps what the file says."""
    domain = node.domain or ""
    if key := names_operator(domain, node.op):
        told = _told_by_name(node)
        if told is None:
            return
        operator, overload = (str(node.attrs.get(name, "")) for name in (key, OVERLOAD))
        rest = {k: v for k, v in node.attrs.items() if k not in (key, BY_NAME)}
        node.attrs = {**rest, **told}
        _to_aten(node, named_operator(operator), overload, is_output, facts)
    elif (domain in ATEN_DOMAINS and "overload" not in node.attrs) or (
        domain in STANDARD and node.op == LOST_WRITE
    ):
        _to_aten(node, node.op, "", is_output, facts)
    elif domain in PRIM_DOMAINS:
        node.domain = PRIM
    elif domain in _FORMER:
        node.domain = _FORMER[domain]
    elif domain in STANDARD:
        for value in node.attrs.values():
            if isinstance(value, _AttributeRef):
                node.domain = opsets.LEGACY  # the caller decides what it means
                return
        if not opsets.is_moved(node.op, opset):
            return
        first = node.inputs[0] if node.inputs else None
        fact = None if first is None or first.is_empty() else facts.of(first)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(fact.dtype) if fact and fact.dtype else None
        opsets.raise_form(node, opset, dtype, fact.rank if fact else None)


def _to_aten(
    node: gs.Node,
    operator: str,
    overload: str,
    is_output: Callable[[gs.Tensor], bool],
    facts: Facts,
) -> None:
    if node.origin_inputs is None:
        node.origin_inputs = tuple(node.inputs)
    if any(map(_is_none, node.inputs)):
        node.inputs = [make_variable("") if _is_none(t) else t for t in node.inputs]
    named, operator = operator, _written(node, operator, is_output)
    rest = {k: v for k, v in node.attrs.items() if k != OVERLOAD}
    unpacked = {_UNPACKED: rest.pop(_UNPACKED)} if _UNPACKED in rest else {}
    node.op, node.domain = operator, ATEN
    found = _positional(node, operator, rest) if rest else None
    if found is not None:
        schema, node.inputs = found
        overload = overload or schema.overload
        rest = {}
    out = not rest and _has_out(node, operator, overload, facts)
    same = out and facts.of(node.inputs[0]).dtype == facts.of(node.inputs[-1]).dtype
    if out:
        node.inputs = node.inputs[:-1]
    written = {WRITTEN: 1} if same or (out_of_place(named) and operator != named) else {}
    node.attrs = {"overload": overload, **written, **unpacked, **rest}


def _is_none(tensor: gs.Tensor) -> bool:
    """Whether it is None as files of PyTorch's operators as they are (RAW) have it."""
    return any(
        made.op == "Constant" and (made.domain or "") in PRIM_DOMAINS and not made.attrs
        for made in tensor.inputs
    )


def _has_out(node: gs.Node, operator: str, overload: str, facts: Facts) -> bool:
    """Whether the last input is what the result was written to (`out=`), behind all that is read.

    The result has its dtype: where that is the first input's, as of what wrote into its input, or
    booleans, which PyTorch writes no numbers to. What else is computed goes on from the result, as
    the exporter writes it.
    """
    if len(node.outputs) != 1 or len(node.inputs) < 2:
        return False
    first, out = node.inputs[0], node.inputs[-1]
    if first.is_empty() or not ends_with_out(operator, len(node.inputs)):
        return False
    dtype = facts.of(out).dtype
    if dtype != BOOL and (dtype not in FLOATS or facts.of(first).dtype != dtype):
        return False
    if "out" in overload.split("_"):  # the file says so
        return True
    if isinstance(out, gs.Constant):  # an `empty` of known sizes
        return out.values.ndim > 0 and out.values.size != 1 and not out.values.any()
    return any(made.op in _MAKING_ROOM for made in out.inputs)


def _told_by_name(node: gs.Node) -> dict[str, Any] | None:
    """The arguments that ONNX Runtime's first trainer wrote as JSON; None where it is none."""
    text = node.attrs.get(BY_NAME)
    try:
        given = json.loads(str(text)) if text else {}
    except ValueError:
        return None
    if not isinstance(given, dict):
        return None
    return {name: value for name, value in given.items() if value is not None}


def _written(node: gs.Node, operator: str, is_output: Callable[[gs.Tensor], bool]) -> str:
    """The operator by its plain name, and without its writing into the input.

    What computes something else of that input in front of it has read what was there before.
    Where anything else reads it too, the file does not say whether before or after: behind a copy
    that the exporter left out, or by a view; and an output of the model has what was written.
    """
    plain = plain_name(operator)
    if out_of_place(operator) is None:
        return plain
    first = node.inputs[0] if node.inputs else None
    if first is None or is_output(first) or not overloads(plain):
        return operator
    return plain if all(n is node or _has_read(n, node) for n in first.outputs) else operator


def _has_read(node: gs.Node, writer: gs.Node) -> bool:
    """Whether a node stands in front of one that writes, and what it gives is no view.

    In a body nothing does: in the turn of a Loop that follows it reads what was written.
    """
    anew = (node.domain or "") in STANDARD and node.op in _ANEW
    return anew and bool(node.__dict__.get(PASSED)) and node.home is writer.home


def _positional(
    node: gs.Node, operator: str, attributes: dict[str, Any]
) -> tuple[Schema, list[gs.Tensor]] | None:
    """A schema and the inputs, the attributes of the Caffe2-era spelling in their places.

    None where no schema of the operator has them all.
    """
    for schema in overloads(operator):
        if not _names(schema, attributes):
            continue
        waiting = list(node.inputs)
        tensors = [p for p in schema.parameters if p.type == "Tensor"]
        needed = sum(p.required and not p.optional and not p.is_list for p in tensors)
        if len(waiting) < needed:
            continue
        inputs: list[gs.Tensor] = []
        for parameter in schema.parameters:
            if parameter.name in attributes:
                array = _held(parameter, attributes[parameter.name])
                inputs.append(gs.Constant(f"{node.outputs[0].name}/{parameter.name}", array))
            elif parameter.is_tensors:
                needed_behind = sum(
                    p.required and p.type == "Tensor"
                    for p in schema.parameters[schema.parameters.index(parameter) + 1 :]
                )
                count = len(waiting) - needed_behind
                inputs.extend(waiting[:count])
                waiting = waiting[count:]
            elif parameter.type == "Tensor" and waiting:
                inputs.append(waiting.pop(0))
            else:
                inputs.append(make_variable(""))
        if not waiting:
            while inputs and inputs[-1].is_empty():
                inputs.pop()
            return schema, inputs
    return None


def _names(schema: Schema, attributes: dict[str, Any]) -> bool:
    """Whether a schema has these attributes, by name and as texts or none, and needs no others."""
    missing = set(attributes)
    for parameter in schema.parameters:
        if parameter.name in attributes:
            missing.discard(parameter.name)
            value = attributes[parameter.name]
            members = value if isinstance(value, list | tuple) else [value]
            if parameter.type in _NUMBERS and not all(isinstance(v, int | float) for v in members):
                return False
            if parameter.type == "str" and not all(isinstance(v, str) for v in members):
                return False
        elif parameter.required and not parameter.optional and parameter.type != "Tensor":
            return False
    return not missing


def _held(parameter: Parameter, value: Any) -> np.ndarray[Any, Any]:
    """An attribute as the value of an input; a number is whole where it is written as such."""
    members = value if isinstance(value, list | tuple) else [value]
    dtype = _DTYPES.get(parameter.type)
    if parameter.type == "number":
        dtype = np.int64 if all(isinstance(v, int) for v in members) else np.float64
    return np.asarray(members if parameter.is_list else value, dtype)
