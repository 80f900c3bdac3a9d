"""Lowers a model's opset, where the older one says the same of every operator that is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy.typing as npt
import onnx

from surgeon.declared import length_of
from surgeon.errors import OpsetError, SurgeonError
from surgeon.external import with_small_data, without_data
from surgeon.facts.fact import INTEGERS
from surgeon.facts.kinds import HALVES
from surgeon.inferring import NotInferred, inferred
from surgeon.nested import bodies, functions_left, standard_nodes
from surgeon.opsets import MOVED, PRECISION, Moved
from surgeon.standard import STANDARD, attribute_value, defaults, first_opset, opset_of, schema
from surgeon.steps.irversion import least_ir_version
from surgeon.steps.lowered import FORMS, Dims, Not, Where
from surgeon.writer import FIRST_IR_WITH_FREE_INITIALIZERS

# Operators whose text was changed since opset 11 and whose meaning was not, or `lowered` and the
# table below see to it; what they can do since, an attribute or an operand says.
_ALIKE = frozenset(
    "Abs Add ArgMax ArgMin AveragePool BatchNormalization BitShift Cast Ceil Clip Constant "
    "DepthToSpace DequantizeLinear Div Dropout EyeLike Floor GRU Gather GatherElements GatherND "
    "Gemm Hardmax LRN LSTM LogSoftmax Loop LpPool MaxPool MeanVarianceNormalization Mod Mul PRelu "
    "Pad Pow QuantizeLinear RNN Range ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
    "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Reshape Resize RoiAlign "
    "ScatterElements ScatterND Shape Slice Softmax SpaceToDepth Split Squeeze Sub Transpose "
    "Unsqueeze".split()
)
# Others, and the opset from which that is so.
_ALIKE_SINCE: Mapping[str, int] = {"CastLike": 15, "GridSample": 16, "DFT": 17, "Attention": 23}
_MODES = {b"linear": b"bilinear", b"cubic": b"bicubic"}  # of GridSample, before opset 20


_DFT_AXIS = Moved("axis", 2, 20, scalar=True)
_LAST_AXIS = -2  # of a DFT that names none, from opset 20 on
_FLOORED = 28  # the opset from which a Mod that is not C's takes floats


def lower_opset(proto: onnx.ModelProto, opset: int, folder: Path | None = None) -> onnx.ModelProto:
    """The model at an older opset.

    An operator stays as it is where the text on it is the same but for the types it takes, which
    the checker looks at afterwards; some whose text was worded anew are known to mean the same.

    Args:
        proto: The model.
        opset: The one wanted.
        folder: Where its external data lie.

    Raises:
        SurgeonError: The model is there already, or an operator, an attribute or a type is not.
    """
    where = f"lower-opset: {opset}"
    before = opset_of(proto) or 1
    if before <= opset:
        mend = "Leave the step out."
        raise SurgeonError(f"the model is at opset {before}", where=where, mend=mend)
    proto = with_small_data(proto, folder)
    lowered = onnx.ModelProto()
    lowered.CopyFrom(proto)
    try:
        _check_plain(lowered)
        at = Where(opset, {}, _dims_of(proto))
        _lower(lowered.graph, before, at, fed=set(_fed(proto)))
        _add(lowered, at.added)
        if before >= PRECISION > opset and any(standard_nodes(proto.graph, "QuantizeLinear")):
            _check_quotients(inferred(proto).graph, {})
        if before >= _FLOORED > opset:
            _check_remainders(inferred(proto).graph)
        for entry in lowered.opset_import:
            if entry.domain in STANDARD:
                entry.version = opset
        lowered.ir_version = min(proto.ir_version, least_ir_version(lowered))
        _check(lowered)
    except (Not, onnx.checker.ValidationError, NotInferred) as error:
        what = str(error).strip().splitlines()[0]
        mend = "Put recipes in front that spell it otherwise, as `spelled-out`."
        refused = OpsetError(what, where=where, mend=mend)
        refused.operator = error.operator if isinstance(error, Not) else ""
        raise refused from None
    return lowered


def _add(model: onnx.ModelProto, tensors: Mapping[str, onnx.TensorProto]) -> None:
    """Tensors that no node made, as the IR version has them; one of another lowering is there."""
    graph = model.graph
    known = {tensor.name for tensor in graph.initializer}
    known |= {name for node in graph.node for name in node.output}
    new = [tensor for name, tensor in tensors.items() if name not in known]
    if model.ir_version >= FIRST_IR_WITH_FREE_INITIALIZERS:
        graph.initializer.extend(new)
        return
    for tensor in new:
        made = onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
        graph.node.insert(0, made)


def _check_plain(model: onnx.ModelProto) -> None:
    if model.functions:
        raise Not(f"the model has {functions_left(model)}")


def _check(model: onnx.ModelProto) -> None:
    """Whether every operator takes the types it is given; shapes that the file says may be old.

    The checker wants shapes of inputs and outputs, and types of outputs, which runtimes do not, and
    many files lack them.
    """
    if model.ByteSize() >= onnx.checker.MAXIMUM_PROTOBUF:
        return
    claims = list(model.graph.value_info)
    del model.graph.value_info[:]
    seen = without_data(model)
    told = inferred(seen, check_type=True, strict=True)
    untyped = [value for value in seen.graph.output if not value.HasField("type")]
    kinds = {value.name: value.type for value in told.graph.output}
    for value in untyped:
        value.type.CopyFrom(kinds[value.name])
    tensors = [value.type.tensor_type for value in (*seen.graph.input, *seen.graph.output)]
    bare = [tensor for tensor in tensors if tensor.elem_type and not tensor.HasField("shape")]
    for tensor in bare:
        tensor.shape.SetInParent()
    onnx.checker.check_model(seen)
    for tensor in bare:
        tensor.ClearField("shape")
    for value in untyped:
        value.ClearField("type")
    model.graph.value_info.extend(claims)


def _check_remainders(graph: onnx.GraphProto) -> None:
    """Whether each Mod that is not C's is known to be of integers, as older ones are."""
    values = (*graph.input, *graph.value_info, *graph.output)
    kinds = {value.name: value.type.tensor_type.elem_type for value in values}
    for node in graph.node:
        for body in bodies(node):
            _check_remainders(body)
        if node.op_type != "Mod" or node.domain not in STANDARD or _is_given(node, "fmod"):
            continue
        if kinds.get(node.output[0], 0) not in INTEGERS:
            raise Not(f"Mod of floats has the sign of the divisor from opset {_FLOORED} on")


