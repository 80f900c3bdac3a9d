"""Raises a model's opset by onnx's version converter, and mends what that gets wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx

from surgeon.errors import OpsetError, SurgeonError
from surgeon.external import with_small_data
from surgeon.facts.kinds import HALVES
from surgeon.inferring import NotConverted, NotInferred, converted, inferred
from surgeon.nested import (
    WRITE_OUT,
    all_read,
    drop_constants,
    every_body,
    every_node,
    functions_left,
    standard_nodes,
)
from surgeon.opsets import BROADCASTING, PRECISION
from surgeon.spelling import is_foreign, operator_name
from surgeon.standard import STANDARD, first_opset, opset_of
from surgeon.steps.irversion import ir_version_of
from surgeon.steps.oldaxes import rank_of, with_trailing_ones
from surgeon.steps.unread import without_inputs
from surgeon.writer import FIRST_IR_WITH_FREE_INITIALIZERS

# The opset from which Resize says which coordinates it means, and Clip and Pad have operands.
_COORDINATES = 11
_MASKS = 12  # the opset from which the mask of a Dropout says what is kept
_ONE_AXIS = 13  # the opset from which Hardmax is along one axis, and not along it and all behind
# Operators that mean something else from an opset on, what they meant, and what helps.
_OTHERWISE: Mapping[str, tuple[int, str, str]] = {
    "Scan": (
        9,
        "a Scan is along a batch too, and from opset 9 on along none",
        "Export the model at the opset you need.",
    ),
    "GroupNormalization": (
        21,
        "a GroupNormalization has a scale for each group, and from opset 21 on one for each "
        "channel",
        "Put `group-norm-decompose` in front.",
    ),
}
# Operators with numbers that were attributes, from which input on they are operands.
_NUMBERS = {"Clip": 1, "Pad": 2}
_OTHER_FLOATS = (onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)


def raise_opset(proto: onnx.ModelProto, opset: int, folder: Path | None = None) -> onnx.ModelProto:
    """The model at a newer opset.

    The converter gives a Resize of before opset 11, and an Upsample, the coordinates that are the
    default of later ones; they meant others. Bounds of a Clip and the border of a Pad it gives in
    float32, whatever they are of. A QuantizeLinear of halves divides in float32, which has to be
    said from opset 23 on.

    Args:
        proto: The model.
        opset: The one wanted.
        folder: Where its external data lie.

    Raises:
        SurgeonError: The model is there already or has functions, which the converter leaves out;
            an Upsample shrinks, which means nothing; a Resize of opset 10 to the nearest shrinks
            along one axis and grows along another; a Hardmax is along several axes; the mask of
            a Dropout is read; or the converter has no adapter for an operator.
    """
    before = opset_of(proto) or 1
    if before >= opset:
        raise SurgeonError(
            f"the model is at opset {before}",
            where=f"raise-opset: {opset}",
            mend="Leave the step out.",
        )
    if not any(entry.domain in STANDARD for entry in proto.opset_import):
        return _imported(proto, opset)
    proto = with_small_data(proto, folder)
    _check_meanings(proto, before, opset)
    if before < _COORDINATES <= opset:
        _check_upsamples(proto, opset)
    kinds: dict[str, onnx.TypeProto.Tensor] = {}
    if before < _COORDINATES <= opset and any(standard_nodes(proto.graph, *_NUMBERS)):
        kinds = _kinds(proto)
    if before < _ONE_AXIS <= opset and any(standard_nodes(proto.graph, "Hardmax")):
        _check_hardmax(proto, kinds or _kinds(proto), opset)
    if before < _MASKS <= opset:
        _check_masks(proto, opset)
    if before < BROADCASTING <= opset:
        kinds = kinds or _kinds(proto)
        proto = with_trailing_ones(proto, kinds)
        if any(standard_nodes(proto.graph, "PRelu")):
            proto = _with_slopes_of_channels(proto, kinds, opset)
    divided = before < PRECISION <= opset and any(standard_nodes(proto.graph, "QuantizeLinear"))
    try:
        raised = converted(_unlisted(proto), opset)
    except NotConverted as error:
        raise _failed(proto, opset, error) from None
    if before < _COORDINATES <= opset:
        constants = _constants(raised)
        for node in standard_nodes(raised.graph, "Resize"):
            _as_before(node, constants, opset)
    _type_numbers(raised, kinds)
    if divided:
        _say_precision(raised, _kinds(proto))
    raised.ir_version = max(raised.ir_version, ir_version_of(opset))  # which has its types
    return raised


def _failed(proto: onnx.ModelProto, opset: int, error: Exception) -> SurgeonError:
    """What stops the converter: an operator that stands among ONNX's own and is none, if one is."""
    unknown = next(
        (
            operator_name(node)
            for node in every_node(proto.graph.node)
            if node.domain in STANDARD and not first_opset(node.op_type)
        ),
        "",
    )
    refused = OpsetError(
        f"onnx's version converter does not know `{unknown}`"
        if unknown
        else f"onnx's version converter fails: {error}",
        where=f"raise-opset: {opset}",
        mend="Put `aten` in front."
        if is_foreign(unknown)
        else "Export the model at the opset you need.",
    )
    refused.operator = unknown
    return refused


