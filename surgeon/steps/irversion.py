"""Lowers a model's IR version, the format of the file, where nothing in it needs a newer one."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from surgeon.errors import SurgeonError
from surgeon.nested import bodies

_TYPE = onnx.TensorProto
OLDEST_IR = 4  # before, every initializer had to be a graph input too
# Element types, by the IR version that brought them.
_TYPES = {
    9: "FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ",
    10: "UINT4 INT4",
    11: "FLOAT4E2M1",
    12: "FLOAT8E8M0",
    13: "UINT2 INT2",
}
_SINCE = {
    _TYPE.DataType.Value(name): version
    for version, names in _TYPES.items()
    for name in names.split()
    if name in _TYPE.DataType.keys()  # noqa: SIM118 - it is no dict
}
_FUNCTIONS = 8  # the version from which a model has functions of its own


def ir_version_of(opset: int) -> int:
    """The IR version that came with an opset."""
    entry = onnx.helper.make_opsetid("", opset)
    return max(OLDEST_IR, onnx.helper.find_min_ir_version_for([entry]))


def least_ir_version(proto: onnx.ModelProto) -> int:
    """The oldest IR version that has all that is in the file."""
    versions = {entry.domain or "": entry.version for entry in proto.opset_import}
    known = [onnx.helper.make_opsetid(d, v) for d, v in versions.items() if d in ("", "ai.onnx.ml")]
    found = onnx.helper.find_min_ir_version_for(known) if known else OLDEST_IR
    if proto.functions:
        found = max(found, _FUNCTIONS)
    return max(found, OLDEST_IR, *(_SINCE.get(kind, 0) for kind in _kinds(proto.graph)), 0)


def lower_ir_version(proto: onnx.ModelProto, version: int) -> onnx.ModelProto:
    """The model in an older format.

    Raises:
        SurgeonError: Something in the file needs a newer one.
    """
    least = least_ir_version(proto)
    if least > version:
        raise SurgeonError(
            f"what is in the file needs IR version {least}",
            where=f"ir-version: {version}",
            mend="Ask for an older opset too (`--opset N`), whose IR version is older.",
        )
    lowered = onnx.ModelProto()
    lowered.CopyFrom(proto)
    lowered.ir_version = version
    return lowered


def _kinds(graph: onnx.GraphProto) -> Iterator[int]:
    """The element types of what a graph holds and declares."""
    yield from (tensor.data_type for tensor in graph.initializer)
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.type.tensor_type.elem_type
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t.data_type
            if node.op_type == "Cast" and attribute.name == "to":
                yield attribute.i
        for body in bodies(node):
            yield from _kinds(body)
