"""Raises a model's opset by onnx's version converter, and mends what that gets wrong."""

from __future__ import annotations

import onnx

from surgeon.errors import SurgeonError
from surgeon.importer import opset_of
from surgeon.nested import every_node
from surgeon.opsets import STANDARD
from surgeon.unread import without_inputs
from surgeon.writer import FIRST_IR_WITH_FREE_INITIALIZERS

_COORDINATES = 11  # the opset from which Resize says which coordinates it means


def raise_opset(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """The model at a newer opset.

    The converter gives a Resize of before opset 11, and an Upsample, the coordinates that are the
    default of later ones; they meant others.

    Raises:
        SurgeonError: The model is there already, an Upsample shrinks, which means nothing, or the
            converter has no adapter for an operator.
    """
    import onnx.version_converter

    before = opset_of(proto) or 1
    if before >= opset:
        raise SurgeonError(
            f"the model is at opset {before}",
            where=f"raise-opset: {opset}",
            mend="Leave the step out.",
        )
    if not any(entry.domain in STANDARD for entry in proto.opset_import):
        return _imported(proto, opset)
    if before < _COORDINATES <= opset:
        _check_upsamples(proto, opset)
    try:
        raised = onnx.version_converter.convert_version(_unlisted(proto), opset)
    except Exception as error:  # the converter raises RuntimeError and its own kinds
        raise SurgeonError(
            f"onnx's version converter fails: {error}",
            where=f"raise-opset: {opset}",
            mend="Export the model at the opset you need.",
        ) from None
    if before < _COORDINATES <= opset:
        for node in every_node(raised.graph.node):
            if node.op_type == "Resize" and node.domain in ("", "ai.onnx"):
                _as_before(node)
    return raised


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


def _check_upsamples(proto: onnx.ModelProto, opset: int) -> None:
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    for node in every_node(proto.graph.node):
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if attribute.name == "value":
                constants[node.output[0]] = attribute.t
        if node.op_type != "Upsample":
            continue
        scales = [s for a in node.attribute if a.name == "scales" for s in a.floats]
        if len(node.input) > 1 and node.input[1] in constants:
            scales = onnx.numpy_helper.to_array(constants[node.input[1]]).reshape(-1).tolist()
        if any(scale < 1 for scale in scales):
            raise SurgeonError(
                f"an Upsample has the scale {min(scales):.3g}, and below 1 it means nothing",
                where=f"raise-opset: {opset}, output `{node.output[0]}`",
                mend="Export the model at opset 11 or newer.",
            )


def _as_before(node: onnx.NodeProto) -> None:
    """Give a converted Resize the coordinates of opset 10, and nearest the element before.

    An axis that shrinks had the element behind; a model's check shows where that matters.
    """
    kept = [a for a in node.attribute if a.name in ("mode", "cubic_coeff_a")]
    old = {"coordinate_transformation_mode": "asymmetric"}
    if not any(a.name == "mode" and a.s != b"nearest" for a in kept):
        old["nearest_mode"] = "floor"
    made = [onnx.helper.make_attribute(name, value) for name, value in old.items()]
    attributes = [*kept, *made]
    del node.attribute[:]
    node.attribute.extend(attributes)