def _check_meanings(proto: onnx.ModelProto, before: int, opset: int) -> None:
    """Refuse what the converter leaves out, or leaves as it stands where it means something else.

    Raises:
        SurgeonError: There is such.
    """
    where = f"raise-opset: {opset}"
    if proto.functions:
        raise SurgeonError(f"the model has {functions_left(proto)}", where=where, mend=WRITE_OUT)
    for operator, (since, what, mend) in _OTHERWISE.items():
        if before < since <= opset and any(standard_nodes(proto.graph, operator)):
            raise SurgeonError(what, where=where, mend=mend)


def _kinds(proto: onnx.ModelProto) -> dict[str, onnx.TypeProto.Tensor]:
    """What is known of types and shapes, in bodies too."""
    try:
        graph = inferred(proto).graph
    except NotInferred:  # one of 2 GiB, say
        graph = proto.graph
    found = {}
    for each in (graph, *every_body(graph.node)):
        for value in (*each.input, *each.value_info, *each.output):
            found[value.name] = value.type.tensor_type
        for tensor in each.initializer:
            shape = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
            found[tensor.name] = shape.tensor_type
    return found


def _check_hardmax(
    proto: onnx.ModelProto, kinds: Mapping[str, onnx.TypeProto.Tensor], opset: int
) -> None:
    for node in standard_nodes(proto.graph, "Hardmax"):
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        rank = rank_of(kinds, node.input[0])
        if axis != -1 and (rank is None or axis != rank - 1):
            raise SurgeonError(
                f"a Hardmax is along its axis {axis} and those behind, and from opset {_ONE_AXIS} "
                "on along one",
                where=f"raise-opset: {opset}, output `{node.output[0]}`",
                mend="Export the model at the opset you need.",
            )


def _with_slopes_of_channels(
    proto: onnx.ModelProto, kinds: Mapping[str, onnx.TypeProto.Tensor], opset: int
) -> onnx.ModelProto:
    """The model with slopes that line up with the channels as they are lined up from now on."""
    made, constants = onnx.ModelProto(), _constants(proto)
    made.CopyFrom(proto)
    listed = proto.ir_version < FIRST_IR_WITH_FREE_INITIALIZERS  # all weights are, and none is fed
    if listed:
        constants.update((tensor.name, tensor) for tensor in proto.graph.initializer)
    for node in standard_nodes(made.graph, "PRelu"):
        slope, rank = constants.get(node.input[1]), rank_of(kinds, node.input[0])
        if slope is not None and all(size == 1 for size in slope.dims):
            continue
        if slope is None or len(slope.dims) != 1 or not rank:
            raise SurgeonError(
                "a PRelu has slopes of channels, which are computed, or of an unknown rank",
                where=f"raise-opset: {opset}, output `{node.output[0]}`",
                mend="Export the model at the opset you need.",
            )
        spread = made.graph.initializer.add()
        spread.CopyFrom(slope)
        spread.name = f"{node.output[0]}/slope"
        spread.dims.extend([1] * (rank - 2))
        if listed:
            info = onnx.helper.make_tensor_value_info(spread.name, spread.data_type, spread.dims)
            made.graph.input.append(info)
        node.input[1] = spread.name
    drop_constants(made.graph, all_read(proto.graph) - all_read(made.graph))
    return made


def _check_masks(proto: onnx.ModelProto, opset: int) -> None:
    read = all_read(proto.graph) - {""}
    for node in standard_nodes(proto.graph, "Dropout"):
        if read & {*node.output[1:]}:
            raise SurgeonError(
                f"the mask of a Dropout is read, of which ONNX says nothing before opset {_MASKS}",
                where=f"raise-opset: {opset}, output `{node.output[0]}`",
                mend="Put `opset-12-forms` in front, by which it is what is kept.",
            )


def _type_numbers(raised: onnx.ModelProto, kinds: Mapping[str, onnx.TypeProto.Tensor]) -> None:
    """Give the numbers that the converter made of attributes the type of what they are for."""
    for graph in (raised.graph, *every_body(raised.graph.node)):
        constants = {node.output[0]: node for node in graph.node if node.op_type == "Constant"}
        for node in graph.node:
            kind = kinds.get(node.input[0]) if node.op_type in _NUMBERS else None
            if kind is None or kind.elem_type not in _OTHER_FLOATS:
                continue
            for name in node.input[_NUMBERS[node.op_type] :]:
                maker = constants.get(name)
                if maker is None or name in kinds:  # what was there has its own
                    continue
                number = onnx.numpy_helper.to_array(maker.attribute[0].t)
                dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
                typed = onnx.numpy_helper.from_array(number.astype(dtype))
                maker.attribute[0].t.CopyFrom(typed)


