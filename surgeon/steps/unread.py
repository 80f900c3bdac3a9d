"""Inputs that are none: what nothing reads, and constants that a file lists among its inputs."""

from __future__ import annotations

from collections.abc import Collection

import onnx

from surgeon.errors import SurgeonError
from surgeon.nested import every_body, every_node
from surgeon.steps import asread
from surgeon.steps.asread import STEP, Handed, Layer
from surgeon.steps.ends import Typed


def as_read(
    proto: onnx.ModelProto, what: str, handed: Handed, fixed: Collection[str], typed: Typed
) -> onnx.ModelProto:
    """The model as a step of that kind leaves it: `unread`, `defaults`, or one of `asread`'s.

    Args:
        proto: The model.
        what: The kind.
        handed: Is given what was taken out.
        fixed: Inputs of which somebody told the shape.
        typed: Says of a value what element type it has.

    Raises:
        SurgeonError: There is nothing of the kind.
    """
    if what == "unread":
        return without_unread(proto, handed)
    if what == "defaults":
        return without_defaults(proto, handed)
    return asread.as_read(proto, what, handed, fixed, typed)


def without_unread(proto: onnx.ModelProto, handed: Handed) -> onnx.ModelProto:
    """The model without the inputs that nothing reads.

    Raises:
        SurgeonError: There is none.
    """
    bodies = [proto.graph, *every_body(proto.graph.node)]
    read = {name for node in every_node(proto.graph.node) for name in node.input}
    read.update(value.name for body in bodies for value in body.output)
    read.update(tensor.name for tensor in proto.graph.initializer)
    gone = [(at, v) for at, v in enumerate(proto.graph.input) if v.name not in read]
    if not gone or len(gone) == len(proto.graph.input):
        every = "nothing reads any input" if gone else "something reads every input"
        raise SurgeonError(every, where=f"{STEP}: unread", mend="Leave the step out.")
    changed = without_inputs(proto, {value.name for _, value in gone})
    handed.layers.append(Layer(gone=gone))
    return changed


def without_defaults(proto: onnx.ModelProto, handed: Handed) -> onnx.ModelProto:
    """The model whose constants are no inputs, whatever exporter listed them there.

    Raises:
        SurgeonError: None is.
    """
    values = {tensor.name for tensor in proto.graph.initializer}
    listed = tuple(value.name for value in proto.graph.input if value.name in values)
    if not listed:
        raise SurgeonError(
            "no input has a value in the file",
            where=f"{STEP}: defaults",
            mend="Leave the step out.",
        )
    handed.layers.append(Layer(constants=listed))
    return without_inputs(proto, set(listed))


def without_inputs(proto: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto:
    """A copy of the model in which these are no inputs."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    kept = [value for value in changed.graph.input if value.name not in names]
    del changed.graph.input[:]
    changed.graph.input.extend(kept)
    return changed