def _check_quotients(graph: onnx.GraphProto, outer: Mapping[str, int]) -> None:
    """Whether each QuantizeLinear divides in float32, as onnxruntime does at older opsets."""
    kinds = {**outer, **{tensor.name: tensor.data_type for tensor in graph.initializer}}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kinds[value.name] = value.type.tensor_type.elem_type or kinds.get(value.name, 0)
    for node in graph.node:
        for body in bodies(node):
            _check_quotients(body, kinds)
        if node.op_type != "QuantizeLinear" or node.domain not in STANDARD:
            continue
        told = next((each.i for each in node.attribute if each.name == "precision"), 0)
        if (told or kinds.get(node.input[1], 0)) in HALVES:
            raise Not(f"QuantizeLinear divides in halves from opset {PRECISION} on")


def _fed(proto: onnx.ModelProto) -> Iterator[str]:
    """Inputs, in whose place others may be fed where they are initializers too.

    Before IR version 4 all of these are listed so, and no runtime overrides one.
    """
    if proto.ir_version >= FIRST_IR_WITH_FREE_INITIALIZERS:
        yield from (value.name for value in proto.graph.input)


def _dims_of(proto: onnx.ModelProto) -> Callable[[str], Dims | None]:
    """The dims of a value by name, inferred when the first is asked for."""

    @cache
    def known() -> Mapping[str, Dims]:
        found = {tensor.name: [*tensor.dims] for tensor in proto.graph.initializer}
        graph = proto.graph
        if proto.ByteSize() < onnx.checker.MAXIMUM_PROTOBUF:
            graph = inferred(proto).graph
        for value in (*graph.input, *graph.value_info, *graph.output):
            if value.type.tensor_type.HasField("shape"):
                dims = value.type.tensor_type.shape.dim
                found[value.name] = [length_of(d) for d in dims]
        return found

    return lambda name: known().get(name)


def _lower(
    graph: onnx.GraphProto, before: int, outer: Where, fed: Collection[str] = frozenset()
) -> None:
    constants = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in fed}
    where = outer.inside(constants)
    for node in graph.node:
        if node.op_type == "Constant":
            where.constants.update(
                (node.output[0], a.t) for a in node.attribute if a.name == "value"
            )
        for body in bodies(node):
            _lower(body, before, where)
        if node.domain not in STANDARD:
            continue
        try:
            _at(node, before, where)
        except Not as error:
            error.operator = error.operator or node.op_type
            raise