def _say_precision(raised: onnx.ModelProto, kinds: Mapping[str, onnx.TypeProto.Tensor]) -> None:
    """Have a QuantizeLinear of halves divide in float32, as it did."""
    for node in standard_nodes(raised.graph, "QuantizeLinear"):
        kind = kinds.get(node.input[0])
        if kind is not None and kind.elem_type in HALVES:
            told = onnx.helper.make_attribute("precision", onnx.TensorProto.FLOAT)
            node.attribute.append(told)


def _imported(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """A model that imports none of ONNX's own operators, and so has none, and may at any opset."""
    raised = onnx.ModelProto()
    raised.CopyFrom(proto)
    raised.opset_import.append(onnx.helper.make_opsetid("", opset))
    return raised


def _unlisted(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A model of before IR version 4 as one of that, with initializers that are no inputs.

    Constants that such a model does not list as inputs are nodes, and many runtimes want weights
    to be initializers.
    """
    if proto.ir_version >= FIRST_IR_WITH_FREE_INITIALIZERS:
        return proto
    newer = without_inputs(proto, {tensor.name for tensor in proto.graph.initializer})
    newer.ir_version = FIRST_IR_WITH_FREE_INITIALIZERS
    nodes = list(newer.graph.node)
    del newer.graph.node[:]
    for node in nodes:
        values = [a.t for a in node.attribute if a.name == "value"]
        if node.op_type == "Constant" and node.domain in STANDARD and len(values) == 1:
            values[0].name = node.output[0]
            newer.graph.initializer.append(values[0])
        else:
            newer.graph.node.append(node)
    return newer


def _constants(proto: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    """Tensors that have one value, by name, in bodies too."""
    given = {value.name for value in proto.graph.input}  # by the caller, whatever the file has
    constants = {
        tensor.name: tensor
        for graph in (proto.graph, *every_body(proto.graph.node))
        for tensor in graph.initializer
        if tensor.name not in given
    }
    for node in standard_nodes(proto.graph, "Constant"):
        for attribute in node.attribute:
            if attribute.name == "value":
                constants[node.output[0]] = attribute.t
    return constants


def _scales(
    node: onnx.NodeProto, place: int, constants: Mapping[str, onnx.TensorProto]
) -> list[float]:
    """An operand that says how many times as long each axis becomes; empty where it is computed."""
    if len(node.input) <= place or node.input[place] not in constants:
        return []
    found: list[float] = onnx.numpy_helper.to_array(constants[node.input[place]]).ravel().tolist()
    return found


def _check_upsamples(proto: onnx.ModelProto, opset: int) -> None:
    constants = _constants(proto)
    for node in standard_nodes(proto.graph, "Upsample"):
        scales = [s for a in node.attribute if a.name == "scales" for s in a.floats]
        scales = _scales(node, 1, constants) or scales
        if any(scale < 1 for scale in scales):
            raise SurgeonError(
                f"an Upsample has the scale {min(scales):.3g}, and below 1 it means nothing",
                where=f"raise-opset: {opset}, output `{node.output[0]}`",
                mend="Export the model at opset 11 or newer.",
            )


def _as_before(node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto], opset: int) -> None:
    """Give a converted Resize the coordinates of opset 10, and nearest the element before.

    An axis that shrinks had the element behind. Where the scales are computed, a model's check
    shows whether that matters.

    Raises:
        SurgeonError: One axis shrinks and another grows, for which there is one word now.
    """
    kept = [a for a in node.attribute if a.name in ("mode", "cubic_coeff_a")]
    old = {"coordinate_transformation_mode": "asymmetric"}
    if not any(a.name == "mode" and a.s != b"nearest" for a in kept):
        scales = _scales(node, 2, constants)
        shrinks = any(scale < 1 and not (1 / scale).is_integer() for scale in scales if scale)
        if shrinks and any(scale > 1 for scale in scales):
            raise SurgeonError(
                "a Resize takes the element before along an axis that grows, and the one behind "
                "along an axis that shrinks",
                where=f"raise-opset: {opset}, output `{node.output[0]}`",
                mend="Export the model at opset 11 or newer.",
            )
        old["nearest_mode"] = "ceil" if shrinks else "floor"
    made = [onnx.helper.make_attribute(name, value) for name, value in old.items()]
    attributes = [*kept, *made]
    del node.attribute[:]
    node.attribute.extend(attributes)