def _at(node: onnx.NodeProto, before: int, where: Where) -> None:
    """Bring one node to the older opset.

    Raises:
        Not: It says what the older one cannot.
    """
    opset = where.opset
    now, old = schema(node.op_type, before), schema(node.op_type, opset)
    if now is None or now.since_version <= opset:
        return
    if old is None:
        raise Not(f"{node.op_type} is an operator from opset {first_opset(node.op_type)} on")
    for move in (_DFT_AXIS,) if node.op_type == "DFT" else MOVED.get(node.op_type, ()):
        if opset < move.since <= before and len(node.input) > move.index:
            _as_attribute(node, move.attribute, move.index, where.constants)
    if node.op_type == "DFT" and not any(a.name == "axis" for a in node.attribute):
        node.attribute.append(onnx.helper.make_attribute("axis", _LAST_AXIS))
    if _text(node.op_type, before) != _text(node.op_type, opset):
        if node.op_type not in _ALIKE and opset < _ALIKE_SINCE.get(node.op_type, opset + 1):
            raise Not(f"{node.op_type} means something else at opset {opset}")
        if node.op_type in FORMS:
            FORMS[node.op_type](node, where)
        _without_newer(node, now, old)
    while len(node.input) > old.max_input and not node.input[-1]:
        del node.input[-1]
    if len(node.input) > old.max_input:
        raise Not(f"{node.op_type} has fewer inputs at opset {opset}")


def _as_attribute(
    node: onnx.NodeProto, name: str, index: int, constants: Mapping[str, onnx.TensorProto]
) -> None:
    """An argument that is an input of the newer opset as an attribute of the older."""
    given = node.input[index]
    while index + 1 < len(node.input) and not node.input[-1]:
        del node.input[-1]
    if index + 1 != len(node.input):
        raise Not(f"{node.op_type} has more inputs than older opsets")
    del node.input[index]
    if not given:
        return
    if given not in constants or constants[given].data_location == onnx.TensorProto.EXTERNAL:
        raise Not(f"`{name}` of {node.op_type} is computed, and was an attribute")
    array = onnx.numpy_helper.to_array(constants[given])
    if array.size or not node.op_type.startswith("Reduce"):  # none means all of them
        node.attribute.append(_numbers(name, array))


def _numbers(name: str, array: npt.NDArray[Any]) -> onnx.AttributeProto:
    """An attribute of what an input says; a list has its type where it is empty, too."""
    if name == _DFT_AXIS.attribute:
        return onnx.helper.make_attribute(name, array.tolist())
    kind = onnx.AttributeProto.INTS
    return onnx.helper.make_attribute(name, array.reshape(-1).tolist(), attr_type=kind)


def _without_newer(node: onnx.NodeProto, now: onnx.defs.OpSchema, old: onnx.defs.OpSchema) -> None:
    """Leave out attributes that the older opset lacks, where they say what it does anyway."""
    for attribute in list(node.attribute):
        value = attribute_value(attribute)
        if node.op_type == "GridSample" and attribute.name == "mode":
            attribute.s = _MODES.get(attribute.s, attribute.s)
        if attribute.name in old.attributes:
            if attribute.type == onnx.AttributeProto.STRING:
                _check_named(node, attribute, old)
            continue
        usual = defaults(node.op_type, now.since_version).get(attribute.name)
        idle = attribute.name == "dilations" and set(value) == {1}
        idle = idle or (attribute.name == "noop_with_empty_axes" and _has_axes(node))
        if not idle and value != usual:
            raise Not(f"`{attribute.name}` of {node.op_type} is of a newer opset")
        node.attribute.remove(attribute)


def _has_axes(node: onnx.NodeProto) -> bool:
    return any(attribute.name == "axes" and attribute.ints for attribute in node.attribute)


def _is_given(node: onnx.NodeProto, name: str) -> bool:
    return any(attribute.name == name and attribute.i for attribute in node.attribute)


def _check_named(
    node: onnx.NodeProto, attribute: onnx.AttributeProto, old: onnx.defs.OpSchema
) -> None:
    """Whether the older text names what an attribute chooses, a mode or a reduction."""
    chosen = attribute.s.decode()
    known = old.attributes[attribute.name]
    told = f"{known.description} {known.default_value} {old.doc}"
    if not re.search(rf"(?<!\w){re.escape(chosen)}(?!\w)", told):
        raise Not(f"`{attribute.name}` of {node.op_type} is `{chosen}`, which is of a newer opset")


@cache
def _text(op: str, opset: int) -> tuple[Any, ...]:
    """All that an opset says of an operator, but for the types it takes."""
    found = schema(op, opset)
    assert found is not None
    return (found.doc, *_arguments(found))


def _arguments(found: onnx.defs.OpSchema) -> Iterator[Any]:
    for name, attribute in sorted(found.attributes.items()):
        yield (name, attribute.type, attribute.description, str(attribute.default_value))
    for formal in (*found.inputs, *found.outputs):
        yield (formal.name, formal.description, formal.option)
    yield (found.min_input, found.max_input, found.min_output, found.max_output)
